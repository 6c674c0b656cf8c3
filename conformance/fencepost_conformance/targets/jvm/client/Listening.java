package org.apache.kafka.clients.consumer.internals;

import java.util.Collection;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.common.TopicPartition;

/** A listener that passes every call to the player of the trace. */
interface Listening extends ConsumerRebalanceListener {
    void called(String name, Collection<TopicPartition> partitions);

    @Override
    default void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        called("revoked", partitions);
    }

    @Override
    default void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        called("assigned", partitions);
    }

    @Override
    default void onPartitionsLost(Collection<TopicPartition> partitions) {
        called("lost", partitions);
    }
}

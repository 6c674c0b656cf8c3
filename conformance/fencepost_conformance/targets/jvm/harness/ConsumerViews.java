package fencepost;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Collection;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMemberMetadataValue.ClassicMemberMetadata;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMemberMetadataValue.ClassicProtocol;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;

/**
 * The visible state of the consumer groups in memory (G-DATA-20…33), written when it changed. Fields that a release
 * lacks are written as the value that stands for "none".
 */
final class ConsumerViews extends GroupViews<ConsumerGroup> {
    private static final Field STATIC_MEMBERS = Reflect.field(ConsumerGroup.class, "staticMembers");
    private static final Field PARTITION_EPOCHS = Reflect.field(ConsumerGroup.class, "currentPartitionEpoch");
    private static final Field REGEXES = Reflect.field(ConsumerGroup.class, "resolvedRegularExpressions");
    private static final Field DEADLINE = Reflect.field(ConsumerGroup.class, "metadataRefreshDeadline");
    private static final Field DEADLINE_MS = Reflect.field(DEADLINE.getType(), "deadlineMs");
    private static final Field DEADLINE_EPOCH = Reflect.field(DEADLINE.getType(), "epoch");
    private static final Field EXPIRED = Reflect.field(DEADLINE.getType(), "EMPTY");
    private static final Method HASH = optional(ConsumerGroup.class, "metadataHash");
    private static final Method TIMESTAMP = optional(ConsumerGroup.class, "assignmentTimestamp");
    private static final Method LEGACY = optional(ConsumerGroup.class, "hasSubscriptionMetadataRecord");
    private static final Method OLD_METADATA = optional(ConsumerGroup.class, "subscriptionMetadata");
    private static final Method CLASSIC = Reflect.method(ConsumerGroupMember.class, "classicMemberMetadata");

    ConsumerViews(Hosts hosts) {
        super(ConsumerGroup.class, hosts);
    }

    @Override
    protected void write(ConsumerGroup group) {
        view.clear().open().text(group.stateAsString()).number(group.groupEpoch()).number(number(HASH, group))
            .number(group.assignmentEpoch()).number(number(TIMESTAMP, group))
            .text(group.subscriptionType().toString()).open();
        new TreeMap<>(group.members()).values().forEach(this::write);
        view.close().open();
        new TreeMap<String, String>(statics(group)).forEach(
            (instance, member) -> view.open().text(instance).text(member).close());
        view.close().open();
        new TreeMap<>(group.targetAssignment()).forEach((member, target) -> {
            view.open().text(member).open();
            new TreeMap<>(target.partitions()).forEach((topic, partitions) -> {
                view.open().text(topic.toString()).open();
                new TreeSet<>(partitions).forEach(view::number);
                view.close().close();
            });
            view.close().close();
        });
        view.close().open();
        new TreeMap<>(partitionEpochs(group)).forEach((topic, epochs) -> new TreeMap<>(epochs).forEach(
            (partition, epoch) -> view.open().text(topic.toString()).number(partition).number(epoch).close()));
        view.close().open();
        new TreeMap<>(regexes(group)).forEach(this::write);
        view.close();
        writeDeadline(Reflect.get(DEADLINE, group));
        view.flag(hasLegacyMetadata(group)).close();
    }

    private void write(ConsumerGroupMember member) {
        view.open().text(member.memberId()).text(member.instanceId()).text(member.rackId()).text(member.clientId())
            .text(hosts.name(member.clientHost())).number(member.rebalanceTimeoutMs()).open();
        new TreeSet<>(member.subscribedTopicNames()).forEach(view::text);
        view.close().text(member.subscribedTopicRegex()).text(member.serverAssignorName().orElse(null))
            .number(member.memberEpoch()).number(member.previousMemberEpoch()).number(member.state().value());
        // sets of partitions before 4.3, then partitions with their assignment epochs (V-53)
        partitions((Map<?, ?>) member.assignedPartitions());
        partitions((Map<?, ?>) member.partitionsPendingRevocation());
        Object found = Reflect.call(CLASSIC, member);
        ClassicMemberMetadata classic = (ClassicMemberMetadata) ((java.util.Optional<?>) found).orElse(null);
        if (classic == null) {
            view.none();
        } else {
            view.open().number(classic.sessionTimeoutMs()).open();
            for (ClassicProtocol protocol : classic.supportedProtocols()) {
                view.text(protocol.name()).bytes(protocol.metadata());
            }
            view.close().close();
        }
        view.close();
    }

    private void partitions(Map<?, ?> byTopic) {
        view.open();
        Map<Uuid, Object> sorted = new TreeMap<>();
        byTopic.forEach((topic, partitions) -> sorted.put((Uuid) topic, partitions));
        sorted.forEach((topic, partitions) -> {
            view.open().text(topic.toString()).open();
            if (partitions instanceof Map<?, ?> epochs) {
                Map<Integer, Integer> ordered = new TreeMap<>();
                epochs.forEach((partition, epoch) -> ordered.put((Integer) partition, (Integer) epoch));
                ordered.keySet().forEach(view::number);
                view.close().open();
                ordered.values().forEach(view::number);
                view.close();
            } else {
                Set<Integer> ordered = new TreeSet<>();
                ((Collection<?>) partitions).forEach(partition -> ordered.add((Integer) partition));
                ordered.forEach(view::number);
                view.close().none();
            }
            view.close();
        });
        view.close();
    }

    private void write(String regex, Object resolved) {
        Class<?> type = resolved.getClass();
        view.open().text(regex).open();
        for (Object topic : new TreeSet<>((Set<?>) Reflect.get(Reflect.field(type, "topics"), resolved))) {
            view.text((String) topic);
        }
        view.close().number((Long) Reflect.get(Reflect.field(type, "version"), resolved))
            .number((Long) Reflect.get(Reflect.field(type, "timestamp"), resolved)).close();
    }

    private void writeDeadline(Object deadline) {
        if (deadline == Reflect.get(EXPIRED, null)) {
            view.none();
        } else {
            view.open().number((Long) Reflect.get(DEADLINE_MS, deadline))
                .number((Integer) Reflect.get(DEADLINE_EPOCH, deadline)).close();
        }
    }

    private static boolean hasLegacyMetadata(ConsumerGroup group) {
        return LEGACY != null ? (Boolean) Reflect.call(LEGACY, group)
            : !((Map<?, ?>) Reflect.call(OLD_METADATA, group)).isEmpty();
    }

    private static long number(Method method, ConsumerGroup group) {
        return method == null ? 0 : (Long) Reflect.call(method, group);
    }

    private static Method optional(Class<?> type, String name) {
        try {
            return Reflect.method(type, name);
        } catch (IllegalStateException notInThisRelease) {
            return null;
        }
    }

    @SuppressWarnings("unchecked")
    private static Map<String, String> statics(ConsumerGroup group) {
        return (Map<String, String>) Reflect.get(STATIC_MEMBERS, group);
    }

    @SuppressWarnings("unchecked")
    private static Map<Uuid, Map<Integer, Integer>> partitionEpochs(ConsumerGroup group) {
        return (Map<Uuid, Map<Integer, Integer>>) Reflect.get(PARTITION_EPOCHS, group);
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> regexes(ConsumerGroup group) {
        return (Map<String, Object>) Reflect.get(REGEXES, group);
    }
}

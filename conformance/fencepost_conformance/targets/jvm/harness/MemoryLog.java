package fencepost;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.coordinator.common.runtime.PartitionWriter;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.VerificationGuard;

/**
 * The partition's log: counts records, and fails or moves the high watermark only on request. It is behind Kafka's
 * PartitionWriter through a proxy, because that interface changed between releases.
 */
final class MemoryLog implements InvocationHandler {
    private static final LogConfig CONFIG = new LogConfig(new Properties());
    /**
     * A batch of records. {@code producer}: of its transaction, -1 if it has none. A record that ends a transaction has
     * {@code key} and {@code value}, which no serializer of the coordinator wrote.
     */
    record Batch(int count, long producer, short epoch, byte[] key, byte[] value) { }

    private final List<Batch> batches = new ArrayList<>();
    private PartitionWriter.Listener listener;
    private TopicPartition partition;
    private final Set<Long> ends = new HashSet<>(Set.of(0L));
    private long endOffset = 0;
    private Errors failure = null;
    private int appended = 0;
    private boolean failed = false;

    PartitionWriter writer() {
        return Reflect.implement(PartitionWriter.class, this);
    }

    /** Makes the next append throw this error; null lets appends succeed. */
    void failWith(Errors error) {
        failure = error;
    }

    void startAt(long offset) {
        endOffset = offset;
        ends.add(offset);
    }

    /**
     * Whether a batch ends at this offset. Replication goes batch by batch, and Kafka has snapshots only at batch ends.
     */
    boolean endsAt(long offset) {
        return ends.contains(offset);
    }

    Errors failure() {
        return failure;
    }

    long endOffset() {
        return endOffset;
    }

    /** Returns how many records were appended since the last call. */
    int takeAppended() {
        int taken = appended;
        appended = 0;
        return taken;
    }

    /** Returns the batches since the last call, including failed ones. */
    List<Batch> takeBatches() {
        List<Batch> taken = List.copyOf(batches);
        batches.clear();
        return taken;
    }

    /** Whether an append has failed since the last call. */
    boolean takeFailed() {
        boolean taken = failed;
        failed = false;
        return taken;
    }

    void replicated(long offset) {
        if (listener != null) {
            listener.onHighWatermarkUpdated(partition, offset);
        }
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) {
        switch (method.getName()) {
            case "registerListener":
                partition = (TopicPartition) arguments[0];
                listener = (PartitionWriter.Listener) arguments[1];
                return null;
            case "deregisterListener":
                listener = null;
                return null;
            case "config":
                return CONFIG;
            case "append":
                return append(arguments[2]);
            case "maybeStartTransactionVerification":
                return CompletableFuture.completedFuture(VerificationGuard.SENTINEL);
            case "deleteRecords":
                return CompletableFuture.completedFuture(null);
            default:
                throw new UnsupportedOperationException("PartitionWriter." + method.getName());
        }
    }

    private long append(Object records) {
        int count = note((MemoryRecords) records);
        if (failure != null) {
            failed = true;
            throw failure.exception();
        }
        endOffset += count;
        ends.add(endOffset);
        appended += count;
        return endOffset;
    }

    private int note(MemoryRecords records) {
        int all = 0;
        for (RecordBatch batch : records.batches()) {
            int count = 0;
            byte[] key = null;
            byte[] value = null;
            for (Record record : batch) {
                count++;
                if (batch.isControlBatch()) {
                    key = bytes(record.key());
                    value = bytes(record.value());
                }
            }
            boolean within = batch.isTransactional();
            batches.add(new Batch(count, within ? batch.producerId() : -1L, within ? batch.producerEpoch() : -1, key, value));
            all += count;
        }
        return all;
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] copied = new byte[buffer.remaining()];
        buffer.duplicate().get(copied);
        return copied;
    }
}

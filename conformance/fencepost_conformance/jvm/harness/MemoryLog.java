package fencepost;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.util.HashSet;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.common.runtime.PartitionWriter;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.VerificationGuard;

/**
 * The partition's log: counts records, fails when told to, and moves the high watermark only when told to. It stands
 * behind Kafka's PartitionWriter through a proxy, because that interface changed between releases.
 */
final class MemoryLog implements InvocationHandler {
    private static final LogConfig CONFIG = new LogConfig(new Properties());
    private static Method recordsOf;

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

    /** The next append throws this error; null lets appends through. */
    void failWith(Errors error) {
        failure = error;
    }

    void startAt(long offset) {
        endOffset = offset;
        ends.add(offset);
    }

    /** Whether a batch ends there. Replication goes batch by batch, and Kafka has a snapshot at each end only. */
    boolean endsAt(long offset) {
        return ends.contains(offset);
    }

    Errors failure() {
        return failure;
    }

    long endOffset() {
        return endOffset;
    }

    /** How many records were appended since the last call. */
    int takeAppended() {
        int taken = appended;
        appended = 0;
        return taken;
    }

    /** Whether an append failed since the last call. */
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
        if (failure != null) {
            failed = true;
            throw failure.exception();
        }
        int count = count(records);
        endOffset += count;
        ends.add(endOffset);
        appended += count;
        return endOffset;
    }

    private static int count(Object memoryRecords) {
        if (recordsOf == null) {
            recordsOf = Reflect.method(memoryRecords.getClass(), "records");
        }
        int count = 0;
        for (Object record : (Iterable<?>) Reflect.call(recordsOf, memoryRecords)) {
            count++;
        }
        return count;
    }
}

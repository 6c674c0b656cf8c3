package fencepost;

import java.util.concurrent.CompletableFuture;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.coordinator.common.runtime.CoordinatorLoader;
import org.apache.kafka.coordinator.common.runtime.CoordinatorPlayback;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;

/** A load that begins when the runtime requests it and ends when the trace says so, with the trace's records. */
final class TraceLoader implements CoordinatorLoader<CoordinatorRecord> {
    private CompletableFuture<LoadSummary> pending;
    private CoordinatorPlayback<CoordinatorRecord> playback;

    @Override
    public CompletableFuture<LoadSummary> load(TopicPartition tp, CoordinatorPlayback<CoordinatorRecord> coordinator) {
        pending = new CompletableFuture<>();
        playback = coordinator;
        return pending;
    }

    boolean isLoading() {
        return pending != null;
    }

    /** Replays the records as if all of them were replicated (F-LOAD-01); returns the failure, or null. */
    RuntimeException finish(Iterable<Records.Logged> records) {
        CompletableFuture<LoadSummary> loading = pending;
        pending = null;
        try {
            long offset = 0;
            for (Records.Logged each : records) {
                if (each.ends() == null) {
                    playback.replay(offset++, each.producer(), each.epoch(), each.record());
                } else {
                    playback.replayEndTransactionMarker(each.producer(), each.epoch(), each.ends());
                    offset++;
                }
            }
            if (offset > 0) {
                playback.updateLastWrittenOffset(offset);
                playback.updateLastCommittedOffset(offset);
            }
            loading.complete(null);
            return null;
        } catch (RuntimeException broken) {
            loading.completeExceptionally(broken);
            return broken;
        }
    }

    void fail() {
        CompletableFuture<LoadSummary> loading = pending;
        pending = null;
        loading.completeExceptionally(new RuntimeException("the trace says that loading fails"));
    }

    /** Forgets a load whose coordinator has been closed. */
    void forget() {
        pending = null;
    }

    @Override
    public void close() {
        pending = null;
    }
}

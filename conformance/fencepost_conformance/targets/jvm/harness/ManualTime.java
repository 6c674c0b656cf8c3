package fencepost;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;

/** The trace's clock, and a timer that fires nothing by itself: it keeps tasks until the trace names them. */
final class ManualTime implements Time, Timer {
    /** Marks the runtime's own flush task: no operation is ever scheduled this far ahead. */
    static final int LINGER_MS = 1 << 30;

    /** A write operation that waits for replication, and the request or event that it belongs to. */
    record Waiting(TimerTask task, long deadline, long operation) { }

    private final Map<TimerTask, Long> deadlines = new IdentityHashMap<>();
    private final List<Waiting> operations = new ArrayList<>();
    private final EventQueue queue;
    private long now = 0;
    private TimerTask linger;
    private boolean fails = false;

    ManualTime(EventQueue queue) {
        this.queue = queue;
    }

    void moveTo(long milliseconds) {
        now = milliseconds;
    }

    /** Makes the next reading of the time fail; background tasks are made to fail this way. */
    void failNext() {
        fails = true;
    }

    @Override
    public void add(TimerTask task) {
        long deadline = now + task.delayMs;
        new TimerTaskEntry(task, deadline); // makes the task count as armed, as Kafka's own timer does
        if (task.delayMs == LINGER_MS) {
            linger = task;
        } else if (task.getClass().getSimpleName().equals("OperationTimeout")) {
            operations.add(new Waiting(task, deadline, queue.cause()));
        } else {
            deadlines.put(task, deadline);
        }
    }

    /** Returns the flush task of the open batch, if a batch is open; only once. */
    TimerTask takeLinger() {
        TimerTask task = linger;
        linger = null;
        return task == null || task.isCancelled() ? null : task;
    }

    Long deadline(TimerTask task) {
        return deadlines.get(task);
    }

    List<Waiting> operations() {
        operations.removeIf(waiting -> waiting.task().isCancelled());
        return operations;
    }

    @Override
    public long milliseconds() {
        if (fails) {
            fails = false;
            throw new IllegalStateException("the trace says that the task fails");
        }
        return now;
    }

    @Override
    public long hiResClockMs() {
        return now;
    }

    @Override
    public long nanoseconds() {
        return now * 1_000_000;
    }

    @Override
    public void sleep(long milliseconds) {
        throw new UnsupportedOperationException("the coordinator does not sleep");
    }

    @Override
    public void waitObject(Object object, Supplier<Boolean> condition, long deadline) {
        throw new UnsupportedOperationException("the coordinator does not wait");
    }

    @Override
    public boolean advanceClock(long timeoutMs) {
        return false;
    }

    @Override
    public int size() {
        return deadlines.size() + operations.size();
    }

    @Override
    public void close() {
        deadlines.clear();
        operations.clear();
    }
}

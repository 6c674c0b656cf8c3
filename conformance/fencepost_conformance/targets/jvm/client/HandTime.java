package org.apache.kafka.clients.consumer.internals;

import java.util.function.LongConsumer;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;

/** A clock moved by hand; {@code reading}, if set, is called when the heartbeat thread's loop reads it. */
final class HandTime implements Time {
    private static final StackWalker STACK = StackWalker.getInstance();

    long now;
    Runnable reading;
    LongConsumer sleeping = until -> { }; // no caller sleeps, unless the trace says what happens meanwhile

    @Override
    public long milliseconds() {
        if (reading != null && STACK.walk(frames -> frames.skip(1).findFirst()).get().getClassName()
            .endsWith("$HeartbeatThread")) {
            reading.run();
        }
        return now;
    }

    @Override
    public long nanoseconds() {
        return now * 1_000_000;
    }

    @Override
    public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
        throw new IllegalStateException("unexpected wait");
    }

    @Override
    public void sleep(long ms) {
        if (ms > 0)
            sleeping.accept(now + ms);
    }
}

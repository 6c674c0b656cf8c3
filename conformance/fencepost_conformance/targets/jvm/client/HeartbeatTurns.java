package org.apache.kafka.clients.consumer.internals;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;

/** The real heartbeat thread of a classic member, created and never started: runs one turn of its loop at a time. */
final class HeartbeatTurns {
    private final AbstractCoordinator coordinator;
    private final HandTime time;
    private final Constructor<?> maker;

    HeartbeatTurns(AbstractCoordinator coordinator, HandTime time) throws Exception {
        this.coordinator = coordinator;
        this.time = time;
        ClassicClient.steady(ClassicClient.field(Heartbeat.class, "retryBackoff").get(coordinator.heartbeat()));
        maker = Class.forName(AbstractCoordinator.class.getName() + "$HeartbeatThread")
            .getDeclaredConstructor(AbstractCoordinator.class);
        maker.setAccessible(true);
    }

    /** Creates the thread, so that the client, which would start it, finds it. */
    void prepare() throws Exception {
        Field running = ClassicClient.field(AbstractCoordinator.class, "heartbeatThread");
        if (running.get(coordinator) == null)
            running.set(coordinator, maker.newInstance(coordinator));
    }

    /**
     * Runs a turn that has an effect; a turn that only forgets a finished look-up comes before it. While a look-up is
     * unanswered there is no turn: the thread would forget that too, and begin another.
     */
    void look() throws Exception {
        if (stale())
            turn();
        if (lookup() == null || !coordinator.coordinatorUnknown())
            turn();
    }

    boolean stale() throws Exception {
        return coordinator.coordinatorUnknown() && lookup() != null && lookup().isDone();
    }

    private RequestFuture<?> lookup() throws Exception {
        return (RequestFuture<?>) ClassicClient.field(AbstractCoordinator.class, "findCoordinatorFuture")
            .get(coordinator);
    }

    /** Runs one turn of the loop; it ends at the second check of the flag, or where it would wait. */
    private void turn() throws Exception {
        AbstractCoordinator.MemberState state = coordinator.state;
        Field running = ClassicClient.field(AbstractCoordinator.class, "heartbeatThread");
        BaseHeartbeatThread thread = (BaseHeartbeatThread) running.get(coordinator);
        if (thread == null || !thread.isEnabled() || thread.isFailed())
            return;
        if (state.hasNotJoinedGroup()) {
            thread.disable();
            return;
        }
        AtomicBoolean closed = (AtomicBoolean) ClassicClient.field(BaseHeartbeatThread.class, "closed").get(thread);
        @SuppressWarnings("unchecked")
        AtomicReference<RuntimeException> cause = (AtomicReference<RuntimeException>)
            ClassicClient.field(BaseHeartbeatThread.class, "failureCause").get(thread);
        boolean[] interrupted = {false};
        time.reading = () -> {
            Heartbeat heartbeat = coordinator.heartbeat();
            boolean waits = coordinator.coordinatorUnknown() || !heartbeat.sessionTimeoutExpired(time.now)
                && !heartbeat.pollTimeoutExpired(time.now) && !heartbeat.shouldHeartbeat(time.now);
            if (waits) {
                interrupted[0] = true;
                Thread.currentThread().interrupt();
            } else {
                closed.set(true);
            }
        };
        thread.run();
        time.reading = null;
        Thread.interrupted();
        closed.set(false);
        if (interrupted[0])
            cause.set(null);
    }
}

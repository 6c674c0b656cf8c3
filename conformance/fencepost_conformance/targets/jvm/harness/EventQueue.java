package fencepost;

import java.lang.reflect.Field;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.RejectedExecutionException;

import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorEvent;
import org.apache.kafka.coordinator.common.runtime.CoordinatorEventProcessor;

/**
 * The partition's event queue without threads (F-RT-03): events of the runtime wait until the step runs them. For each
 * write operation it knows which request or event of the trace caused it, and notes when one fails internally.
 */
final class EventQueue implements CoordinatorEventProcessor {
    private record Entry(CoordinatorEvent event, long cause) { }

    private static final Map<Class<?>, Field> CONTEXTS = new HashMap<>();
    private static Field operation;
    private static Field future;

    private final ArrayDeque<Entry> waiting = new ArrayDeque<>();
    private long cause = 0;
    private String failure = null;

    /** Returns the cause of the running code: a request's id, or -(index + 1) of another event of the trace. */
    long cause() {
        return cause;
    }

    void causedBy(long operation) {
        cause = operation;
    }

    /** Returns the class of the exception of a failed operation of this step, if it was not an answer to a client. */
    String takeFailure() {
        String taken = failure;
        failure = null;
        return taken;
    }

    boolean isEmpty() {
        return waiting.isEmpty();
    }

    /** Runs the first event with its own cause. */
    void runNext() {
        Entry next = waiting.removeFirst();
        long outer = cause;
        cause = next.cause();
        try {
            next.event().run();
        } finally {
            cause = outer;
        }
    }

    @Override
    public void enqueueLast(CoordinatorEvent event) {
        waiting.addLast(new Entry(event, watch(event)));
    }

    @Override
    public void enqueueFirst(CoordinatorEvent event) {
        waiting.addFirst(new Entry(event, watch(event)));
    }

    @Override
    public void close() {
        waiting.clear();
    }

    private long watch(CoordinatorEvent event) {
        if (!event.getClass().getSimpleName().equals("CoordinatorWriteEvent")) {
            return cause;
        }
        try {
            if (operation == null) {
                operation = Reflect.field(event.getClass(), "op");
                future = Reflect.field(event.getClass(), "future");
            }
            ((CompletableFuture<?>) future.get(event)).whenComplete((result, thrown) -> note(thrown));
            return requestOf(operation.get(event));
        } catch (IllegalAccessException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private void note(Throwable thrown) {
        Throwable cause = thrown instanceof CompletionException ? thrown.getCause() : thrown;
        if (cause != null && !(cause instanceof ApiException) && !(cause instanceof RejectedExecutionException)) {
            failure = cause.getClass().getSimpleName();
        }
    }

    /**
     * Returns the request of an operation. A request may run operations one after the other (DeleteGroups), the later
     * ones in steps of other events. Each holds the request's context, whose correlation id is the request's id.
     */
    private long requestOf(Object operation) throws IllegalAccessException {
        Field context = CONTEXTS.computeIfAbsent(operation.getClass(), EventQueue::contextField);
        if (context.getDeclaringClass() == EventQueue.class) {
            return cause;
        }
        return ((RequestContext) context.get(operation)).correlationId();
    }

    private static Field contextField(Class<?> operation) {
        for (Field field : operation.getDeclaredFields()) {
            if (field.getType().isAssignableFrom(RequestContext.class) && field.getType() != Object.class) {
                field.setAccessible(true);
                return field;
            }
        }
        return Reflect.field(EventQueue.class, "waiting"); // means: this operation holds no context
    }
}

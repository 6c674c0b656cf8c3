package fencepost;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * Background tasks that wait until the trace lets them run. Kafka keys its tasks by one string ("GROUP-regex",
 * M-RX-03). The runtime notes a task under its key before it submits the work, so the two can be matched.
 */
final class Tasks extends AbstractExecutorService {
    private static final String REGEX = "-regex";

    private record Held(String key, Object task, Runnable work) { }

    private final ManualTime time;
    private final List<Held> waiting = new ArrayList<>();
    private final List<String> started = new ArrayList<>();
    private Supplier<Map<String, ?>> known = Map::of;

    Tasks(ManualTime time) {
        this.time = time;
    }

    /** Sets where the runtime notes its tasks by key. */
    void lookIn(Supplier<Map<String, ?>> tasks) {
        known = tasks;
    }

    @Override
    public void execute(Runnable work) {
        Set<Object> held = new HashSet<>();
        waiting.forEach(one -> held.add(one.task()));
        known.get().forEach((key, task) -> {
            if (!held.contains(task)) {
                waiting.add(new Held(key, task, work));
                started.add(key);
            }
        });
    }

    /** Runs the task of ["k", at, kind, group, failed], so that its result is in the queue; false if there is none. */
    boolean run(String group, boolean fails) {
        Map<String, ?> tasks = known.get();
        waiting.removeIf(one -> tasks.get(one.key()) != one.task()); // cancelled when the partition was lost
        for (Held one : waiting) {
            if (one.key().equals(group + REGEX)) {
                waiting.remove(one);
                if (fails) {
                    time.failNext();
                }
                one.work().run();
                return true;
            }
        }
        return false;
    }

    /** Writes the tasks started since the last call: [kind, group]. */
    void take(Json out) {
        out.open();
        for (String key : started) {
            if (!key.endsWith(REGEX)) {
                throw new IllegalStateException("Kafka started a task that is not in the rule book: " + key);
            }
            out.open().text("regex").text(key.substring(0, key.length() - REGEX.length())).close();
        }
        started.clear();
        out.close();
    }

    @Override
    public void shutdown() { }

    @Override
    public List<Runnable> shutdownNow() {
        return List.of();
    }

    @Override
    public boolean isShutdown() {
        return false;
    }

    @Override
    public boolean isTerminated() {
        return false;
    }

    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) {
        return true;
    }
}

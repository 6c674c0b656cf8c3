package fencepost;

import java.util.HashSet;
import java.util.List;
import java.util.OptionalInt;
import java.util.Properties;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.util.timer.TimerTask;

/**
 * One trace on a fresh coordinator: each event is a step, and each step writes its observation.
 *
 * <p>Kafka with linger 0 appends inside the operation, so a failing append would be part of the operation's own step. A
 * trace keeps the two apart. Here the runtime gets a linger that never ends, and the step flushes the batch itself by
 * running the runtime's flush task. It does so at the end of the operation's step if the append succeeds, else in the
 * next step, which makes it fail. Nothing can happen in between, so the runtime does the same in the same order; only
 * the timer of the operation is visibly set and cancelled. "Merged" traces run with linger 0, for comparison.
 */
final class Trace {
    private final EventQueue queue = new EventQueue();
    private final ManualTime time = new ManualTime(queue);
    private final MemoryLog log = new MemoryLog();
    private final TraceLoader loader = new TraceLoader();
    private final Hosts hosts = new Hosts();
    private final Records records = new Records(hosts);
    private final Views views = new Views(hosts);
    private final ConsumerViews consumerViews = new ConsumerViews(hosts);
    private final Tasks tasks = new Tasks(time);
    private final TopicRights rights = new TopicRights();
    private final Metadata metadata = new Metadata();
    private final Replies replies = new Replies(hosts);
    private final Timers timers;
    private final Coordinator coordinator;
    private final Apis apis;
    private final OffsetApis offsets;
    private final OffsetViews offsetViews = new OffsetViews();
    private final boolean withViews;
    private final boolean merged;
    private final Json answers = new Json();
    private final Set<String> groups = new HashSet<>();
    private static Trace current;
    private int given = 0;
    private int handled = 0;
    private boolean failsNext;
    private String refusal;

    /** A trace: [settings, consumer protocol enabled, with views, merged, events]. */
    private Trace(JsonNode trace) {
        withViews = trace.get(2).intValue() != 0;
        merged = trace.get(3).intValue() != 0;
        coordinator = Coordinator.build(
            trace.get(0), merged ? 0 : ManualTime.LINGER_MS, time, queue, log, loader, records, tasks, rights);
        timers = new Timers(time, coordinator, groups);
        offsets = new OffsetApis(coordinator.service, metadata, rights, coordinator.timeout);
        apis = new Apis(coordinator.service, offsets, hosts, rights, trace.get(1).intValue() != 0,
            (request, api, version, answer) -> {
                replies.write(answers, request, api, version, answer, offsets.groupOf(request));
                given++;
            });
    }

    /** Runs a whole trace: an observation for each event. */
    static void run(JsonNode trace, Json out) {
        CountingRandom.reset();
        out.open();
        new Trace(trace).steps(trace.get(4), out);
        out.close();
    }

    /**
     * Runs a continued trace: ["=", trace] begins one, ["+", events] adds to the one that was begun last. Answers how
     * many random ids were drawn so far, then an observation for each event.
     */
    static void continueTrace(JsonNode command, Json out) {
        Json seen = new Json();
        if (command.get(0).textValue().equals("=")) {
            CountingRandom.reset();
            current = new Trace(command.get(1));
            current.steps(command.get(1).get(4), seen.open());
        } else {
            current.steps(command.get(1), seen.open());
        }
        out.open().number(CountingRandom.drawn()).raw(seen.close().take()).close();
    }

    private void steps(JsonNode events, Json out) {
        for (int i = 0; i < events.size(); i++) {
            JsonNode event = events.get(i);
            if (event.get(0).textValue().equals("i")) {
                CountingRandom.draw(event.get(1).longValue());
                continue;
            }
            step(handled++, event, i + 1 < events.size() ? events.get(i + 1) : null);
            observe(out);
        }
    }

    private void step(int index, JsonNode event, JsonNode next) {
        String kind = event.get(0).textValue();
        time.moveTo(event.get(1).longValue());
        failsNext = next != null && next.get(0).textValue().equals("f");
        log.failWith(failsNext ? Errors.forCode(next.get(2).shortValue()) : null);
        queue.causedBy(-index - 1L);
        switch (kind) {
            case "q" -> request(event);
            case "t" -> fire(event);
            case "a" -> replicate(event.get(2).longValue());
            case "f" -> fail(event);
            case "m" -> metadata.become(event, coordinator.runtime, coordinator.timeout);
            case "k" -> finish(event);
            case "g" -> configure(event);
            case "s" -> coordinator.service.onElection(0, event.get(2).intValue());
            case "l", "x" -> load(event);
            case "u" -> coordinator.service.onResignation(0,
                event.get(2).isNull() ? OptionalInt.empty() : OptionalInt.of(event.get(2).intValue()));
            default -> throw new IllegalArgumentException("no event " + kind);
        }
        drain();
    }

    private void request(JsonNode event) {
        queue.causedBy(event.get(2).intValue());
        Requests.groups(event.get(3).shortValue(), event.get(8), groups);
        apis.handle(event);
    }

    private void fire(JsonNode event) {
        List<TimerTask> due = timers.due(event);
        if (due.isEmpty()) {
            refusal = "NoSuchTimer";
        }
        due.forEach(TimerTask::run);
    }

    /** Ends a background task: ["k", at, kind, group, failed]. */
    private void finish(JsonNode event) {
        if (!tasks.run(event.get(3).textValue(), event.get(4).intValue() != 0)) {
            refusal = "NoSuchTask";
        }
    }

    /** Changes a group's configuration: ["g", at, group, {name: value}]. */
    private void configure(JsonNode event) {
        Properties config = new Properties();
        event.get(3).fields().forEachRemaining(item -> config.put(item.getKey(), item.getValue().asText()));
        coordinator.configure(event.get(2).textValue(), config);
    }

    private void replicate(long offset) {
        if (offset > log.endOffset()) {
            refusal = "OffsetBeyondLog";
        } else if (!log.endsAt(offset)) {
            refusal = "OffsetInsideBatch";
        } else {
            log.replicated(offset);
        }
    }

    private void fail(JsonNode event) {
        if (merged) {
            return; // it happened in the step before
        }
        TimerTask flush = time.takeLinger();
        boolean failedBefore = log.takeFailed(); // for an operation that was not the last of its step
        if (flush == null) {
            refusal = failedBefore ? null : "NothingToAppend";
            return;
        }
        Errors later = log.failure();
        log.failWith(Errors.forCode(event.get(2).shortValue()));
        flush.run();
        while (!queue.isEmpty()) {
            queue.runNext();
        }
        log.failWith(later);
        log.takeFailed();
    }

    private void load(JsonNode event) {
        if (!coordinator.isLoading()) {
            loader.forget();
            coordinator.service.onElection(0, event.get(2).intValue());
            drain();
        }
        if (!loader.isLoading()) {
            return; // the epoch is too old, or the partition is active already (F-LOAD-03)
        }
        if (event.get(0).textValue().equals("x")) {
            loader.fail();
            return;
        }
        JsonNode loaded = event.get(3);
        loaded.forEach(record -> {
            if (!record.has(4)) {
                groups.add(Records.group(record));
            }
        });
        log.startAt(loaded.size());
        RuntimeException broken = loader.finish(records.read(loaded));
        if (broken != null) {
            refusal = broken.getClass().getSimpleName();
        }
    }

    /** Runs what is queued, and flushes after each operation as linger 0 does, except a last one that must fail. */
    private void drain() {
        while (!queue.isEmpty()) {
            queue.runNext();
            TimerTask flush = null;
            if (!merged && !(failsNext && queue.isEmpty())) {
                flush = time.takeLinger();
            }
            if (flush != null) {
                flush.run();
                queue.runNext(); // the flush precedes all others
            }
        }
    }

    private void observe(Json out) {
        List<MemoryLog.Batch> batches = log.takeBatches();
        int appended = log.takeAppended() - (int) batches.stream().filter(batch -> batch.key() != null).count();
        if (failsNext || records.serialized() == appended) {
            appended = records.serialized();
        }
        records.dropAfter(appended);
        String failure = queue.takeFailure();
        out.open();
        records.take(out, batches);
        out.open();
        if (given > 0) {
            out.raw(answers.take());
            given = 0;
        }
        out.close();
        timers.take(out);
        if (withViews) {
            views.take(out, coordinator.groups());
            consumerViews.take(out, coordinator.groups());
            offsetViews.take(out, coordinator.offsets());
        } else {
            out.open().close().open().close().none();
        }
        tasks.take(out);
        out.text(refusal == null ? failure : refusal).close();
        refusal = null;
    }
}

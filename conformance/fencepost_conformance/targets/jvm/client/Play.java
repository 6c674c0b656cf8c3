package org.apache.kafka.clients.consumer.internals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collection;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;

/**
 * Plays a trace to a whole consumer of Kafka's, on one thread. A waiting call takes the next events. Each event has its
 * outcome when everything is idle, or when the waiting call asks for the next event.
 */
abstract class Play {
    /** The trace is over while a call waits; later effects do not count. */
    static final class Over extends Error {
        Over() {
            super(null, null, false, false);
        }
    }

    final HandTime time = new HandTime();
    final Wire wire;
    final JsonNode events;
    final JsonNode settings;
    final JsonNode cluster;
    final ArrayNode outcomes = ClassicClient.JSON.createArrayNode();
    int at;
    int first;
    ArrayNode calls;
    String thrown;
    JsonNode returned;
    boolean calling;
    boolean over;

    Play(JsonNode trace) {
        events = trace.get("events");
        settings = trace.get("settings");
        cluster = trace.get("topics");
        time.now = events.get(0).get("at").asLong();
        wire = new Wire(time, settings.path("reading").asBoolean());
    }

    /** Handles an event of the application or the network; {@code network} handles the others. */
    abstract void handle(JsonNode event);

    /** Does everything that can be done now. */
    abstract void settle();

    /** Writes what is visible after an event, apart from what every consumer writes. */
    abstract void addState(ObjectNode outcome);

    // --- the application ---------------------------------------------------------------------------------------------

    final Listening listener = this::called;

    /** Runs the listener for as long as the trace says: until then, events happen while it runs. */
    void called(String name, Collection<TopicPartition> partitions) {
        if (over)
            throw new Over();
        ArrayNode call = calls.addArray().add(name);
        partitions.forEach(each -> call.add(each.toString()));
        JsonNode event;
        do
            event = next();
        while (!event.get("kind").asText().equals("listener"));
        passed();
        if (!event.get("error").isNull())
            throw new ClassicClient.Thrown(event.get("error").asText());
    }

    /** The listener's time has passed. */
    void passed() {
    }

    void call(Runnable body) {
        if (calling) { // the core's call has returned, Kafka's has not: the difference was reported before
            over = true;
            throw new Over();
        }
        calling = true;
        try {
            body.run();
        } catch (RuntimeException | Error error) {
            thrown = name(error);
        }
        calling = false;
    }

    static String name(Throwable error) {
        for (Throwable cause = error; cause != null; cause = cause.getCause())
            if (cause instanceof ClassicClient.Thrown)
                return "listener";
        return error.getClass().getSimpleName();
    }

    static Set<String> topics(JsonNode event) {
        Set<String> topics = new TreeSet<>();
        event.get("topics").forEach(each -> topics.add(each.asText()));
        return topics;
    }

    /** Handles a network event, the same for every consumer. Returns false for another event. */
    boolean network(JsonNode event) {
        switch (event.get("kind").asText()) {
            case "found" -> wire.found(Errors.NONE);
            case "lookup_failed" -> {
                if (event.get("error").isNull())
                    wire.lookupLost();
                else
                    wire.found(Errors.forCode(event.get("error").shortValue()));
            }
            case "answer" -> wire.answer(event);
            case "lost" -> wire.lose(event);
            case "timer", "listener" -> { }
            default -> {
                return false;
            }
        }
        return true;
    }

    // --- the trace ---------------------------------------------------------------------------------------------------

    ArrayNode run() {
        try {
            for (; at < events.size(); at++) {
                begin();
                handle(events.get(at));
                if (over)
                    break;
                finish();
            }
        } catch (IllegalStateException fault) { // for example where the core got a request that Kafka did not
            outcomes.addObject().put("event", first).put("fault", fault.getMessage());
        }
        return outcomes;
    }

    void begin() {
        first = at;
        calls = ClassicClient.JSON.createArrayNode();
        thrown = null;
        returned = null;
        time.now = events.get(at).get("at").asLong();
    }

    /** Ends the current event while an application call waits, and returns the next one. */
    JsonNode next() {
        if (over)
            throw new Over();
        finish();
        if (++at >= events.size()) {
            over = true;
            throw new Over();
        }
        begin();
        JsonNode event = events.get(at);
        handle(event);
        return event;
    }

    private void finish() {
        settle();
        ObjectNode outcome = outcomes.addObject().put("event", first);
        outcome.set("sends", wire.sent());
        outcome.set("calls", calls);
        outcome.put("thrown", thrown);
        outcome.put("calling", calling);
        addState(outcome);
    }
}

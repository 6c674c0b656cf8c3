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
 * A trace played to a whole consumer of Kafka's, on one thread. A call that waits takes the events that come next; each
 * event has its outcome when all has come to rest, or when the call that waits looks for what comes next.
 */
abstract class Play {
    /** The trace is over while a call waits; nothing that follows counts. */
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

    /** What the application or the network does; what is left is for {@code network}. */
    abstract void handle(JsonNode event);

    /** All that can be done now is done. */
    abstract void settle();

    /** What is seen after an event, but for what every consumer tells. */
    abstract void tell(ObjectNode told);

    // --- the application -----------------------------------------------------------------------------------------------

    final Listening listener = this::called;

    /** The listener takes as long as the trace says: until then, what comes happens while it runs. */
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

    /** A listener has taken its time. */
    void passed() {
    }

    void call(Runnable body) {
        if (calling) { // the core's call has returned, ours has not: what differs was told before
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

    /** What the network does is the same to every consumer. False if the event is another one. */
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

    // --- the trace -----------------------------------------------------------------------------------------------------

    ArrayNode run() {
        try {
            for (; at < events.size(); at++) {
                begin();
                handle(events.get(at));
                if (over)
                    break;
                finish();
            }
        } catch (IllegalStateException fault) { // as where the core was asked what ours was not
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

    /** Ends the event at hand while a call of the application waits, and lets the next one happen. */
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
        ObjectNode told = outcomes.addObject().put("event", first);
        told.set("sends", wire.sent());
        told.set("calls", calls);
        told.put("thrown", thrown);
        told.put("calling", calling);
        tell(told);
    }
}

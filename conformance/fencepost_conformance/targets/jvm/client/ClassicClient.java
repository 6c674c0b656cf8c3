package org.apache.kafka.clients.consumer.internals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.GroupRebalanceConfig;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.internals.ClusterResourceListeners;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.utils.LogContext;

/**
 * Kafka's own classic member, with its real heartbeat thread, on one thread. Reads traces, writes outcomes, one a line.
 */
public final class ClassicClient {
    static final ObjectMapper JSON = new ObjectMapper();

    /** The exception that the application's listener throws. */
    static final class Thrown extends RuntimeException {
        Thrown(String text) {
            super(text);
        }
    }

    private final HandTime time = new HandTime();
    private final Wire wire = new Wire(time, false);
    private final SubscriptionState subscriptions;
    private final ConsumerMetadata metadata;
    private final ConsumerNetworkClient network;
    private final ConsumerCoordinator coordinator;
    private final HeartbeatTurns turns;
    private final JsonNode events;
    private final JsonNode cluster;
    private int at;
    private ArrayNode calls;
    private ArrayNode asked; // metadata requests: the topics of each
    private boolean late; // after a slow listener the heartbeat thread runs where the core's does

    private ClassicClient(JsonNode trace) throws Exception {
        events = trace.get("events");
        JsonNode settings = trace.get("settings");
        LogContext log = new LogContext();
        subscriptions = new SubscriptionState(log, AutoOffsetResetStrategy.NONE);
        metadata = new ConsumerMetadata(100, 1000, Long.MAX_VALUE / 2, false, false, subscriptions, log,
            new ClusterResourceListeners());
        int backoff = settings.get("retry_backoff_ms").asInt();
        network = new ConsumerNetworkClient(log, wire.client(), metadata, time, backoff,
            settings.get("request_timeout_ms").asInt(), Integer.MAX_VALUE);
        GroupRebalanceConfig config = new GroupRebalanceConfig(settings.get("session_timeout_ms").asInt(),
            settings.get("max_poll_interval_ms").asInt(), settings.get("heartbeat_interval_ms").asInt(),
            settings.get("group_id").asText(), Optional.ofNullable(settings.get("group_instance_id").textValue()), null,
            backoff, settings.get("retry_backoff_max_ms").asLong());
        List<ConsumerPartitionAssignor> assignors = new ArrayList<>();
        for (JsonNode name : settings.get("assignors"))
            assignors.add(name.asText().equals("range") ? new RangeAssignor() : new CooperativeStickyAssignor());
        coordinator = new ConsumerCoordinator(config, log, network, assignors, metadata, subscriptions, new Metrics(),
            "client", time, false, 5000, new ConsumerInterceptors<>(List.of(), new Metrics()), false, Optional.empty());
        steady(coordinator.retryBackoff);
        turns = new HeartbeatTurns(coordinator, time);
        cluster = trace.get("topics");
        wire.waits = () -> update(cluster);
        asked = JSON.createArrayNode();
        update(cluster);
    }

    /** Back-offs without jitter: the factor is 1. */
    static void steady(Object backoff) throws Exception {
        field(backoff.getClass(), "jitter").set(backoff, 0.0);
    }

    static Field field(Class<?> of, String name) throws Exception {
        Field found = of.getDeclaredField(name);
        found.setAccessible(true);
        return found;
    }

    /** Answers a metadata request, if there is one, and notes its topics. */
    private void update(JsonNode topics) {
        if (metadata.updateRequested())
            asked.add(Wire.topics(metadata.newMetadataRequestAndVersion(time.milliseconds()).requestBuilder));
        MetadataResponseData data = new MetadataResponseData().setClusterId("c").setControllerId(0);
        data.brokers().add(new MetadataResponseData.MetadataResponseBroker().setNodeId(0).setHost("h").setPort(1));
        topics.fields().forEachRemaining(each -> {
            MetadataResponseData.MetadataResponseTopic topic =
                new MetadataResponseData.MetadataResponseTopic().setName(each.getKey());
            for (int index = 0; index < each.getValue().asInt(); index++)
                topic.partitions().add(new MetadataResponseData.MetadataResponsePartition().setPartitionIndex(index)
                    .setLeaderId(0).setLeaderEpoch(0).setReplicaNodes(List.of(0)).setIsrNodes(List.of(0)));
            data.topics().add(topic);
        });
        metadata.updateWithCurrentRequestVersion(new MetadataResponse(data, (short) 12), false, time.milliseconds());
    }

    private final Listening listener = this::called;

    private void called(String name, Collection<TopicPartition> partitions) {
        if (late) {
            try {
                turns.look();
            } catch (Exception fault) {
                throw new IllegalStateException(fault);
            }
        }
        ArrayNode call = calls.addArray().add(name);
        partitions.forEach(each -> call.add(each.toString()));
        JsonNode next = at + 1 < events.size() ? events.get(at + 1) : null;
        if (next == null || !next.get("kind").asText().equals("listener"))
            throw new IllegalStateException("unexpected listener call: " + name);
        at++;
        late = next.get("at").asLong() > time.now;
        time.now = next.get("at").asLong();
        if (!next.get("error").isNull())
            throw new Thrown(next.get("error").asText());
    }

    private ArrayNode run() throws Exception {
        ArrayNode outcomes = JSON.createArrayNode();
        for (; at < events.size(); at++) {
            calls = JSON.createArrayNode();
            asked = JSON.createArrayNode();
            int first = at;
            JsonNode event = events.get(at);
            time.now = event.get("at").asLong();
            boolean known = !coordinator.coordinatorUnknown();
            String thrown = null;
            try {
                handle(event);
            } catch (RuntimeException error) {
                thrown = name(error);
            }
            network.pollNoWakeup();
            network.pollNoWakeup();
            String kind = event.get("kind").asText();
            // the heartbeat thread has nothing to do with the back-off of the join loop
            boolean timer = kind.equals("timer") && !event.get("timer").asText().equals("retry");
            if (timer || kind.equals("found") || known && coordinator.coordinatorUnknown()) {
                boolean knew = !coordinator.coordinatorUnknown();
                turns.look();
                if (knew && coordinator.coordinatorUnknown())
                    turns.look();
            } else if (late) {
                turns.look();
            }
            late = false;
            network.pollNoWakeup();
            for (; at + 1 < events.size() && events.get(at + 1).get("kind").asText().equals("within"); at++) {
                update(cluster);
                network.pollNoWakeup();
                network.pollNoWakeup();
            }
            if (metadata.updateRequested()) // after a failed look-up, when the core asks at once
                update(cluster);
            outcomes.add(outcome(thrown).put("event", first));
        }
        return outcomes;
    }

    private static String name(Throwable error) {
        Throwable cause = error.getCause() instanceof Thrown ? error.getCause() : error;
        return cause instanceof Thrown ? "listener" : cause.getClass().getSimpleName();
    }

    private void handle(JsonNode event) throws Exception {
        switch (event.get("kind").asText()) {
            case "subscribe" -> {
                Set<String> topics = new TreeSet<>();
                event.get("topics").forEach(each -> topics.add(each.asText()));
                if (subscriptions.subscribe(topics, Optional.of(listener))) {
                    metadata.requestUpdateForNewTopics();
                    update(cluster);
                }
            }
            case "poll" -> {
                // the client would create and start it once it knows the coordinator
                if (!coordinator.coordinatorUnknown() && subscriptions.hasAutoAssignedPartitions())
                    turns.prepare();
                boolean again = turns.stale();
                coordinator.poll(time.timer(0), false);
                if (again && coordinator.coordinatorUnknown()) // the loop in poll runs once more
                    coordinator.poll(time.timer(0), false);
            }
            case "unsubscribe" -> {
                coordinator.onLeavePrepare();
                coordinator.maybeLeaveGroup(
                    org.apache.kafka.clients.consumer.CloseOptions.GroupMembershipOperation.DEFAULT,
                    "the consumer unsubscribed from all topics");
                subscriptions.unsubscribe();
            }
            case "enforce" -> coordinator.requestRejoin(event.get("reason").asText());
            case "metadata" -> update(cluster);
            case "found" -> wire.found(Errors.NONE);
            case "lookup_failed" -> {
                if (event.get("error").isNull())
                    wire.lookupLost();
                else
                    wire.found(Errors.forCode(event.get("error").shortValue()));
            }
            case "answer" -> wire.answer(event);
            case "lost" -> wire.lose(event);
            case "timer" -> { }
            default -> throw new IllegalArgumentException(event.toString());
        }
    }

    private ObjectNode outcome(String thrown) {
        ObjectNode outcome = JSON.createObjectNode();
        outcome.set("sends", wire.sent());
        outcome.set("calls", calls);
        outcome.set("metadata", asked);
        outcome.put("thrown", thrown);
        AbstractCoordinator.Generation generation = coordinator.generation();
        outcome.put("state", coordinator.state.name());
        outcome.put("generation", generation.generationId);
        outcome.put("member", generation.memberId);
        outcome.put("protocol", generation.protocolName);
        outcome.put("known", !coordinator.coordinatorUnknown());
        ArrayNode owned = outcome.putArray("owned");
        subscriptions.assignedPartitions().stream().map(TopicPartition::toString).sorted().forEach(owned::add);
        return outcome;
    }

    static String text(ByteBuffer bytes) {
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        return Base64.getEncoder().encodeToString(copy);
    }

    /** Plays one trace and returns its outcomes. */
    interface Player {
        ArrayNode play(JsonNode trace) throws Exception;
    }

    /** Reads a trace from each line, and writes a line of outcomes. */
    static void serve(Player player) throws Exception {
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), true);
        System.setOut(System.err);
        out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer.set("outcomes", player.play(JSON.readTree(line)));
            } catch (Exception | LinkageError fault) {
                fault.printStackTrace();
                answer.put("fault", fault.toString());
            }
            out.println(answer);
        }
    }

    public static void main(String[] ignored) throws Exception {
        serve(trace -> new ClassicClient(trace).run());
    }
}

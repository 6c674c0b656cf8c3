package org.apache.kafka.clients.consumer.internals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.util.List;
import org.apache.kafka.clients.ApiVersions;
import org.apache.kafka.clients.Metadata;
import org.apache.kafka.clients.NodeApiVersions;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.internals.ClusterResourceListeners;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.LogContext;

/** Kafka's own classic consumer, whole, on one thread. Reads traces, writes outcomes, one a line. */
final class ClassicReader extends Play {
    private final ClassicKafkaConsumer<byte[], byte[]> consumer;
    private final SubscriptionState subscriptions;
    private final ConsumerMetadata metadata;
    private final ConsumerNetworkClient network;
    private final ConsumerCoordinator coordinator;
    private final Application application;
    private final HeartbeatTurns turns;
    private final boolean inGroup;
    private JsonNode leaders;
    private boolean known; // whether the coordinator was known before the event
    private boolean looked;
    private boolean left; // data about topics without readers is dropped with the next metadata: at once
    private boolean updated; // once per event: repeated requests have a back-off

    private ClassicReader(JsonNode trace) throws Exception {
        super(trace);
        LogContext log = new LogContext();
        subscriptions = new SubscriptionState(log, AutoOffsetResetStrategy.fromString(settings.get("reset").asText()));
        metadata = new ConsumerMetadata(100, 1000, settings.get("metadata_max_age_ms").asLong(), false, false,
            subscriptions, log, new ClusterResourceListeners());
        consumer = new ClassicKafkaConsumer<>(log, time, new ConsumerConfig(Application.config(settings, "classic")),
            new ByteArrayDeserializer(), new ByteArrayDeserializer(), wire.client(), subscriptions, metadata,
            List.of(settings.get("assignor").asText().equals("range") ? new RangeAssignor()
                : new CooperativeStickyAssignor()));
        network = (ConsumerNetworkClient) ClassicClient.field(ClassicKafkaConsumer.class, "client").get(consumer);
        coordinator = (ConsumerCoordinator) ClassicClient.field(ClassicKafkaConsumer.class, "coordinator").get(consumer);
        ClassicClient.steady(coordinator.retryBackoff);
        turns = new HeartbeatTurns(coordinator, time);
        Object positions = ClassicClient.field(ClassicKafkaConsumer.class, "offsetFetcher").get(consumer);
        ApiVersions versions = (ApiVersions) ClassicClient.field(OffsetFetcher.class, "apiVersions").get(positions);
        for (String node : List.of("0", "1"))
            versions.update(node, NodeApiVersions.create());
        application = new Application(this, consumer);
        leaders = settings.get("leaders");
        inGroup = settings.get("in_group").asBoolean();
        wire.waits = this::waits;
        time.sleeping = until -> {
            while (time.now < until && !idles())
                next();
        };
    }

    /**
     * A call waits for the network: let the next event happen. Requested metadata arrive at once. A waiting call first
     * checks what is already there, as after a poll of the network that received nothing.
     */
    private void waits() {
        if (metadata.updateRequested() && !updated)
            update();
        else if (!looked)
            looked = true;
        else if (calling)
            next();
    }

    /** Whether the call waits for asynchronous commits: the pauses in between are not part of a trace. */
    private static boolean idles() {
        return StackWalker.getInstance().walk(frames -> frames.anyMatch(
            frame -> frame.getMethodName().equals("invokePendingAsyncCommits")));
    }

    /** Forgets a look-up, or an offset request, that failed for now, as a call that waited for it does. */
    private void forget() {
        try {
            Field lookup = ClassicClient.field(AbstractCoordinator.class, "findCoordinatorFuture");
            RequestFuture<?> future = (RequestFuture<?>) lookup.get(coordinator);
            if (future != null && future.isDone() && (future.succeeded() || future.isRetriable()))
                lookup.set(coordinator, null);
            Field pending = ClassicClient.field(ConsumerCoordinator.class, "pendingCommittedOffsetRequest");
            Object request = pending.get(coordinator);
            if (request == null)
                return;
            RequestFuture<?> offsets = (RequestFuture<?>) ClassicClient.field(request.getClass(), "response").get(request);
            if (offsets.failed() && offsets.isRetriable())
                pending.set(coordinator, null);
        } catch (Exception fault) {
            throw new IllegalStateException(fault);
        }
    }

    private boolean mayUpdate() {
        return !updated && events.get(at).path("metadata").asBoolean();
    }

    /** Delays repeated requests; in a schedule metadata arrive when the core has requested them. */
    private void satisfied() {
        try {
            for (String need : List.of("needFullUpdate", "needPartialUpdate"))
                ClassicClient.field(Metadata.class, need).set(metadata, false);
        } catch (Exception fault) {
            throw new IllegalStateException(fault);
        }
    }

    private void update() {
        updated = true;
        metadata.updateWithCurrentRequestVersion(Reads.metadata(cluster, leaders, false), false, time.milliseconds());
    }

    @Override
    void begin() {
        updated = false;
        looked = false;
        known = !coordinator.coordinatorUnknown();
        super.begin();
    }

    /** Lets the heartbeat thread run where the coordinator is lost or found, and at its timers. */
    private void look() {
        String kind = events.get(at).get("kind").asText();
        boolean timer = kind.equals("timer") && !events.get(at).path("timer").asText("retry").equals("retry");
        if (!timer && !kind.equals("found") && !(known && coordinator.coordinatorUnknown()))
            return;
        try {
            turns.look();
        } catch (Exception fault) {
            throw new IllegalStateException(fault);
        }
    }

    @Override
    void settle() {
        if (calling) { // a waiting call uses the network
            look();
            if (inGroup && mayUpdate())
                update();
            network.transmitSends();
            return;
        }
        network.pollNoWakeup();
        network.pollNoWakeup();
        forget();
        look();
        if (inGroup ? mayUpdate() : !updated && (left || metadata.updateRequested()))
            update();
        left = false;
        if (inGroup)
            satisfied();
        network.pollNoWakeup();
    }

    @Override
    void handle(JsonNode event) {
        if (event.get("kind").asText().equals("unsubscribe"))
            left = true;
        if (event.get("kind").asText().equals("metadata")) {
            leaders = event.get("leaders");
            update();
            leaders = event.get("truth");
        } else if (!called(event) && !network(event)) {
            throw new IllegalArgumentException(event.toString());
        }
    }

    private boolean called(JsonNode event) {
        try {
            if (subscriptions.hasAutoAssignedPartitions() && event.get("kind").asText().equals("poll"))
                turns.prepare();
        } catch (Exception fault) {
            throw new IllegalStateException(fault);
        }
        return application.handle(event);
    }

    @Override
    void addState(ObjectNode outcome) {
        AbstractCoordinator.Generation generation = coordinator.generation();
        outcome.putArray("member").add(coordinator.state.name()).add(generation.generationId).add(generation.memberId);
        outcome.set("returned", returned);
        outcome.put("known", !coordinator.coordinatorUnknown());
        outcome.set("partitions", application.closed || application.leaving ? null : Reads.partitions(subscriptions));
    }

    public static void main(String[] ignored) throws Exception {
        ClassicClient.serve(trace -> new ClassicReader(trace).run());
    }
}

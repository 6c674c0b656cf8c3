package org.apache.kafka.clients.consumer.internals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.ApiVersions;
import org.apache.kafka.clients.Metadata;
import org.apache.kafka.clients.NodeApiVersions;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.consumer.internals.events.ApplicationEvent;
import org.apache.kafka.clients.consumer.internals.events.ApplicationEventHandler;
import org.apache.kafka.clients.consumer.internals.events.AssignmentChangeEvent;
import org.apache.kafka.clients.consumer.internals.events.BackgroundEvent;
import org.apache.kafka.clients.consumer.internals.events.CheckAndUpdatePositionsEvent;
import org.apache.kafka.clients.consumer.internals.events.CompletableApplicationEvent;
import org.apache.kafka.clients.consumer.internals.events.CompletableEventReaper;
import org.apache.kafka.clients.consumer.internals.events.LeaveGroupOnCloseEvent;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.requests.MetadataRequest;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.Timer;

/**
 * Kafka's own consumer of KIP-848, whole, on one thread. The network thread is created and never started: its work is
 * done here, while an application call waits, and at the end of every event. A waiting call takes the next events.
 */
final class ConsumerClient extends Play {
    private final LinkedBlockingQueue<BackgroundEvent> backgroundEvents = new LinkedBlockingQueue<>();
    private final AsyncKafkaConsumer<byte[], byte[]> consumer;
    private ConsumerNetworkThread network;
    private BlockingQueue<ApplicationEvent> queue;
    private RequestManagers managers;
    private ConsumerMembershipManager member;
    private ConsumerMetadata metadata;
    private SubscriptionState subscriptions;
    private final boolean reading;
    private final Application application;
    private JsonNode leaders;
    private Method work;
    private int updates;
    private ArrayNode requested = ClassicClient.JSON.createArrayNode(); // metadata requests: the topics of each
    private long deadline; // of the waiting call

    private ConsumerClient(JsonNode trace) throws Exception {
        super(trace);
        reading = settings.path("reading").asBoolean();
        wire.waits = () -> { };
        consumer = new AsyncKafkaConsumer<>(new ConsumerConfig(config()), new ByteArrayDeserializer(),
            new ByteArrayDeserializer(), time,
            (log, clock, timeout, events, reaper, processor, delegate, made, metrics) -> {
                queue = events;
                network = new ConsumerNetworkThread(log, clock, events, reaper, processor, delegate, made, metrics);
                network.initializeResources();
                managers = made.get();
                return handler(delegate.get());
            },
            CompletableEventReaper::new, FetchCollector::new, ConsumerMetadata::new, backgroundEvents, Optional.empty());
        member = managers.consumerMembershipManager.get();
        metadata = (ConsumerMetadata) ClassicClient.field(AsyncKafkaConsumer.class, "metadata").get(consumer);
        subscriptions =
            (SubscriptionState) ClassicClient.field(AsyncKafkaConsumer.class, "subscriptions").get(consumer);
        ClassicClient.field(AbstractMembershipManager.class, "memberId").set(member, "m");
        steady(CoordinatorRequestManager.class, "coordinatorRequestState", managers.coordinatorRequestManager.get());
        steady(AbstractHeartbeatRequestManager.class, "heartbeatRequestState",
            managers.consumerHeartbeatRequestManager.get());
        ClassicClient.field(CommitRequestManager.class, "jitter").set(managers.commitRequestManager.get(),
            OptionalDouble.of(0.0));
        ApiVersions versions = (ApiVersions) ClassicClient.field(AbstractFetch.class, "apiVersions")
            .get(managers.fetchRequestManager);
        for (String node : List.of("0", "1"))
            versions.update(node, NodeApiVersions.create());
        ClassicClient.field(AsyncKafkaConsumer.class, "wakeupTrigger").set(consumer, new Trigger());
        application = new Application(this, consumer);
        leaders = settings.get("leaders");
        work = ConsumerNetworkThread.class.getDeclaredMethod("processApplicationEvents");
        work.setAccessible(true);
    }

    /** Back-offs without jitter: the factor is 1. */
    private static void steady(Class<?> kind, String name, Object manager) throws Exception {
        Object backoff = ((RequestState) ClassicClient.field(kind, name).get(manager)).exponentialBackoff;
        ClassicClient.field(backoff.getClass(), "jitter").set(backoff, 0.0);
    }

    private Map<String, Object> config() {
        if (reading)
            return Application.config(settings, "consumer");
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", "127.0.0.1:1");
        config.put("client.id", "client");
        config.put("group.protocol", "consumer");
        config.put("group.id", settings.get("group_id").asText());
        put(config, "group.instance.id", settings.get("group_instance_id"));
        put(config, "client.rack", settings.get("rack"));
        put(config, "group.remote.assignor", settings.get("server_assignor"));
        config.put("max.poll.interval.ms", settings.get("max_poll_interval_ms").asInt());
        config.put("request.timeout.ms", settings.get("request_timeout_ms").asInt());
        config.put("default.api.timeout.ms", Integer.MAX_VALUE);
        config.put("retry.backoff.ms", settings.get("retry_backoff_ms").asLong());
        config.put("retry.backoff.max.ms", settings.get("retry_backoff_max_ms").asLong());
        config.put("enable.auto.commit", settings.get("auto_commit").asBoolean());
        config.put("auto.offset.reset", "none");
        config.put("enable.metrics.push", false);
        config.put("key.deserializer", ByteArrayDeserializer.class);
        config.put("value.deserializer", ByteArrayDeserializer.class);
        config.put("metric.reporters", List.of());
        config.put("metadata.max.age.ms", Long.MAX_VALUE / 2);
        return config;
    }

    private static void put(Map<String, Object> config, String name, JsonNode value) {
        if (!value.isNull())
            config.put(name, value.asText());
    }

    // --- the two threads, on one -------------------------------------------------------------------------------------

    /** Passes events to the background at once; a caller that waits for one takes the events of the trace. */
    private static final class Handler extends ApplicationEventHandler {
        private ConsumerClient client;

        private Handler() { // never called, since the superclass constructor starts the thread
            super(null, null, 0, null, null, null, null, null, null);
        }

        @Override
        public void add(ApplicationEvent event) {
            client.add(event);
        }

        @Override
        public <T> T addAndGet(CompletableApplicationEvent<T> event) {
            String before = event instanceof CheckAndUpdatePositionsEvent ? client.looked() : null;
            add(event);
            T result = ConsumerUtils.getResult(event.future());
            if (event instanceof LeaveGroupOnCloseEvent)
                client.lastCommits();
            if (before != null && before.equals(client.looked())) { // otherwise it would ask again without a pause
                client.next();
                client.settle();
            }
            return result;
        }

        @Override
        public void wakeupNetworkThread() {
        }

        @Override
        public long maximumTimeToWait() {
            return client.network.maximumTimeToWait();
        }

        @Override
        public void close(Duration timeout) {
            client.wire.closing = true;
            client.network.cleanup();
        }
    }

    /** After leaving, a close waits for asynchronous commits; in a trace until its time is over. */
    private void lastCommits() {
        try {
            Field last = ClassicClient.field(AsyncKafkaConsumer.class, "lastPendingAsyncCommit");
            CompletableFuture<?> pending = (CompletableFuture<?>) last.get(consumer);
            if (reading && pending != null) {
                for (settle(); !pending.isDone() && time.now < deadline; settle())
                    next();
                if (!pending.isDone())
                    last.set(consumer, null);
            }
        } catch (Exception fault) {
            throw new IllegalStateException(fault);
        }
    }

    private Handler handler(NetworkClientDelegate delegate) {
        try {
            Field client = ClassicClient.field(NetworkClientDelegate.class, "client");
            ((AutoCloseable) ClassicClient.field(client.get(delegate).getClass(), "selector").get(client.get(delegate)))
                .close();
            client.set(delegate, wire.client());
            Field unsafe = ClassicClient.field(Class.forName("sun.misc.Unsafe"), "theUnsafe");
            Method make = unsafe.getType().getMethod("allocateInstance", Class.class);
            Handler handler = (Handler) make.invoke(unsafe.get(null), Handler.class);
            handler.client = this;
            return handler;
        } catch (Exception fault) {
            throw new IllegalStateException(fault);
        }
    }

    /** A caller that waits for it lets the background work, and then lets the next event happen. */
    private final class Awaited<T> extends CompletableFuture<T> {
        @Override
        public T get() throws InterruptedException, java.util.concurrent.ExecutionException {
            for (settle(); !isDone(); settle())
                next();
            return super.get();
        }

        @Override
        public T get(long timeout, TimeUnit unit)
            throws InterruptedException, java.util.concurrent.ExecutionException, TimeoutException {
            long until = time.now + unit.toMillis(timeout);
            boolean once = !reading || StackWalker.getInstance().walk(frames -> frames.anyMatch(
                frame -> frame.getMethodName().equals("processBackgroundEvents"))); // which returns
            settle();
            if (!isDone()) {
                next();
                settle();
            }
            for (; !once && !isDone() && time.now < until; settle())
                next();
            if (!isDone())
                throw new TimeoutException();
            return super.get();
        }
    }

    private void add(ApplicationEvent event) {
        event.setEnqueuedMs(time.now);
        if (event instanceof CompletableApplicationEvent) {
            try {
                Awaited<Object> awaited = new Awaited<>();
                ((CompletableApplicationEvent<?>) event).future().whenComplete((none, error) ->
                    awaited.completeExceptionally(error)); // a wakeup belongs to its future
                ClassicClient.field(CompletableApplicationEvent.class, "future").set(event, awaited);
            } catch (Exception fault) {
                throw new IllegalStateException(fault);
            }
        }
        Set<TopicPartition> before = subscriptions.assignedPartitions();
        queue.add(event);
        try {
            work.invoke(network);
        } catch (IllegalAccessException | InvocationTargetException fault) {
            throw new IllegalStateException(fault);
        }
        if (event instanceof AssignmentChangeEvent && !before.equals(subscriptions.assignedPartitions()))
            order();
    }

    /** Manually assigned partitions pass through a set whose order each JVM draws: use the trace's order. */
    private void order() {
        Map<String, List<TopicPartition>> topics = new LinkedHashMap<>();
        for (JsonNode each : events.get(at).get("partitions")) {
            TopicPartition partition = Reads.partition(each.asText());
            topics.computeIfAbsent(partition.topic(), name -> new ArrayList<>()).add(partition);
        }
        topics.values().forEach(several -> several.forEach(subscriptions::movePartitionToEnd));
    }

    /** Returns the state that a search for positions may change. */
    private String looked() {
        settle();
        return at + " " + wire.count() + Reads.partitions(subscriptions);
    }

    /** Lets the background work until it has nothing to do at this time, again with the metadata that it requested. */
    @Override
    void settle() {
        rest();
        if (reading) {
            if (events.get(first).path("metadata").asBoolean() && updates++ == 0) {
                setLeaders();
                rest();
            }
            return;
        }
        while (metadata.updateRequested() && updates++ < 3) { // then it backs off, since time stands still
            update();
            rest();
        }
    }

    /**
     * The background looks at the clock all the time, and counts the commit interval from there. In 4.4.0 it does not
     * while it knows no coordinator; that is left out.
     */
    @Override
    void passed() {
        try {
            Optional<?> commits = (Optional<?>) ClassicClient.field(CommitRequestManager.class, "autoCommitState")
                .get(managers.commitRequestManager.get());
            if (commits.isPresent()) {
                Method update = commits.get().getClass().getDeclaredMethod("updateTimer", long.class);
                update.setAccessible(true);
                update.invoke(commits.get(), time.now);
            }
        } catch (Exception fault) {
            throw new IllegalStateException(fault);
        }
    }

    private void rest() {
        for (int same = 0, rounds = 0; same < (reading ? 3 : 2); rounds++) { // unsendable requests fail a round later
            if (rounds == 100)
                throw new IllegalStateException("the background does not become idle");
            int sent = wire.count();
            MemberState state = member.state();
            int epoch = member.memberEpoch();
            network.runOnce();
            same = sent == wire.count() && state == member.state() && epoch == member.memberEpoch() ? same + 1 : 0;
        }
    }

    private void setLeaders() {
        metadata.updateWithCurrentRequestVersion(Reads.metadata(cluster, leaders, true), false, time.now);
    }

    /** Answers a metadata request as a broker does: topics by name or by id, or all. */
    private void update() {
        Metadata.MetadataRequestAndVersion asked = metadata.newMetadataRequestAndVersion(time.now);
        requested.add(Wire.topics(asked.requestBuilder));
        MetadataRequest request = (MetadataRequest) asked.requestBuilder.build((short) 12);
        Set<String> names = new TreeSet<>();
        Set<Uuid> ids = new HashSet<>(request.topicIds());
        if (request.data().topics() != null)
            request.data().topics().forEach(each -> names.add(String.valueOf(each.name())));
        MetadataResponseData data = new MetadataResponseData().setClusterId("c").setControllerId(0);
        data.brokers().add(new MetadataResponseData.MetadataResponseBroker().setNodeId(0).setHost("h").setPort(1));
        cluster.fields().forEachRemaining(each -> {
            Uuid id = Wire.id(each.getValue().get(0).asInt());
            if (!request.isAllTopics() && !names.contains(each.getKey()) && !ids.contains(id))
                return;
            MetadataResponseData.MetadataResponseTopic topic =
                new MetadataResponseData.MetadataResponseTopic().setName(each.getKey()).setTopicId(id);
            for (int index = 0; index < each.getValue().get(1).asInt(); index++)
                topic.partitions().add(new MetadataResponseData.MetadataResponsePartition().setPartitionIndex(index)
                    .setLeaderId(0).setLeaderEpoch(0).setReplicaNodes(List.of(0)).setIsrNodes(List.of(0)));
            data.topics().add(topic);
        });
        metadata.update(asked.requestVersion, new MetadataResponse(data, (short) 12), asked.isPartialUpdate, time.now);
    }

    // --- the application ---------------------------------------------------------------------------------------------

    private void poll() {
        if (subscriptions.hasNoSubscriptionOrUserAssignment())
            return; // which Kafka rejects, and the core leaves to its host
        do { // the loop in Kafka's poll, which would time out at once
            for (TopicPartition each : subscriptions.assignedPartitions()) { // requests no positions or records
                if (!subscriptions.hasValidPosition(each))
                    subscriptions.seek(each, 0);
                subscriptions.pause(each);
            }
            consumer.poll(Duration.ZERO);
        } while (!backgroundEvents.isEmpty());
    }

    private void subscribe(JsonNode event) {
        if (settings.get("listener").asBoolean())
            consumer.subscribe(topics(event), listener);
        else
            consumer.subscribe(topics(event));
    }

    private void subscribeRegex(String regex) {
        if (settings.get("listener").asBoolean())
            consumer.subscribe(new SubscriptionPattern(regex), listener);
        else
            consumer.subscribe(new SubscriptionPattern(regex));
    }

    // --- the trace ---------------------------------------------------------------------------------------------------

    @Override
    void begin() {
        updates = 0;
        requested = ClassicClient.JSON.createArrayNode();
        super.begin();
    }

    @Override
    void handle(JsonNode event) {
        if (reading) {
            read(event);
            return;
        }
        switch (event.get("kind").asText()) {
            case "subscribe" -> call(() -> subscribe(event));
            case "subscribe_regex" -> call(() -> subscribeRegex(event.get("regex").asText()));
            case "poll" -> call(this::poll);
            case "unsubscribe" -> call(consumer::unsubscribe);
            case "close" -> call(() -> consumer.close(options(event.get("option").asText())));
            default -> {
                if (!network(event))
                    throw new IllegalArgumentException(event.toString());
            }
        }
    }

    private void read(JsonNode event) {
        if (event.has("timeout"))
            deadline = time.now + event.get("timeout").asLong();
        switch (event.get("kind").asText()) {
            case "metadata" -> {
                leaders = event.get("leaders");
                setLeaders();
                leaders = event.get("truth");
            }
            case "poll" -> call(() -> {
                ConsumerRecords<byte[], byte[]> records;
                do // the loop in Kafka's poll, whose time would be over at once
                    records = consumer.poll(Duration.ZERO);
                while (!backgroundEvents.isEmpty() && records.isEmpty() && records.nextOffsets().isEmpty());
                returned = Application.records(records);
            });
            default -> {
                if (!application.handle(event) && !network(event))
                    throw new IllegalArgumentException(event.toString());
            }
        }
    }

    /** A caller that waits for something other than a background event lets the background work too. */
    private final class Trigger extends WakeupTrigger {
        @Override
        public <T> CompletableFuture<T> setActiveTask(CompletableFuture<T> task) {
            super.setActiveTask(task);
            if (StackWalker.getInstance().walk(frames -> frames.anyMatch(frame ->
                frame.getMethodName().equals("awaitPendingAsyncCommitsAndExecuteCommitCallbacks"))))
                await(task);
            return task;
        }
    }

    private void await(CompletableFuture<?> task) {
        for (settle(); !task.isDone() && time.now < deadline; settle())
            next();
        if (!task.isDone())
            throw new org.apache.kafka.common.errors.TimeoutException("the trace has timed out");
    }

    private static CloseOptions options(String name) {
        return CloseOptions.timeout(Duration.ofMillis(Integer.MAX_VALUE)).withGroupMembershipOperation(
            CloseOptions.GroupMembershipOperation.valueOf(name));
    }

    // --- observations ------------------------------------------------------------------------------------------------

    @Override
    void addState(ObjectNode outcome) {
        if (reading) {
            outcome.putArray("member").add(member.state().name()).add(member.memberEpoch());
            outcome.set("returned", returned);
            outcome.put("known", managers.coordinatorRequestManager.get().coordinator().isPresent());
            boolean ended = application.closed || application.leaving;
            outcome.set("partitions", ended ? null : Reads.partitions(subscriptions));
            return;
        }
        outcome.set("metadata", requested);
        outcome.put("state", member.state().name());
        outcome.put("epoch", member.memberEpoch());
        outcome.put("known", managers.coordinatorRequestManager.get().coordinator().isPresent());
        left(outcome);
        outcome.set("current", local("currentAssignment"));
        outcome.set("target", local("currentTargetAssignment"));
        ArrayNode owned = outcome.putArray("owned");
        subscriptions.assignedPartitions().stream().map(TopicPartition::toString).sorted().forEach(owned::add);
    }

    /**
     * Writes the time until the next heartbeat, and until the poll interval is over; null where they do not matter now.
     */
    private void left(ObjectNode outcome) {
        boolean timed = (member.state() == MemberState.STABLE || member.state() == MemberState.RECONCILING)
            && managers.coordinatorRequestManager.get().coordinator().isPresent();
        Object manager = managers.consumerHeartbeatRequestManager.get();
        try {
            HeartbeatRequestState beats = (HeartbeatRequestState)
                ClassicClient.field(AbstractHeartbeatRequestManager.class, "heartbeatRequestState").get(manager);
            Timer timer = (Timer) ClassicClient.field(HeartbeatRequestState.class, "heartbeatTimer").get(beats);
            Timer polls = (Timer) ClassicClient.field(AbstractHeartbeatRequestManager.class, "pollTimer").get(manager);
            timer.update(time.now);
            polls.update(time.now);
            outcome.putNull("beat").putNull("poll");
            if (timed && !beats.requestInFlight())
                outcome.put("beat", Math.max(timer.remainingMs(), beats.remainingBackoffMs(time.now)));
            if (timed)
                outcome.put("poll", polls.remainingMs());
        } catch (Exception fault) {
            throw new IllegalStateException(fault);
        }
    }

    private JsonNode local(String name) {
        AbstractMembershipManager.LocalAssignment local;
        try {
            local = (AbstractMembershipManager.LocalAssignment)
                ClassicClient.field(AbstractMembershipManager.class, name).get(member);
        } catch (Exception fault) {
            throw new IllegalStateException(fault);
        }
        if (local.isNone())
            return ClassicClient.JSON.nullNode();
        ArrayNode rows = ClassicClient.JSON.createArrayNode();
        local.partitions.forEach((topic, numbers) -> numbers.forEach(
            number -> rows.addArray().add(Wire.number(topic)).add(number)));
        return rows;
    }

    public static void main(String[] ignored) throws Exception {
        ClassicClient.serve(trace -> new ConsumerClient(trace).run());
    }
}

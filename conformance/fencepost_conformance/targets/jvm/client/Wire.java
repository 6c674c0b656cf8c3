package org.apache.kafka.clients.consumer.internals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.kafka.clients.ClientRequest;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.KafkaClient;
import org.apache.kafka.clients.LeastLoadedNode;
import org.apache.kafka.clients.RequestCompletionHandler;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.message.FindCoordinatorResponseData;
import org.apache.kafka.common.message.HeartbeatResponseData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupResponseData;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.ConsumerGroupHeartbeatRequest;
import org.apache.kafka.common.requests.ConsumerGroupHeartbeatResponse;
import org.apache.kafka.common.requests.FindCoordinatorRequest;
import org.apache.kafka.common.requests.FindCoordinatorResponse;
import org.apache.kafka.common.requests.HeartbeatRequest;
import org.apache.kafka.common.requests.HeartbeatResponse;
import org.apache.kafka.common.requests.JoinGroupRequest;
import org.apache.kafka.common.requests.JoinGroupResponse;
import org.apache.kafka.common.requests.LeaveGroupRequest;
import org.apache.kafka.common.requests.LeaveGroupResponse;
import org.apache.kafka.common.requests.MetadataRequest;
import org.apache.kafka.common.requests.SyncGroupRequest;
import org.apache.kafka.common.requests.SyncGroupResponse;

/** A network of one broker: keeps sent requests until the trace says what happens to them. */
final class Wire {
    /** Positions and records are not part of a schedule: such requests get no answer. */
    private static final Set<ApiKeys> NOT_SCHEDULED = Reads.KINDS.keySet();
    private static final Map<ApiKeys, String> KINDS = Map.of(ApiKeys.JOIN_GROUP, "join", ApiKeys.SYNC_GROUP, "sync",
        ApiKeys.HEARTBEAT, "heartbeat", ApiKeys.LEAVE_GROUP, "leave", ApiKeys.CONSUMER_GROUP_HEARTBEAT, "heartbeat");
    /** Brokers by their ids; any other destination is the coordinator's connection. */
    private static final Set<String> BROKERS = Set.of("0", "1");

    private final HandTime time;
    private final boolean reading;
    private final Map<Integer, ClientRequest> waiting = new LinkedHashMap<>();
    private final List<ClientResponse> ready = new ArrayList<>();
    private ArrayNode requests = ClassicClient.JSON.createArrayNode();
    private int correlation;
    private int numbered;
    private final Map<String, Long> broken = new HashMap<>(); // unanswering brokers, and until when to avoid them
    private ClientRequest lookup;
    Runnable waits;
    boolean closing; // no request is answered any more, and a close does not wait

    Wire(HandTime time, boolean reading) {
        this.time = time;
        this.reading = reading;
    }

    KafkaClient client() {
        return (KafkaClient) Proxy.newProxyInstance(KafkaClient.class.getClassLoader(),
            new Class<?>[] {KafkaClient.class}, (proxy, method, given) -> switch (method.getName()) {
                case "wakeup", "close", "initiateClose", "authenticationException" -> null;
                case "isReady", "ready", "hasReadyNodes", "active" -> true;
                case "connectionFailed" -> left(given[0]) > 0;
                case "connectionDelay" -> left(given[0]);
                case "pollDelayMs" -> 0L;
                case "hasInFlightRequests" -> !closing && (given == null ? lookup != null || !waiting.isEmpty()
                    : waiting.values().stream().anyMatch(each -> each.destination().equals(given[0])));
                case "inFlightRequestCount" -> waiting.size() + (lookup == null ? 0 : 1);
                case "leastLoadedNode" -> new LeastLoadedNode(new Node(2, "h", 3), true);
                case "send" -> send((ClientRequest) given[0]);
                case "poll" -> poll((long) given[0]);
                case "disconnect" -> lose(each -> each.destination().equals(given[0]));
                case "newClientRequest" -> new ClientRequest((String) given[0], (AbstractRequest.Builder<?>) given[1],
                    correlation++, "client", (long) given[2], (boolean) given[3],
                    given.length > 4 ? (int) given[4] : 30_000,
                    given.length > 5 ? (RequestCompletionHandler) given[5] : null);
                default -> null;
            });
    }

    private List<ClientResponse> poll(long timeout) {
        if (timeout > 0 && ready.isEmpty())
            waits.run(); // a leader waits for metadata inside the handler; nothing else may wait
        List<ClientResponse> read = List.copyOf(ready);
        ready.clear();
        read.forEach(ClientResponse::onComplete);
        return read;
    }

    private Object send(ClientRequest request) {
        if (request.apiKey() == ApiKeys.FIND_COORDINATOR) {
            lookup = request;
            FindCoordinatorRequest asked = (FindCoordinatorRequest) request.requestBuilder()
                .build(request.apiKey().latestVersion());
            requests.addObject().put("kind", "find").put("group", String.join(",", asked.data().coordinatorKeys()))
                .put("type", asked.data().keyType());
            return null;
        }
        if (Reads.ends(request)) { // a fetch session ends: a close waits for this answer, nothing else does
            respond(request, Reads.ended());
            return null;
        }
        if (reading)
            requests.add((NOT_SCHEDULED.contains(request.apiKey()) ? Reads.describe(request) : describe(request))
                .put("node", node(request)).put("timeout", request.requestTimeoutMs()));
        else if (NOT_SCHEDULED.contains(request.apiKey()))
            return null;
        else
            requests.add(describe(request).put("timeout", request.requestTimeoutMs()));
        waiting.put(numbered++, request);
        return null;
    }

    /** Returns how many requests have been sent. */
    int count() {
        return correlation;
    }

    ArrayNode sent() {
        ArrayNode all = requests;
        requests = ClassicClient.JSON.createArrayNode();
        return all;
    }

    private Object lose(Predicate<ClientRequest> whose) {
        List<ClientRequest> lost = waiting.values().stream().filter(whose).toList();
        waiting.values().removeAll(lost);
        lost.forEach(each -> respond(each, null));
        return null;
    }

    /** Loses one request, or all requests to the coordinator. */
    void lose(JsonNode event) {
        if (!event.has("of")) {
            lose(each -> true);
            return;
        }
        ClientRequest request = waiting.get(numbered(event));
        if (node(request) == null) { // all requests to the coordinator
            lose(each -> each.destination().equals(request.destination()));
            return;
        }
        if (request.apiKey() == ApiKeys.FETCH)
            broken.put(request.destination(), time.now + 50);
        waiting.remove(numbered(event));
        respond(request, null);
    }

    private static String node(ClientRequest request) {
        return BROKERS.contains(request.destination()) ? request.destination() : null;
    }

    /** Returns how long the broker is avoided. */
    private long left(Object node) {
        return node instanceof Node ? Math.max(0, broken.getOrDefault(((Node) node).idString(), 0L) - time.now) : 0;
    }

    /**
     * Returns the number of a request: as the event has it, or by its kind, broker and place in order, among those for
     * these partitions.
     */
    private int numbered(JsonNode event) {
        if (!event.has("of"))
            return event.get("request").asInt();
        JsonNode of = event.get("of");
        return waiting.entrySet().stream().filter(each -> kind(each.getValue()).equals(of.get(0).asText())
            && String.valueOf(node(each.getValue())).equals(of.get(1).asText())
            && (!of.has(3) || Reads.listed(each.getValue()).equals(of.get(3)))).skip(of.get(2).asInt()).findFirst()
            .orElseThrow(() -> new IllegalStateException("no request " + of)).getKey();
    }

    private static String kind(ClientRequest request) {
        return Reads.KINDS.getOrDefault(request.apiKey(), KINDS.get(request.apiKey()));
    }

    void lookupLost() {
        if (lookup == null)
            throw new IllegalStateException("no look-up");
        respond(lookup, null);
        lookup = null;
    }

    void found(Errors error) {
        if (lookup == null)
            throw new IllegalStateException("no look-up");
        FindCoordinatorResponseData.Coordinator node = new FindCoordinatorResponseData.Coordinator().setKey("g")
            .setErrorCode(error.code()).setNodeId(0).setHost("h").setPort(1);
        respond(lookup, new FindCoordinatorResponse(new FindCoordinatorResponseData().setCoordinators(List.of(node))));
        lookup = null;
    }

    private void respond(ClientRequest request, AbstractResponse body) {
        short version = Reads.KINDS.containsKey(request.apiKey()) ? Reads.version(request)
            : request.apiKey().latestVersion();
        ready.add(new ClientResponse(request.makeHeader(version), request.callback(),
            request.destination(), request.createdTimeMs(), time.now, body == null, null, null, body));
    }

    void answer(JsonNode event) {
        ClientRequest request = waiting.remove(numbered(event));
        if (request == null)
            throw new IllegalStateException("no request " + event.get("request"));
        if (Reads.KINDS.containsKey(request.apiKey())) {
            respond(request, Reads.answer(request, event));
            return;
        }
        short error = event.get("error").shortValue();
        respond(request, switch (request.apiKey()) {
            case HEARTBEAT -> new HeartbeatResponse(new HeartbeatResponseData().setErrorCode(error));
            case LEAVE_GROUP -> new LeaveGroupResponse(new LeaveGroupResponseData().setErrorCode(error));
            case SYNC_GROUP -> new SyncGroupResponse(new SyncGroupResponseData().setErrorCode(error)
                .setProtocolType(event.get("protocol_type").textValue())
                .setProtocolName(event.get("protocol").textValue())
                .setAssignment(Base64.getDecoder().decode(event.get("assignment").asText())));
            case CONSUMER_GROUP_HEARTBEAT -> beaten(event, error);
            default -> join(event, error);
        });
    }

    /** Returns the topics of a metadata request, sorted: names, then ids; null for all. */
    static ArrayNode topics(MetadataRequest.Builder asked) {
        MetadataRequest request = asked.build(ApiKeys.METADATA.latestVersion());
        if (request.isAllTopics())
            return null;
        ArrayNode topics = ClassicClient.JSON.createArrayNode();
        request.data().topics().stream().map(each -> each.name() == null || each.name().isEmpty()
            ? "#" + number(each.topicId()) : each.name())
            .sorted().forEach(topics::add);
        return topics;
    }

    private static AbstractResponse beaten(JsonNode event, short error) {
        ConsumerGroupHeartbeatResponseData data = new ConsumerGroupHeartbeatResponseData().setErrorCode(error)
            .setMemberId(event.get("member").textValue())
            .setMemberEpoch(event.get("epoch").asInt()).setHeartbeatIntervalMs(event.get("interval").asInt());
        if (!event.get("assignment").isNull()) {
            ConsumerGroupHeartbeatResponseData.Assignment given = new ConsumerGroupHeartbeatResponseData.Assignment();
            for (JsonNode each : event.get("assignment")) {
                ConsumerGroupHeartbeatResponseData.TopicPartitions row =
                    new ConsumerGroupHeartbeatResponseData.TopicPartitions().setTopicId(id(each.get(0).asInt()));
                each.get(1).forEach(number -> row.partitions().add(number.asInt()));
                given.topicPartitions().add(row);
            }
            data.setAssignment(given);
        }
        return new ConsumerGroupHeartbeatResponse(data);
    }

    /** Numbers topics from 1 on: the id of one is its number in every byte, as in the core. */
    static Uuid id(int number) {
        long half = 0x0101010101010101L * number;
        return new Uuid(half, half);
    }

    static int number(Uuid id) {
        return (int) (id.getMostSignificantBits() & 0xff);
    }

    private static AbstractResponse join(JsonNode event, short error) {
        JoinGroupResponseData data = new JoinGroupResponseData().setErrorCode(error)
            .setGenerationId(event.get("generation").asInt()).setProtocolType(event.get("protocol_type").textValue())
            .setProtocolName(event.get("protocol").textValue()).setLeader(event.get("leader").asText())
            .setMemberId(event.get("member").asText()).setSkipAssignment(event.get("skip").asBoolean());
        for (JsonNode each : event.get("members"))
            data.members().add(new JoinGroupResponseData.JoinGroupResponseMember().setMemberId(each.get(0).asText())
                .setGroupInstanceId(each.get(1).textValue())
                .setMetadata(Base64.getDecoder().decode(each.get(2).asText())));
        return new JoinGroupResponse(data, ApiKeys.JOIN_GROUP.latestVersion());
    }

    private static ObjectNode describe(ClientRequest request) {
        ObjectNode node = ClassicClient.JSON.createObjectNode();
        AbstractRequest body = request.requestBuilder().build(request.apiKey().latestVersion());
        if (body instanceof JoinGroupRequest join) {
            node.put("kind", "join").put("group", join.data().groupId()).put("session", join.data().sessionTimeoutMs())
                .put("rebalance", join.data().rebalanceTimeoutMs()).put("member", join.data().memberId())
                .put("instance", join.data().groupInstanceId()).put("type", join.data().protocolType())
                .put("reason", join.data().reason());
            ArrayNode protocols = node.putArray("protocols");
            join.data().protocols().forEach(each -> protocols.addArray().add(each.name())
                .add(ClassicClient.text(java.nio.ByteBuffer.wrap(each.metadata()))));
        } else if (body instanceof SyncGroupRequest sync) {
            node.put("kind", "sync").put("group", sync.data().groupId()).put("generation", sync.data().generationId())
                .put("member", sync.data().memberId()).put("instance", sync.data().groupInstanceId())
                .put("type", sync.data().protocolType()).put("protocol", sync.data().protocolName());
            ArrayNode assignments = node.putArray("assignments");
            sync.data().assignments().forEach(each -> assignments.addArray().add(each.memberId())
                .add(ClassicClient.text(java.nio.ByteBuffer.wrap(each.assignment()))));
        } else if (body instanceof HeartbeatRequest beat) {
            node.put("kind", "heartbeat").put("group", beat.data().groupId())
                .put("generation", beat.data().generationId()).put("member", beat.data().memberId())
                .put("instance", beat.data().groupInstanceId());
        } else if (body instanceof LeaveGroupRequest leave) {
            node.put("kind", "leave").put("group", leave.data().groupId());
            ArrayNode members = node.putArray("members");
            leave.data().members().forEach(each -> members.addArray().add(each.memberId())
                .add(each.groupInstanceId()).add(each.reason()));
        } else if (body instanceof ConsumerGroupHeartbeatRequest beat) {
            node.put("kind", "heartbeat").put("group", beat.data().groupId()).put("member", beat.data().memberId())
                .put("epoch", beat.data().memberEpoch()).put("instance", beat.data().instanceId())
                .put("rack", beat.data().rackId()).put("rebalance", beat.data().rebalanceTimeoutMs())
                .put("regex", beat.data().subscribedTopicRegex()).put("assignor", beat.data().serverAssignor());
            ArrayNode topics = beat.data().subscribedTopicNames() == null ? null : node.putArray("topics");
            if (topics == null)
                node.putNull("topics");
            else
                beat.data().subscribedTopicNames().forEach(topics::add);
            ArrayNode owned = beat.data().topicPartitions() == null ? null : node.putArray("owned");
            if (owned == null)
                node.putNull("owned");
            else
                beat.data().topicPartitions().forEach(each -> each.partitions().forEach(
                    number -> owned.addArray().add(number(each.topicId())).add(number)));
        } else {
            node.put("kind", request.apiKey().name);
        }
        return node;
    }
}

package org.apache.kafka.clients.consumer.internals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Function;
import org.apache.kafka.clients.ClientRequest;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ListOffsetsResponseData;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.message.OffsetCommitResponseData;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.ListOffsetsResponse;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.requests.OffsetCommitRequest;
import org.apache.kafka.common.requests.OffsetCommitResponse;
import org.apache.kafka.common.requests.OffsetFetchRequest;
import org.apache.kafka.common.requests.OffsetFetchResponse;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochRequest;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochResponse;

/**
 * Converts messages of a consumer that reads and commits to and from lines of a trace. Partitions are "topic-number".
 */
final class Reads {
    /** The names of these requests in a trace. */
    static final Map<ApiKeys, String> KINDS = Map.of(ApiKeys.OFFSET_COMMIT, "commit", ApiKeys.OFFSET_FETCH, "offsets",
        ApiKeys.LIST_OFFSETS, "list", ApiKeys.OFFSET_FOR_LEADER_EPOCH, "epochs", ApiKeys.FETCH, "fetch");

    private Reads() {
    }

    static TopicPartition partition(String text) {
        int dash = text.lastIndexOf('-');
        return new TopicPartition(text.substring(0, dash), Integer.parseInt(text.substring(dash + 1)));
    }

    /** Returns the newest version that the request may have; fetches name their topics. */
    static short version(ClientRequest request) {
        return request.apiKey() == ApiKeys.FETCH ? 12 : request.requestBuilder().latestAllowedVersion();
    }

    // --- requests ----------------------------------------------------------------------------------------------------

    /** Describes a request without its sender. */
    static ObjectNode describe(ClientRequest request) {
        ObjectNode described = ClassicClient.JSON.createObjectNode().put("kind", KINDS.get(request.apiKey()));
        ArrayNode rows = described.putArray("rows");
        if (request.requestBuilder() instanceof FetchRequest.Builder fetch) {
            fetch.fetchData().forEach((each, asked) -> rows.addArray().add(each.toString()).add(asked.fetchOffset)
                .add(asked.currentLeaderEpoch.orElse(-1)).add(asked.lastFetchedEpoch.orElse(-1)));
            return described;
        }
        AbstractRequest body = request.requestBuilder().build(version(request));
        boolean ids = version(request) >= 10; // of both requests that may have them
        if (body instanceof OffsetCommitRequest commit) {
            described.put("group", commit.data().groupId()).put("member", commit.data().memberId())
                .put("epoch", commit.data().generationIdOrMemberEpoch()).put("instance", commit.data().groupInstanceId());
            commit.data().topics().forEach(topic -> topic.partitions().forEach(each -> rows.addArray()
                .add(name(topic.name(), topic.topicId(), ids) + "-" + each.partitionIndex()).add(each.committedOffset())
                .add(each.committedLeaderEpoch()).add(each.committedMetadata())));
        } else if (body instanceof OffsetFetchRequest offsets) {
            described.put("stable", offsets.data().requireStable());
            offsets.data().groups().forEach(group -> {
                described.put("group", group.groupId()).put("member", group.memberId()).put("epoch", group.memberEpoch());
                group.topics().forEach(topic -> topic.partitionIndexes()
                    .forEach(each -> rows.add(name(topic.name(), topic.topicId(), ids) + "-" + each)));
            });
        } else if (body instanceof ListOffsetsRequest list) {
            described.put("isolation", list.data().isolationLevel());
            list.data().topics().forEach(topic -> topic.partitions().forEach(each -> rows.addArray()
                .add(topic.name() + "-" + each.partitionIndex()).add(each.timestamp()).add(each.currentLeaderEpoch())));
        } else if (body instanceof OffsetsForLeaderEpochRequest epochs) {
            epochs.data().topics().forEach(topic -> topic.partitions().forEach(each -> rows.addArray()
                .add(topic.topic() + "-" + each.partition()).add(each.currentLeaderEpoch()).add(each.leaderEpoch())));
        }
        return described;
    }

    /** Returns the partitions whose offsets are requested, sorted. */
    static ArrayNode listed(ClientRequest request) {
        ArrayNode names = ClassicClient.JSON.createArrayNode();
        ListOffsetsRequest list = (ListOffsetsRequest) request.requestBuilder().build(version(request));
        list.data().topics().stream().flatMap(topic -> topic.partitions().stream()
            .map(each -> topic.name() + "-" + each.partitionIndex())).sorted().forEach(names::add);
        return names;
    }

    /** Returns the topic's name; topics that are sent by id are named after it: "#1". */
    private static String name(String name, Uuid id, boolean ids) {
        return ids ? "#" + Wire.number(id) : name;
    }

    /** Whether this fetch requests nothing. */
    static boolean ends(ClientRequest request) {
        return request.requestBuilder() instanceof FetchRequest.Builder fetch && fetch.fetchData().isEmpty();
    }

    static FetchResponse ended() {
        return FetchResponse.of(new FetchResponseData());
    }

    // --- answers -----------------------------------------------------------------------------------------------------

    static AbstractResponse answer(ClientRequest request, JsonNode event) {
        JsonNode rows = event.get("rows");
        return switch (request.apiKey()) {
            case OFFSET_COMMIT -> committed(rows);
            case OFFSET_FETCH -> new OffsetFetchResponse(offsets(request, event), version(request));
            case LIST_OFFSETS -> listed(rows);
            case OFFSET_FOR_LEADER_EPOCH -> epochs(rows);
            default -> fetched(event);
        };
    }

    /** Returns rows by topic, in order. A topic "#1" is one by id. */
    private static Map<String, List<JsonNode>> topics(JsonNode rows) {
        Map<String, List<JsonNode>> found = new TreeMap<>();
        rows.forEach(row -> found.computeIfAbsent(partition(row.get(0).asText()).topic(), name -> new ArrayList<>())
            .add(row));
        return found;
    }

    private static int number(JsonNode row) {
        return partition(row.get(0).asText()).partition();
    }

    private static <T> List<T> each(List<JsonNode> rows, Function<JsonNode, T> made) {
        return new ArrayList<>(rows.stream().map(made).toList());
    }

    private static OffsetCommitResponse committed(JsonNode rows) {
        OffsetCommitResponseData data = new OffsetCommitResponseData();
        topics(rows).forEach((name, several) -> {
            OffsetCommitResponseData.OffsetCommitResponseTopic topic =
                new OffsetCommitResponseData.OffsetCommitResponseTopic()
                    .setPartitions(each(several, row -> new OffsetCommitResponseData.OffsetCommitResponsePartition()
                        .setPartitionIndex(number(row)).setErrorCode(row.get(1).shortValue())));
            if (name.startsWith("#"))
                topic.setTopicId(Wire.id(Integer.parseInt(name.substring(1))));
            else
                topic.setName(name);
            data.topics().add(topic);
        });
        return new OffsetCommitResponse(data);
    }

    private static OffsetFetchResponseData offsets(ClientRequest request, JsonNode event) {
        OffsetFetchResponseData.OffsetFetchResponseGroup group = new OffsetFetchResponseData.OffsetFetchResponseGroup()
            .setGroupId("g").setErrorCode(event.get("error").shortValue());
        topics(event.get("rows")).forEach((name, several) -> {
            OffsetFetchResponseData.OffsetFetchResponseTopics topic =
                new OffsetFetchResponseData.OffsetFetchResponseTopics()
                    .setPartitions(each(several, row -> new OffsetFetchResponseData.OffsetFetchResponsePartitions()
                        .setPartitionIndex(number(row)).setCommittedOffset(row.get(1).asLong())
                        .setCommittedLeaderEpoch(row.get(2).asInt()).setMetadata(row.get(3).asText())
                        .setErrorCode(row.get(4).shortValue())));
            if (name.startsWith("#"))
                topic.setTopicId(Wire.id(Integer.parseInt(name.substring(1))));
            else
                topic.setName(name);
            group.topics().add(topic);
        });
        return new OffsetFetchResponseData().setGroups(List.of(group));
    }

    private static ListOffsetsResponse listed(JsonNode rows) {
        ListOffsetsResponseData data = new ListOffsetsResponseData();
        topics(rows).forEach((name, several) -> data.topics().add(
            new ListOffsetsResponseData.ListOffsetsTopicResponse().setName(name)
                .setPartitions(each(several, row -> new ListOffsetsResponseData.ListOffsetsPartitionResponse()
                    .setPartitionIndex(number(row)).setOffset(row.get(1).asLong()).setLeaderEpoch(row.get(2).asInt())
                    .setErrorCode(row.get(3).shortValue())))));
        return new ListOffsetsResponse(data);
    }

    private static OffsetsForLeaderEpochResponse epochs(JsonNode rows) {
        OffsetForLeaderEpochResponseData data = new OffsetForLeaderEpochResponseData();
        topics(rows).forEach((name, several) -> data.topics().add(
            new OffsetForLeaderEpochResponseData.OffsetForLeaderTopicResult().setTopic(name)
                .setPartitions(each(several, row -> new OffsetForLeaderEpochResponseData.EpochEndOffset()
                    .setPartition(number(row)).setLeaderEpoch(row.get(1).asInt()).setEndOffset(row.get(2).asLong())
                    .setErrorCode(row.get(3).shortValue())))));
        return new OffsetsForLeaderEpochResponse(data);
    }

    private static FetchResponse fetched(JsonNode event) {
        FetchResponseData data = new FetchResponseData().setErrorCode(event.get("error").shortValue());
        for (JsonNode row : event.get("rows")) {
            FetchResponseData.PartitionData found = new FetchResponseData.PartitionData().setPartitionIndex(number(row))
                .setErrorCode(row.get(1).shortValue()).setHighWatermark(row.get(2).asLong())
                .setLastStableOffset(row.get(3).asLong()).setLogStartOffset(row.get(4).asLong())
                .setPreferredReadReplica(row.get(5).asInt()).setRecords(batches(row.get(6)));
            data.responses().add(new FetchResponseData.FetchableTopicResponse()
                .setTopic(partition(row.get(0).asText()).topic()).setPartitions(List.of(found)));
        }
        return FetchResponse.of(data);
    }

    /** Makes batches: the leader epoch, the last offset, and the offsets of the remaining records of each. */
    private static MemoryRecords batches(JsonNode batches) {
        ByteBuffer buffer = ByteBuffer.allocate(4096);
        for (JsonNode batch : batches) {
            JsonNode offsets = batch.get(2);
            MemoryRecordsBuilder builder = MemoryRecords.builder(buffer, RecordBatch.CURRENT_MAGIC_VALUE,
                Compression.NONE, TimestampType.CREATE_TIME, offsets.get(0).asLong(), RecordBatch.NO_TIMESTAMP,
                RecordBatch.NO_PRODUCER_ID, RecordBatch.NO_PRODUCER_EPOCH, RecordBatch.NO_SEQUENCE, false,
                batch.get(0).asInt());
            offsets.forEach(each -> builder.appendWithOffset(each.asLong(), new SimpleRecord(0L, new byte[0])));
            builder.overrideLastOffset(batch.get(1).asLong());
            builder.close();
        }
        buffer.flip();
        return MemoryRecords.readableRecords(buffer);
    }

    /** Returns metadata of two brokers, the topics, and their leaders; only the new consumer uses ids. */
    static MetadataResponse metadata(JsonNode cluster, JsonNode leaders, boolean ids) {
        MetadataResponseData data = new MetadataResponseData().setClusterId("c").setControllerId(0);
        for (int node = 0; node < 2; node++)
            data.brokers().add(new MetadataResponseData.MetadataResponseBroker().setNodeId(node).setHost("h")
                .setPort(node + 1));
        cluster.fields().forEachRemaining(each -> {
            MetadataResponseData.MetadataResponseTopic topic =
                new MetadataResponseData.MetadataResponseTopic().setName(each.getKey());
            if (ids)
                topic.setTopicId(Wire.id(each.getValue().get(0).asInt()));
            for (int index = 0; index < each.getValue().get(1).asInt(); index++) {
                JsonNode leader = leaders.get(each.getKey() + "-" + index);
                int node = leader.get(0).asInt();
                topic.partitions().add(new MetadataResponseData.MetadataResponsePartition().setPartitionIndex(index)
                    .setLeaderId(node).setLeaderEpoch(leader.get(1).asInt()).setReplicaNodes(List.of(0, 1))
                    .setIsrNodes(List.of(0, 1))
                    .setErrorCode((short) (node < 0 ? 5 : 0))); // LEADER_NOT_AVAILABLE
            }
            data.topics().add(topic);
        });
        return new MetadataResponse(data, (short) 12);
    }

    // --- the state of partitions -------------------------------------------------------------------------------------

    /**
     * Writes the assigned partitions in the order of fetches: fetch state, position, whether they are paused and
     * fetchable.
     */
    static ArrayNode partitions(SubscriptionState state) {
        ArrayNode rows = ClassicClient.JSON.createArrayNode();
        for (TopicPartition each : state.assignedPartitionsList()) {
            SubscriptionState.FetchPosition position = state.positionOrNull(each);
            ArrayNode row = rows.addArray().add(each.toString()).add(state.hasValidPosition(each) ? "FETCHING"
                : state.awaitingValidation(each) ? "AWAIT_VALIDATION"
                : state.isOffsetResetNeeded(each) ? "AWAIT_RESET" : "INITIALIZING");
            if (position == null)
                row.addNull();
            else
                row.addArray().add(position.offset).add(position.offsetEpoch.orElse(-1))
                    .add(position.currentLeader.leader.map(node -> node.id()).orElse(-1))
                    .add(position.currentLeader.epoch.orElse(-1));
            row.add(state.isPaused(each)).add(state.isFetchable(each));
        }
        return rows;
    }

    static Optional<Integer> known(JsonNode number) {
        return number.isNull() ? Optional.empty() : Optional.of(number.asInt());
    }
}

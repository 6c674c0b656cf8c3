package fencepost;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestPartition;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestTopic;
import org.apache.kafka.common.message.OffsetDeleteRequestData;
import org.apache.kafka.common.message.OffsetDeleteRequestData.OffsetDeleteRequestPartition;
import org.apache.kafka.common.message.OffsetDeleteRequestData.OffsetDeleteRequestTopic;
import org.apache.kafka.common.message.OffsetDeleteResponseData;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestGroup;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestTopics;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponseGroup;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponsePartitions;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponseTopics;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData.TxnOffsetCommitRequestPartition;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData.TxnOffsetCommitRequestTopic;
import org.apache.kafka.common.message.TxnOffsetCommitResponseData;
import org.apache.kafka.common.message.WriteTxnMarkersResponseData;
import org.apache.kafka.common.message.WriteTxnMarkersResponseData.WritableTxnMarkerPartitionResult;
import org.apache.kafka.common.message.WriteTxnMarkersResponseData.WritableTxnMarkerResult;
import org.apache.kafka.common.message.WriteTxnMarkersResponseData.WritableTxnMarkerTopicResult;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.OffsetCommitResponse;
import org.apache.kafka.common.requests.OffsetDeleteResponse;
import org.apache.kafka.common.requests.OffsetFetchResponse;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.requests.TxnOffsetCommitResponse;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.coordinator.group.GroupCoordinatorService;

/**
 * The part of the broker's request layer around the offset APIs: authorization, missing topics, names for ids
 * (O-COMMIT-01…04, O-TXN-01, 02, O-FETCH-01, 13, 14, O-DEL-01), and errors in the form of each version.
 */
final class OffsetApis {
    private static final Method COMPLETE = Reflect.named(GroupCoordinatorService.class, "completeTransaction");
    private static final Method FETCH_ALL = Reflect.methodWith(GroupCoordinatorService.class, "fetchAllOffsets", 3);
    private static final String NOWHERE = "";

    /** One partition of a request: its place in the answer, and its contents. */
    private record Row(int partition, JsonNode contents) { }

    /** A topic of a request, as far as the broker knows it. */
    private record Known(String name, Uuid id, List<Row> rows) { }

    private final GroupCoordinatorService service;
    private final Metadata metadata;
    private final TopicRights rights;
    private final Duration timeout;
    private final Map<Integer, String> asked = new HashMap<>();

    OffsetApis(GroupCoordinatorService service, Metadata metadata, TopicRights rights, Duration timeout) {
        this.service = service;
        this.metadata = metadata;
        this.rights = rights;
        this.timeout = timeout;
    }

    /** Returns the first group of a fetch: the only one before v8, whose answers do not name it. */
    String groupOf(int request) {
        return asked.getOrDefault(request, NOWHERE);
    }

    CompletableFuture<? extends ApiMessage> commit(RequestContext context, JsonNode body, short version,
            Set<String> denied) {
        Object answer = builder(OffsetCommitResponse.class, version >= 10);
        String group = body.get(0).textValue();
        Errors refused = denied.contains(group) ? Errors.GROUP_AUTHORIZATION_FAILED : null;
        List<OffsetCommitRequestTopic> topics = new ArrayList<>();
        for (Known topic : known(context, body.get(5), version >= 10, refused,
                (name, id, partition, error) -> add(answer, name, id, partition, error))) {
            OffsetCommitRequestTopic made = TopicIds.set(new OffsetCommitRequestTopic().setName(topic.name()), topic.id());
            topic.rows().forEach(row -> made.partitions().add(new OffsetCommitRequestPartition()
                .setPartitionIndex(row.partition()).setCommittedOffset(row.contents().get(1).longValue())
                .setCommittedLeaderEpoch(row.contents().get(2).intValue())
                .setCommittedMetadata(row.contents().get(3).textValue())));
            topics.add(made);
        }
        if (topics.isEmpty()) {
            return CompletableFuture.completedFuture(((OffsetCommitResponse) build(answer)).data());
        }
        OffsetCommitRequestData request = new OffsetCommitRequestData().setGroupId(group)
            .setGenerationIdOrMemberEpoch(body.get(1).intValue()).setMemberId(body.get(2).textValue())
            .setGroupInstanceId(body.get(3).textValue()).setRetentionTimeMs(body.get(4).longValue()).setTopics(topics);
        return service.commitOffsets(context, request, BufferSupplier.NO_CACHING)
            .thenApply(response -> ((OffsetCommitResponse) build(merge(answer, response))).data());
    }

    CompletableFuture<? extends ApiMessage> txnCommit(RequestContext context, JsonNode body, short version,
            Set<String> denied, Set<String> deniedProducers) {
        Object answer = builder(TxnOffsetCommitResponse.class, version >= 6);
        String group = body.get(0).textValue();
        Errors refused = deniedProducers.contains(body.get(4).textValue()) ? Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            : denied.contains(group) ? Errors.GROUP_AUTHORIZATION_FAILED : null;
        List<TxnOffsetCommitRequestTopic> topics = new ArrayList<>();
        boolean byId = version >= 6;
        for (Known topic : known(context, body.get(7), byId, refused,
                (name, id, partition, error) -> add(answer, name, id, partition, error))) {
            TxnOffsetCommitRequestTopic made =
                TopicIds.set(new TxnOffsetCommitRequestTopic().setName(topic.name()), topic.id());
            topic.rows().forEach(row -> made.partitions().add(new TxnOffsetCommitRequestPartition()
                .setPartitionIndex(row.partition()).setCommittedOffset(row.contents().get(1).longValue())
                .setCommittedLeaderEpoch(row.contents().get(2).intValue())
                .setCommittedMetadata(row.contents().get(3).textValue())));
            topics.add(made);
        }
        if (topics.isEmpty()) {
            return CompletableFuture.completedFuture(((TxnOffsetCommitResponse) build(answer)).data());
        }
        TxnOffsetCommitRequestData request = new TxnOffsetCommitRequestData().setGroupId(group)
            .setMemberId(body.get(2).textValue()).setGroupInstanceId(body.get(3).textValue())
            .setTransactionalId(body.get(4).textValue()).setProducerId(body.get(5).longValue())
            .setProducerEpoch(body.get(6).shortValue()).setTopics(topics);
        generation(request, body.get(1).intValue());
        return service.commitTransactionalOffsets(context, request, BufferSupplier.NO_CACHING).thenApply(response -> {
            TxnOffsetCommitResponseData whole = ((TxnOffsetCommitResponse) build(merge(answer, response))).data();
            if (version < 2) {
                whole.topics().forEach(topic -> topic.partitions().stream()
                    .filter(each -> each.errorCode() == Errors.COORDINATOR_LOAD_IN_PROGRESS.code())
                    .forEach(each -> each.setErrorCode(Errors.COORDINATOR_NOT_AVAILABLE.code())));
            }
            return whole;
        });
    }

    /** Sets the generation; the field was renamed when it could also hold member epochs (4.4). */
    private static void generation(TxnOffsetCommitRequestData request, int generation) {
        Method setter = Reflect.methodWith(TxnOffsetCommitRequestData.class, "setGenerationId", 1);
        if (setter == null) {
            setter = Reflect.methodWith(TxnOffsetCommitRequestData.class, "setGenerationIdOrMemberEpoch", 1);
        }
        Reflect.call(setter, request, generation);
    }

    CompletableFuture<? extends ApiMessage> fetch(RequestContext context, JsonNode body, short version,
            Set<String> denied) {
        boolean stable = body.get(0).intValue() != 0;
        List<CompletableFuture<OffsetFetchResponseGroup>> answers = new ArrayList<>();
        for (JsonNode group : body.get(1)) {
            asked.putIfAbsent(context.correlationId(), group.get(0).textValue());
            OffsetFetchRequestGroup request = new OffsetFetchRequestGroup().setGroupId(group.get(0).textValue())
                .setMemberId(group.get(1).textValue()).setMemberEpoch(group.get(2).intValue());
            if (denied.contains(request.groupId())) {
                answers.add(CompletableFuture.completedFuture(
                    groupError(request.groupId(), group.get(3), version, Errors.GROUP_AUTHORIZATION_FAILED)));
                continue;
            }
            CompletableFuture<OffsetFetchResponseGroup> fetched = group.get(3).isNull()
                ? fetchAll(context, request.setTopics(null), stable, version)
                : fetchSome(context, request, group.get(3), stable, version);
            answers.add(fetched.handle((answer, thrown) -> thrown == null ? answer
                : groupError(request.groupId(), group.get(3), version, Errors.forException(cause(thrown)))));
        }
        return CompletableFuture.allOf(answers.toArray(new CompletableFuture<?>[0])).thenApply(done ->
            shaped(answers.stream().map(CompletableFuture::join).toList(), version));
    }

    private static OffsetFetchResponseGroup groupError(String group, JsonNode topics, short version, Errors error) {
        OffsetFetchResponseGroup answer = new OffsetFetchResponseGroup().setGroupId(group);
        if (version > 1) {
            return answer.setErrorCode(error.code());
        }
        topics.forEach(topic -> topic.get(2).forEach(partition -> missing(answer, topic.get(0).textValue(),
            Uuid.ZERO_UUID, partition.intValue(), error)));
        return answer;
    }

    private static Throwable cause(Throwable thrown) {
        return thrown instanceof CompletionException ? thrown.getCause() : thrown;
    }

    private CompletableFuture<OffsetFetchResponseGroup> fetchAll(RequestContext context,
            OffsetFetchRequestGroup request, boolean stable, short version) {
        Set<String> closed = rights.denied(context.correlationId());
        Map<String, Uuid> ids = metadata.ids(); // a broker reads the metadata when it answers (O-FETCH-13)
        return all(context, request, stable).thenApply(fetched -> {
            if (fetched.errorCode() != Errors.NONE.code()) {
                return fetched;
            }
            List<OffsetFetchResponseTopics> seen = new ArrayList<>();
            for (OffsetFetchResponseTopics topic : fetched.topics()) {
                Uuid id = ids.get(topic.name());
                if (!closed.contains(topic.name()) && (version < 10 || id != null)) {
                    seen.add(version < 10 ? topic : TopicIds.set(topic, id));
                }
            }
            return fetched.setTopics(seen);
        });
    }

    /** Uses its own method up to 4.3. */
    @SuppressWarnings("unchecked")
    private CompletableFuture<OffsetFetchResponseGroup> all(RequestContext context, OffsetFetchRequestGroup request,
            boolean stable) {
        return FETCH_ALL == null ? service.fetchOffsets(context, request, stable)
            : (CompletableFuture<OffsetFetchResponseGroup>) Reflect.call(FETCH_ALL, service, context, request, stable);
    }

    private CompletableFuture<OffsetFetchResponseGroup> fetchSome(RequestContext context,
            OffsetFetchRequestGroup request, JsonNode topics, boolean stable, short version) {
        Set<String> closed = rights.denied(context.correlationId());
        OffsetFetchResponseGroup refused = new OffsetFetchResponseGroup();
        List<OffsetFetchRequestTopics> allowed = new ArrayList<>();
        for (JsonNode topic : topics) {
            Uuid id = Uuid.fromString(topic.get(1).textValue());
            String name = version < 10 ? topic.get(0).textValue() : metadata.nameOf(id);
            Errors error = name == null ? Errors.UNKNOWN_TOPIC_ID
                : closed.contains(name) ? Errors.TOPIC_AUTHORIZATION_FAILED : null;
            List<Integer> partitions = new ArrayList<>();
            topic.get(2).forEach(partition -> partitions.add(partition.intValue()));
            if (error == null) {
                allowed.add(TopicIds.set(new OffsetFetchRequestTopics().setName(name).setPartitionIndexes(partitions), id));
            } else {
                OffsetFetchResponseTopics row =
                    TopicIds.set(new OffsetFetchResponseTopics().setName(name == null ? "" : name), id);
                partitions.forEach(partition -> row.partitions().add(missing(partition, error)));
                refused.topics().add(row);
            }
        }
        return service.fetchOffsets(context, request.setTopics(allowed), stable).thenApply(fetched -> {
            if (fetched.errorCode() == Errors.NONE.code() && !refused.topics().isEmpty()) {
                List<OffsetFetchResponseTopics> all = new ArrayList<>(fetched.topics());
                all.addAll(refused.topics());
                fetched.setTopics(all);
            }
            return fetched;
        });
    }

    private static void missing(OffsetFetchResponseGroup into, String name, Uuid id, int partition, Errors error) {
        List<OffsetFetchResponseTopics> topics = into.topics();
        if (topics.isEmpty() || !topics.get(topics.size() - 1).name().equals(name)) {
            topics.add(TopicIds.set(new OffsetFetchResponseTopics().setName(name), id));
        }
        topics.get(topics.size() - 1).partitions().add(missing(partition, error));
    }

    private static OffsetFetchResponsePartitions missing(int partition, Errors error) {
        return new OffsetFetchResponsePartitions().setPartitionIndex(partition).setErrorCode(error.code())
            .setCommittedOffset(-1).setMetadata("").setCommittedLeaderEpoch(-1);
    }

    /**
     * Returns the answer in the version's form, by Kafka's own class: by a builder since 4.1, before by its
     * constructor.
     */
    private static OffsetFetchResponseData shaped(List<OffsetFetchResponseGroup> groups, short version) {
        Class<?> builder = Reflect.find("org.apache.kafka.common.requests.OffsetFetchResponse$Builder");
        if (builder == null) {
            for (Constructor<?> constructor : OffsetFetchResponse.class.getConstructors()) {
                if (constructor.getParameterCount() == 2 && constructor.getParameterTypes()[0] == List.class) {
                    return ((OffsetFetchResponse) Reflect.made(constructor, groups, version)).data();
                }
            }
            throw new IllegalStateException("Kafka's OffsetFetchResponse is not made of groups");
        }
        Object made = Reflect.construct(builder, groups);
        return ((OffsetFetchResponse) Reflect.call(Reflect.methodWith(builder, "build", 1), made, version)).data();
    }

    CompletableFuture<? extends ApiMessage> delete(RequestContext context, JsonNode body, Set<String> denied) {
        String group = body.get(0).textValue();
        if (denied.contains(group)) {
            return CompletableFuture.completedFuture(
                new OffsetDeleteResponseData().setErrorCode(Errors.GROUP_AUTHORIZATION_FAILED.code()));
        }
        OffsetDeleteResponse.Builder answer = new OffsetDeleteResponse.Builder();
        OffsetDeleteRequestData request = new OffsetDeleteRequestData().setGroupId(group);
        Set<String> closed = rights.denied(context.correlationId());
        for (JsonNode topic : body.get(1)) {
            String name = topic.get(0).textValue();
            OffsetDeleteRequestTopic made = new OffsetDeleteRequestTopic().setName(name);
            for (JsonNode partition : topic.get(1)) {
                int index = partition.intValue();
                if (closed.contains(name)) {
                    answer.addPartition(name, index, Errors.TOPIC_AUTHORIZATION_FAILED);
                } else if (!metadata.has(name, index)) {
                    answer.addPartition(name, index, Errors.UNKNOWN_TOPIC_OR_PARTITION);
                } else {
                    made.partitions().add(new OffsetDeleteRequestPartition().setPartitionIndex(index));
                }
            }
            if (!made.partitions().isEmpty()) {
                request.topics().add(made);
            }
        }
        return service.deleteOffsets(context, request, BufferSupplier.NO_CACHING)
            .thenApply(response -> answer.merge(response).build().data());
    }

    /**
     * Writes one partition's marker; the layer above answers NOT_LEADER_OR_FOLLOWER where the coordinator is elsewhere.
     */
    CompletableFuture<? extends ApiMessage> complete(JsonNode body) {
        List<Object> arguments = new ArrayList<>(List.of(Coordinator.PARTITION, body.get(0).longValue(),
            body.get(1).shortValue(), body.get(2).intValue(),
            body.get(3).intValue() != 0 ? TransactionResult.COMMIT : TransactionResult.ABORT));
        Class<?>[] types = COMPLETE.getParameterTypes();
        for (int i = arguments.size(); i < types.length; i++) {
            arguments.add(types[i] == short.class ? (Object) body.get(4).shortValue() : timeout);
        }
        CompletableFuture<?> done = (CompletableFuture<?>) Reflect.call(COMPLETE, service, arguments.toArray());
        return done.handle((nothing, thrown) -> {
            Errors error = thrown == null ? Errors.NONE : Errors.forException(cause(thrown));
            boolean elsewhere = error == Errors.COORDINATOR_NOT_AVAILABLE || error == Errors.NOT_COORDINATOR
                || error == Errors.COORDINATOR_LOAD_IN_PROGRESS;
            return new WriteTxnMarkersResponseData().setMarkers(List.of(new WritableTxnMarkerResult()
                .setProducerId(body.get(0).longValue()).setTopics(List.of(new WritableTxnMarkerTopicResult()
                    .setName(Coordinator.PARTITION.topic()).setPartitions(List.of(new WritableTxnMarkerPartitionResult()
                        .setErrorCode((elsewhere ? Errors.NOT_LEADER_OR_FOLLOWER : error).code())))))));
        });
    }

    private interface Refuse {
        void row(String name, Uuid id, int partition, Errors error);
    }

    /** Returns the accepted topics; the others are answered at once, in the order of the request. */
    private List<Known> known(RequestContext context, JsonNode topics, boolean byId, Errors all, Refuse refuse) {
        Set<String> closed = rights.denied(context.correlationId());
        List<Known> found = new ArrayList<>();
        for (JsonNode topic : topics) {
            Uuid topicId = Uuid.fromString(topic.get(1).textValue());
            String name = byId ? metadata.nameOf(topicId) : topic.get(0).textValue();
            Uuid id = byId ? topicId : metadata.idOf(name);
            Errors error = all != null ? all : name == null ? Errors.UNKNOWN_TOPIC_ID
                : closed.contains(name) ? Errors.TOPIC_AUTHORIZATION_FAILED
                : id == null ? Errors.UNKNOWN_TOPIC_OR_PARTITION : null;
            List<Row> rows = new ArrayList<>();
            for (JsonNode row : topic.get(2)) {
                int partition = row.get(0).intValue();
                if (error != null) {
                    refuse.row(name == null || byId ? "" : name, byId ? topicId : Uuid.ZERO_UUID, partition, error);
                } else if (!metadata.has(name, partition)) {
                    refuse.row(name, id, partition, Errors.UNKNOWN_TOPIC_OR_PARTITION);
                } else {
                    rows.add(new Row(partition, row));
                }
            }
            if (!rows.isEmpty()) {
                found.add(new Known(name, id, rows));
            }
        }
        return found;
    }

    /**
     * Returns Kafka's own builder of the answer to a commit, by names or by ids. It lists each topic once, rejected
     * rows first. If none was rejected, it uses the coordinator's rows as they are, also those of a topic that is named
     * twice.
     */
    private static Object builder(Class<?> response, boolean byId) {
        Method make = Reflect.methodWith(response, "newBuilder", 1);
        return make == null ? Reflect.construct(Reflect.find(response.getName() + "$Builder"))
            : Reflect.call(make, null, byId);
    }

    private static void add(Object builder, String name, Uuid id, int partition, Errors error) {
        Method add = Reflect.methodWith(builder.getClass(), "addPartition", 4);
        if (add == null) { // by names only
            Reflect.call(Reflect.methodWith(builder.getClass(), "addPartition", 3), builder, name, partition, error);
        } else {
            Reflect.call(add, builder, id, name, partition, error);
        }
    }

    private static Object merge(Object builder, ApiMessage response) {
        return Reflect.call(Reflect.methodWith(builder.getClass(), "merge", 1), builder, response);
    }

    private static Object build(Object builder) {
        return Reflect.call(Reflect.methodWith(builder.getClass(), "build", 0), builder);
    }
}

package fencepost;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.message.ConsumerGroupDescribeRequestData;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.DeleteGroupsResponseData;
import org.apache.kafka.common.message.DeleteGroupsResponseData.DeletableGroupResult;
import org.apache.kafka.common.message.DescribeGroupsResponseData;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.ListGroupsRequestData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.ConsumerGroupDescribeRequest;
import org.apache.kafka.common.requests.ConsumerGroupHeartbeatRequest;
import org.apache.kafka.common.requests.DescribeGroupsResponse;
import org.apache.kafka.common.requests.HeartbeatRequest;
import org.apache.kafka.common.requests.JoinGroupRequest;
import org.apache.kafka.common.requests.JoinGroupResponse;
import org.apache.kafka.common.requests.LeaveGroupRequest;
import org.apache.kafka.common.requests.LeaveGroupResponse;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.SyncGroupRequest;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.coordinator.group.GroupCoordinatorService;

/**
 * The part of the broker's request layer around the coordinator that shapes answers: authorization (C-JOIN-02,
 * C-SYNC-01, 02, C-HB-01, C-LEAVE-01, C-ADM-01, 05, 09, M-VAL-01, 02, M-DESC-01), duplicate ids, and the response
 * classes. The layer itself is in the broker and not in the coordinator's artifact, so this class replaces it.
 */
final class Apis {
    /** Receives the answer to a request when it is given, at once or in a later step. */
    interface Answers {
        void give(int request, short api, short version, ApiMessage answer);
    }

    private final GroupCoordinatorService service;
    private final Hosts hosts;
    private final TopicRights rights;
    private final boolean consumerProtocol;
    private final OffsetApis offsets;
    private final Answers answers;

    Apis(GroupCoordinatorService service, OffsetApis offsets, Hosts hosts, TopicRights rights, boolean consumerProtocol,
            Answers answers) {
        this.service = service;
        this.offsets = offsets;
        this.hosts = hosts;
        this.rights = rights;
        this.consumerProtocol = consumerProtocol;
        this.answers = answers;
    }

    /**
     * Handles a request of the trace: ["q", at, id, api, version, client id, client host, denied groups, body, denied
     * topics, denied transactional ids].
     */
    void handle(JsonNode event) {
        int id = event.get(2).intValue();
        short api = event.get(3).shortValue();
        short version = event.get(4).shortValue();
        Set<String> denied = new LinkedHashSet<>(Requests.texts(event.get(7)));
        JsonNode body = event.get(8);
        if (event.has(9)) {
            rights.deny(id, new LinkedHashSet<>(Requests.texts(event.get(9))));
        }
        RequestContext context =
            Requests.context(id, api, version, event.get(5).textValue(), hosts, event.get(6).textValue());
        CompletableFuture<? extends ApiMessage> answer = switch (ApiKeys.forId(api)) {
            case JOIN_GROUP -> join(context, new JoinGroupRequest(Requests.join(body), version), denied);
            case SYNC_GROUP -> sync(context, Requests.sync(body), version, denied);
            case HEARTBEAT -> heartbeat(context, Requests.heartbeat(body), version, denied);
            case LEAVE_GROUP -> leave(context, Requests.leave(body, version), denied);
            case DESCRIBE_GROUPS -> describe(context, Requests.describe(body).groups(), denied);
            case LIST_GROUPS -> list(context, Requests.list(body), denied);
            case DELETE_GROUPS -> delete(context, Requests.delete(body).groupsNames(), denied);
            case CONSUMER_GROUP_HEARTBEAT -> consumerHeartbeat(context, Requests.consumerHeartbeat(body), version, denied);
            case OFFSET_COMMIT -> offsets.commit(context, body, version, denied);
            case OFFSET_FETCH -> offsets.fetch(context, body, version, denied);
            case OFFSET_DELETE -> offsets.delete(context, body, denied);
            case TXN_OFFSET_COMMIT -> offsets.txnCommit(context, body, version, denied,
                event.has(10) ? new LinkedHashSet<>(Requests.texts(event.get(10))) : Set.of());
            case WRITE_TXN_MARKERS -> offsets.complete(body);
            case CONSUMER_GROUP_DESCRIBE -> consumerDescribe(context, Requests.consumerDescribe(body), version, denied);
            default -> throw new IllegalArgumentException("no group API: " + api);
        };
        answer.whenComplete((data, failed) -> {
            if (failed != null) {
                throw new IllegalStateException("the coordinator failed a request instead of answering it", failed);
            }
            answers.give(id, api, version, data);
        });
    }

    private CompletableFuture<? extends ApiMessage> join(RequestContext context, JoinGroupRequest request,
            Set<String> denied) {
        if (denied.contains(request.data().groupId())) {
            return refused(request, Errors.GROUP_AUTHORIZATION_FAILED);
        }
        return service.joinGroup(context, request.data(), BufferSupplier.NO_CACHING)
            .thenApply(data -> new JoinGroupResponse(data, request.version()).data());
    }

    private CompletableFuture<? extends ApiMessage> sync(RequestContext context, SyncGroupRequestData data,
            short version, Set<String> denied) {
        SyncGroupRequest request = new SyncGroupRequest(data, version);
        if (!request.areMandatoryProtocolTypeAndNamePresent()) {
            return refused(request, Errors.INCONSISTENT_GROUP_PROTOCOL);
        }
        if (denied.contains(data.groupId())) {
            return refused(request, Errors.GROUP_AUTHORIZATION_FAILED);
        }
        return service.syncGroup(context, data, BufferSupplier.NO_CACHING);
    }

    private CompletableFuture<? extends ApiMessage> heartbeat(RequestContext context, HeartbeatRequestData data,
            short version, Set<String> denied) {
        if (denied.contains(data.groupId())) {
            return refused(new HeartbeatRequest.Builder(data).build(version), Errors.GROUP_AUTHORIZATION_FAILED);
        }
        return service.heartbeat(context, data);
    }

    private CompletableFuture<? extends ApiMessage> leave(RequestContext context, LeaveGroupRequest request,
            Set<String> denied) {
        if (denied.contains(request.data().groupId())) {
            return refused(request, Errors.GROUP_AUTHORIZATION_FAILED);
        }
        return service.leaveGroup(context, request.normalizedData())
            .thenApply(data -> new LeaveGroupResponse(data, request.version()).data());
    }

    private CompletableFuture<? extends ApiMessage> describe(RequestContext context, List<String> groups,
            Set<String> denied) {
        DescribeGroupsResponseData response = new DescribeGroupsResponseData();
        List<String> allowed = new ArrayList<>();
        for (String group : groups) {
            if (denied.contains(group)) {
                response.groups().add(DescribeGroupsResponse.groupError(group, Errors.GROUP_AUTHORIZATION_FAILED));
            } else {
                allowed.add(group);
            }
        }
        return service.describeGroups(context, allowed).thenApply(described -> {
            response.groups().addAll(described);
            return response;
        });
    }

    private CompletableFuture<? extends ApiMessage> list(RequestContext context, ListGroupsRequestData request,
            Set<String> denied) {
        return service.listGroups(context, request).thenApply(data -> data.setGroups(
            data.groups().stream().filter(group -> !denied.contains(group.groupId())).toList()));
    }

    private CompletableFuture<? extends ApiMessage> delete(RequestContext context, List<String> groups,
            Set<String> denied) {
        Set<String> distinct = new LinkedHashSet<>(groups);
        List<String> allowed = distinct.stream().filter(group -> !denied.contains(group)).toList();
        return service.deleteGroups(context, allowed, BufferSupplier.NO_CACHING).thenApply(results -> {
            DeleteGroupsResponseData response = new DeleteGroupsResponseData().setResults(results);
            distinct.stream().filter(denied::contains).forEach(group -> response.results().add(
                new DeletableGroupResult().setGroupId(group)
                    .setErrorCode(Errors.GROUP_AUTHORIZATION_FAILED.code())));
            return response;
        });
    }

    private CompletableFuture<? extends ApiMessage> consumerHeartbeat(RequestContext context,
            ConsumerGroupHeartbeatRequestData data, short version, Set<String> denied) {
        ConsumerGroupHeartbeatRequest request = new ConsumerGroupHeartbeatRequest.Builder(data, true).build(version);
        if (!consumerProtocol) {
            return refused(request, Errors.UNSUPPORTED_VERSION);
        }
        if (denied.contains(data.groupId())) {
            return refused(request, Errors.GROUP_AUTHORIZATION_FAILED);
        }
        List<String> names = data.subscribedTopicNames();
        if (names != null && names.stream().anyMatch(rights.denied(context.correlationId())::contains)) {
            return refused(request, Errors.TOPIC_AUTHORIZATION_FAILED);
        }
        return service.consumerGroupHeartbeat(context, data);
    }

    private CompletableFuture<? extends ApiMessage> consumerDescribe(RequestContext context,
            ConsumerGroupDescribeRequestData data, short version, Set<String> denied) {
        if (!consumerProtocol) {
            return refused(new ConsumerGroupDescribeRequest.Builder(data, true).build(version),
                Errors.UNSUPPORTED_VERSION);
        }
        ConsumerGroupDescribeResponseData response = new ConsumerGroupDescribeResponseData();
        List<String> allowed = new ArrayList<>();
        for (String group : data.groupIds()) {
            if (denied.contains(group)) {
                response.groups().add(new ConsumerGroupDescribeResponseData.DescribedGroup().setGroupId(group)
                    .setErrorCode(Errors.GROUP_AUTHORIZATION_FAILED.code()));
            } else {
                allowed.add(group);
            }
        }
        Set<String> closed = rights.denied(context.correlationId());
        return service.consumerGroupDescribe(context, allowed).thenApply(described -> {
            described.forEach(group -> response.groups().add(shows(group, closed) ? hidden(group) : group));
            return response;
        });
    }

    /** Whether any assignment or target contains a topic that the caller may not describe (M-DESC-01). */
    private static boolean shows(ConsumerGroupDescribeResponseData.DescribedGroup group, Set<String> closed) {
        return group.members().stream()
            .flatMap(member -> Stream.of(member.assignment(), member.targetAssignment()))
            .flatMap(assignment -> assignment.topicPartitions().stream())
            .anyMatch(topic -> closed.contains(topic.topicName()));
    }

    private static ConsumerGroupDescribeResponseData.DescribedGroup hidden(
            ConsumerGroupDescribeResponseData.DescribedGroup group) {
        return new ConsumerGroupDescribeResponseData.DescribedGroup().setGroupId(group.groupId())
            .setErrorCode(Errors.TOPIC_AUTHORIZATION_FAILED.code())
            .setErrorMessage("The group has described topic(s) that the client is not authorized to describe.");
    }

    private static CompletableFuture<? extends ApiMessage> refused(AbstractRequest request, Errors error) {
        return CompletableFuture.completedFuture(request.getErrorResponse(error.exception()).data());
    }
}

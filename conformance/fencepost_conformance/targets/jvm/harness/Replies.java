package fencepost;

import java.nio.ByteBuffer;

import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.message.DeleteGroupsResponseData;
import org.apache.kafka.common.message.DescribeGroupsResponseData;
import org.apache.kafka.common.message.HeartbeatResponseData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupResponseData;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ListGroupsResponseData;
import org.apache.kafka.common.message.OffsetCommitResponseData;
import org.apache.kafka.common.message.OffsetDeleteResponseData;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.message.TxnOffsetCommitResponseData;
import org.apache.kafka.common.message.WriteTxnMarkersResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/** Writes answers as a client of the request's version would read them: each passes through the wire format first. */
final class Replies {
    private final Hosts hosts;

    Replies(Hosts hosts) {
        this.hosts = hosts;
    }

    /** {@code group}: the group of a fetch, if its answer does not name it. */
    void write(Json out, int request, short api, short version, ApiMessage answer, String group) {
        ByteBufferAccessor wire = wire(answer, version);
        out.open().number(request).number(api);
        switch (ApiKeys.forId(api)) {
            case JOIN_GROUP -> write(out, new JoinGroupResponseData(wire, version));
            case SYNC_GROUP -> write(out, new SyncGroupResponseData(wire, version));
            case HEARTBEAT -> out.number(new HeartbeatResponseData(wire, version).errorCode());
            case LEAVE_GROUP -> write(out, new LeaveGroupResponseData(wire, version));
            case DESCRIBE_GROUPS -> write(out, new DescribeGroupsResponseData(wire, version));
            case LIST_GROUPS -> write(out, new ListGroupsResponseData(wire, version));
            case DELETE_GROUPS -> write(out, new DeleteGroupsResponseData(wire, version));
            case CONSUMER_GROUP_HEARTBEAT -> write(out, new ConsumerGroupHeartbeatResponseData(wire, version));
            case OFFSET_COMMIT -> write(out, new OffsetCommitResponseData(wire, version));
            case TXN_OFFSET_COMMIT -> write(out, new TxnOffsetCommitResponseData(wire, version));
            case OFFSET_FETCH -> write(out, new OffsetFetchResponseData(wire, version), version < 8 ? group : null);
            case OFFSET_DELETE -> write(out, new OffsetDeleteResponseData(wire, version));
            case WRITE_TXN_MARKERS -> out.number(new WriteTxnMarkersResponseData(wire, version).markers().get(0)
                .topics().get(0).partitions().get(0).errorCode());
            case CONSUMER_GROUP_DESCRIBE -> write(out, new ConsumerGroupDescribeResponseData(wire, version));
            default -> throw new IllegalArgumentException("no group API: " + api);
        }
        out.close();
    }

    private static ByteBufferAccessor wire(ApiMessage answer, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(answer.size(cache, version));
        answer.write(new ByteBufferAccessor(buffer), cache, version);
        buffer.flip();
        return new ByteBufferAccessor(buffer);
    }

    private void write(Json out, JoinGroupResponseData data) {
        out.number(data.errorCode()).number(data.generationId()).text(data.protocolType()).text(data.protocolName())
            .text(data.leader()).flag(data.skipAssignment()).text(data.memberId()).open();
        for (JoinGroupResponseData.JoinGroupResponseMember member : data.members()) {
            out.open().text(member.memberId()).text(member.groupInstanceId()).bytes(member.metadata()).close();
        }
        out.close();
    }

    private void write(Json out, SyncGroupResponseData data) {
        out.number(data.errorCode()).text(data.protocolType()).text(data.protocolName()).bytes(data.assignment());
    }

    private void write(Json out, LeaveGroupResponseData data) {
        out.number(data.errorCode()).open();
        for (LeaveGroupResponseData.MemberResponse member : data.members()) {
            out.open().text(member.memberId()).text(member.groupInstanceId()).number(member.errorCode()).close();
        }
        out.close();
    }

    private void write(Json out, DescribeGroupsResponseData data) {
        out.open();
        for (DescribeGroupsResponseData.DescribedGroup group : data.groups()) {
            out.open().number(group.errorCode()).text(group.groupId()).text(group.groupState())
                .text(group.protocolType()).text(group.protocolData()).open();
            for (DescribeGroupsResponseData.DescribedGroupMember member : group.members()) {
                out.open().text(member.memberId()).text(member.groupInstanceId()).text(member.clientId())
                    .text(hosts.name(member.clientHost())).bytes(member.memberMetadata())
                    .bytes(member.memberAssignment()).close();
            }
            out.close().text(group.errorMessage()).close();
        }
        out.close();
    }

    private void write(Json out, ConsumerGroupHeartbeatResponseData data) {
        out.number(data.errorCode()).text(data.errorMessage()).text(data.memberId()).number(data.memberEpoch())
            .number(data.heartbeatIntervalMs());
        if (data.assignment() == null) {
            out.none();
            return;
        }
        out.open();
        data.assignment().topicPartitions().forEach(topic -> {
            out.open().text(topic.topicId().toString()).open();
            topic.partitions().forEach(out::number);
            out.close().close();
        });
        out.close();
    }

    private void write(Json out, ConsumerGroupDescribeResponseData data) {
        out.open();
        for (ConsumerGroupDescribeResponseData.DescribedGroup group : data.groups()) {
            out.open().number(group.errorCode()).text(group.errorMessage()).text(group.groupId())
                .text(group.groupState()).number(group.groupEpoch()).number(group.assignmentEpoch())
                .text(group.assignorName()).open();
            for (ConsumerGroupDescribeResponseData.Member member : group.members()) {
                out.open().text(member.memberId()).text(member.instanceId()).text(member.rackId())
                    .number(member.memberEpoch()).text(member.clientId()).text(hosts.name(member.clientHost())).open();
                member.subscribedTopicNames().forEach(out::text);
                out.close().text(member.subscribedTopicRegex());
                write(out, member.assignment());
                write(out, member.targetAssignment());
                out.number(member.memberType()).close();
            }
            out.close().close();
        }
        out.close();
    }

    private static void write(Json out, ConsumerGroupDescribeResponseData.Assignment assignment) {
        out.open();
        assignment.topicPartitions().forEach(topic -> {
            out.open().text(topic.topicId().toString()).text(topic.topicName()).open();
            topic.partitions().forEach(out::number);
            out.close().close();
        });
        out.close();
    }

    private void write(Json out, OffsetCommitResponseData data) {
        out.open();
        data.topics().forEach(topic -> {
            out.open().text(topic.name()).text(TopicIds.of(topic).toString()).open();
            topic.partitions().forEach(row -> out.open().number(row.partitionIndex()).number(row.errorCode()).close());
            out.close().close();
        });
        out.close();
    }

    private void write(Json out, TxnOffsetCommitResponseData data) {
        out.open();
        data.topics().forEach(topic -> {
            out.open().text(topic.name()).text(TopicIds.of(topic).toString()).open();
            topic.partitions().forEach(row -> out.open().number(row.partitionIndex()).number(row.errorCode()).close());
            out.close().close();
        });
        out.close();
    }

    private void write(Json out, OffsetDeleteResponseData data) {
        out.number(data.errorCode()).open();
        data.topics().forEach(topic -> {
            out.open().text(topic.name()).text(Uuid.ZERO_UUID.toString()).open();
            topic.partitions().forEach(row -> out.open().number(row.partitionIndex()).number(row.errorCode()).close());
            out.close().close();
        });
        out.close();
    }

    /** Writes an entry for each group; in versions for a single group the answer is the entry. */
    private void write(Json out, OffsetFetchResponseData data, String only) {
        out.open();
        if (only != null) {
            out.open().text(only).number(data.errorCode()).open();
            data.topics().forEach(topic -> {
                out.open().text(topic.name()).text(Uuid.ZERO_UUID.toString()).open();
                topic.partitions().forEach(row -> write(out, row.partitionIndex(), row.committedOffset(),
                    row.committedLeaderEpoch(), row.metadata(), row.errorCode()));
                out.close().close();
            });
            out.close().close();
        }
        for (OffsetFetchResponseData.OffsetFetchResponseGroup group : data.groups()) {
            out.open().text(group.groupId()).number(group.errorCode()).open();
            group.topics().forEach(topic -> {
                out.open().text(topic.name()).text(TopicIds.of(topic).toString()).open();
                topic.partitions().forEach(row -> write(out, row.partitionIndex(), row.committedOffset(),
                    row.committedLeaderEpoch(), row.metadata(), row.errorCode()));
                out.close().close();
            });
            out.close().close();
        }
        out.close();
    }

    private static void write(Json out, int partition, long offset, int epoch, String metadata, short error) {
        out.open().number(partition).number(offset).number(epoch).text(metadata).number(error).close();
    }

    private void write(Json out, ListGroupsResponseData data) {
        out.number(data.errorCode()).open();
        for (ListGroupsResponseData.ListedGroup group : data.groups()) {
            out.open().text(group.groupId()).text(group.protocolType()).text(group.groupState())
                .text(group.groupType()).close();
        }
        out.close();
    }

    private void write(Json out, DeleteGroupsResponseData data) {
        out.open();
        for (DeleteGroupsResponseData.DeletableGroupResult result : data.results()) {
            out.open().text(result.groupId()).number(result.errorCode()).close();
        }
        out.close();
    }
}

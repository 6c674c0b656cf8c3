package fencepost;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerGroupDescribeRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.DeleteGroupsRequestData;
import org.apache.kafka.common.message.DescribeGroupsRequestData;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData.JoinGroupRequestProtocol;
import org.apache.kafka.common.message.LeaveGroupRequestData.MemberIdentity;
import org.apache.kafka.common.message.ListGroupsRequestData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupRequestData.SyncGroupRequestAssignment;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.LeaveGroupRequest;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;

/** Reads a request of the trace into Kafka's own message classes. */
final class Requests {
    private Requests() { }

    static RequestContext context(int id, short api, short version, String clientId, Hosts hosts, String host) {
        return new RequestContext(
            new RequestHeader(ApiKeys.forId(api), version, clientId, id),
            "",
            hosts.address(host),
            KafkaPrincipal.ANONYMOUS,
            ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT),
            SecurityProtocol.PLAINTEXT,
            ClientInformation.EMPTY,
            false
        );
    }

    static JoinGroupRequestData join(JsonNode body) {
        JoinGroupRequestData data = new JoinGroupRequestData()
            .setGroupId(body.get(0).textValue())
            .setSessionTimeoutMs(body.get(1).intValue())
            .setRebalanceTimeoutMs(body.get(2).intValue())
            .setMemberId(body.get(3).textValue())
            .setGroupInstanceId(body.get(4).textValue())
            .setProtocolType(body.get(5).textValue())
            .setReason(body.get(7).textValue());
        JsonNode protocols = body.get(6);
        for (int i = 0; i < protocols.size(); i += 2) {
            data.protocols().add(new JoinGroupRequestProtocol()
                .setName(protocols.get(i).textValue())
                .setMetadata(bytes(protocols.get(i + 1))));
        }
        return data;
    }

    static SyncGroupRequestData sync(JsonNode body) {
        SyncGroupRequestData data = new SyncGroupRequestData()
            .setGroupId(body.get(0).textValue())
            .setGenerationId(body.get(1).intValue())
            .setMemberId(body.get(2).textValue())
            .setGroupInstanceId(body.get(3).textValue())
            .setProtocolType(body.get(4).textValue())
            .setProtocolName(body.get(5).textValue());
        JsonNode assignments = body.get(6);
        for (int i = 0; i < assignments.size(); i += 2) {
            data.assignments().add(new SyncGroupRequestAssignment()
                .setMemberId(assignments.get(i).textValue())
                .setAssignment(bytes(assignments.get(i + 1))));
        }
        return data;
    }

    static HeartbeatRequestData heartbeat(JsonNode body) {
        return new HeartbeatRequestData()
            .setGroupId(body.get(0).textValue())
            .setGenerationId(body.get(1).intValue())
            .setMemberId(body.get(2).textValue())
            .setGroupInstanceId(body.get(3).textValue());
    }

    /**
     * Kafka's builder places the single member of a request before v3 (G-WIRE-23). It makes no request without members;
     * a broker that reads one from the wire has no such check (C-LEAVE-27).
     */
    static LeaveGroupRequest leave(JsonNode body, short version) {
        JsonNode members = body.get(1);
        List<MemberIdentity> identities = new ArrayList<>(members.size() / 3);
        for (int i = 0; i < members.size(); i += 3) {
            identities.add(new MemberIdentity()
                .setMemberId(members.get(i).textValue())
                .setGroupInstanceId(members.get(i + 1).textValue())
                .setReason(members.get(i + 2).textValue()));
        }
        String group = body.get(0).textValue();
        if (identities.isEmpty() && version >= 3) {
            LeaveGroupRequest request = new LeaveGroupRequest.Builder(group, List.of(new MemberIdentity())).build(version);
            request.data().setMembers(identities);
            return request;
        }
        return new LeaveGroupRequest.Builder(group, identities).build(version);
    }

    static ConsumerGroupHeartbeatRequestData consumerHeartbeat(JsonNode body) {
        ConsumerGroupHeartbeatRequestData data = new ConsumerGroupHeartbeatRequestData()
            .setGroupId(body.get(0).textValue())
            .setMemberId(body.get(1).textValue())
            .setMemberEpoch(body.get(2).intValue())
            .setInstanceId(body.get(3).textValue())
            .setRackId(body.get(4).textValue())
            .setRebalanceTimeoutMs(body.get(5).intValue())
            .setSubscribedTopicNames(body.get(6).isNull() ? null : texts(body.get(6)))
            .setSubscribedTopicRegex(body.get(7).textValue())
            .setServerAssignor(body.get(8).textValue())
            .setTopicPartitions(null);
        if (!body.get(9).isNull()) {
            List<ConsumerGroupHeartbeatRequestData.TopicPartitions> owned = new ArrayList<>();
            for (JsonNode topic : body.get(9)) {
                List<Integer> partitions = new ArrayList<>();
                topic.get(1).forEach(partition -> partitions.add(partition.intValue()));
                owned.add(new ConsumerGroupHeartbeatRequestData.TopicPartitions()
                    .setTopicId(Uuid.fromString(topic.get(0).textValue())).setPartitions(partitions));
            }
            data.setTopicPartitions(owned);
        }
        return data;
    }

    static ConsumerGroupDescribeRequestData consumerDescribe(JsonNode body) {
        return new ConsumerGroupDescribeRequestData().setGroupIds(texts(body.get(0)));
    }

    static ListGroupsRequestData list(JsonNode body) {
        return new ListGroupsRequestData().setStatesFilter(texts(body.get(0))).setTypesFilter(texts(body.get(1)));
    }

    static DescribeGroupsRequestData describe(JsonNode body) {
        return new DescribeGroupsRequestData().setGroups(texts(body.get(0)));
    }

    static DeleteGroupsRequestData delete(JsonNode body) {
        return new DeleteGroupsRequestData().setGroupsNames(texts(body.get(0)));
    }

    /** Collects the groups in a request: those whose timers it can change. */
    static void groups(short api, JsonNode body, Set<String> into) {
        ApiKeys key = ApiKeys.forId(api);
        if (key == ApiKeys.OFFSET_FETCH) {
            body.get(1).forEach(group -> into.add(group.get(0).textValue()));
        } else if (key != ApiKeys.WRITE_TXN_MARKERS && key != ApiKeys.CONSUMER_GROUP_DESCRIBE && key != ApiKeys.LIST_GROUPS && key != ApiKeys.DESCRIBE_GROUPS && key != ApiKeys.DELETE_GROUPS) {
            into.add(body.get(0).textValue());
        }
    }

    static List<String> texts(JsonNode array) {
        List<String> result = new ArrayList<>(array.size());
        array.forEach(item -> result.add(item.textValue()));
        return result;
    }

    static byte[] bytes(JsonNode text) {
        return text.textValue().getBytes(StandardCharsets.ISO_8859_1);
    }
}

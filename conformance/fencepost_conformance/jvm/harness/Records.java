package fencepost;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.Serializer;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;

/** Records to and from JSON, by way of the bytes that Kafka's own serde makes of them (F-REC-02, F-REC-10…12). */
final class Records implements Serializer<CoordinatorRecord> {
    private static final short GROUP_METADATA = 2;
    private static final short VALUE_VERSION = 3; // F-REC-20

    private final GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
    private final Hosts hosts;
    private final List<byte[]> keys = new ArrayList<>();
    private final List<byte[]> values = new ArrayList<>();

    Records(Hosts hosts) {
        this.hosts = hosts;
    }

    @Override
    public byte[] serializeKey(CoordinatorRecord record) {
        byte[] key = serde.serializeKey(record);
        keys.add(key);
        return key;
    }

    @Override
    public byte[] serializeValue(CoordinatorRecord record) {
        byte[] value = serde.serializeValue(record);
        values.add(value);
        return value;
    }

    int serialized() {
        return keys.size();
    }

    /** Forgets records that were serialized but did not get into a batch. */
    void dropAfter(int count) {
        keys.subList(count, keys.size()).clear();
        values.subList(count, values.size()).clear();
    }

    /** Writes what was serialized since the last call. */
    void take(Json out) {
        out.open();
        for (int i = 0; i < keys.size(); i++) {
            write(out, keys.get(i), values.get(i));
        }
        out.close();
        dropAfter(0);
    }

    private void write(Json out, byte[] keyBytes, byte[] value) {
        ByteBuffer key = ByteBuffer.wrap(keyBytes);
        short type = key.getShort();
        out.open().number(type);
        if (type != GROUP_METADATA) {
            out.bytes(keyBytes);
            if (value == null) {
                out.none();
            } else {
                out.bytes(value);
            }
            out.close();
            return;
        }
        byte[] group = new byte[key.getShort()];
        key.get(group);
        out.text(new String(group, StandardCharsets.UTF_8));
        if (value == null) {
            out.none();
        } else {
            ByteBuffer buffer = ByteBuffer.wrap(value);
            short version = buffer.getShort();
            write(out, version, new GroupMetadataValue(new ByteBufferAccessor(buffer), version));
        }
        out.close();
    }

    private void write(Json out, short version, GroupMetadataValue value) {
        out.open().number(version).text(value.protocolType()).number(value.generation()).text(value.protocol())
            .text(value.leader()).number(value.currentStateTimestamp()).open();
        for (GroupMetadataValue.MemberMetadata member : value.members()) {
            out.open().text(member.memberId()).text(member.groupInstanceId()).text(member.clientId())
                .text(hosts.name(member.clientHost())).number(member.rebalanceTimeout())
                .number(member.sessionTimeout()).bytes(member.subscription()).bytes(member.assignment()).close();
        }
        out.close().close();
    }

    /** The records of a Load, as Kafka's deserializer makes them from the bytes of a log. */
    List<CoordinatorRecord> read(JsonNode records) {
        List<CoordinatorRecord> result = new ArrayList<>();
        for (JsonNode record : records) {
            byte[] group = record.get(1).textValue().getBytes(StandardCharsets.UTF_8);
            ByteBuffer key = ByteBuffer.allocate(4 + group.length);
            key.putShort((short) record.get(0).intValue()).putShort((short) group.length).put(group).flip();
            JsonNode value = record.get(2);
            result.add(serde.deserialize(key, value.isNull() ? null : value(value)));
        }
        return result;
    }

    private static ByteBuffer value(JsonNode node) {
        GroupMetadataValue value = new GroupMetadataValue()
            .setProtocolType(node.get(0).textValue())
            .setGeneration(node.get(1).intValue())
            .setProtocol(node.get(2).textValue())
            .setLeader(node.get(3).textValue())
            .setCurrentStateTimestamp(node.get(4).longValue());
        List<GroupMetadataValue.MemberMetadata> members = new ArrayList<>();
        for (JsonNode member : node.get(5)) {
            members.add(new GroupMetadataValue.MemberMetadata()
                .setMemberId(member.get(0).textValue())
                .setGroupInstanceId(member.get(1).textValue())
                .setClientId(member.get(2).textValue())
                .setClientHost(member.get(3).textValue())
                .setRebalanceTimeout(member.get(4).intValue())
                .setSessionTimeout(member.get(5).intValue())
                .setSubscription(Requests.bytes(member.get(6)))
                .setAssignment(Requests.bytes(member.get(7))));
        }
        return MessageUtil.toVersionPrefixedByteBuffer(VALUE_VERSION, value.setMembers(members));
    }
}

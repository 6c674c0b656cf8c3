package fencepost;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.Serializer;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;

/** Records to and from JSON, by way of the bytes that Kafka's own serde makes of them (F-REC-02…16). */
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

    /** [type, [group, and what else is in the key], value]. A key is its type and then strings (F-REC-02…16). */
    private void write(Json out, byte[] keyBytes, byte[] value) {
        ByteBuffer key = ByteBuffer.wrap(keyBytes);
        short type = key.getShort();
        out.open().number(type).open();
        while (key.hasRemaining()) {
            byte[] part = new byte[key.getShort()];
            key.get(part);
            out.text(new String(part, StandardCharsets.UTF_8));
        }
        out.close();
        if (value == null) {
            out.none();
        } else if (type == GROUP_METADATA) {
            ByteBuffer buffer = ByteBuffer.wrap(value);
            short version = buffer.getShort();
            write(out, version, new GroupMetadataValue(new ByteBufferAccessor(buffer), version));
        } else {
            JsonNode shown = ValueTypes.toJson(type, value);
            if (shown.has("clientHost")) {
                ((ObjectNode) shown).put("clientHost", hosts.name(shown.get("clientHost").textValue()));
            }
            out.raw(shown.toString().getBytes(StandardCharsets.UTF_8));
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
            ByteBuffer key = key(record);
            JsonNode value = record.get(2);
            short type = record.get(0).shortValue();
            if (value.has("clientHost")) {
                ((ObjectNode) value).put("clientHost", written(value.get("clientHost")));
            }
            result.add(serde.deserialize(key, value.isNull() ? null
                : type == GROUP_METADATA ? value(value) : ValueTypes.toBytes(type, value)));
        }
        return result;
    }

    /** A host of the trace as Kafka would have written it. */
    private String written(JsonNode host) {
        return hosts.address(host.textValue()).toString();
    }

    private static ByteBuffer key(JsonNode record) {
        List<byte[]> parts = new ArrayList<>();
        int size = 2;
        for (JsonNode part : record.get(1)) {
            byte[] bytes = part.textValue().getBytes(StandardCharsets.UTF_8);
            parts.add(bytes);
            size += 2 + bytes.length;
        }
        ByteBuffer key = ByteBuffer.allocate(size).putShort(record.get(0).shortValue());
        parts.forEach(part -> key.putShort((short) part.length).put(part));
        return key.flip();
    }

    private ByteBuffer value(JsonNode node) {
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
                .setClientHost(written(member.get(3)))
                .setRebalanceTimeout(member.get(4).intValue())
                .setSessionTimeout(member.get(5).intValue())
                .setSubscription(Requests.bytes(member.get(6)))
                .setAssignment(Requests.bytes(member.get(7))));
        }
        return MessageUtil.toVersionPrefixedByteBuffer(VALUE_VERSION, value.setMembers(members));
    }
}

package fencepost;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.Readable;

/** Values of the records of consumer groups, to and from JSON by Kafka's own converters (F-REC-03…08, 16). */
final class ValueTypes {
    private static final String PACKAGE = "org.apache.kafka.coordinator.group.generated.";
    private static final short VERSION = 0; // F-REC-20
    private static final Map<Short, String> NAMES = Map.of(
        (short) 3, "ConsumerGroupMetadata",
        (short) 4, "ConsumerGroupPartitionMetadata",
        (short) 5, "ConsumerGroupMemberMetadata",
        (short) 6, "ConsumerGroupTargetAssignmentMetadata",
        (short) 7, "ConsumerGroupTargetAssignmentMember",
        (short) 8, "ConsumerGroupCurrentMemberAssignment",
        (short) 16, "ConsumerGroupRegularExpression");
    private static final Map<Short, Type> TYPES = new HashMap<>();

    private record Type(Constructor<?> constructor, Method write, Method read) { }

    private ValueTypes() { }

    static JsonNode toJson(short kind, byte[] value) {
        Type type = TYPES.computeIfAbsent(kind, ValueTypes::type);
        ByteBuffer buffer = ByteBuffer.wrap(value);
        short version = buffer.getShort();
        try {
            return (JsonNode) type.write().invoke(
                null, type.constructor().newInstance(new ByteBufferAccessor(buffer), version), version);
        } catch (ReflectiveOperationException failed) {
            throw new IllegalStateException("a value of type " + kind + " cannot be shown", failed);
        }
    }

    static ByteBuffer toBytes(short kind, JsonNode value) {
        Type type = TYPES.computeIfAbsent(kind, ValueTypes::type);
        ApiMessage message = (ApiMessage) Reflect.call(type.read(), null, value, VERSION);
        return MessageUtil.toVersionPrefixedByteBuffer(VERSION, message);
    }

    private static Type type(short kind) {
        String name = PACKAGE + NAMES.get(kind) + "Value";
        try {
            Class<?> value = Class.forName(name);
            Class<?> converter = Class.forName(name + "JsonConverter");
            return new Type(value.getConstructor(Readable.class, short.class),
                converter.getMethod("write", value, short.class),
                converter.getMethod("read", JsonNode.class, short.class));
        } catch (ReflectiveOperationException missing) {
            throw new IllegalStateException("Kafka has no records of type " + kind, missing);
        }
    }
}

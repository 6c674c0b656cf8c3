package fencepost.serde;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecordSerde;
import org.apache.kafka.coordinator.common.runtime.Deserializer;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordHelpers;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.OffsetAndMetadata;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Answers each line of standard input with one line: decodes and encodes records with Kafka's own serde
 * (F-REC-00…F-REC-26).
 *
 * A question is a JSON array whose first element names the kind; bytes are in hexadecimal. An answer is an object with
 * the result, or "refused" with the name of the exception.
 */
public final class Serde {
    private static final HexFormat HEX = HexFormat.of();
    private static final ObjectMapper JSON = new ObjectMapper();

    private final GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
    private final Markers markers = new Markers();

    private Serde() {
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Serde serde = new Serde();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.print(serde.answer(JSON.readTree(line)));
            out.print('\n');
            if (!in.ready()) {
                out.flush();
            }
        }
        out.flush();
    }

    private ObjectNode answer(JsonNode asked) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            switch (asked.get(0).textValue()) {
                case "read" -> read(answer, buffer(asked.get(1)), buffer(asked.get(2)));
                case "write" -> bytes(answer, record(asked.get(1).shortValue(), asked.get(2),
                    asked.get(3).shortValue(), asked.get(4)));
                case "commit" -> bytes(answer, commit(asked));
                case "write marker" -> markers.write(answer, asked.get(1).booleanValue(), asked.get(2).intValue());
                case "read marker" -> markers.read(answer, buffer(asked.get(1)), buffer(asked.get(2)));
                case "name" -> answer.put("name", fresh("apiMessageKeyFor", asked.get(1).shortValue()).getClass()
                    .getSimpleName());
                case "partition" -> answer.put("partition",
                    Utils.abs(asked.get(1).textValue().hashCode()) % asked.get(2).intValue());
                case "time" -> time(answer, asked);
                default -> throw new IllegalArgumentException("asked for " + asked.get(0));
            }
        } catch (RuntimeException refused) {
            answer.removeAll();
            answer.put("refused", refused.getClass().getSimpleName()).put("says", String.valueOf(refused.getMessage()));
            if (refused instanceof Deserializer.UnknownRecordTypeException unknown) {
                answer.put("type", unknown.unknownType());
            }
        }
        return answer;
    }

    private void read(ObjectNode answer, ByteBuffer key, ByteBuffer value) {
        short type = key != null && key.remaining() > 1 ? key.getShort(0) : -1;
        CoordinatorRecord record = serde.deserialize(key, value);
        ApiMessage keyMessage = message(record.key());
        ApiMessageAndVersion versioned = record.value();
        answer.put("type", type);
        answer.set("key", toJson(keyMessage, keyVersion(keyMessage, type)));
        if (versioned == null) {
            answer.put("version", -1).set("value", NullNode.instance);
        } else {
            answer.put("version", versioned.version()).set("value", toJson(versioned.message(), versioned.version()));
        }
    }

    private CoordinatorRecord record(short type, JsonNode key, short version, JsonNode value) {
        ApiMessage keyMessage = fresh("apiMessageKeyFor", type);
        keyMessage = fromJson(keyMessage, key, keyVersion(keyMessage, type));
        ApiMessageAndVersion versioned = value.isNull() ? null
            : new ApiMessageAndVersion(fromJson(fresh("apiMessageValueFor", type), value, version), version);
        return record(keyMessage, keyVersion(keyMessage, type), versioned);
    }

    /** Makes a record; up to 4.0 its key has a version, which is its type. */
    private static CoordinatorRecord record(ApiMessage key, short version, ApiMessageAndVersion value) {
        try {
            for (Constructor<?> made : CoordinatorRecord.class.getConstructors()) {
                if (made.getParameterTypes()[0] == ApiMessageAndVersion.class) {
                    return (CoordinatorRecord) made.newInstance(new ApiMessageAndVersion(key, version), value);
                }
            }
            return (CoordinatorRecord) (value == null
                ? CoordinatorRecord.class.getMethod("tombstone", ApiMessage.class).invoke(null, key)
                : CoordinatorRecord.class.getMethod("record", ApiMessage.class, ApiMessageAndVersion.class)
                    .invoke(null, key, value));
        } catch (ReflectiveOperationException failed) {
            throw failure(failed);
        }
    }

    /** Encodes a commit as the release does: it chooses the version (F-REC-20). */
    private CoordinatorRecord commit(JsonNode asked) {
        OffsetCommitValue value = new OffsetCommitValue()
            .setOffset(asked.get(4).longValue())
            .setLeaderEpoch(asked.get(5).intValue())
            .setMetadata(asked.get(6).textValue())
            .setCommitTimestamp(asked.get(7).longValue())
            .setExpireTimestamp(asked.get(8).longValue());
        for (Method setter : OffsetCommitValue.class.getMethods()) {
            if (setter.getName().equals("setTopicId")) { // since 4.1
                invoke(setter, value, Uuid.fromString(asked.get(9).textValue()));
            }
        }
        return GroupCoordinatorRecordHelpers.newOffsetCommitRecord(asked.get(1).textValue(), asked.get(2).textValue(),
            asked.get(3).intValue(), OffsetAndMetadata.fromRecord(0, value));
    }

    /** Writes the nanoseconds that the serde takes to decode and encode all of some records, for each round. */
    private void time(ObjectNode answer, JsonNode asked) {
        List<ByteBuffer[]> given = new ArrayList<>();
        for (JsonNode pair : asked.get(2)) {
            given.add(new ByteBuffer[] {buffer(pair.get(0)), buffer(pair.get(1))});
        }
        ArrayNode reading = answer.putArray("reading");
        ArrayNode writing = answer.putArray("writing");
        long seen = 0;
        for (int round = 0; round < asked.get(1).intValue(); round++) {
            List<CoordinatorRecord> records = new ArrayList<>(given.size());
            long began = System.nanoTime();
            for (ByteBuffer[] pair : given) {
                records.add(serde.deserialize(pair[0].duplicate(), pair[1] == null ? null : pair[1].duplicate()));
            }
            reading.add(System.nanoTime() - began);
            began = System.nanoTime();
            for (CoordinatorRecord record : records) {
                byte[] value = serde.serializeValue(record);
                seen += serde.serializeKey(record).length + (value == null ? 0 : value.length);
            }
            writing.add(System.nanoTime() - began);
        }
        answer.put("bytes", seen);
    }

    private void bytes(ObjectNode answer, CoordinatorRecord record) {
        byte[] value = serde.serializeValue(record);
        answer.put("key", HEX.formatHex(serde.serializeKey(record)))
            .put("value", value == null ? null : HEX.formatHex(value));
    }

    /** Returns the version of a key; since 4.1 it is always 0. */
    private static short keyVersion(ApiMessage key, short type) {
        return key.highestSupportedVersion() == 0 ? 0 : type;
    }

    private static ApiMessage message(Object key) {
        return key instanceof ApiMessageAndVersion versioned ? versioned.message() : (ApiMessage) key;
    }

    /** Makes a new key or value of this type, which only Kafka's serde can. */
    private ApiMessage fresh(String method, short type) {
        for (Class<?> each : List.of(GroupCoordinatorRecordSerde.class, CoordinatorRecordSerde.class)) {
            try {
                Method found = each.getDeclaredMethod(method, short.class);
                found.setAccessible(true);
                return (ApiMessage) invoke(found, serde, type);
            } catch (NoSuchMethodException elsewhere) {
                continue;
            }
        }
        throw new IllegalStateException("no " + method);
    }

    private static JsonNode toJson(ApiMessage message, short version) {
        return (JsonNode) invoke(converter(message, "write", message.getClass(), short.class), null, message, version);
    }

    private static ApiMessage fromJson(ApiMessage kind, JsonNode json, short version) {
        return (ApiMessage) invoke(converter(kind, "read", JsonNode.class, short.class), null, json, version);
    }

    private static Method converter(ApiMessage message, String method, Class<?>... parameters) {
        try {
            return Class.forName(message.getClass().getName() + "JsonConverter").getMethod(method, parameters);
        } catch (ReflectiveOperationException failed) {
            throw failure(failed);
        }
    }

    static Object invoke(Method method, Object of, Object... arguments) {
        try {
            return method.invoke(of, arguments);
        } catch (IllegalAccessException failed) {
            throw failure(failed);
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause() instanceof RuntimeException cause ? cause : failure(thrown);
        }
    }

    static IllegalStateException failure(ReflectiveOperationException failed) {
        return new IllegalStateException("this build of Kafka is not supported", failed);
    }

    private static ByteBuffer buffer(JsonNode hex) {
        return hex.isNull() ? null : ByteBuffer.wrap(HEX.parseHex(hex.textValue()));
    }
}

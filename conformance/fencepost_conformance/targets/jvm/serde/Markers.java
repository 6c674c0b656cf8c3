package fencepost.serde;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.HexFormat;

import com.fasterxml.jackson.databind.node.ObjectNode;

/** The records that end a transaction, by Kafka's own classes, which are in another package since 4.3 (F-REC-26). */
final class Markers {
    private static final HexFormat HEX = HexFormat.of();

    private final Class<?> kind;
    private final Class<?> marker;

    Markers() {
        this.kind = either("ControlRecordType");
        this.marker = either("EndTransactionMarker");
    }

    private static Class<?> either(String name) {
        for (String folder : new String[] {"record", "record.internal"}) {
            try {
                return Class.forName("org.apache.kafka.common." + folder + "." + name);
            } catch (ClassNotFoundException elsewhere) {
                continue;
            }
        }
        throw new IllegalStateException("no class " + name);
    }

    void write(ObjectNode answer, boolean committed, int epoch) {
        Object of = constant(committed ? "COMMIT" : "ABORT");
        try {
            Constructor<?> made = marker.getConstructor(kind, int.class);
            ByteBuffer value = (ByteBuffer) Serde.invoke(
                marker.getMethod("serializeValue"), made.newInstance(of, epoch));
            answer.put("key", hex(key(of))).put("value", hex(value));
        } catch (ReflectiveOperationException failed) {
            throw Serde.failure(failed);
        }
    }

    /** Writes how a load reads the key, and then how the marker's own class reads the value. */
    void read(ObjectNode answer, ByteBuffer key, ByteBuffer value) {
        try {
            Object of = Serde.invoke(kind.getMethod("parse", ByteBuffer.class), null, key);
            answer.put("kind", of.toString());
            if (value == null || (of != constant("COMMIT") && of != constant("ABORT"))) {
                return;
            }
            Method deserialize = marker.getDeclaredMethod("deserializeValue", kind, ByteBuffer.class);
            deserialize.setAccessible(true);
            try {
                Object decoded = Serde.invoke(deserialize, null, of, value);
                answer.put("epoch", (int) Serde.invoke(marker.getMethod("coordinatorEpoch"), decoded));
            } catch (RuntimeException torn) {
                answer.putNull("epoch");
            }
        } catch (ReflectiveOperationException failed) {
            throw Serde.failure(failed);
        }
    }

    /** Returns the key of a control record, its version and its kind; up to 4.0 as a struct, later as a buffer. */
    private ByteBuffer key(Object of) throws ReflectiveOperationException {
        for (Method each : kind.getMethods()) {
            if (each.getName().equals("recordKey")) {
                Object key = Serde.invoke(each, of);
                if (key instanceof ByteBuffer buffer) {
                    return buffer;
                }
                ByteBuffer written = ByteBuffer.allocate(4);
                Serde.invoke(key.getClass().getMethod("writeTo", ByteBuffer.class), key, written);
                return written.flip();
            }
        }
        throw new IllegalStateException("control records have no keys");
    }

    private Object constant(String name) {
        for (Object each : kind.getEnumConstants()) {
            if (((Enum<?>) each).name().equals(name)) {
                return each;
            }
        }
        throw new IllegalStateException("no kind " + name);
    }

    private static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HEX.formatHex(bytes);
    }
}

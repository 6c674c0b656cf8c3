package fencepost;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.Serializer;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMemberMetadataValue;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Encodes and decodes records with Kafka's own serde: [key, value], both bytes, the value null for a tombstone. A
 * record of a transaction is followed by its producer and epoch. The end of a transaction is a record like these.
 */
final class Records implements Serializer<CoordinatorRecord> {
    /** A record of a loaded log; {@code ends}: how it ends its producer's transaction, or null. */
    record Logged(CoordinatorRecord record, long producer, short epoch, TransactionResult ends) { }

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

    /** Forgets serialized records that did not get into a batch. */
    void dropAfter(int count) {
        keys.subList(count, keys.size()).clear();
        values.subList(count, values.size()).clear();
    }

    /** Writes what was serialized since the last call, and ends of transactions: the batches tell their producers. */
    void take(Json out, List<MemoryLog.Batch> batches) {
        out.open();
        int at = 0;
        for (MemoryLog.Batch batch : batches) {
            if (batch.key() != null) {
                out.open().bytes(batch.key()).bytes(batch.value()).number(batch.producer()).number(batch.epoch()).close();
            } else {
                for (int end = Math.min(at + batch.count(), keys.size()); at < end; at++) {
                    write(out, at, batch);
                }
            }
        }
        for (; at < keys.size(); at++) {
            write(out, at, null);
        }
        out.close();
        dropAfter(0);
    }

    private void write(Json out, int at, MemoryLog.Batch batch) {
        out.open().bytes(keys.get(at));
        if (values.get(at) == null) {
            out.none();
        } else {
            out.bytes(withHosts(keys.get(at), values.get(at)));
        }
        if (batch != null && batch.producer() >= 0) {
            out.number(batch.producer()).number(batch.epoch());
        }
        out.close();
    }

    /** Returns the records of a Load, as Kafka's deserializer makes them from the bytes of a log. */
    List<Logged> read(JsonNode records) {
        List<Logged> result = new ArrayList<>();
        for (JsonNode record : records) {
            long producer = record.has(2) ? record.get(2).longValue() : -1L;
            short epoch = record.has(3) ? record.get(3).shortValue() : -1;
            if (record.has(4)) {
                TransactionResult ends = record.get(4).intValue() != 0 ? TransactionResult.COMMIT : TransactionResult.ABORT;
                result.add(new Logged(null, producer, epoch, ends));
                continue;
            }
            CoordinatorRecord read = serde.deserialize(buffer(record.get(0)), buffer(record.get(1)));
            if (read.value() != null) {
                rename(read.value().message(), host -> hosts.address(host).toString());
            }
            result.add(new Logged(read, producer, epoch, null));
        }
        return result;
    }

    /** Returns the group of a record, which is the first field of every key. */
    static String group(JsonNode record) {
        ByteBuffer key = buffer(record.get(0));
        key.getShort();
        byte[] group = new byte[key.getShort()];
        key.get(group);
        return new String(group, StandardCharsets.UTF_8);
    }

    /** Returns the value with the hosts of the trace in place of invented addresses. */
    private byte[] withHosts(byte[] key, byte[] value) {
        if (!hosts.madeUp()) {
            return value;
        }
        ApiMessageAndVersion read = serde.deserialize(ByteBuffer.wrap(key), ByteBuffer.wrap(value)).value();
        return rename(read.message(), hosts::name)
            ? MessageUtil.toVersionPrefixedBytes(read.version(), read.message()) : value;
    }

    /** Renames hosts; returns whether there are any. */
    private static boolean rename(ApiMessage value, UnaryOperator<String> name) {
        if (value instanceof GroupMetadataValue group) {
            group.members().forEach(member -> member.setClientHost(name.apply(member.clientHost())));
            return true;
        }
        if (value instanceof ConsumerGroupMemberMetadataValue member) {
            member.setClientHost(name.apply(member.clientHost()));
            return true;
        }
        return false;
    }

    /** Converts text with one character (0…255) a byte to bytes. */
    private static ByteBuffer buffer(JsonNode bytes) {
        return bytes.isNull() ? null : ByteBuffer.wrap(bytes.textValue().getBytes(StandardCharsets.ISO_8859_1));
    }
}

package fencepost.loading;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorLoaderImpl;
import org.apache.kafka.coordinator.common.runtime.CoordinatorPlayback;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Answers each line of standard input with one line: lets Kafka's own loader load a log on disk (F-LOAD-02, F-REC-26).
 *
 * A question is a JSON array of records, each [whether it is in a control batch, key, value], bytes in hexadecimal. The
 * answer: "taken", the positions of the records that the coordinator got, and the name of the load's failure, or null.
 */
public final class Loads {
    private static final HexFormat HEX = HexFormat.of();
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final TopicPartition PARTITION = new TopicPartition("__consumer_offsets", 0);
    private static final int ROOM = 1 << 20;
    private static final KafkaScheduler SCHEDULER = new KafkaScheduler(1);

    private Loads() {
    }

    public static void main(String[] arguments) throws Exception {
        SCHEDULER.startup();
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(loaded(JSON.readTree(line)));
            if (!in.ready()) {
                out.flush();
            }
        }
        out.flush();
        System.exit(0); // the schedulers' threads would keep running
    }

    private static ObjectNode loaded(JsonNode records) throws Exception {
        Path root = Files.createTempDirectory("fencepost-load-");
        try {
            UnifiedLog log = log(Files.createDirectory(root.resolve(PARTITION.toString())).toFile());
            long offset = 0;
            for (JsonNode record : records) {
                // An append would check the ends of transactions; the load must read the log as it is.
                log.activeSegment().append(offset, batch(offset, record.get(0).booleanValue(), bytes(record.get(1)),
                    bytes(record.get(2))));
                offset++;
            }
            log.appendAsFollower(batch(offset, false, HEX.parseHex("000200016c"), null), 0);
            ObjectNode answer = JSON.createObjectNode();
            ArrayNode taken = answer.putArray("taken");
            String failure = load(log, offset + 1, records, taken);
            log.close();
            return answer.put("failed", failure);
        } finally {
            try (Stream<Path> left = Files.walk(root)) {
                left.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
            }
        }
    }

    private static String load(UnifiedLog log, long end, JsonNode records, ArrayNode taken) throws Exception {
        log.updateHighWatermark(end);
        CoordinatorLoaderImpl<CoordinatorRecord> loader = new CoordinatorLoaderImpl<>(Time.SYSTEM,
            partition -> Optional.of(log), partition -> Optional.of(end), new GroupCoordinatorRecordSerde(), ROOM, 1L);
        try {
            loader.load(PARTITION, new Playback(end - 1, taken)).get();
            return null;
        } catch (ExecutionException failed) {
            return failed.getCause().getClass().getSimpleName();
        } finally {
            loader.close();
        }
    }

    private static UnifiedLog log(File folder) throws IOException {
        return UnifiedLog.create(folder, new LogConfig(new Properties()), 0, 0, SCHEDULER, new BrokerTopicStats(),
            Time.SYSTEM, 60_000, new ProducerStateManagerConfig(60_000, false), 60_000, new LogDirFailureChannel(1), true,
            Optional.empty());
    }

    /** Makes a batch of one record; a control batch stands for its transaction's end. */
    private static MemoryRecords batch(long offset, boolean control, byte[] key, byte[] value) throws Exception {
        long producer = control ? offset : RecordBatch.NO_PRODUCER_ID;
        short epoch = control ? (short) 0 : RecordBatch.NO_PRODUCER_EPOCH;
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(ByteBuffer.allocate(ROOM), RecordBatch.CURRENT_MAGIC_VALUE,
            Compression.NONE, TimestampType.CREATE_TIME, offset, 1L, producer, epoch, RecordBatch.NO_SEQUENCE, control,
            control, 0, ROOM);
        var append = MemoryRecordsBuilder.class.getDeclaredMethod("appendWithOffset", long.class, boolean.class,
            long.class, ByteBuffer.class, ByteBuffer.class, Header[].class); // otherwise it checks control records
        append.setAccessible(true);
        append.invoke(builder, offset, control, 1L, buffer(key), buffer(value), new Header[0]);
        return builder.build();
    }

    private static ByteBuffer buffer(byte[] bytes) {
        return bytes == null ? null : ByteBuffer.wrap(bytes);
    }

    private static byte[] bytes(JsonNode hex) {
        return hex.isNull() ? null : HEX.parseHex(hex.textValue());
    }

    /** Notes the positions; the record that ends the log is not one of the given ones. */
    private record Playback(long last, ArrayNode taken) implements CoordinatorPlayback<CoordinatorRecord> {
        @Override
        public void replay(long offset, long producerId, short producerEpoch, CoordinatorRecord record) {
            if (offset < last) {
                taken.add(offset);
            }
        }

        @Override
        public void replayEndTransactionMarker(long producerId, short producerEpoch, TransactionResult result) {
            taken.add(result == TransactionResult.COMMIT ? producerId : -producerId - 1);
        }

        @Override
        public void updateLastWrittenOffset(long offset) {
        }

        @Override
        public void updateLastCommittedOffset(long offset) {
        }
    }
}

package fencepost;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.management.OperatingSystemMXBean;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;

/**
 * Loads the log in the file that each line of standard input names. Answers with the nanoseconds of processor time of
 * Kafka's serde and coordinator, including garbage collection, the number of stored offsets and their sum.
 *
 * The file has keys and values in turn, each after its length in four bytes; -1: there is no value.
 */
public final class Loading {
    private static final OperatingSystemMXBean SYSTEM =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private Loading() { }

    public static void main(String[] arguments) throws IOException {
        List<ByteBuffer[]> given = split(ByteBuffer.wrap(Files.readAllBytes(Path.of(arguments[0]))));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        while (in.readLine() != null) {
            System.out.println(load(given));
        }
    }

    private static String load(List<ByteBuffer[]> given) {
        EventQueue queue = new EventQueue();
        ManualTime time = new ManualTime(queue);
        TraceLoader loader = new TraceLoader();
        Coordinator coordinator = Coordinator.build(new ObjectMapper().createObjectNode(), 0, time, queue, new MemoryLog(),
            loader, new Records(new Hosts()), new Tasks(time), new TopicRights());
        coordinator.service.onElection(0, 1);
        while (!queue.isEmpty()) {
            queue.runNext();
        }
        given.forEach(pair -> {
            pair[0].rewind();
            if (pair[1] != null) {
                pair[1].rewind();
            }
        });
        System.gc();
        long began = SYSTEM.getProcessCpuTime();
        RuntimeException broken = loader.finish(read(given));
        long took = SYSTEM.getProcessCpuTime() - began;
        if (broken != null) {
            throw broken;
        }
        long[] sums = OffsetViews.sums(coordinator.offsets());
        return took + " " + sums[0] + " " + sums[1];
    }

    /** Returns the records, each decoded when the load reaches it. */
    private static Iterable<Records.Logged> read(List<ByteBuffer[]> given) {
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        Iterator<ByteBuffer[]> pairs = given.iterator();
        return () -> new Iterator<>() {
            @Override
            public boolean hasNext() {
                return pairs.hasNext();
            }

            @Override
            public Records.Logged next() {
                ByteBuffer[] pair = pairs.next();
                return new Records.Logged(serde.deserialize(pair[0], pair[1]), -1, (short) -1, null);
            }
        };
    }

    private static List<ByteBuffer[]> split(ByteBuffer log) {
        List<ByteBuffer[]> found = new ArrayList<>();
        while (log.hasRemaining()) {
            found.add(new ByteBuffer[] {next(log), next(log)});
        }
        return found;
    }

    private static ByteBuffer next(ByteBuffer log) {
        int size = log.getInt();
        if (size < 0) {
            return null;
        }
        ByteBuffer part = log.slice(log.position(), size);
        log.position(log.position() + size);
        return part;
    }
}

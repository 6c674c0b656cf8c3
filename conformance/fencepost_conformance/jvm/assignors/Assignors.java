package fencepost.assignors;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Answers each line of standard input with one line: runs an assignor, or reads and writes embedded bytes.
 *
 * A request is words separated by blanks. Text and bytes are in hexadecimal, "-" is null, "" (two quotes) nothing.
 * Lists use ',' between entries, ':' between the fields of an entry, '|' and ';' inside a field.
 */
public final class Assignors {
    private static final HexFormat HEX = HexFormat.of();

    private Assignors() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII), 1 << 16);
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line.split(" ")));
            if (!in.ready()) {
                out.flush();
            }
        }
        out.flush();
    }

    private static String answer(String[] words) {
        try {
            switch (words[0]) {
                case "assign":
                    return assign(words[1], words[2], words[3]);
                case "write-subscription":
                    return bytes(ConsumerProtocol.serializeSubscription(
                        new Subscription(texts(words[2]), data(words[3]), partitions(words[4]),
                            Integer.parseInt(words[5]), Optional.ofNullable(text(words[6]))),
                        Short.parseShort(words[1])));
                case "write-assignment":
                    return bytes(ConsumerProtocol.serializeAssignment(
                        new Assignment(partitions(words[2]), data(words[3])), Short.parseShort(words[1])));
                case "read-subscription":
                    return subscription(ConsumerProtocol.deserializeSubscription(data(words[1])));
                case "read-assignment":
                    Assignment read = ConsumerProtocol.deserializeAssignment(data(words[1]));
                    return partitions(read.partitions()) + " " + bytes(read.userData());
                default:
                    throw new IllegalArgumentException(words[0]);
            }
        } catch (RuntimeException e) {
            return "! " + e.getClass().getSimpleName();
        }
    }

    private static String assign(String name, String topics, String members) {
        ConsumerPartitionAssignor assignor = name.equals("range") ? new RangeAssignor() : new RoundRobinAssignor();
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (String entry : list(members, ",")) {
            String[] fields = entry.split(":", -1);
            Subscription subscription = new Subscription(list(fields[3], "\\|").stream().map(Assignors::text)
                .collect(Collectors.toList()), null, List.of(), -1, Optional.ofNullable(text(fields[2])));
            subscription.setGroupInstanceId(Optional.ofNullable(text(fields[1])));
            subscriptions.put(text(fields[0]), subscription);
        }
        Map<String, Assignment> result =
            assignor.assign(cluster(topics), new GroupSubscription(subscriptions)).groupAssignment();
        Map<String, String> rows = new TreeMap<>();
        result.forEach((member, assignment) -> rows.put(hex(member), partitions(assignment.partitions())));
        return rows.entrySet().stream().map(row -> row.getKey() + "=" + row.getValue()).collect(Collectors.joining(" "));
    }

    /** Each rack is a node, so that a partition can be placed on any set of racks. */
    private static Cluster cluster(String topics) {
        Map<String, Node> nodes = new HashMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        for (String entry : list(topics, ",")) {
            String[] fields = entry.split(":", -1);
            String topic = text(fields[0]);
            int count = Integer.parseInt(fields[1]);
            List<String> racks = fields[2].equals("-") ? null : Arrays.asList(fields[2].split(";", -1));
            for (int number = 0; number < count; number++) {
                List<Node> replicas = new ArrayList<>();
                if (racks == null) {
                    replicas.add(Node.noNode());
                } else {
                    for (String rack : list(racks.get(number), "\\|")) {
                        replicas.add(nodes.computeIfAbsent(rack, r -> new Node(nodes.size(), "host", 1, text(r))));
                    }
                }
                Node[] array = replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(topic, number, Node.noNode(), array, array));
            }
        }
        Set<Node> all = new HashSet<>(nodes.values());
        return new Cluster("cluster", all, partitions, Set.of(), Set.of());
    }

    private static String subscription(Subscription read) {
        return read.topics().stream().map(Assignors::hex).collect(Collectors.joining(",", "[", "]"))
            + " " + bytes(read.userData()) + " " + partitions(read.ownedPartitions())
            + " " + read.generationId().orElse(-1) + " " + read.rackId().map(Assignors::hex).orElse("-");
    }

    private static List<String> list(String words, String separator) {
        return words.isEmpty() || words.equals("\"\"") ? List.of() : Arrays.asList(words.split(separator));
    }

    private static List<String> texts(String words) {
        return list(words, ",").stream().map(Assignors::text).collect(Collectors.toList());
    }

    private static List<TopicPartition> partitions(String words) {
        List<TopicPartition> partitions = new ArrayList<>();
        for (String entry : list(words, ",")) {
            String[] fields = entry.split(":", -1);
            partitions.add(new TopicPartition(text(fields[0]), Integer.parseInt(fields[1])));
        }
        return partitions;
    }

    private static String partitions(List<TopicPartition> partitions) {
        return partitions.stream().map(p -> hex(p.topic()) + ":" + p.partition()).collect(Collectors.joining(",", "[", "]"));
    }

    private static String text(String word) {
        return word.equals("-") ? null : new String(HEX.parseHex(word), StandardCharsets.UTF_8);
    }

    private static String hex(String text) {
        return HEX.formatHex(text.getBytes(StandardCharsets.UTF_8));
    }

    private static ByteBuffer data(String word) {
        return word.equals("-") ? null : ByteBuffer.wrap(HEX.parseHex(word.equals("\"\"") ? "" : word));
    }

    private static String bytes(ByteBuffer buffer) {
        if (buffer == null) {
            return "-";
        }
        byte[] read = new byte[buffer.remaining()];
        buffer.duplicate().get(read);
        return read.length == 0 ? "\"\"" : HEX.formatHex(read);
    }
}

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
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/**
 * Answers each line of standard input with one line: runs an assignor, or decodes and encodes embedded bytes.
 *
 * A request consists of words separated by blanks. Text and bytes are in hexadecimal, "-" is null, "" (two quotes) is
 * empty. Lists use ',' between entries, ':' between the fields of an entry, '|' and ';' inside a field.
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
                    return shares(assign(words[1], words[2], words[3], words[4]).get());
                case "target":
                    return target(targeted(words[1], words[2], words[3], words[4]).get());
                case "time":
                    return time(words);
                case "order":
                    return order(words[1]);
                case "user-data":
                    return userData(words[1], words[2], Integer.parseInt(words[3]));
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

    /** Assignors that were named in a request, kept because they remember (A-STICKY-05). */
    private static final Map<String, ConsumerPartitionAssignor> REMEMBERED = new HashMap<>();

    private static ConsumerPartitionAssignor assignor(String name) {
        switch (name) {
            case "range":
                return new RangeAssignor();
            case "roundrobin":
                return new RoundRobinAssignor();
            case "sticky":
                return new StickyAssignor();
            case "cooperative-sticky":
                return new CooperativeStickyAssignor();
            default:
                throw new IllegalArgumentException(name);
        }
    }

    /** Returns a client assignor with decoded input; "object" names a kept one, "-" makes a new one. */
    private static Supplier<Map<String, Assignment>> assign(String name, String topics, String members, String object) {
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (String entry : list(members, ",")) {
            String[] fields = entry.split(":", -1);
            Subscription subscription = new Subscription(list(fields[3], "\\|").stream().map(Assignors::text)
                .collect(Collectors.toList()), data(fields[4]), owned(fields[5]), Integer.parseInt(fields[6]),
                Optional.ofNullable(text(fields[2])));
            subscription.setGroupInstanceId(Optional.ofNullable(text(fields[1])));
            subscriptions.put(text(fields[0]), subscription);
        }
        Cluster cluster = cluster(topics);
        ConsumerPartitionAssignor assignor =
            object.equals("-") ? assignor(name) : REMEMBERED.computeIfAbsent(object, o -> assignor(name));
        return () -> {
            subscriptions.values().stream().map(Subscription::userData).filter(d -> d != null).forEach(ByteBuffer::rewind);
            return assignor.assign(cluster, new GroupSubscription(subscriptions)).groupAssignment();
        };
    }

    private static String shares(Map<String, Assignment> result) {
        Map<String, String> rows = new TreeMap<>();
        result.forEach((member, assignment) -> rows.put(hex(member), partitions(assignment.partitions())));
        return rows.entrySet().stream().map(row -> row.getKey() + "=" + row.getValue()).collect(Collectors.joining(" "));
    }

    /** Returns a server assignor with decoded input. Members, topics and rows keep their order. */
    private static Supplier<Map<String, MemberAssignment>> targeted(
        String name, String type, String topics, String members
    ) {
        Map<Uuid, Integer> counts = new HashMap<>();
        List<Uuid> order = new ArrayList<>();
        for (String entry : list(topics, ",")) {
            String[] fields = entry.split(":", -1);
            counts.put(uuid(fields[0]), Integer.parseInt(fields[1]));
            order.add(uuid(fields[0]));
        }
        Map<String, MemberSubscriptionAndAssignmentImpl> specs = new LinkedHashMap<>();
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        for (String entry : list(members, ",")) {
            String[] fields = entry.split(":", -1);
            String member = text(fields[0]);
            Set<Uuid> wanted = list(fields[3], "\\|").stream().map(Assignors::uuid).collect(Collectors.toSet());
            Set<Uuid> subscribed = new LinkedHashSet<>(order);
            subscribed.addAll(wanted);
            subscribed.retainAll(wanted);
            ConsumerGroupTargetAssignmentMemberValue row = new ConsumerGroupTargetAssignmentMemberValue();
            for (String part : list(fields[4], "\\|")) {
                String[] topic = part.split("=", -1);
                List<Integer> numbers =
                    list(topic[1], ";").stream().map(Integer::valueOf).collect(Collectors.toList());
                row.topicPartitions().add(new ConsumerGroupTargetAssignmentMemberValue.TopicPartition()
                    .setTopicId(uuid(topic[0])).setPartitions(numbers));
                numbers.forEach(number -> inverted.computeIfAbsent(uuid(topic[0]), t -> new HashMap<>()).put(number, member));
            }
            specs.put(member, new MemberSubscriptionAndAssignmentImpl(Optional.ofNullable(text(fields[2])),
                Optional.ofNullable(text(fields[1])), subscribed,
                org.apache.kafka.coordinator.group.modern.Assignment.fromRecord(row)));
        }
        ConsumerGroupPartitionAssignor assignor = name.equals("uniform")
            ? new UniformAssignor() : new org.apache.kafka.coordinator.group.assignor.RangeAssignor();
        GroupSpecImpl spec = new GroupSpecImpl(specs, SubscriptionType.valueOf(type), inverted);
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topicId) {
                return counts.getOrDefault(topicId, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid topicId, int partition) {
                return Set.of();
            }
        };
        return () -> assignor.assign(spec, describer).members();
    }

    private static String target(Map<String, MemberAssignment> result) {
        Map<String, String> rows = new TreeMap<>();
        result.forEach((member, assignment) -> rows.put(hex(member), assignment.partitions().entrySet().stream()
            .filter(topic -> !topic.getValue().isEmpty())
            .map(topic -> hex(topic.getKey()) + "=" + topic.getValue().stream().sorted().map(String::valueOf)
                .collect(Collectors.joining(";")))
            .sorted().collect(Collectors.joining("|"))));
        return rows.entrySet().stream().map(row -> row.getKey() + ":" + row.getValue()).collect(Collectors.joining(","));
    }

    /** "time ROUNDS QUESTION…": the nanoseconds of each round, without decoding the input. */
    private static String time(String[] words) {
        String[] rest = Arrays.copyOfRange(words, 2, words.length);
        Supplier<?> work = rest[0].equals("target")
            ? targeted(rest[1], rest[2], rest[3], rest[4]) : assign(rest[1], rest[2], rest[3], rest[4]);
        List<String> taken = new ArrayList<>();
        for (int round = 0; round < Integer.parseInt(words[1]); round++) {
            long began = System.nanoTime();
            work.get();
            taken.add(String.valueOf(System.nanoTime() - began));
        }
        return String.join(" ", taken);
    }

    /** Returns the order in which a coordinator's map of members, filled in this order, is copied to an assignor's. */
    private static String order(String names) {
        TimelineHashMap<String, String> members = new TimelineHashMap<>(new SnapshotRegistry(new LogContext()), 0);
        texts(names).forEach(name -> members.put(name, name));
        Map<String, String> specs = new HashMap<>();
        members.forEach(specs::put);
        return specs.keySet().stream().map(Assignors::hex).collect(Collectors.joining(","));
    }

    private static String userData(String name, String received, int generation) {
        ConsumerPartitionAssignor assignor = assignor(name);
        if (!received.equals("-")) {
            assignor.onAssignment(new Assignment(partitions(received)),
                new ConsumerGroupMetadata("g", generation, "m", Optional.empty()));
        }
        return bytes(assignor.subscriptionUserData(Set.of("t")));
    }

    /** Makes each rack a node, so that a partition can be on any set of racks. */
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
        return read.topics().stream().map(Assignors::word).collect(Collectors.joining(",", "[", "]"))
            + " " + bytes(read.userData()) + " " + partitions(read.ownedPartitions())
            + " " + read.generationId().orElse(-1) + " " + read.rackId().map(Assignors::word).orElse("-");
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

    private static List<TopicPartition> owned(String words) {
        return list(words, "\\|").stream().map(entry -> entry.split(";", -1))
            .map(fields -> new TopicPartition(text(fields[0]), Integer.parseInt(fields[1]))).collect(Collectors.toList());
    }

    private static Uuid uuid(String word) {
        ByteBuffer buffer = ByteBuffer.wrap(HEX.parseHex(word));
        return new Uuid(buffer.getLong(), buffer.getLong());
    }

    private static String hex(Uuid id) {
        return HEX.formatHex(ByteBuffer.allocate(16).putLong(id.getMostSignificantBits())
            .putLong(id.getLeastSignificantBits()).array());
    }

    private static String partitions(List<TopicPartition> partitions) {
        return partitions.stream().map(p -> word(p.topic()) + ":" + p.partition()).collect(Collectors.joining(",", "[", "]"));
    }

    private static String text(String word) {
        return word.equals("-") ? null : new String(HEX.parseHex(word), StandardCharsets.UTF_8);
    }

    private static String hex(String text) {
        return HEX.formatHex(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String word(String text) {
        return text.isEmpty() ? "\"\"" : hex(text);
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

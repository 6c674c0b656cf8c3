import java.time.Duration;
import java.util.*;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Drives Kafka's own Java consumer (conformance/peers/README.md). */
public final class Driver {
    private static final Map<String, Class<?>> ASSIGNORS = Map.of(
            "range", RangeAssignor.class,
            "roundrobin", RoundRobinAssignor.class,
            "sticky", StickyAssignor.class,
            "cooperative-sticky", CooperativeStickyAssignor.class);
    private static final Set<String> OPTIONS = Set.of(
            "bootstrap", "group", "topic", "protocol", "instance-id", "assignor", "session-timeout", "processing-ms", "commit");
    private static final CountDownLatch stop = new CountDownLatch(1);
    private static final CountDownLatch ended = new CountDownLatch(1);

    private static void end(int status, String why) {
        System.err.println(why);
        Runtime.getRuntime().halt(status);
    }

    private static void unsupported(boolean wanted, String what) {
        if (wanted) end(64, "unsupported: " + what);
    }

    private static void complain(Object problem) {
        say("error", ",\"message\":" + quoted(String.valueOf(problem)));
        System.err.println("error: " + problem);
    }

    private static synchronized void say(String event, String more) {
        System.out.println("{\"event\":\"" + event + "\"" + more + "}");
        System.out.flush();
    }

    /** The text as a JSON string; a control character becomes a space. */
    private static String quoted(String text) {
        String plain = text.replaceAll("\\p{Cntrl}", " ");
        return "\"" + plain.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }

    private static void say(String event, Collection<TopicPartition> partitions) {
        StringJoiner rows = new StringJoiner(",", "[", "]");
        partitions.stream()
                .sorted(Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition))
                .forEach(each -> rows.add("[" + quoted(each.topic()) + "," + each.partition() + "]"));
        say(event, ",\"partitions\":" + rows);
    }

    /** Says which offsets the broker has stored, whoever asked for the commit. */
    public static final class Committed implements ConsumerInterceptor<byte[], byte[]> {
        @Override
        public void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {
            StringJoiner rows = new StringJoiner(",", "[", "]");
            offsets.forEach((each, at) ->
                    rows.add("[" + quoted(each.topic()) + "," + each.partition() + "," + at.offset() + "]"));
            say("committed", ",\"offsets\":" + rows);
        }

        @Override
        public ConsumerRecords<byte[], byte[]> onConsume(ConsumerRecords<byte[], byte[]> records) {
            return records;
        }

        @Override
        public void configure(Map<String, ?> settings) {}

        @Override
        public void close() {}
    }

    private static final class Listener implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            say("assigned", partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            say("revoked", partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            say("lost", partitions);
        }
    }

    private static Map<String, List<String>> options(String[] words) {
        Map<String, List<String>> given = new HashMap<>();
        for (int i = 0; i < words.length; i += 2) {
            String name = words[i].startsWith("--") ? words[i].substring(2) : "";
            if (!OPTIONS.contains(name) || i + 1 == words.length) end(2, "no such option, or no value: " + words[i]);
            given.computeIfAbsent(name, key -> new ArrayList<>()).add(words[i + 1]);
        }
        for (String needed : List.of("bootstrap", "group", "topic"))
            if (!given.containsKey(needed)) end(2, "--" + needed + " is needed");
        return given;
    }

    private static String one(Map<String, List<String>> given, String name, String otherwise) {
        return given.getOrDefault(name, Arrays.asList(otherwise)).get(0);
    }

    private static Properties settings(Map<String, List<String>> given) {
        Properties p = new Properties();
        String protocol = one(given, "protocol", "classic");
        p.put("bootstrap.servers", one(given, "bootstrap", ""));
        p.put("group.id", one(given, "group", ""));
        p.put("group.protocol", protocol);
        p.put("auto.offset.reset", "earliest");
        p.put("enable.auto.commit", String.valueOf(one(given, "commit", "sync").equals("auto")));
        p.put("auto.commit.interval.ms", "1000");
        // one record a poll: an automatic commit covers the records that a poll returned
        p.put("max.poll.records", "1");
        p.put("interceptor.classes", List.of(Committed.class));
        p.put("key.deserializer", ByteArrayDeserializer.class);
        p.put("value.deserializer", ByteArrayDeserializer.class);
        if (given.containsKey("instance-id")) p.put("group.instance.id", one(given, "instance-id", ""));
        String assignor = one(given, "assignor", null);
        String session = one(given, "session-timeout", null);
        if (assignor != null && !ASSIGNORS.containsKey(assignor)) end(2, "no assignor " + assignor);
        if (protocol.equals("consumer")) {
            unsupported(session != null, "the broker decides the session timeout of the consumer protocol");
            unsupported(
                    assignor != null && !assignor.equals("range"), "the consumer protocol has no assignor " + assignor);
            if (assignor != null) p.put("group.remote.assignor", assignor);
            return p;
        }
        if (assignor != null) p.put("partition.assignment.strategy", ASSIGNORS.get(assignor).getName());
        if (session != null) {
            p.put("session.timeout.ms", session);
            p.put("heartbeat.interval.ms", String.valueOf(Math.max(1, Math.min(1000, Integer.parseInt(session) / 3))));
        }
        return p;
    }

    private static void commit(Consumer<byte[], byte[]> consumer, String how, ConsumerRecord<byte[], byte[]> record) {
        Map<TopicPartition, OffsetAndMetadata> behind = Map.of(
                new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        if (how.equals("sync")) {
            consumer.commitSync(behind);
        } else if (how.equals("async")) {
            consumer.commitAsync(behind, (offsets, error) -> {
                if (error != null) complain(error);
            });
        }
    }

    private static void consume(Map<String, List<String>> given) throws InterruptedException {
        String how = one(given, "commit", "sync");
        if (!Set.of("sync", "async", "auto").contains(how)) end(2, "no way to commit " + how);
        long processing = Long.parseLong(one(given, "processing-ms", "0"));
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings(given))) {
            consumer.subscribe(given.get("topic"), new Listener());
            while (stop.getCount() > 0) {
                try {
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                        if (stop.await(processing, TimeUnit.MILLISECONDS)) break;
                        say("processed", ",\"topic\":" + quoted(record.topic()) + ",\"partition\":" + record.partition()
                                + ",\"offset\":" + record.offset());
                        commit(consumer, how, record);
                    }
                } catch (CommitFailedException | RebalanceInProgressException | RetriableException refused) {
                    complain(refused);
                }
            }
        }
        say("closed", "");
    }

    public static void main(String[] args) throws Exception {
        if (args.length > 0 && args[0].equals("--version")) {
            Properties built = new Properties();
            built.load(KafkaConsumer.class.getResourceAsStream("/kafka/kafka-version.properties"));
            System.out.println(built.getProperty("version"));
            return;
        }
        Map<String, List<String>> given = options(args);
        // SIGTERM starts this hook; the program ends when it returns
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stop.countDown();
            try {
                ended.await();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
            System.out.flush();
            Runtime.getRuntime().halt(0);
        }));
        try {
            consume(given);
        } catch (Throwable fatal) {
            complain(fatal);
            Runtime.getRuntime().halt(1);
        }
        ended.countDown();
    }
}

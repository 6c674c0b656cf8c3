import java.time.Duration;
import java.util.*;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

/** Kafka's own clients on a server: each step prints a line, and an exception ends it. */
public final class Serve {
    private static String bootstrap;

    private static Properties base(String... more) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        for (int i = 0; i < more.length; i += 2) p.put(more[i], more[i + 1]);
        return p;
    }

    private static void check(boolean holds, Object seen) {
        if (!holds) throw new AssertionError(String.valueOf(seen));
    }

    private static List<String> read(Consumer<String, String> consumer, int count) {
        List<String> found = new ArrayList<>();
        long end = System.currentTimeMillis() + 20000;
        while (found.size() < count && System.currentTimeMillis() < end)
            for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofMillis(200))) found.add(r.value());
        Collections.sort(found);
        return found;
    }

    private static KafkaConsumer<String, String> consumer(String group, String protocol, String... more) {
        Properties p = base(more);
        p.put("group.id", group);
        p.put("group.protocol", protocol);
        p.put("auto.offset.reset", "earliest");
        p.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer());
    }

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        try (Admin admin = Admin.create(base())) {
            admin.createTopics(List.of(new NewTopic("java", 3, (short) 1))).all().get(20, TimeUnit.SECONDS);
            TopicDescription topic = admin.describeTopics(List.of("java")).allTopicNames().get().get("java");
            check(topic.partitions().size() == 3, topic);
            admin.createPartitions(Map.of("java", NewPartitions.increaseTo(4))).all().get();
            check(admin.describeCluster().nodes().get().size() == 1, "nodes");
            System.out.println("topics");

            try (KafkaProducer<String, String> producer =
                    new KafkaProducer<>(base("linger.ms", "0"), new StringSerializer(), new StringSerializer())) {
                for (int i = 0; i < 8; i++) producer.send(new ProducerRecord<>("java", i % 4, null, "v" + i)).get();
            }
            System.out.println("produce");

            for (String protocol : List.of("classic", "consumer")) {
                String group = "java-" + protocol;
                try (KafkaConsumer<String, String> consumer = consumer(group, protocol)) {
                    consumer.subscribe(List.of("java"));
                    List<String> found = read(consumer, 8);
                    check(found.size() == 8, found);
                    consumer.commitSync();
                    ConsumerGroupDescription described =
                            admin.describeConsumerGroups(List.of(group)).all().get().get(group);
                    check(described.groupState() == GroupState.STABLE, described);
                    check(described.members().size() == 1, described);
                    check(described.members().iterator().next().assignment().topicPartitions().size() == 4, described);
                }
                var offsets = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
                check(offsets.size() == 4, offsets);
                TopicPartition first = new TopicPartition("java", 0);
                check(offsets.get(first).offset() == 2, offsets);
                admin.alterConsumerGroupOffsets(group, Map.of(first, new OffsetAndMetadata(1))).all().get();
                admin.deleteConsumerGroupOffsets(group, Set.of(new TopicPartition("java", 3))).all().get();
                offsets = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
                check(offsets.get(first).offset() == 1 && offsets.size() == 3, offsets);
                try (KafkaConsumer<String, String> again = consumer(group, protocol)) {
                    again.subscribe(List.of("java"));
                    List<String> found = read(again, 3);
                    check(found.equals(List.of("v3", "v4", "v7")), found);
                }
                System.out.println(protocol);
            }

            try (KafkaConsumer<String, String> by = consumer("java-regex", "consumer")) {
                by.subscribe(new SubscriptionPattern("ja.a"));
                check(read(by, 8).size() == 8, "regex");
            }
            System.out.println("regex");

            ConfigResource config = new ConfigResource(ConfigResource.Type.GROUP, "java-regex");
            AlterConfigOp shorter = new AlterConfigOp(
                    new ConfigEntry("consumer.session.timeout.ms", "46000"), AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(config, List.of(shorter))).all().get();
            Config settings = admin.describeConfigs(List.of(config)).all().get().get(config);
            check(settings.get("consumer.session.timeout.ms").value().equals("46000"), settings);
            System.out.println("group settings");

            try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                            base("transactional.id", "java"), new StringSerializer(), new StringSerializer());
                    KafkaConsumer<String, String> reader =
                            consumer("java-txn", "consumer", "isolation.level", "read_committed")) {
                admin.createTopics(List.of(new NewTopic("txn-java", 1, (short) 1))).all().get();
                producer.initTransactions();
                producer.beginTransaction();
                producer.send(new ProducerRecord<>("txn-java", "aborted"));
                producer.flush();
                producer.abortTransaction();
                for (int i = 0; i < 3; i++) {
                    producer.beginTransaction();
                    producer.send(new ProducerRecord<>("txn-java", "committed" + i));
                    producer.sendOffsetsToTransaction(
                            Map.of(new TopicPartition("java", 0), new OffsetAndMetadata(i)),
                            new ConsumerGroupMetadata("java-copied"));
                    producer.commitTransaction();
                }
                reader.subscribe(List.of("txn-java"));
                List<String> found = read(reader, 3);
                check(found.equals(List.of("committed0", "committed1", "committed2")), found);
                var offsets = admin.listConsumerGroupOffsets("java-copied").partitionsToOffsetAndMetadata().get();
                check(offsets.get(new TopicPartition("java", 0)).offset() == 2, offsets);
            }
            System.out.println("transactions");

            Collection<GroupListing> groups = admin.listGroups().all().get();
            check(groups.size() >= 5, groups);
            admin.deleteConsumerGroups(List.of("java-classic", "java-consumer")).all().get();
            check(admin.listGroups().all().get().size() == groups.size() - 2, groups);
            admin.deleteTopics(List.of("java")).all().get();
            check(!admin.listTopics().names().get().contains("java"), "deleted");
            System.out.println("deleted");
        }
    }
}

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * One member of a group with Apache Kafka's own client. Same commands and answers as member.py.
 *
 * Arguments: topics (comma separated), then key=value pairs that go to the consumer as they are.
 */
public final class Member {
    private static volatile double slow = 0;

    private static void emit(String event, String more) {
        System.out.println("{\"event\": \"" + event + "\"" + more + "}");
        System.out.flush();
    }

    private static void sleep(double seconds) {
        try {
            Thread.sleep((long) (seconds * 1000));
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private static final ConsumerRebalanceListener LISTENER = new ConsumerRebalanceListener() {
        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            sleep(slow);
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            sleep(slow);
        }
    };

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        for (String pair : Arrays.asList(arguments).subList(1, arguments.length)) {
            int equals = pair.indexOf('=');
            properties.put(pair.substring(0, equals), pair.substring(equals + 1));
        }
        String bytes = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
        properties.put("key.deserializer", bytes);
        properties.put("value.deserializer", bytes);
        KafkaProducer<byte[], byte[]> producer = producer(properties);

        // The consumer is not safe for use by several threads: a reader only fills the queue that the loop empties.
        BlockingQueue<String> commands = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> {
            try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in))) {
                for (String line = in.readLine(); line != null; line = in.readLine()) {
                    commands.add(line);
                }
            } catch (java.io.IOException ended) {
                // The parent is gone: the same as its last word.
            }
            commands.add("close");
        });
        reader.setDaemon(true);
        reader.start();

        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties)) {
            boolean broker = "consumer".equals(properties.getProperty("group.protocol"));
            subscribe(consumer, arguments[0], broker);
            emit("ready", "");
            String last = null;
            int count = 0;
            for (boolean alive = true, subscribed = true; alive;) {
                try {
                    if (subscribed) {
                        int came = consumer.poll(Duration.ofMillis(100)).count();
                        if (came > 0) {
                            count += came;
                            emit("read", ", \"count\": " + count);
                        }
                    } else {
                        sleep(0.1);
                    }
                    String owned = owned(consumer);
                    if (!owned.equals(last)) {
                        last = owned;
                        emit("assigned", ", \"partitions\": [" + owned + "]");
                    }
                } catch (RuntimeException error) {
                    emit("error", ", \"text\": \"" + error.getClass().getSimpleName() + "\"");
                    sleep(0.1);
                }
                for (String line = commands.poll(); line != null; line = commands.poll()) {
                    String[] words = line.trim().split(" ", 2);
                    switch (words[0]) {
                        case "subscribe" -> {
                            subscribe(consumer, words[1], broker);
                            subscribed = true;
                        }
                        case "stall" -> sleep(Double.parseDouble(words[1]));
                        case "slow" -> slow = Double.parseDouble(words[1]);
                        case "unsubscribe" -> {
                            consumer.unsubscribe();
                            subscribed = false;
                        }
                        case "commit", "seek", "pause", "resume", "transact" -> {
                            try {
                                offsets(consumer, producer, properties, words);
                                emit("done", ", \"command\": \"" + words[0] + "\"");
                            } catch (RuntimeException error) {
                                emit("error", ", \"text\": \"" + error.getClass().getSimpleName() + "\"");
                            }
                        }
                        default -> alive = false;
                    }
                }
            }
        }
        emit("closed", "");
    }

    /** The producer of transactions, if there are to be any; its settings are taken out of the consumer's. */
    private static KafkaProducer<byte[], byte[]> producer(Properties properties) {
        Object id = properties.remove("transactional.id");
        if (id == null) {
            return null;
        }
        Properties own = new Properties();
        own.put("bootstrap.servers", properties.get("bootstrap.servers"));
        own.put("transactional.id", id);
        String bytes = "org.apache.kafka.common.serialization.ByteArraySerializer";
        own.put("key.serializer", bytes);
        own.put("value.serializer", bytes);
        KafkaProducer<byte[], byte[]> made = new KafkaProducer<>(own);
        made.initTransactions();
        return made;
    }

    /** A command that reads or writes offsets. */
    private static void offsets(
            KafkaConsumer<byte[], byte[]> consumer, KafkaProducer<byte[], byte[]> producer, Properties properties,
            String[] words) {
        switch (words[0]) {
            case "commit" -> consumer.commitSync();
            case "pause" -> consumer.pause(consumer.assignment());
            case "resume" -> consumer.resume(consumer.assignment());
            case "seek" -> {
                for (TopicPartition partition : consumer.assignment()) {
                    consumer.seek(partition, Long.parseLong(words[1]));
                }
            }
            default -> {
                switch (words[1]) {
                    case "commit" -> producer.commitTransaction();
                    case "abort" -> producer.abortTransaction();
                    default -> {
                        producer.beginTransaction();
                        String out = properties.getProperty("group.id") + "-b";
                        producer.send(new ProducerRecord<>(out, "made of what was read".getBytes()));
                        Map<TopicPartition, OffsetAndMetadata> read = new HashMap<>();
                        for (TopicPartition partition : consumer.assignment()) {
                            read.put(partition, new OffsetAndMetadata(consumer.position(partition)));
                        }
                        producer.sendOffsetsToTransaction(read, consumer.groupMetadata());
                    }
                }
            }
        }
    }

    /** Topics, or one regular expression that begins with ^; the broker resolves it if it can. */
    private static void subscribe(KafkaConsumer<byte[], byte[]> consumer, String topics, boolean broker) {
        if (!topics.startsWith("^")) {
            consumer.subscribe(Arrays.asList(topics.split(",")), LISTENER);
        } else if (broker) {
            consumer.subscribe(new SubscriptionPattern(topics), LISTENER);
        } else {
            consumer.subscribe(Pattern.compile(topics), LISTENER);
        }
    }

    private static String owned(KafkaConsumer<byte[], byte[]> consumer) {
        List<String> rows = new ArrayList<>();
        for (TopicPartition partition : consumer.assignment()) {
            rows.add("[\"" + partition.topic() + "\", " + partition.partition() + "]");
        }
        return String.join(", ", new TreeSet<>(rows));
    }
}

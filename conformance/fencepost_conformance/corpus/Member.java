import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;

/**
 * One member of a group with Apache Kafka's own client. Same commands and answers as member.py.
 *
 * Arguments: topics (comma separated), then key=value pairs that go to the consumer as they are.
 */
public final class Member {
    private static volatile double slow = 0;

    private static void tell(String event, String more) {
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
            tell("ready", "");
            String last = null;
            for (boolean alive = true, subscribed = true; alive;) {
                try {
                    if (subscribed) {
                        consumer.poll(Duration.ofMillis(100));
                    } else {
                        sleep(0.1);
                    }
                    String owned = owned(consumer);
                    if (!owned.equals(last)) {
                        last = owned;
                        tell("assigned", ", \"partitions\": [" + owned + "]");
                    }
                } catch (RuntimeException error) {
                    tell("error", ", \"text\": \"" + error.getClass().getSimpleName() + "\"");
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
                        default -> alive = false;
                    }
                }
            }
        }
        tell("closed", "");
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

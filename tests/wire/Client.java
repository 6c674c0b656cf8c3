import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/**
 * A consumer whose application is slow, or fails.
 *
 * Arguments: port, seconds that the assigned callback takes, which of its calls throws (0: none), seconds to wait after
 * an exception, whether it commits automatically. It prints a line for each call of a callback, each exception and
 * each change of the assignment.
 */
public final class Client {
    private static long began = System.nanoTime();

    private static void tell(String what) {
        System.out.printf("%.3f %s%n", (System.nanoTime() - began) / 1e9, what);
        System.out.flush();
    }

    public static void main(String[] arguments) throws Exception {
        double slow = Double.parseDouble(arguments[1]);
        int failing = Integer.parseInt(arguments[2]);
        int[] calls = {0};
        long pause = (long) (1000 * Double.parseDouble(arguments[3]));
        Properties properties = new Properties();
        properties.put("bootstrap.servers", "127.0.0.1:" + arguments[0]);
        properties.put("group.id", "g");
        properties.put("group.protocol", "consumer");
        properties.put("enable.auto.commit", arguments[4]);
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.metrics.push", "false");
        String bytes = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
        properties.put("key.deserializer", bytes);
        properties.put("value.deserializer", bytes);
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties);
        consumer.subscribe(List.of("t"), new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                tell("revoked " + names(partitions));
            }

            @Override
            public void onPartitionsLost(Collection<TopicPartition> partitions) {
                tell("lost " + names(partitions));
            }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                tell("assigned " + names(partitions));
                if (++calls[0] == failing) {
                    throw new IllegalStateException("as told");
                }
                sleep((long) (1000 * slow));
            }
        });
        String last = "";
        while (true) {
            try {
                consumer.poll(Duration.ofMillis(100));
            } catch (RuntimeException error) {
                tell("error " + error.getClass().getSimpleName());
                sleep(pause);
            }
            String owned = names(consumer.assignment());
            if (!owned.equals(last)) {
                last = owned;
                tell("owns " + owned);
            }
        }
    }

    private static void sleep(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private static String names(Collection<TopicPartition> partitions) {
        TreeSet<String> names = new TreeSet<>();
        partitions.forEach(partition -> names.add(partition.toString()));
        return names.toString();
    }
}

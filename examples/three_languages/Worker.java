import java.time.Duration;
import java.util.*;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

/** A worker in Java, on Kafka's own unmodified clients. scene.py says what a worker does. */
public final class Worker {
    private static final long PAUSE_MS = 10;
    private static String bootstrap;
    private static String topic;
    private static final AtomicBoolean enough = new AtomicBoolean();
    private static final AtomicBoolean leave = new AtomicBoolean();

    /** Report a step as a line of JSON; "more" is already JSON. */
    private static synchronized void tell(String event, String more) {
        System.out.println("{\"at\": " + System.currentTimeMillis() + ", \"event\": \"" + event + "\"" + more + "}");
    }

    private static void failed(String what, Throwable failure) {
        String text = (what + ": " + failure).replace('"', '\'').replace('\\', '/').replace('\n', ' ');
        tell("error", ", \"text\": \"" + text + "\"");
    }

    private static void partitions(String event, String group, Collection<TopicPartition> rows) {
        List<Integer> numbers = new ArrayList<>();
        for (TopicPartition row : rows) numbers.add(row.partition());
        tell(event, ", \"group\": \"" + group + "\", \"partitions\": " + numbers);
    }

    private static void produce(int partitions, String name) throws InterruptedException {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("linger.ms", "5");
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(p, new StringSerializer(), new StringSerializer())) {
            for (int number = 0; !enough.get(); number++) {
                String value = name + "-" + number;
                producer.send(new ProducerRecord<>(topic, number % partitions, null, value), (row, failure) -> {
                    if (failure == null) tell("acked", ", \"value\": \"" + value + "\"");
                    else failed("produce", failure);
                });
                Thread.sleep(PAUSE_MS);
            }
            producer.flush();
            tell("produced", "");
        }
    }

    private static void commit(
            KafkaConsumer<String, String> consumer, String group, Map<TopicPartition, OffsetAndMetadata> read) {
        if (read.isEmpty()) return;
        try {
            consumer.commitSync(read);
        } catch (KafkaException failure) {
            failed("commit in " + group, failure);
            return;
        }
        List<String> offsets = new ArrayList<>();
        read.forEach((where, row) -> offsets.add("[" + where.partition() + ", " + row.offset() + "]"));
        tell("committed", ", \"group\": \"" + group + "\", \"offsets\": " + offsets);
        read.clear();
    }

    private static void consume(String group, String protocol) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("group.id", group);
        p.put("group.protocol", protocol);
        p.put("auto.offset.reset", "earliest");
        p.put("enable.auto.commit", "false");
        if (protocol.equals("classic")) {
            p.put("partition.assignment.strategy", RangeAssignor.class.getName());
            p.put("session.timeout.ms", "15000");
        }
        Map<TopicPartition, OffsetAndMetadata> read = new HashMap<>();
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> rows) {
                    partitions("assigned", group, rows);
                }

                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> rows) {
                    commit(consumer, group, read);
                    read.clear();
                    partitions("revoked", group, rows);
                }

                @Override
                public void onPartitionsLost(Collection<TopicPartition> rows) {
                    read.clear();
                    partitions("lost", group, rows);
                }
            });
            while (!leave.get()) {
                List<String> records = new ArrayList<>();
                try {
                    for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofMillis(200))) {
                        records.add("[" + r.partition() + ", " + r.offset() + ", \"" + r.value() + "\"]");
                        read.put(new TopicPartition(topic, r.partition()), new OffsetAndMetadata(r.offset() + 1));
                    }
                } catch (KafkaException failure) {
                    failed("read in " + group, failure);
                }
                if (!records.isEmpty())
                    tell("read", ", \"group\": \"" + group + "\", \"records\": " + records);
                commit(consumer, group, read);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        topic = args[1];
        List<Thread> threads = new ArrayList<>();
        threads.add(new Thread(() -> {
            try {
                produce(Integer.parseInt(args[2]), args[3]);
            } catch (InterruptedException ended) {
                throw new IllegalStateException(ended);
            }
        }));
        for (int at = 4; at < args.length; at++) {
            String[] words = args[at].split(":");
            threads.add(new Thread(() -> consume(words[0], words[1])));
        }
        for (Thread thread : threads) thread.start();
        int read = 0;
        while (read >= 0 && read != '\n') read = System.in.read();
        enough.set(true);
        while (read >= 0) read = System.in.read();
        leave.set(true);
        for (Thread thread : threads) thread.join();
        tell("closed", "");
    }
}

package org.apache.kafka.clients.consumer.internals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetCommitCallback;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The calls of an application that reads and commits, and their results, for either of Kafka's consumers. */
final class Application {
    private final Play play;
    private final Consumer<byte[], byte[]> consumer;
    boolean leaving; // dropping buffered records reorders partitions that are not fetched any more
    boolean closed; // or closing: the assignment no longer matters

    Application(Play play, Consumer<byte[], byte[]> consumer) {
        this.play = play;
        this.consumer = consumer;
    }

    /** The configuration that all reading consumers share. */
    static Map<String, Object> config(JsonNode settings, String protocol) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", "127.0.0.1:1");
        config.put("client.id", "client");
        config.put("group.protocol", protocol);
        config.put("metadata.max.age.ms", settings.get("metadata_max_age_ms").asLong());
        config.put("enable.metrics.push", false);
        config.put("metric.reporters", List.of());
        config.put("key.deserializer", ByteArrayDeserializer.class);
        config.put("value.deserializer", ByteArrayDeserializer.class);
        Map.ofEntries(
            Map.entry("group.id", "group_id"), Map.entry("group.instance.id", "group_instance_id"),
            Map.entry("client.rack", "rack"), Map.entry("group.remote.assignor", "server_assignor"),
            Map.entry("session.timeout.ms", "session_timeout_ms"),
            Map.entry("heartbeat.interval.ms", "heartbeat_interval_ms"),
            Map.entry("max.poll.interval.ms", "max_poll_interval_ms"),
            Map.entry("request.timeout.ms", "request_timeout_ms"),
            Map.entry("default.api.timeout.ms", "default_api_timeout_ms"),
            Map.entry("retry.backoff.ms", "retry_backoff_ms"), Map.entry("retry.backoff.max.ms", "retry_backoff_max_ms"),
            Map.entry("enable.auto.commit", "auto_commit"),
            Map.entry("auto.commit.interval.ms", "auto_commit_interval_ms"), Map.entry("auto.offset.reset", "reset"),
            Map.entry("max.poll.records", "max_poll_records"), Map.entry("isolation.level", "isolation")
        ).forEach((name, ours) -> {
            boolean old = ours.equals("session_timeout_ms") || ours.equals("heartbeat_interval_ms");
            if (settings.hasNonNull(ours) && !(old && protocol.equals("consumer")))
                config.put(name, settings.get(ours).asText());
        });
        return config;
    }

    /** Handles an event; returns false if it is not a call of the application. */
    boolean handle(JsonNode event) {
        switch (event.get("kind").asText()) {
            case "assign" -> play.call(() -> consumer.assign(partitions(event)));
            case "subscribe" -> play.call(() -> consumer.subscribe(Play.topics(event), play.listener));
            case "unsubscribe" -> {
                leaving = true;
                play.call(consumer::unsubscribe);
                leaving = false;
            }
            case "poll" -> play.call(() -> play.returned = records(consumer.poll(Duration.ZERO)));
            case "pause" -> play.call(() -> consumer.pause(partitions(event)));
            case "resume" -> play.call(() -> consumer.resume(partitions(event)));
            case "seek" -> play.call(() -> seek(event));
            case "seek_to" -> play.call(() -> {
                if (event.get("to").asText().equals("earliest"))
                    consumer.seekToBeginning(partitions(event));
                else
                    consumer.seekToEnd(partitions(event));
            });
            case "commit_sync" -> play.call(() -> {
                if (event.get("offsets").isNull())
                    consumer.commitSync(timeout(event));
                else
                    consumer.commitSync(offsets(event), timeout(event));
            });
            case "commit_async" -> play.call(() -> commitAsync(event));
            case "committed" -> play.call(() ->
                play.returned = inOrder(consumer.committed(new HashSet<>(partitions(event)), timeout(event))));
            case "position" -> play.call(() ->
                play.returned = number(consumer.position(partition(event), timeout(event))));
            case "lag" -> play.call(() -> {
                OptionalLong lag = consumer.currentLag(partition(event));
                play.returned = lag.isPresent() ? number(lag.getAsLong()) : null;
            });
            case "wakeup" -> consumer.wakeup();
            case "close" -> {
                closed = true;
                play.call(() -> consumer.close(CloseOptions.timeout(timeout(event))));
            }
            default -> {
                return false;
            }
        }
        return true;
    }

    private static Duration timeout(JsonNode event) {
        return Duration.ofMillis(event.get("timeout").asLong());
    }

    private static TopicPartition partition(JsonNode event) {
        return Reads.partition(event.get("partition").asText());
    }

    private static List<TopicPartition> partitions(JsonNode event) {
        List<TopicPartition> found = new ArrayList<>();
        event.get("partitions").forEach(each -> found.add(Reads.partition(each.asText())));
        return found;
    }

    private void seek(JsonNode event) {
        long offset = event.get("offset").asLong();
        if (event.get("epoch").isNull())
            consumer.seek(partition(event), offset);
        else
            consumer.seek(partition(event), new OffsetAndMetadata(offset, Reads.known(event.get("epoch")), ""));
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsets(JsonNode event) {
        Map<TopicPartition, OffsetAndMetadata> found = new LinkedHashMap<>();
        event.get("offsets").forEach(row -> found.put(Reads.partition(row.get(0).asText()),
            new OffsetAndMetadata(row.get(1).asLong(), Reads.known(row.get(2)), row.get(3).asText())));
        return found;
    }

    private void commitAsync(JsonNode event) {
        OffsetCommitCallback callback = event.get("callback").isNull() ? null : (offsets, error) -> {
            ArrayNode call = play.calls.addArray().add("commit").add(event.get("callback").asInt());
            call.add(inOrder(offsets));
            call.add(error == null ? null : error.getClass().getSimpleName());
        };
        if (event.get("offsets").isNull())
            consumer.commitAsync(callback);
        else
            consumer.commitAsync(offsets(event), callback);
    }

    private static JsonNode number(long value) {
        return ClassicClient.JSON.getNodeFactory().numberNode(value);
    }

    /** Returns offsets in the order of their partitions; null where none is committed. */
    private static ArrayNode inOrder(Map<TopicPartition, OffsetAndMetadata> offsets) {
        if (offsets == null) // the new consumer's callbacks get null when a commit has failed
            return null;
        ArrayNode rows = ClassicClient.JSON.createArrayNode();
        Map<String, OffsetAndMetadata> sorted = new TreeMap<>();
        offsets.forEach((partition, offset) -> sorted.put(partition.toString(), offset));
        sorted.forEach((partition, offset) -> {
            ArrayNode row = rows.addArray().add(partition);
            if (offset == null)
                row.addNull();
            else
                row.add(offset.offset()).add(offset.leaderEpoch().orElse(-1)).add(offset.metadata());
        });
        return rows;
    }

    static ObjectNode records(ConsumerRecords<byte[], byte[]> records) {
        ObjectNode found = ClassicClient.JSON.createObjectNode();
        for (TopicPartition partition : records.partitions()) {
            ArrayNode offsets = found.putArray(partition.toString());
            records.records(partition).forEach(each -> offsets.add(each.offset()));
        }
        return found;
    }
}

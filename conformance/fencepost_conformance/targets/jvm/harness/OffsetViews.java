package fencepost;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.OffsetAndMetadata;
import org.apache.kafka.coordinator.group.OffsetMetadataManager;

/** The visible state of stored offsets in memory (G-DATA-40, 41), written whole when it changed. */
final class OffsetViews {
    private static final Field OFFSETS = Reflect.field(OffsetMetadataManager.class, "offsets");
    private static final Field PENDING = Reflect.field(OffsetMetadataManager.class, "pendingTransactionalOffsets");
    private static final Field OPEN = Reflect.field(OffsetMetadataManager.class, "openTransactions");
    private static final Field BY_GROUP = Reflect.field(OFFSETS.getType(), "offsetsByGroup");
    private static final Field OPEN_BY_GROUP = Reflect.field(OPEN.getType(), "openTransactionsByGroup");
    private static final Field TOPIC_ID = topicId();

    private final Json view = new Json();
    private byte[] last = new Json().open().open().close().open().close().close().take();
    private List<String> lastRows = List.of();

    /**
     * Writes [rows, open transactions], or nothing if they are unchanged apart from their order: an offset restored
     * after a failed append is at another place of its map. No manager: nothing is stored.
     */
    void take(Json out, Object manager) {
        view.clear().open().open();
        if (manager != null) {
            offsets(BY_GROUP, Reflect.get(OFFSETS, manager), -1);
            ((Map<?, ?>) Reflect.get(PENDING, manager)).forEach(
                (producer, held) -> offsets(BY_GROUP, held, (Long) producer));
        }
        view.close().open();
        if (manager != null) {
            each((Map<?, ?>) Reflect.get(OPEN_BY_GROUP, Reflect.get(OPEN, manager)), (group, topic, partition, held) -> {
                for (Object producer : (Iterable<?>) held) {
                    view.open().text(group).text(topic).number(partition).number((Long) producer).close();
                }
            });
        }
        view.close().close();
        if (view.holds(last)) {
            out.none();
        } else {
            last = view.take();
            List<String> rows = rows(manager);
            if (rows.equals(lastRows)) {
                out.none();
            } else {
                lastRows = rows;
                out.raw(last);
            }
        }
    }

    /** Returns the number of stored offsets and their sum, to show that two loads have the same result. */
    static long[] sums(Object manager) {
        long[] sums = new long[2];
        each((Map<?, ?>) Reflect.get(BY_GROUP, Reflect.get(OFFSETS, manager)), (group, topic, partition, held) -> {
            sums[0]++;
            sums[1] += ((OffsetAndMetadata) held).committedOffset;
        });
        return sums;
    }

    /** Returns a line for each row and each open transaction, sorted. */
    private static List<String> rows(Object manager) {
        List<String> rows = new ArrayList<>();
        if (manager != null) {
            each((Map<?, ?>) Reflect.get(BY_GROUP, Reflect.get(OFFSETS, manager)), (group, topic, partition, held) ->
                rows.add(List.of("stored", group, topic, partition, held).toString()));
            ((Map<?, ?>) Reflect.get(PENDING, manager)).forEach((producer, offsets) ->
                each((Map<?, ?>) Reflect.get(BY_GROUP, offsets), (group, topic, partition, held) ->
                    rows.add(List.of("pending", group, topic, partition, held, producer).toString())));
            each((Map<?, ?>) Reflect.get(OPEN_BY_GROUP, Reflect.get(OPEN, manager)), (group, topic, partition, held) -> {
                for (Object producer : (Iterable<?>) held) {
                    rows.add(List.of("open", group, topic, partition, producer).toString());
                }
            });
        }
        Collections.sort(rows);
        return rows;
    }

    private void offsets(Field map, Object holder, long producer) {
        each((Map<?, ?>) Reflect.get(map, holder), (group, topic, partition, held) -> {
            OffsetAndMetadata offset = (OffsetAndMetadata) held;
            Uuid id = TOPIC_ID == null ? Uuid.ZERO_UUID : (Uuid) Reflect.get(TOPIC_ID, offset);
            view.open().text(group).text(topic).number(partition).number(offset.committedOffset)
                .number(offset.leaderEpoch.orElse(-1)).text(offset.metadata).number(offset.commitTimestampMs)
                .number(offset.expireTimestampMs.orElse(-1)).text(id.toString()).number(offset.recordOffset)
                .number(producer).close();
        });
    }

    private interface Visit {
        void at(String group, String topic, int partition, Object held);
    }

    private static void each(Map<?, ?> byGroup, Visit visit) {
        byGroup.forEach((group, topics) -> ((Map<?, ?>) topics).forEach((topic, partitions) ->
            ((Map<?, ?>) partitions).forEach((partition, held) ->
                visit.at((String) group, (String) topic, (Integer) partition, held))));
    }

    private static Field topicId() {
        for (Field field : OffsetAndMetadata.class.getDeclaredFields()) {
            if (field.getName().equals("topicId")) {
                return field;
            }
        }
        return null;
    }
}

package fencepost;

import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;

/**
 * The metadata image that the coordinator sees: the topics of the trace, made with a controller's records. Each rack is
 * one broker; a partition is on the brokers of its racks, or on one without a rack. The runtime gets the image, not the
 * service, which would wait here for the deletion of deleted topics' offsets. That deletion is requested from the
 * runtime as the service does it, without waiting (O-EXP-23).
 */
final class Metadata {
    private static final int NO_RACK = 0;
    private static final Method UPDATE = update();
    private static final Method WRITE_ALL = Reflect.named(CoordinatorRuntime.class, "scheduleWriteAllOperation");
    private static final Class<?> DELETED = Reflect.find("org.apache.kafka.coordinator.group.GroupCoordinatorShard$DeletedTopic");
    private static final Method ON_DELETED =
        Reflect.named(GroupCoordinatorShard.class, DELETED == null ? "onPartitionsDeleted" : "onTopicsDeleted");

    private record Topic(Uuid id, List<List<Integer>> replicas) { }

    private final Map<String, Integer> brokers = new HashMap<>();
    private Map<String, Topic> topics = new HashMap<>();
    private MetadataImage image = MetadataImage.EMPTY;

    /** Makes the topics of ["m", at, version, [[name, id, partitions, racks]...]] those of the coordinator. */
    void become(JsonNode event, CoordinatorRuntime<?, ?> runtime, Duration timeout) {
        List<Object> deleted = new ArrayList<>();
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        if (brokers.isEmpty()) {
            register(delta, "", null);
        }
        Map<String, Topic> now = new HashMap<>();
        for (JsonNode topic : event.get(3)) {
            List<List<Integer>> replicas = new ArrayList<>();
            for (int i = 0; i < topic.get(2).intValue(); i++) {
                replicas.add(replicas(delta, topic.get(3).get(i)));
            }
            now.put(topic.get(0).textValue(), new Topic(Uuid.fromString(topic.get(1).textValue()), replicas));
        }
        topics.forEach((name, old) -> {
            if (!now.containsKey(name) || !now.get(name).id().equals(old.id())) {
                delta.replay(new RemoveTopicRecord().setTopicId(old.id()));
                if (DELETED != null) {
                    deleted.add(Reflect.construct(DELETED, old.id(), name));
                } else {
                    for (int i = 0; i < old.replicas().size(); i++) {
                        deleted.add(new TopicPartition(name, i));
                    }
                }
            }
        });
        now.forEach((name, topic) -> change(delta, name, topics.get(name), topic));
        topics = now;
        image = delta.apply(new MetadataProvenance(event.get(2).longValue(), 0, event.get(1).longValue(), true));
        Object[] arguments = new Object[2];
        for (int i = 0; i < 2; i++) {
            arguments[i] = argument(UPDATE.getParameterTypes()[i], delta, image);
        }
        Reflect.call(UPDATE, runtime, arguments); // up to 4.2 the broker uses the other order, to the same effect
        delete(runtime, timeout, deleted);
    }

    private static void delete(CoordinatorRuntime<?, ?> runtime, Duration timeout, List<Object> deleted) {
        if (deleted.isEmpty()) {
            return;
        }
        Object write = Reflect.implement(CoordinatorRuntime.CoordinatorWriteOperation.class,
            (proxy, method, arguments) -> Reflect.call(ON_DELETED, arguments[0], deleted));
        Object[] arguments = WRITE_ALL.getParameterCount() == 2
            ? new Object[] {"on-topics-deleted", write} : new Object[] {"on-partition-deleted", timeout, write};
        Reflect.call(WRITE_ALL, runtime, arguments);
    }

    /** Returns an argument: image and delta come in either order, and in 4.2 as the coordinator's own classes. */
    private static Object argument(Class<?> type, MetadataDelta delta, MetadataImage image) {
        Object part = type.getSimpleName().endsWith("Delta") ? delta : image;
        return type.isInstance(part) ? part : Reflect.construct(
            Reflect.find(type.getPackageName() + ".KRaft" + type.getSimpleName()), part);
    }

    private static void change(MetadataDelta delta, String name, Topic before, Topic topic) {
        boolean isNew = before == null || !before.id().equals(topic.id());
        if (isNew) {
            delta.replay(new TopicRecord().setName(name).setTopicId(topic.id()));
        }
        int old = isNew ? 0 : before.replicas().size();
        if (old > topic.replicas().size()) {
            throw new IllegalArgumentException("topic " + name + " lost partitions, which is impossible");
        }
        for (int i = 0; i < topic.replicas().size(); i++) {
            List<Integer> replicas = topic.replicas().get(i);
            if (i >= old) {
                delta.replay(new PartitionRecord().setTopicId(topic.id()).setPartitionId(i).setReplicas(replicas)
                    .setIsr(replicas).setLeader(replicas.get(0)));
            } else if (!replicas.equals(before.replicas().get(i))) {
                delta.replay(new PartitionChangeRecord().setTopicId(topic.id()).setPartitionId(i)
                    .setReplicas(replicas).setIsr(replicas).setLeader(replicas.get(0)));
            }
        }
    }

    private List<Integer> replicas(MetadataDelta delta, JsonNode racks) {
        if (racks == null || racks.isEmpty()) {
            return List.of(NO_RACK);
        }
        Set<Integer> replicas = new HashSet<>();
        for (JsonNode rack : racks) {
            String name = rack.textValue();
            if (!brokers.containsKey(name)) {
                register(delta, name, name);
            }
            replicas.add(brokers.get(name));
        }
        return new ArrayList<>(replicas);
    }

    private void register(MetadataDelta delta, String name, String rack) {
        int id = brokers.size();
        brokers.put(name, id);
        delta.replay(new RegisterBrokerRecord().setBrokerId(id).setIncarnationId(new Uuid(1, id + 1)).setRack(rack)
            .setFenced(false));
    }

    /** Returns the id of the topic; null if there is none. */
    Uuid idOf(String name) {
        Topic topic = topics.get(name);
        return topic == null ? null : topic.id();
    }

    /** Returns the name of the topic; null if there is none. */
    String nameOf(Uuid id) {
        for (Map.Entry<String, Topic> each : topics.entrySet()) {
            if (each.getValue().id().equals(id)) {
                return each.getKey();
            }
        }
        return null;
    }

    /** Returns the names of all topics, with their ids. */
    Map<String, Uuid> ids() {
        Map<String, Uuid> found = new HashMap<>();
        topics.forEach((name, topic) -> found.put(name, topic.id()));
        return found;
    }

    boolean has(String name, int partition) {
        Topic topic = topics.get(name);
        return topic != null && partition >= 0 && partition < topic.replicas().size();
    }

    private static Method update() {
        for (Method method : CoordinatorRuntime.class.getMethods()) {
            if (method.getName().equals("onMetadataUpdate") || method.getName().equals("onNewMetadataImage")) {
                return method;
            }
        }
        throw new IllegalStateException("Kafka's runtime has no method for metadata");
    }
}

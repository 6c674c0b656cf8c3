package fencepost;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;

/**
 * The metadata image that the coordinator sees: the topics of the trace, made with the records that a controller
 * writes. Each rack is one broker; a partition is on the brokers of its racks, or on one without a rack. It goes to the
 * runtime and not to the service, which would wait here for the offsets of deleted topics to be deleted; there are none.
 */
final class Metadata {
    private static final int NO_RACK = 0;
    private static final Method UPDATE = update();

    private record Topic(Uuid id, List<List<Integer>> replicas) { }

    private final Map<String, Integer> brokers = new HashMap<>();
    private Map<String, Topic> topics = new HashMap<>();
    private MetadataImage image = MetadataImage.EMPTY;

    /** Makes the topics of ["m", at, version, [[name, id, partitions, racks]...]] those of the coordinator. */
    void become(JsonNode event, CoordinatorRuntime<?, ?> runtime) {
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
            }
        });
        now.forEach((name, topic) -> change(delta, name, topics.get(name), topic));
        topics = now;
        image = delta.apply(new MetadataProvenance(event.get(2).longValue(), 0, event.get(1).longValue(), true));
        Object[] arguments = new Object[2];
        for (int i = 0; i < 2; i++) {
            arguments[i] = argument(UPDATE.getParameterTypes()[i], delta, image);
        }
        Reflect.call(UPDATE, runtime, arguments);
    }

    /** Image and delta come in either order, and in 4.2 as the coordinator's own kinds of them. */
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
            throw new IllegalArgumentException("topic " + name + " lost partitions, which no topic can");
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

    private static Method update() {
        for (Method method : CoordinatorRuntime.class.getMethods()) {
            if (method.getName().equals("onMetadataUpdate") || method.getName().equals("onNewMetadataImage")) {
                return method;
            }
        }
        throw new IllegalStateException("Kafka's runtime takes no metadata");
    }
}

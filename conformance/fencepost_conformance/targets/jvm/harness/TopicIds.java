package fencepost;

import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

import org.apache.kafka.common.Uuid;

/** The field topicId of messages and stored offsets, which 4.0 lacks. */
final class TopicIds {
    private static final Map<Class<?>, Optional<Method>> GETTERS = new HashMap<>();
    private static final Map<Class<?>, Optional<Method>> SETTERS = new HashMap<>();

    private TopicIds() { }

    static Uuid of(Object message) {
        Method getter = GETTERS.computeIfAbsent(message.getClass(),
            type -> Optional.ofNullable(Reflect.methodWith(type, "topicId", 0))).orElse(null);
        return getter == null ? Uuid.ZERO_UUID : (Uuid) Reflect.call(getter, message);
    }

    static <T> T set(T message, Uuid id) {
        SETTERS.computeIfAbsent(message.getClass(),
            type -> Optional.ofNullable(Reflect.methodWith(type, "setTopicId", 1)))
            .ifPresent(setter -> Reflect.call(setter, message, id));
        return message;
    }
}

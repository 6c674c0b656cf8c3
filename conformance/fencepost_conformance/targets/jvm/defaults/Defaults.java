package fencepost.defaults;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Collection;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.config.ConfigDef;

/**
 * Prints the default settings of Kafka's own classes, one a line: "broker NAME=VALUE", "consumer NAME=VALUE", and
 * "constant FIELD=VALUE" for fixed numbers. Lists are joined by commas.
 */
public final class Defaults {
    private static final String COORDINATOR = "org.apache.kafka.coordinator.group.";

    private Defaults() {
    }

    public static void main(String[] arguments) throws Exception {
        Class<?> broker = Class.forName(COORDINATOR + "GroupCoordinatorConfig");
        Map<String, Object> defaults = new TreeMap<>();
        for (Field field : broker.getDeclaredFields()) {
            if (field.getType() == ConfigDef.class && Modifier.isStatic(field.getModifiers())) {
                field.setAccessible(true);
                defaults.putAll(((ConfigDef) field.get(null)).defaultValues());
            }
        }
        print("broker", defaults);
        print("consumer", new TreeMap<>(ConsumerConfig.configDef().defaultValues()));
        Map<String, Object> constants = new TreeMap<>();
        for (Class<?> owner : new Class<?>[] {broker, Class.forName(COORDINATOR + "GroupMetadataManager")}) {
            for (Field field : owner.getDeclaredFields()) {
                boolean number = field.getType() == int.class || field.getType() == long.class;
                if (number && Modifier.isStatic(field.getModifiers()) && field.getName().endsWith("_MS")) {
                    field.setAccessible(true);
                    constants.put(field.getName(), field.get(null));
                }
            }
        }
        print("constant", constants);
    }

    private static void print(String kind, Map<String, Object> values) {
        for (Map.Entry<String, Object> each : values.entrySet()) {
            System.out.println(kind + " " + each.getKey() + "=" + text(each.getValue()));
        }
    }

    private static String text(Object value) {
        if (value instanceof Collection) {
            return ((Collection<?>) value).stream().map(Defaults::text).collect(Collectors.joining(","));
        }
        return value instanceof Class ? ((Class<?>) value).getSimpleName() : String.valueOf(value);
    }
}

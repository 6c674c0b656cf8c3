package fencepost;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.function.Supplier;

import com.fasterxml.jackson.databind.JsonNode;
import com.yammer.metrics.core.MetricsRegistry;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntimeMetrics;
import org.apache.kafka.coordinator.common.runtime.CoordinatorShardBuilderSupplier;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.GroupCoordinatorService;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;
import org.apache.kafka.coordinator.group.GroupMetadataManager;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.server.util.timer.TimerTask;

/** Kafka's coordinator service and runtime, assembled as in the broker, but with the trace's clock, queue and log. */
final class Coordinator {
    static final TopicPartition PARTITION = new TopicPartition(Topic.GROUP_METADATA_TOPIC_NAME, 0);

    private static final LogContext LOG = new LogContext("");
    private static final GroupCoordinatorMetrics METRICS =
        new GroupCoordinatorMetrics(new MetricsRegistry(), new Metrics());
    private static final CoordinatorRuntimeMetrics RUNTIME_METRICS =
        Reflect.implement(CoordinatorRuntimeMetrics.class, (proxy, method, arguments) -> Reflect.nothing(method));
    private static final Map<String, Config> CONFIGS = new HashMap<>();
    private static final Field CONTEXTS = Reflect.field(CoordinatorRuntime.class, "coordinators");
    private static final Field MANAGER = Reflect.field(GroupCoordinatorShard.class, "groupMetadataManager");
    private static final Field OFFSETS = Reflect.field(GroupCoordinatorShard.class, "offsetMetadataManager");
    private static final Field GROUPS = Reflect.field(GroupMetadataManager.class, "groups");
    private static Field state;
    private static Field timer;
    private static Field tasks;
    private static Field coordinator;
    private static Field executor;
    private static Field background;
    private static Field shard;

    /** The settings of a trace as Kafka's classes hold them; shared by all traces with these settings. */
    private record Config(GroupCoordinatorConfig group, GroupConfigManager groups) { }

    final GroupCoordinatorService service;
    final CoordinatorRuntime<?, ?> runtime;
    /** How long a write may wait to be replicated. */
    final Duration timeout;
    private final Map<?, ?> contexts;
    private final String settings;

    private Coordinator(GroupCoordinatorService service, CoordinatorRuntime<?, ?> runtime, Duration timeout,
            String settings) {
        this.timeout = timeout;
        this.service = service;
        this.runtime = runtime;
        this.settings = settings;
        this.contexts = (Map<?, ?>) Reflect.get(CONTEXTS, runtime);
    }

    /** Builds a coordinator. Settings: values by Kafka's names. */
    static Coordinator build(JsonNode settings, int lingerMs, ManualTime time, EventQueue queue, MemoryLog log,
            TraceLoader loader, Records records, Tasks tasks, TopicRights rights) {
        String named = settings.toString();
        Config config = CONFIGS.computeIfAbsent(named, key -> config(settings));
        CoordinatorShardBuilderSupplier<GroupCoordinatorShard, CoordinatorRecord> shards = () -> {
            GroupCoordinatorShard.Builder builder = new GroupCoordinatorShard.Builder(config.group(), config.groups());
            Reflect.fill(builder, rights.parts());
            return builder;
        };
        Duration timeout = Duration.ofMillis(config.group().offsetCommitTimeoutMs());
        Supplier<Integer> cachedBuffer = () -> 1 << 20;
        Map<String, Object> parts = new HashMap<>();
        parts.put("withLogContext", LOG);
        parts.put("withEventProcessor", queue);
        parts.put("withPartitionWriter", log.writer());
        parts.put("withLoader", loader);
        parts.put("withCoordinatorShardBuilderSupplier", shards);
        parts.put("withTime", time);
        parts.put("withTimer", time);
        parts.put("withWriteTimeout", timeout);
        parts.put("withDefaultWriteTimeOut", timeout);
        parts.put("withCoordinatorRuntimeMetrics", RUNTIME_METRICS);
        parts.put("withCoordinatorMetrics", METRICS);
        parts.put("withSerializer", records);
        parts.put("withCompression", Compression.NONE);
        parts.put("withAppendLingerMs", lingerMs);
        parts.put("withExecutorService", tasks);
        parts.put("withCachedBufferMaxBytesSupplier", cachedBuffer);
        CoordinatorRuntime.Builder<GroupCoordinatorShard, CoordinatorRecord> builder =
            new CoordinatorRuntime.Builder<>();
        Reflect.fill(builder, parts);
        CoordinatorRuntime<GroupCoordinatorShard, CoordinatorRecord> runtime = builder.build();
        GroupCoordinatorService service = (GroupCoordinatorService) Reflect.construct(GroupCoordinatorService.class,
            LOG, config.group(), runtime, METRICS, config.groups(), time, Optional.empty());
        service.startup(() -> 1);
        Coordinator built = new Coordinator(service, runtime, timeout, named);
        tasks.lookIn(built::tasks);
        return built;
    }

    private static Config config(JsonNode settings) {
        Map<String, Object> values = new HashMap<>();
        settings.fields().forEachRemaining(setting -> values.put(setting.getKey(), setting.getValue().asText()));
        Class<?> shareConfig = Reflect.find("org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig");
        ConfigDef definition = new ConfigDef();
        define(definition, GroupCoordinatorConfig.class);
        define(definition, shareConfig);
        AbstractConfig all = new AbstractConfig(definition, values, false);
        GroupCoordinatorConfig group = new GroupCoordinatorConfig(all);
        Object share = Reflect.construct(shareConfig, all);
        return new Config(group, (GroupConfigManager) Reflect.construct(GroupConfigManager.class,
            defaults(group, share), group, share));
    }

    /** Returns the defaults of a group's configuration; since 4.4 Kafka needs no map. */
    private static Map<?, ?> defaults(GroupCoordinatorConfig group, Object share) {
        Method extract = Reflect.methodWith(GroupCoordinatorConfig.class, "extractGroupConfigMap", 1);
        return extract == null ? Map.of() : (Map<?, ?>) Reflect.call(extract, group, share);
    }

    private static void define(ConfigDef into, Class<?> holder) {
        for (Field field : holder.getFields()) {
            if (field.getType() == ConfigDef.class) {
                ((ConfigDef) Reflect.get(field, null)).configKeys().forEach((name, key) -> {
                    if (!into.configKeys().containsKey(name)) {
                        into.define(key);
                    }
                });
            }
        }
    }

    private Object context() {
        Object context = contexts.get(PARTITION);
        if (context != null && state == null) {
            state = Reflect.field(context.getClass(), "state");
            timer = Reflect.field(context.getClass(), "timer");
            coordinator = Reflect.field(context.getClass(), "coordinator");
            tasks = Reflect.field(Reflect.get(timer, context).getClass(), "tasks");
            executor = Reflect.field(context.getClass(), "executor");
            background = Reflect.field(Reflect.get(executor, context).getClass(), "tasks");
        }
        return context;
    }

    boolean isLoading() {
        Object context = context();
        return context != null && Reflect.get(state, context).toString().equals("LOADING");
    }

    /** Returns the coordinator's own timers, by Kafka's key. */
    @SuppressWarnings("unchecked")
    Map<String, TimerTask> timers() {
        Object context = context();
        return context == null ? Map.of() : (Map<String, TimerTask>) Reflect.get(tasks, Reflect.get(timer, context));
    }

    /** Returns the background tasks that the runtime has noted, by Kafka's key. */
    @SuppressWarnings("unchecked")
    private Map<String, ?> tasks() {
        Object context = context();
        return context == null ? Map.of() : (Map<String, ?>) Reflect.get(background, Reflect.get(executor, context));
    }

    /** Sets the dynamic configuration of the group; other traces start without it. */
    void configure(String group, Properties config) {
        CONFIGS.remove(settings);
        service.updateGroupConfig(group, config);
    }

    /** Returns all groups in the newest state; none while the partition is not owned. */
    Collection<?> groups() {
        return groupsById().values();
    }

    Map<?, ?> groupsById() {
        Object shard = shard();
        return shard == null ? Map.of() : (Map<?, ?>) Reflect.get(GROUPS, Reflect.get(MANAGER, shard));
    }

    /** Returns the offset manager in the newest state; null while the partition is not owned. */
    Object offsets() {
        Object shard = shard();
        return shard == null ? null : Reflect.get(OFFSETS, shard);
    }

    private Object shard() {
        Object context = context();
        Object snapshottable = context == null ? null : Reflect.get(coordinator, context);
        if (snapshottable == null) {
            return null;
        }
        if (shard == null) {
            shard = Reflect.field(snapshottable.getClass(), "coordinator");
        }
        return Reflect.get(shard, snapshottable);
    }
}

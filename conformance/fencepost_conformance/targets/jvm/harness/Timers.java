package fencepost;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.WeakHashMap;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.coordinator.group.Group;
import org.apache.kafka.coordinator.group.classic.ClassicGroupMember;
import org.apache.kafka.server.util.timer.TimerTask;

/**
 * Finds and reports armed timers. Kafka's keys are one string (C-TMR-11, M-TMR-01…03): "heartbeat-GROUP-MEMBER",
 * "join-GROUP", "sync-GROUP" for classic groups; "session-timeout-GROUP-MEMBER", "rebalance-timeout-GROUP-MEMBER",
 * "join-GROUP-MEMBER", "sync-GROUP-MEMBER" for consumer groups. Groups and members may contain the hyphen themselves,
 * so the groups of the trace decide where to split. Where several fit, the task's own fields decide: a key may pass
 * from one group to another (M-TMR-01). The timer that expires offsets has no group; timers of metrics are left out.
 */
final class Timers {
    /** Kafka's prefix of each kind of timer of a member; those without a member are separate. */
    private static final Map<String, String> OF_MEMBERS = new TreeMap<>(Map.of(
        "heartbeat", "heartbeat-", "consumer-session", "session-timeout-", "consumer-rebalance", "rebalance-timeout-",
        "consumer-join", "join-", "consumer-sync", "sync-"));

    private static final String EXPIRY = "expire-group-metadata";
    private static final Key OF_EXPIRY = new Key("expiry", "", "");

    private record Key(String kind, String group, String member) { }

    private final ManualTime time;
    private final Coordinator coordinator;
    private final Set<String> groups;
    private final Map<String, List<Key>> readings = new HashMap<>();
    private int groupsRead = 0;
    private final Map<TimerTask, Key> owners = new WeakHashMap<>();
    private final Map<Key, Long> last = new HashMap<>();
    private final Map<Long, Long> lastOperations = new HashMap<>();

    Timers(ManualTime time, Coordinator coordinator, Set<String> groups) {
        this.time = time;
        this.coordinator = coordinator;
        this.groups = groups;
    }

    /**
     * Returns the tasks of ["t", at, kind, group, member, operation] that are armed and due. A request may be several
     * operations, which begin and end together: a fetch of stable offsets of several groups.
     */
    List<TimerTask> due(JsonNode event) {
        String kind = event.get(2).textValue();
        if (kind.equals("operation")) {
            long operation = event.get(5).longValue();
            return time.operations().stream()
                .filter(waiting -> waiting.operation() == operation && waiting.deadline() <= time.milliseconds())
                .map(ManualTime.Waiting::task).toList();
        }
        String ofMember = OF_MEMBERS.get(kind);
        String group = event.get(3).textValue();
        String key = kind.equals(OF_EXPIRY.kind()) ? EXPIRY
            : ofMember == null ? kind + "-" + group : ofMember + group + "-" + event.get(4).textValue();
        TimerTask task = coordinator.timers().get(key);
        Long deadline = task == null ? null : time.deadline(task);
        return deadline == null || deadline > time.milliseconds() ? List.of() : List.of(task);
    }

    /** Writes the changes since the last call: [kind, group, member, operation, deadline or null]. */
    void take(Json out) {
        out.open();
        if (groups.size() != groupsRead) {
            readings.clear();
            groupsRead = groups.size();
        }
        Set<Key> gone = last.isEmpty() ? Set.of() : new HashSet<>(last.keySet());
        for (Map.Entry<String, TimerTask> entry : coordinator.timers().entrySet()) {
            Key key = entry.getKey().equals(EXPIRY) ? OF_EXPIRY : owner(readings.computeIfAbsent(entry.getKey(), this::parse), entry.getValue());
            if (key != null) {
                Long deadline = time.deadline(entry.getValue());
                if (!gone.isEmpty()) {
                    gone.remove(key);
                }
                if (!deadline.equals(last.put(key, deadline))) {
                    write(out, key, 0, deadline);
                }
            }
        }
        for (Key key : gone) {
            last.remove(key);
            write(out, key, 0, null);
        }
        operations(out);
        out.close();
    }

    private void operations(Json out) {
        Map<Long, Long> armed = new HashMap<>();
        time.operations().forEach(waiting -> armed.put(waiting.operation(), waiting.deadline()));
        armed.forEach((operation, deadline) -> {
            if (!deadline.equals(lastOperations.get(operation))) {
                write(out, new Key("operation", "", ""), operation, deadline);
            }
        });
        lastOperations.keySet().forEach(operation -> {
            if (!armed.containsKey(operation)) {
                write(out, new Key("operation", "", ""), operation, null);
            }
        });
        lastOperations.clear();
        lastOperations.putAll(armed);
    }

    private static void write(Json out, Key key, long operation, Long deadline) {
        out.open().text(key.kind()).text(key.group()).text(key.member()).number(operation);
        if (deadline == null) {
            out.none();
        } else {
            out.number(deadline);
        }
        out.close();
    }

    /** Returns every group and member that the key may stand for. */
    private List<Key> parse(String key) {
        List<Key> found = new ArrayList<>();
        for (String group : groups) {
            if (key.equals("join-" + group) || key.equals("sync-" + group)) {
                found.add(new Key(key.substring(0, 4), group, ""));
            }
            OF_MEMBERS.forEach((kind, start) -> {
                String prefix = start + group + "-";
                if (key.startsWith(prefix)) {
                    found.add(new Key(kind, group, key.substring(prefix.length())));
                }
            });
        }
        return found;
    }

    /** Returns the owner of this task: of several, the one whose names it holds. */
    private Key owner(List<Key> keys, TimerTask task) {
        if (keys.size() < 2) {
            return keys.isEmpty() ? null : keys.get(0);
        }
        return owners.computeIfAbsent(task, ignored -> {
            List<String> held = new ArrayList<>();
            names(task, 2, held);
            List<Key> fitting = keys.stream()
                .filter(key -> held.contains(key.group()) && (key.member().isEmpty() || held.contains(key.member())))
                .toList();
            if (fitting.size() > 1) {  // "-" of "--" and "--" of "-": every task gets its group first
                fitting = fitting.stream()
                    .filter(key -> held.indexOf(key.group()) <= held.indexOf(key.member())).toList();
            }
            if (fitting.size() != 1) {
                throw new IllegalStateException("a timer of " + keys + " holds " + held);
            }
            return fitting.get(0);
        });
    }

    /** Collects the strings, groups and members in an object's fields, and in the fields of its own parts. */
    private static void names(Object holder, int depth, List<String> into) {
        for (Field field : holder.getClass().getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) || field.getType().isPrimitive()) {
                continue;
            }
            field.setAccessible(true);
            Object value = Reflect.get(field, holder);
            if (value instanceof String name) {
                into.add(name);
            } else if (value instanceof Group group) {
                into.add(group.groupId());
            } else if (value instanceof ClassicGroupMember member) {
                into.add(member.memberId());
            } else if (value != null && depth > 1 && value.getClass().isHidden()) {
                names(value, depth - 1, into);
            }
        }
    }
}

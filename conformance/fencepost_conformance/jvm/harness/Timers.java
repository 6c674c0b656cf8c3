package fencepost;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup;
import org.apache.kafka.server.util.timer.TimerTask;

/**
 * Finds and reports armed timers. Kafka's keys are one string (C-TMR-11, M-TMR-01…03): "heartbeat-GROUP-MEMBER",
 * "join-GROUP", "sync-GROUP" of classic groups; "session-timeout-GROUP-MEMBER", "rebalance-timeout-GROUP-MEMBER",
 * "join-GROUP-MEMBER", "sync-GROUP-MEMBER" of consumer groups. Groups and members may contain the hyphen themselves, so
 * the groups of the trace tell where to cut. Timers that serve no group (offset expiry, metrics) are left out.
 */
final class Timers {
    /** Kafka's prefix of each kind of timer of a member; those without a member are apart. */
    private static final Map<String, String> OF_MEMBERS = new TreeMap<>(Map.of(
        "heartbeat", "heartbeat-", "consumer-session", "session-timeout-", "consumer-rebalance", "rebalance-timeout-",
        "consumer-join", "join-", "consumer-sync", "sync-"));

    private record Key(String kind, String group, String member) { }

    private final ManualTime time;
    private final Coordinator coordinator;
    private final Set<String> groups;
    private final Map<String, Key> keys = new HashMap<>();
    private final Map<String, Long> last = new HashMap<>();
    private final Map<Long, Long> lastOperations = new HashMap<>();

    Timers(ManualTime time, Coordinator coordinator, Set<String> groups) {
        this.time = time;
        this.coordinator = coordinator;
        this.groups = groups;
    }

    /** The task of ["t", at, kind, group, member, operation], if it is armed and due. */
    TimerTask due(JsonNode event) {
        String kind = event.get(2).textValue();
        if (kind.equals("operation")) {
            long operation = event.get(5).longValue();
            for (ManualTime.Waiting waiting : time.operations()) {
                if (waiting.operation() == operation && waiting.deadline() <= time.milliseconds()) {
                    return waiting.task();
                }
            }
            return null;
        }
        String ofMember = OF_MEMBERS.get(kind);
        String group = event.get(3).textValue();
        String key = ofMember == null ? kind + "-" + group : ofMember + group + "-" + event.get(4).textValue();
        TimerTask task = coordinator.timers().get(key);
        Long deadline = task == null ? null : time.deadline(task);
        return deadline == null || deadline > time.milliseconds() ? null : task;
    }

    /** Writes what changed since the last call: [kind, group, member, operation, deadline or null]. */
    void take(Json out) {
        out.open();
        Set<String> gone = last.isEmpty() ? Set.of() : new HashSet<>(last.keySet());
        for (Map.Entry<String, TimerTask> entry : coordinator.timers().entrySet()) {
            Key key = keys.computeIfAbsent(entry.getKey(), this::parse);
            if (key.kind() != null) {
                Long deadline = time.deadline(entry.getValue());
                if (!gone.isEmpty()) {
                    gone.remove(entry.getKey());
                }
                if (!deadline.equals(last.put(entry.getKey(), deadline))) {
                    write(out, key, 0, deadline);
                }
            }
        }
        for (String key : gone) {
            last.remove(key);
            write(out, keys.remove(key), 0, null);
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

    /** What the key stands for. Where it can be read in several ways, the group and member that exist decide. */
    private Key parse(String key) {
        Key found = new Key(null, null, null);
        boolean known = false;
        for (String group : groups) {
            Object owner = coordinator.groupsById().get(group);
            if (key.equals("join-" + group) || key.equals("sync-" + group)) {
                boolean classic = owner instanceof ClassicGroup;
                if (found.kind() == null || classic && !known) {
                    found = new Key(key.substring(0, 4), group, "");
                    known = classic;
                }
            }
            for (Map.Entry<String, String> kind : OF_MEMBERS.entrySet()) {
                String prefix = kind.getValue() + group + "-";
                if (key.startsWith(prefix)) {
                    Key candidate = new Key(kind.getKey(), group, key.substring(prefix.length()));
                    boolean member = kind.getKey().equals("heartbeat")
                        ? Views.knows(owner, candidate.member())
                        : owner instanceof ConsumerGroup consumer && consumer.hasMember(candidate.member());
                    if (found.kind() == null || member && !known) {
                        found = candidate;
                        known = member;
                    }
                }
            }
        }
        return found;
    }
}

package fencepost;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.coordinator.group.Group;

/** The visible state of the groups of one kind in memory, written when it changed. */
abstract class GroupViews<G extends Group> {
    protected final Hosts hosts;
    protected final Json view = new Json();

    private final Class<G> kind;
    private final Map<String, byte[]> last = new HashMap<>();

    GroupViews(Class<G> kind, Hosts hosts) {
        this.kind = kind;
        this.hosts = hosts;
    }

    /** Writes the group into {@code view}, which may still hold another one. */
    protected abstract void write(G group);

    /** Writes each group that has changed since the last call, with null for a removed one. */
    void take(Json out, Collection<?> groups) {
        out.open();
        Set<String> gone = new HashSet<>(last.keySet());
        for (Object each : groups) {
            if (kind.isInstance(each)) {
                G group = kind.cast(each);
                gone.remove(group.groupId());
                write(group);
                if (!view.holds(last.get(group.groupId()))) {
                    byte[] now = view.take();
                    last.put(group.groupId(), now);
                    out.open().text(group.groupId()).raw(now).close();
                }
            }
        }
        for (String group : gone) {
            last.remove(group);
            out.open().text(group).none().close();
        }
        out.close();
    }
}

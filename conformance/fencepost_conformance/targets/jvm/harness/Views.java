package fencepost;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

import org.apache.kafka.common.message.JoinGroupRequestData.JoinGroupRequestProtocol;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.classic.ClassicGroupMember;

/** The visible state of the classic groups in memory (G-DATA-01…11), written when it changed. */
final class Views extends GroupViews<ClassicGroup> {
    private static final Field STATIC_MEMBERS = Reflect.field(ClassicGroup.class, "staticMembers");
    private static final Field PENDING_JOIN = Reflect.field(ClassicGroup.class, "pendingJoinMembers");
    private static final Field PENDING_SYNC = Reflect.field(ClassicGroup.class, "pendingSyncMembers");

    Views(Hosts hosts) {
        super(ClassicGroup.class, hosts);
    }

    @Override
    protected void write(ClassicGroup group) {
        view.clear().open().text(group.currentState().toString()).text(group.previousState().toString())
            .number(group.generationId()).text(group.protocolType().orElse(null))
            .text(group.protocolName().orElse(null)).text(group.leaderOrNull()).open();
        List<ClassicGroupMember> members = new ArrayList<>(group.allMembers());
        members.sort(Comparator.comparing(ClassicGroupMember::memberId));
        members.forEach(this::write);
        view.close().open();
        new TreeMap<String, String>(statics(group)).forEach(
            (instance, member) -> view.open().text(instance).text(member).close());
        view.close();
        names(PENDING_JOIN, group);
        names(PENDING_SYNC, group);
        view.flag(group.newMemberAdded()).close();
    }

    private void write(ClassicGroupMember member) {
        view.open().text(member.memberId()).text(member.groupInstanceId().orElse(null)).text(member.clientId())
            .text(hosts.name(member.clientHost())).number(member.rebalanceTimeoutMs())
            .number(member.sessionTimeoutMs()).open();
        for (JoinGroupRequestProtocol protocol : member.supportedProtocols()) {
            view.text(protocol.name()).bytes(protocol.metadata());
        }
        view.close().bytes(member.assignment()).flag(member.isNew()).flag(member.isAwaitingJoin())
            .flag(member.isAwaitingSync()).close();
    }

    private void names(Field field, ClassicGroup group) {
        view.open();
        for (String name : new TreeSet<String>(set(field, group))) {
            view.text(name);
        }
        view.close();
    }

    @SuppressWarnings("unchecked")
    private static Map<String, String> statics(ClassicGroup group) {
        return (Map<String, String>) Reflect.get(STATIC_MEMBERS, group);
    }

    @SuppressWarnings("unchecked")
    private static Set<String> set(Field field, ClassicGroup group) {
        return (Set<String>) Reflect.get(field, group);
    }
}

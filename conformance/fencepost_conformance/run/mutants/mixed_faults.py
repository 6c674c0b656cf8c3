"""Faults of groups with members of both protocols: conversions, and the handling of classic members."""

from __future__ import annotations

from .mutant import Mutant, Side
from .replacement import Replacement

X = Side.MIXED_GROUP
DOWNGRADE, UPGRADE = (f"coordinator/mixed/{name}.py" for name in ("downgrade", "upgrade"))
JOIN, MEMBER = (f"coordinator/mixed/classic_{name}.py" for name in ("join", "member"))
EMBEDDED, LEAVE = (f"coordinator/mixed/{name}.py" for name in ("embedded", "departure"))
MEMBERS, LIFECYCLE = "coordinator/consumer/members.py", "coordinator/lifecycle.py"

CONVERSIONS = (
    Mutant(
        "classic-instance-must-leave-first", X, ("M-STATIC-03",), "KAFKA-17228",
        "a static member of the consumer protocol cannot replace a classic one that has not left",
        (Replacement(MEMBERS, "get_or_create_static_member", " and holder.classic is None", ""),),
    ),
    Mutant(
        "no-downgrade-by-replacement", X, ("X-DOWN-20",), "KAFKA-17317",
        "a group stays a consumer group when its last such member is replaced by a classic one",
        (
            Replacement(
                DOWNGRADE, "is_last",
                "member if _allowed(step, group, (member.member_id,), len(group.members)) else None",
                "None",
            ),
        ),
    ),
    Mutant(
        "downgrade-above-the-size", X, ("X-DOWN-01",), "KAFKA-16861",
        "a group larger than a classic one may be is downgraded",
        (Replacement(DOWNGRADE, "_allowed", "size <= step.settings.group_max_size", "True"),),
    ),
    Mutant(
        "no-downgrade-by-leave", X, ("X-DOWN-01",), "",
        "a group stays a consumer group when its last such member leaves",
        (Replacement(DOWNGRADE, "is_due", "left > 0 and _allowed(step, group, leaving, left)", "False"),),
    ),
    Mutant(
        "downgrade-without-rebalance", X, ("X-DOWN-06",), "",
        "after a downgrade no member gets the partitions of members that left",
        (Replacement(DOWNGRADE, "by_departure", "rebalance.prepare(step, draft, cause, converted=True)", "pass"),),
    ),
    Mutant(
        "downgrade-assigns-targets", X, ("X-DOWN-04",), "",
        "a downgrade assigns members their targets instead of the partitions that they hold",
        (
            Replacement(
                DOWNGRADE, "share_of",
                "held, going = member.assigned, member.revoking",
                "held, going = group.target.get(replaced_id, NO_SHARE), NO_SHARE",
            ),
        ),
    ),
    Mutant(
        "no-rebalance-for-waiting-member", X, ("X-DOWN-22",), "",
        "after a downgrade by replacement no rebalance gives a member the missing part of its target",
        (
            Replacement(
                DOWNGRADE, "_has_its_target",
                "member.reconciled_to(group.assignment_epoch) and held == aimed_at",
                "True",
            ),
        ),
    ),
    Mutant(
        "upgrade-frees-owned-partitions", X, ("X-UP-05",), "",
        "a partition that a member owns but no member is assigned is free after an upgrade",
        (Replacement(UPGRADE, "taken_over", "if free:", "if False:"),),
    ),
    Mutant(
        "upgrade-prefers-oldest-claim", X, ("X-UP-05",), "",
        "of several claims to a partition an upgrade accepts the oldest",
        (Replacement(UPGRADE, "taken_over", "-each.subscription", "each.subscription"),),
    ),
    Mutant(
        "upgrade-forgets-parked-requests", X, ("X-UP-03",), "",
        "requests that wait in a join or sync phase are not answered when the group is converted",
        (Replacement(UPGRADE, "release_classic_members", "answer_parked(step, group)", "pass"),),
    ),
    Mutant(
        "no-timers-after-upgrade", X, ("X-UP-08",), "",
        "converted members have no session timers",
        (Replacement(UPGRADE, "release_classic_members", "watch(step, group)", "pass"),),
    ),
    Mutant(
        "upgrade-begins-at-the-first-epoch", X, ("X-UP-04",), "",
        "a converted group does not continue from its generation",
        (
            Replacement(
                UPGRADE, "convert",
                "in_order = texts(group.members)",
                "group = group._replace(generation=1)\nin_order = texts(group.members)",
            ),
        ),
    ),
)  # fmt: skip

CLASSIC_MEMBERS = (
    Mutant(
        "owned-partitions-not-read", X, ("X-JOIN-17",), "",
        "a classic member's owned partitions are not read, so it counts as having given up all of them",
        (Replacement(EMBEDDED, "owned_rows", "share_rows(assigned(found.items(), topics))", "()"),),
    ),
    Mutant(
        "fenced-joins-again", X, ("X-JOIN-12",), "",
        "a JoinGroup is accepted with any generation in its subscription",
        (Replacement(EMBEDDED, "confirmed", "raise Rejected(ErrorCode.UNKNOWN_MEMBER_ID)", "return owned"),),
    ),
    Mutant(
        "any-assignor-accepted", X, ("X-JOIN-04",), "",
        "classic members are accepted with assignors that the others do not have",
        (
            Replacement(
                MEMBERS, "reject_if_protocol_is_not_supported",
                "any(group.support.get(protocol.name, 0) == group.classic_members for protocol in protocols)",
                "bool(protocols)",
            ),
        ),
    ),
    Mutant(
        "switch-starts-at-epoch-0", X, ("X-JOIN-13",), "",
        "a member that switches to the classic protocol starts at epoch 0",
        (
            Replacement(
                MEMBERS, "updated_classic_member",
                'regex="",',
                'regex="",\nepoch=min(member.epoch, 0) if member.classic is None else member.epoch,',
            ),
        ),
    ),
    Mutant(
        "any-generation-accepted", X, ("X-SYNC-03", "X-HB-01"), "",
        "classic members may sync and heartbeat with any generation",
        (Replacement(MEMBER, "asking", "member.epoch != generation", "False"),),
    ),
    Mutant(
        "lagging-member-not-asked-to-rejoin", X, ("X-HB-03", "X-SYNC-05"), "",
        "a classic member does not learn of a newer target",
        (
            Replacement(MEMBER, "is_behind", "member.epoch < group.assignment_epoch", "False"),
            Replacement(
                MEMBER, "is_behind", "group.assignment_epoch < group.epoch and target.allowed(step, group)", "False"
            ),
        ),
    ),
    Mutant(
        "revoking-member-not-asked-to-rejoin", X, ("X-HB-07",), "",
        "a classic member that must give up partitions is not asked to rejoin",
        (
            Replacement(
                MEMBER, "should_rejoin",
                "case MemberState.UNREVOKED_PARTITIONS:\n    return True",
                "case MemberState.UNREVOKED_PARTITIONS:\n    return False",
            ),
        ),
    ),
    Mutant(
        "waiting-member-asked-to-rejoin", X, ("X-HB-03",), "",
        "a classic member is asked to rejoin while the partitions that it waits for are still held",
        (Replacement(MEMBER, "should_rejoin", " if not _waits(group, member)", ""),),
    ),
    Mutant(
        "no-rejoin-timer", X, ("X-TMR-02",), "",
        "there is no timer for classic members that do not rejoin",
        (Replacement(MEMBER, "expect_join", "step.timers.set(key, member.rebalance_timeout)", "pass"),),
    ),
    Mutant(
        "rejoin-deadline-postponed", X, ("X-HB-04",), "",
        "each heartbeat gives a classic member more time to rejoin",
        (Replacement(MEMBER, "expect_join", "step.timers.armed(key) is None", "True"),),
    ),
    Mutant(
        "no-sync-timer-in-consumer-group", X, ("X-TMR-03", "X-JOIN-20"), "",
        "there is no timer for classic members that do not sync",
        (
            Replacement(
                MEMBER, "ClassicJoined.replicated",
                "step.timers.set(TimerKey(TimerKind.CONSUMER_SYNC, name, member_id), self.sync_timeout)",
                "pass",
            ),
        ),
    ),
    Mutant(
        "session-of-the-group", X, ("X-HB-02", "X-TMR-01"), "",
        "classic members get the group's session timeout instead of the one that they requested",
        (
            Replacement(
                MEMBER, "watch_session",
                "member.classic.session_timeout_ms",
                "step.settings.group_consumer_session_timeout_ms",
            ),
        ),
    ),
    Mutant(
        "only-classic-members-can-be-removed", X, ("X-LEAVE-02",), "",
        "a LeaveGroup does not find members of the consumer protocol",
        (
            Replacement(
                LEAVE, "classic_group_leave",
                "member = _named_member(group, entry)",
                "member = _named_member(group, entry)\n"
                "if member.classic is None:\n"
                "    raise Rejected(ErrorCode.UNKNOWN_MEMBER_ID)",
            ),
        ),
    ),
    Mutant(
        "member-protocol-not-loaded", X, ("F-REC-13", "X-TMR-04"), "",
        "after a fail-over classic members count as members of the consumer protocol",
        (
            Replacement(
                LIFECYCLE, "take_up",
                "replayed.apply(record)",
                "from dataclasses import replace\n"
                'if hasattr(record.value, "classic_member_metadata"):\n'
                "    record = Record(record.key, replace(record.value, classic_member_metadata=None))\n"
                "replayed.apply(record)",
            ),
        ),
    ),
    Mutant(
        "each-leaver-bumps", X, ("X-LEAVE-04", "X-LEAVE-06"), "",
        "a LeaveGroup of several members bumps the group epoch for each",
        (
            Replacement(
                LEAVE, "classic_group_leave",
                "fence_members(step, group, members, cause)",
                "for member in members:\n"
                "    now = step.memory.groups.get(group.group_id)\n"
                "    if isinstance(now, ConsumerGroup):\n"
                "        fence_members(step, now, [member], cause_of(body, identities([member])))",
            ),
        ),
    ),
)  # fmt: skip

FAULTS = (*CONVERSIONS, *CLASSIC_MEMBERS)

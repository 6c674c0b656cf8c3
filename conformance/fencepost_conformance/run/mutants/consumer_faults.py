"""Faults of consumer groups: ownership, fencing, answers and timers."""

from __future__ import annotations

from .mutant import Mutant, Side
from .replacement import Replacement

K = Side.CONSUMER_GROUP
DRAFT, RECONCILE, MEMBERS = (f"coordinator/consumer/{name}.py" for name in ("draft", "reconcile", "members"))
REGEX = "coordinator/consumer/regex.py"
HEARTBEAT, LEAVING = "coordinator/consumer_group_heartbeat.py", "coordinator/mixed/departure.py"
TIMERS, TIMER_TABLE = "coordinator/consumer/timers.py", "coordinator/kernel/timers.py"

RECONCILIATION = (
    Mutant(
        "epoch-lost-on-return", K, ("M-PE-01",), "KAFKA-16147",
        "a partition that returns to the member that had to revoke it counts as free",
        (
            Replacement(
                DRAFT, "ConsumerDraft.put",
                "self._hold(member.revoking, member.epoch)",
                "self._hold(member.revoking, member.epoch)\n"
                "if old is not None and not member.revoking:\n"
                "    self._release(old._replace(epoch=member.epoch, assigned={}))",
            ),
        ),
    ),
    Mutant(
        "acknowledgement-missed", K, ("M-REC-18",), "KAFKA-16249",
        "after a new target the partitions that the member still owns are ignored",
        (
            Replacement(
                RECONCILE, "reconcile",
                "match member.state:",
                "if member.state is MemberState.UNREVOKED_PARTITIONS and goal.epoch > member.epoch + 1:\n"
                "    goal = goal._replace(owned=None)\n"
                "match member.state:",
            ),
        ),
    ),
    Mutant(
        "own-pending-partition-not-assignable", K, ("M-REC-21",), "KAFKA-19449",
        "a partition that a member must revoke cannot be assigned to it again",
        (Replacement(RECONCILE, "_next", "partition in own or ", ""),),
    ),
    Mutant(
        "taken-from-its-holder", K, ("M-REC-21", "INV-KIP-01"), "",
        "a partition is given to its next owner while the previous one holds it",
        (Replacement(RECONCILE, "_next", "is_free(group, topic_id, partition)", "True"),),
    ),
    Mutant(
        "epoch-before-revocation", K, ("M-REC-10",), "",
        "a member gets the new epoch before it has revoked anything",
        (
            Replacement(
                RECONCILE, "_next",
                "_at(member, epoch, MemberState.UNREVOKED_PARTITIONS",
                "_at(member, goal.epoch, MemberState.UNREVOKED_PARTITIONS",
            ),
        ),
    ),
    Mutant(
        "revocation-not-awaited", K, ("M-REC-18",), "",
        "partitions that a member must revoke are free at once",
        (
            Replacement(
                RECONCILE, "owns",
                "if owned is None:\n"
                "    return True\n"
                "return any(number in holding.get(row.topic_id, {}) for row in owned for number in row.partitions)",
                "return False",
            ),
        ),
    ),
    Mutant(
        "unsubscribed-stays", K, ("M-REC-25",), "KAFKA-19431",
        "a member keeps partitions of topics that it no longer subscribes to, until the epoch changes",
        (
            Replacement(
                RECONCILE, "prune",
                "not gone and (goal.subscribes or member.revoking or unrecorded)",
                "True",
            ),
        ),
    ),
    Mutant(
        "unsubscribed-is-given", K, ("INV-KIP-06",), "",
        "a member is given partitions of its target that it no longer subscribes to",
        (Replacement(RECONCILE, "reachable", "topic_id in goal.topic_ids", "True"),),
    ),
)  # fmt: skip

SPEAKERS = (
    Mutant(
        "known-member-at-zero-refused", K, ("M-FENCE-07",), "KAFKA-19233",
        "a member that was fenced cannot join again under its id",
        (
            Replacement(
                MEMBERS, "check_epoch",
                "claim.epoch != JOIN_EPOCH",
                "claim.epoch != JOIN_EPOCH or member.epoch > JOIN_EPOCH",
            ),
        ),
    ),
    Mutant(
        "repeated-heartbeat-fenced", K, ("M-FENCE-04",), "apache/kafka#21319",
        "a heartbeat that is repeated because its answer was lost is fenced",
        (Replacement(MEMBERS, "reject_wrong_epoch", "not _within(claim.owned, member.assigned)", "True"),),
    ),
    Mutant(
        "old-epoch-accepted", K, ("M-FENCE-05",), "",
        "heartbeats with an old epoch are accepted",
        (Replacement(MEMBERS, "reject_wrong_epoch", "epoch < member.epoch", "False"),),
    ),
    Mutant(
        "epoch-from-the-future-accepted", K, ("M-FENCE-03",), "",
        "heartbeats with an epoch that the member never had are accepted",
        (Replacement(MEMBERS, "reject_wrong_epoch", "epoch > member.epoch", "False"),),
    ),
    Mutant(
        "previous-epoch-with-any-partitions", K, ("M-FENCE-04",), "",
        "the previous epoch is accepted whatever the member says it owns",
        (
            Replacement(
                MEMBERS, "reject_wrong_epoch", "not _within(claim.owned, member.assigned)", "claim.owned is None"
            ),
        ),
    ),
    Mutant(
        "displaced-instance-continues", K, ("M-STATIC-05",), "",
        "a replaced static member can act for its replacement",
        (
            Replacement(
                MEMBERS, "static_member",
                "if member.member_id != member_id:",
                "if member.member_id != member_id and member_id in group.members:",
            ),
        ),
    ),
    Mutant(
        "instance-taken-while-in-use", K, ("M-STATIC-02",), "",
        "a second process takes over an instance id whose member is alive",
        (
            Replacement(
                MEMBERS, "get_or_create_static_member",
                "holder.classic is None",
                "holder.classic is None and mapped == member_id",
            ),
        ),
    ),
    Mutant(
        "static-leave-gives-up", K, ("M-LEAVE-05",), "",
        "a static member that leaves temporarily is removed",
        (
            Replacement(
                LEAVING, "consumer_group_leave",
                "_go_for_a_while(step, group, member)", "fence_members(step, group, [member], cause)",
            ),
        ),
    ),
)  # fmt: skip

ANSWERS_AND_TIMERS = (
    Mutant(
        "full-by-one-field", K, ("M-RSP-01",), "KAFKA-16367",
        "only its owned partitions decide whether a request is full",
        (
            Replacement(HEARTBEAT, "is_full_request", "body.member_epoch == JOIN_EPOCH", "False"),
            Replacement(HEARTBEAT, "is_full_request", "body.rebalance_timeout_ms != -1 and subscribes and ", ""),
        ),
    ),
    Mutant(
        "whole-target-answered", K, ("M-RSP-02", "INV-KIP-01"), "robot-head/crabka#521",
        "members get their whole target before the previous owner has given it up",
        (Replacement(HEARTBEAT, "join_or_stay", "share_rows(member.assigned)", "share_rows(target.share)"),),
    ),
    Mutant(
        "regex-to-none-keeps-epoch", K, ("M-HB-03",), "KAFKA-19899",
        "a member that drops its regex does not bump the group epoch",
        (
            Replacement(
                REGEX, "update_subscribed_regex",
                "lost = False",
                "change = RegexChange.UNRESOLVED if old.regex and not new.regex else change\nlost = False",
            ),
        ),
    ),
    Mutant(
        "leave-does-not-bump", K, ("M-LEAVE-03",), "",
        "the group epoch stays when a member leaves",
        (
            Replacement(
                LEAVING, "_remove_members",
                "epoch = next_epoch(group.epoch)", "epoch = group.epoch",
            ),
        ),
    ),
    Mutant(
        "heartbeat-does-not-extend-session", K, ("M-HB-09",), "",
        "a heartbeat does not extend the session",
        (
            Replacement(
                HEARTBEAT, "join_or_stay",
                "timers.schedule_session_timeout(step, name, member.member_id)",
                "if body.member_epoch == JOIN_EPOCH:\n"
                "    timers.schedule_session_timeout(step, name, member.member_id)",
            ),
        ),
    ),
    Mutant(
        "revocation-without-end", K, ("M-TMR-02",), "",
        "there is no timer for members that do not revoke their partitions",
        (
            Replacement(
                TIMERS, "schedule_rebalance_timeout",
                "step.timers.set(key, member.rebalance_timeout, epoch=member.epoch)", "pass",
            ),
        ),
    ),
    Mutant(
        "revocation-timer-of-an-old-epoch", K, ("M-TMR-05",), "",
        "a rebalance timer removes a member that has already revoked its partitions",
        (Replacement(LEAVING, "_too_late", "member.epoch == epoch", "True"),),
    ),
    Mutant(
        "timer-keys-collide", K, ("M-TMR-01",), "",
        "a timer replaces that of another group if group and member together have the same name",
        (
            Replacement(
                TIMER_TABLE, "slot_of",
                "return kind._value_, key.group_id, key.member_id",
                'return f"{kind._value_}-{key.group_id}-{key.member_id}"',
            ),
        ),
    ),
)  # fmt: skip

FAULTS = (*RECONCILIATION, *SPEAKERS, *ANSWERS_AND_TIMERS)

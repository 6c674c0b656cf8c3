"""Faults of the reports of rebalances: their causes, generations and leaders, in the log and on the status page."""

from __future__ import annotations

from ..replacement import Replacement
from .fault import Area, Fault

TIMERS, JOIN, CLASSIC = (f"coordinator/classic/{name}.py" for name in ("heartbeat", "join", "rebalance"))
REPORTS, PAGE = "coordinator/consumer/reports.py", "fencepost_server/observe/rebalances.py"

FAULTS = (
    Fault(
        "expired-session-shown-as-a-leave", Area.REBALANCES,
        "a rebalance after the end of a session is reported as if the member had left",
        "a classic member sends no heartbeat for its session timeout: the log line of the rebalance must say that its "
        "session has expired",
        (
            Replacement(
                TIMERS, "_session",
                "RebalanceReason.SESSION_EXPIRED, identities([member])",
                "RebalanceReason.MEMBER_LEFT, identities([member])",
            ),
        ),
    ),
    Fault(
        "expired-session-blames-the-others", Area.REBALANCES,
        "a rebalance after the end of a session names the members that are left",
        "two classic members, one sends no heartbeat for its session timeout: the cause must name that one alone",
        (
            Replacement(
                TIMERS, "_session",
                "RebalanceReason.SESSION_EXPIRED, identities([member])",
                "RebalanceReason.SESSION_EXPIRED, identities(group.members.values())",
            ),
        ),
    ),
    Fault(
        "session-of-a-consumer-shows-its-rebalance-timeout", Area.REBALANCES,
        "the cause of a rebalance shows the rebalance timeout of a consumer whose session has expired",
        "a member of a consumer group sends no heartbeat: the cause must show the session timeout of the group",
        (
            Replacement(
                REPORTS, "expired",
                "if kind is TimerKind.CONSUMER_SESSION:", "if kind is TimerKind.CONSUMER_SYNC:",
            ),
        ),
    ),
    Fault(
        "join-shown-as-an-update", Area.REBALANCES,
        "a member that joins a consumer group is reported as one that changed its subscription",
        "a second member joins a consumer group: the cause must be its join",
        (
            Replacement(
                REPORTS, "update_of",
                "elif member.member_id not in group.members:", "elif not member.member_id:",
            ),
        ),
    ),
    Fault(
        "changed-topics-not-named", Area.REBALANCES,
        "a rebalance after a change of topics does not name those that changed",
        "a topic of a consumer group gets more partitions: the cause must name the topic",
        (Replacement(REPORTS, "topics_changed", "if name in known)", "if name not in known)"),),
    ),
    Fault(
        "rejoin-of-the-leader-shown-as-an-update", Area.REBALANCES,
        "a leader that joins again with the same protocols is reported as a member that changed them",
        "the leader of a Stable classic group sends JoinGroup again: the cause must be that the leader rejoined",
        (
            Replacement(
                JOIN, "_rejoin",
                "RebalanceReason.LEADER_REJOINED if same else RebalanceReason.MEMBER_UPDATED",
                "RebalanceReason.MEMBER_UPDATED",
            ),
        ),
    ),
    Fault(
        "reason-of-a-client-is-lost", Area.REBALANCES,
        "the reason that a client gives in its JoinGroup is not reported",
        "a client joins with reason 'rolling restart': the cause must contain it",
        (Replacement(JOIN, "_cause", 'client_reason=body.reason or ""', 'client_reason=""'),),
    ),
    Fault(
        "load-of-a-full-group-shown-as-a-rebalance", Area.REBALANCES,
        "a coordinator that loads a group with as many members as it may have rebalances it",
        "group.max.size is 2; restart the server with a group of two members: no rebalance may be shown",
        (
            Replacement(
                "coordinator/lifecycle.py", "loaded",
                "if len(group.members) > step.settings.group_max_size:",
                "if len(group.members) >= step.settings.group_max_size:",
            ),
        ),
    ),
    Fault(
        "generation-before-the-rebalance", Area.REBALANCES,
        "the report of a rebalance has the generation before it",
        "a second member joins a classic group in generation 1: the log line must show generation 2",
        (Replacement(CLASSIC, "prepare", "generation=next_epoch(group.generation),", "generation=group.generation,"),),
    ),
    Fault(
        "leader-is-the-newest-member", Area.REBALANCES,
        "the report of a new generation names its newest member as the leader",
        "two members join a classic group: the log line must name the first as leader",
        (Replacement(CLASSIC, "complete", 'leader=group.leader or "",', "leader=[*group.members][-1],"),),
    ),
    Fault(
        "leader-not-shown", Area.REBALANCES,
        "the status page does not show the leader of a generation",
        "a classic group has joined: /state must have its leader",
        (
            Replacement(
                PAGE, "Rebalances._take_up",
                "seen.leader, seen.members = report.leader, report.members", "seen.members = report.members",
            ),
        ),
    ),
)  # fmt: skip

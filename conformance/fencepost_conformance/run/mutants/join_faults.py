"""Faults of the coordinator's join phase: admission, counting of members, end of the phase."""

from __future__ import annotations

from .mutant import Mutant, Side
from .replacement import Replacement

C = Side.COORDINATOR
JOIN, LEAVE, MEMBERSHIP = (f"coordinator/classic/{name}.py" for name in ("join", "leave", "membership"))
REBALANCE, STATIC, TIMERS = (f"coordinator/classic/{name}.py" for name in ("rebalance", "static", "heartbeat"))
GROUP = "coordinator/classic/group.py"

FAULTS = (
    Mutant(
        "timer-of-removed-member-rebalances", C, ("C-TMR-09", "C-JOIN-44"), "KAFKA-7196",
        "members dropped at the end of the join phase keep their session timer, which starts another rebalance",
        (
            Replacement(
                REBALANCE, "complete",
                "step.timers.cancel(TimerKey(TimerKind.SESSION, group.group_id, member.member_id))",
                "pass",
            ),
            Replacement(
                TIMERS, "_session",
                "member = group.members.get(member_id)",
                "member = group.members.get(member_id)\n"
                "if member is None and group.state is GroupState.STABLE:\n"
                "    rebalance.prepare(step, group, RebalanceCause(RebalanceReason.SESSION_EXPIRED))",
            ),
        ),
    ),
    Mutant(
        "newcomers-never-expire", C, ("C-TMR-03", "C-JOIN-40"), "KAFKA-7610",
        "a new member gets no timer, so each retried JoinGroup leaves a member behind",
        (Replacement(JOIN, "_add", "step.timers.set(key, step.settings.new_member_join_timeout_ms)", "pass"),),
    ),
    Mutant(
        "pending-cannot-leave", C, ("C-LEAVE-12",), "KAFKA-7909",
        "LeaveGroup does not know ids that were handed out but not used yet",
        (Replacement(LEAVE, "_leave", "elif member_id not in group.pending_join:", "else:"),),
    ),
    Mutant(
        "static-evicted-by-join-timer", C, ("C-JOIN-44", "C-STATIC-14"), "KAFKA-8220",
        "static members that did not rejoin are removed at the end of the join phase",
        (
            Replacement(
                REBALANCE, "complete",
                "if member.join is None and member.instance_id is None",
                "if member.join is None",
            ),
        ),
    ),
    Mutant(
        "replacement-only-in-stable", C, ("C-STATIC-09", "C-STATIC-10", "INV-MEM-02"), "KAFKA-8500",
        "a static member that returns outside Stable becomes a second member with its instance id",
        (
            Replacement(
                JOIN, "_join_new",
                "if old_id is not None:",
                "if old_id is not None and group.state is GroupState.STABLE:",
            ),
        ),
    ),
    Mutant(
        "v0-rebalance-timeout", C, ("G-WIRE-01",), "KAFKA-8653",
        "JoinGroup v0, which carries no rebalance timeout, counts as -1 ms",
        (
            Replacement(
                MEMBERSHIP, "rebalance_timeout",
                "body.session_timeout_ms if request.version == 0 else body.rebalance_timeout_ms",
                "body.rebalance_timeout_ms",
            ),
        ),
    ),
    Mutant(
        "stable-shortcut-while-completing", C, ("C-STATIC-09",), "KAFKA-9801",
        "a static member that returns in CompletingRebalance gets the old assignment and no new round",
        (
            Replacement(
                STATIC, "replace",
                "group.state is GroupState.STABLE and",
                "group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE) and",
            ),
        ),
    ),
    Mutant(
        "size-checked-too-early", C, ("C-JOIN-22",), "KAFKA-9844",
        "group.max.size is checked when the member id is handed out, not when it is used",
        (
            Replacement(
                JOIN, "_admit",
                "if not _accepted(step, group, body):",
                "if member_id not in group.pending_join and not _accepted(step, group, body):",
            ),
        ),
    ),
    Mutant(
        "removal-does-not-complete", C, ("C-LEAVE-22",), "streamnative/kop#380",
        "a LeaveGroup in PreparingRebalance does not check whether all other members have joined",
        (
            Replacement(
                LEAVE, "leave",
                "group.state is not GroupState.EMPTY",
                "group.state not in (GroupState.EMPTY, GroupState.PREPARING_REBALANCE)",
            ),
        ),
    ),
    Mutant(
        "pending-ids-not-awaited", C, ("C-ST-23",), "",
        "the join phase ends although an id that was handed out has not come back",
        (Replacement(GROUP, "GroupDraft.all_joined", " and not self.pending_join", ""),),
    ),
    Mutant(
        "parked-member-expires", C, ("C-TMR-07",), "",
        "a member that waits for an answer is removed when its session times out",
        (
            Replacement(
                TIMERS, "_session",
                " or (not member.is_new and (member.join is not None or member.sync is not None))",
                "",
            ),
        ),
    ),
    Mutant(
        "leader-gets-part-of-the-list", C, ("INV-JOIN-02", "C-JOIN-49"), "",
        "the leader's list has only members that joined, not absent static ones",
        (
            Replacement(
                MEMBERSHIP, "members_for_leader",
                "metadata = member.metadata(group.protocol_name)",
                "if member.join is None:\n    continue\nmetadata = member.metadata(group.protocol_name)",
            ),
        ),
    ),
    Mutant(
        "two-members-get-the-list", C, ("INV-JOIN-01", "C-JOIN-49"), "",
        "every member gets the answer of a leader",
        (
            Replacement(MEMBERSHIP, "current_generation", "group.leader == member_id", "True"),
            Replacement(MEMBERSHIP, "current_generation", 'group.leader or ""', "member_id"),
        ),
    ),
    Mutant(
        "generation-stays", C, ("INV-GEN-01", "C-ST-21"), "",
        "a completed join phase does not begin a new generation",
        (
            Replacement(
                REBALANCE, "complete",
                "group.generation = next_epoch(group.generation)", "group.generation = max(1, group.generation)",
            ),
        ),
    ),
    Mutant(
        "protocol-of-the-first", C, ("C-JOIN-63",), "",
        "the first member's favourite assignor is selected",
        (
            Replacement(
                MEMBERSHIP, "select",
                "tied[0] if len(tied) == 1 else step.choices.protocol(group.group_id, tied)",
                "next(iter(group.members.values())).protocols[0].name",
            ),
        ),
    ),
    Mutant(
        "any-protocol-accepted", C, ("C-JOIN-60",), "",
        "members are accepted with assignors that the others do not have",
        (
            Replacement(
                MEMBERSHIP, "supported",
                "any(group.support.get(protocol.name, 0) == size for protocol in protocols)",
                "bool(protocols)",
            ),
        ),
    ),
    Mutant(
        "initial-delay-cut-short", C, ("C-ST-20", "C-JOIN-43"), "",
        "the initial delay ends as soon as all known members have joined",
        (Replacement(REBALANCE, "maybe_complete", " and group.previous_state is not EMPTY", ""),),
    ),
)  # fmt: skip

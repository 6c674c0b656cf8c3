"""Faults of the member of a classic group: what a client must not believe, keep or forget."""

from __future__ import annotations

from .mutant import Mutant, Side
from .replacement import Replacement

M = Side.MEMBER
ANSWERS, JOINING, HEARTBEATS, TURN = (f"member/{name}.py" for name in ("answers", "joining", "heartbeats", "turn"))
LEAVING, COMPLETING, LEADING = (f"member/{name}.py" for name in ("leaving", "completing", "leading"))

FAULTS = (
    Mutant(
        "rejoin-forgotten-at-join", M, ("K-ST-12",), "KAFKA-5154",
        "the join counts as done when JoinGroup is answered",
        (
            Replacement(
                ANSWERS, "_accepted",
                "heartbeats.enable(turn)",
                "turn.member = turn.member._replace(rejoin_needed=False, join=None)\nheartbeats.enable(turn)",
            ),
        ),
    ),
    Mutant(
        "generation-checked-too-late", M, ("K-ST-12",), "KAFKA-8104",
        "an assignment is accepted although the generation was reset meanwhile",
        (
            Replacement(
                ANSWERS, "_assigned",
                "member.generation.reset or member.state is not ClassicMemberState.COMPLETING_REBALANCE",
                "False",
            ),
        ),
    ),
    Mutant(
        "join-kept-after-failure", M, ("K-ERR-14",), "KAFKA-9140",
        "a failed join is not forgotten, and fails forever",
        (
            Replacement(
                JOINING, "_after_failure",
                "turn.member = turn.member._replace(join=None)",
                "if failed.retry is not Retry.BACK_OFF:\n    turn.member = turn.member._replace(join=None)",
            ),
        ),
    ),
    Mutant(
        "late-error-resets", M, ("K-ST-15",), "KAFKA-9823",
        "an error for an older generation resets the present one",
        (Replacement(HEARTBEATS, "answered", "member.generation != sent.generation", "False"),),
    ),
    Mutant(
        "prepare-not-repeated", M, ("K-ST-13", "K-ERR-15"), "KAFKA-12983",
        "after a reset the member joins without giving up what it owned",
        (Replacement(TURN, "Turn.reset", ", needs_prepare=True", ""),),
    ),
    Mutant(
        "id-dropped-on-retriable-error", M, ("K-ERR-02", "K-ERR-03"), "KAFKA-13214",
        "the member id is dropped on a retriable error",
        (
            Replacement(
                ANSWERS, "joined",
                "match error:",
                "if error in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):\n"
                '    turn.reset("retriable error", keep_id=False)\n'
                "match error:",
            ),
        ),
    ),
    Mutant(
        "id-dropped-with-generation", M, ("K-ERR-05",), "",
        "ILLEGAL_GENERATION drops the member id too",
        (Replacement(TURN, "Turn.reset", 'self.member.generation.member_id if keep_id else ""', '""'),),
    ),
    Mutant(
        "poll-interval-not-watched", M, ("K-HB-03",), "KAFKA-15818",
        "a program that stalls stays in the group",
        (Replacement(HEARTBEATS, "have_turn", "not turn.running(MemberTimer.POLL)", "False"),),
    ),
    Mutant(
        "stall-only-resets", M, ("K-HB-03",), "",
        "a stalled program does not send a leave",
        (
            Replacement(
                HEARTBEATS, "have_turn",
                'leaving.leave(turn, CloseOption.DEFAULT, "consumer poll timeout has expired.")',
                'turn.reset("consumer poll timeout has expired.", keep_id=False)',
            ),
        ),
    ),
    Mutant(
        "static-member-leaves", M, ("K-LEAVE-03",), "thomhurst/Dekaf#1348",
        "a static member leaves when it is closed",
        (Replacement(LEAVING, "leave", "dynamic = member.settings.group_instance_id is None", "dynamic = True"),),
    ),
    Mutant(
        "lost-partitions-not-reported", M, ("K-CB-02",), "",
        "the listener does not learn which partitions were lost",
        (
            Replacement(
                TURN, "Turn.call",
                "self.listen(call, partitions)",
                "self.listen(call, frozenset() if call is Call.LOST else partitions)",
            ),
        ),
    ),
    Mutant(
        "eager-keeps-partitions", M, ("INV-CL-06", "K-CB-03"), "",
        "an eager member keeps its partitions while it joins",
        (Replacement(COMPLETING, "prepared", ".assign(waiting.keep)", ""),),
    ),
    Mutant(
        "no-rejoin-after-revoking", M, ("K-CB-06",), "",
        "a cooperative member that gave up partitions does not join again",
        (
            Replacement(
                COMPLETING, "revoked", 'turn.request_rejoin("need to revoke partitions and re-join")', "pass"
            ),
        ),
    ),
    Mutant(
        "fenced-not-fatal", M, ("K-ERR-08", "K-HB-10"), "KAFKA-16815",
        "a fenced process joins again under its instance id",
        (Replacement(HEARTBEATS, "answered", "error is ErrorCode.FENCED_INSTANCE_ID", "False"),),
    ),
    Mutant(
        "rebalance-in-heartbeat-ignored", M, ("K-ERR-06",), "",
        "a member that learns of a rebalance does not join it",
        (Replacement(HEARTBEATS, "answered", 'turn.request_rejoin("group is already rebalancing")', "pass"),),
    ),
    Mutant(
        "metadata-not-watched", M, ("K-JOIN-02",), "",
        "a leader does not notice new partitions",
        (Replacement(
            LEADING, "_send_assignments",
            "turn.member = turn.member._replace(assignment_snapshot=turn.member.snapshot)",
            "pass",
        ),),
    ),
    Mutant(
        "commit-not-awaited", M, ("K-CB-01",), "",
        "the member joins before its positions are committed",
        (
            Replacement(
                COMPLETING, "_commit_over",
                "turn.emit(Commit(commit_id, owned))\nreturn False",
                "turn.emit(Commit(commit_id, owned))\nreturn True",
            ),
        ),
    ),
)  # fmt: skip

"""Faults of the KIP-848 member: what a client must not keep, forget, omit or send too early."""

from __future__ import annotations

from .mutant import Mutant, Side
from .replacement import Replacement

M = Side.CONSUMER_MEMBER
ANSWERS, HEARTBEATS, RECONCILING, REQUESTS, TURN = (
    f"member/consumer/{name}.py" for name in ("answers", "heartbeats", "reconciling", "requests", "turn")
)

FAULTS = (
    Mutant(
        "joins-while-fenced", M, ("N-TR-06",), "KAFKA-16251",
        "a fenced member joins before its program has released its partitions",
        (
            Replacement(
                ANSWERS, "_thrown_out",
                "if not turn.give_up(Call.LOST, Reason.FENCED):\n"
                "    turn.release()\n"
                "    turn.join()",
                "told = turn.give_up(Call.LOST, Reason.FENCED)\n"
                "turn.join()\n"
                "if not told:\n"
                "    turn.release()",
            ),
        ),
    ),
    Mutant(
        "old-reconciliation-after-rejoin", M, ("N-REC-05",), "KAFKA-16375",
        "an old reconciliation continues after a rejoin",
        (Replacement(RECONCILING, "wanted", " and not reconciliation.outdated", ""),),
    ),
    Mutant(
        "equal-sets-are-the-same", M, ("N-HB-03", "N-TR-02"), "KAFKA-16185, KAFKA-16312",
        "partitions that are assigned again are not acknowledged",
        (
            Replacement(
                RECONCILING, "start",
                "target == member.current",
                "(member.current is not None and target.partitions == member.current.partitions)",
            ),
        ),
    ),
    Mutant(
        "leave-skipped-while-in-flight", M, ("N-HB-06",), "KAFKA-16639, KAFKA-17403",
        "no leave is sent while a heartbeat is unanswered",
        (
            Replacement(
                HEARTBEATS, "_leave",
                "stays_silent(turn)",
                "(turn.member.in_flight is not None or stays_silent(turn))",
            ),
        ),
    ),
    Mutant(
        "consumer-poll-interval-not-watched", M, ("N-TR-09",), "KAFKA-15818",
        "a program that stalls stays in the group",
        (Replacement(HEARTBEATS, "_work", "not turn.running(MemberTimer.POLL)", "False"),),
    ),
    Mutant(
        "unreleased-instance-retried", M, ("N-ERR-04",), "KAFKA-16815",
        "a second process with an instance id keeps retrying",
        (
            Replacement(
                ANSWERS, "heard",
                "turn.fail(Failure(FailureKind.ANSWER, error), leaving=sent.beat is Beat.LEAVE)",
                "if error is not ErrorCode.UNRELEASED_INSTANCE_ID:\n"
                "    turn.fail(Failure(FailureKind.ANSWER, error))",
            ),
        ),
    ),
    Mutant(
        "fenced-keeps-its-epoch", M, ("N-TR-06",), "KAFKA-16933",
        "a fenced member commits at its old epoch",
        (
            Replacement(
                ANSWERS, "_thrown_out",
                "elif state.in_group:\n    turn.member = turn.member._replace(epoch=0)",
                "elif state.in_group:",
            ),
        ),
    ),
    Mutant(
        "joins-at-its-last-epoch", M, ("N-TR-15",), "KAFKA-19335",
        "after a leave the member asks to join at epoch -1",
        (Replacement(TURN, "ConsumerTurn.join", "epoch=0, ", ""),),
    ),
    Mutant(
        "leaves-before-callback", M, ("N-TR-07",), "librdkafka#5541",
        "the leave is sent before the program has released its partitions",
        (
            Replacement(
                TURN, "ConsumerTurn.give_up",
                "return True",
                "return self.member.state is not _S.PREPARE_LEAVING",
            ),
        ),
    ),
    Mutant(
        "static-consumer-leaves-permanently", M, ("N-HB-09",), "",
        "a static member leaves with -1",
        (
            Replacement(
                HEARTBEATS, "leave_epoch",
                "STATIC_LEAVE_EPOCH if static and option is not CloseOption.LEAVE_GROUP else LEAVE_EPOCH",
                "LEAVE_EPOCH",
            ),
        ),
    ),
    Mutant(
        "full-heartbeat-not-repeated", M, ("N-HB-04",), "",
        "after a lost heartbeat only later changes are sent",
        (Replacement(HEARTBEATS, "failed", "last_sent=LastSent(), ", ""),),
    ),
    Mutant(
        "acknowledged-before-revoked", M, ("INV-CL-05",), "",
        "a partition is reported as revoked before the program knows",
        (
            Replacement(
                RECONCILING, "start",
                "if settings.auto_commit and member.subscription.owned:",
                "if revoked:\n"
                "    turn.member = turn.member._replace(current=resolved, delivered=resolved.partitions)\n"
                "if settings.auto_commit and member.subscription.owned:",
            ),
        ),
    ),
    Mutant(
        "added-partitions-unreported", M, ("N-HB-05",), "",
        "partitions that the program has just got are not reported",
        (
            Replacement(
                REQUESTS, "reported",
                " | member.delivered | partitions_of(under_way) | partitions_of(member.target)",
                "",
            ),
        ),
    ),
    Mutant(
        "late-answers-count", M, ("N-HB-11",), "",
        "an answer from before the leave counts as the join's",
        (Replacement(ANSWERS, "answered", "overtaken(turn, sent, body)", "heard(turn, sent, body)"),),
    ),
    Mutant(
        "revoked-before-committed", M, ("N-REC-04",), "",
        "partitions are revoked before their positions are committed",
        (
            Replacement(
                RECONCILING, "_commit",
                "turn.emit(Commit(commit_id, turn.member.subscription.owned))",
                "turn.emit(Commit(commit_id, turn.member.subscription.owned))\n_revoke(turn)",
            ),
        ),
    ),
    Mutant(
        "full-heartbeat-after-join", M, ("N-HB-02",), "",
        "the heartbeat after the join sends everything again",
        (
            Replacement(
                REQUESTS, "send_heartbeat",
                "request_id = turn.number()",
                "if joining:\n    turn.member = turn.member._replace(last_sent=LastSent())\nrequest_id = turn.number()",
            ),
        ),
    ),
    Mutant(
        "subscription-not-repeated", M, ("N-HB-02",), "KAFKA-16190",
        "a member that joins again does not repeat its subscription",
        (
            Replacement(
                REQUESTS, "send_heartbeat",
                "if joining or topics != last.topics",
                "if (not member.joined_once if joining else topics != last.topics)",
            ),
        ),
    ),
)  # fmt: skip

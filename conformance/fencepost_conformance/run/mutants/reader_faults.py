"""Faults of the reading half of a consumer: records read twice or never, returned wrongly, or committed too early."""

from __future__ import annotations

from .mutant import Mutant, Side
from .replacement import Replacement

R = Side.READER
STATE, HANDING, FETCHING, COMMITS, COMMITTED, POSITIONS, PARTITION, SUBSCRIBING, CALLS = (
    f"fencepost_consumer/{name}.py"
    for name in (
        "state", "handing", "fetching", "commits", "committed", "positions", "partition", "subscribing", "calls",
    )
)  # fmt: skip

FAULTS = (
    Mutant(
        "position-of-what-was-fetched", R, ("K-OFF-05", "K-FETCH-02"), "KAFKA-18641",
        "the position is after all fetched records, even those that wait for the next poll",
        (Replacement(HANDING, "_hand_out", "head.next_offset if over else taken[-1].offset + 1", "head.next_offset"),),
    ),
    Mutant(
        "fetch-of-old-position-returned", R, ("K-POS-06",), "KAFKA-2342",
        "records are returned although the position has moved since they were requested",
        (
            Replacement(HANDING, "_look", "state.valid.offset != head.offset", "False"),
            Replacement(HANDING, "_hand_out", " or position.offset != head.offset", ""),
        ),
    ),
    Mutant(
        "dropped-topic-still-read", R, ("K-SUB-03",), "KAFKA-19356",
        "a topic without a subscription is read until the rebalance is over",
        (Replacement(
            STATE, "is_subscribed",
            "reader.mode is not Mode.TOPICS or topic in reader.topics", "True",
        ),),
    ),
    Mutant(
        "revoked-while-read", R, ("K-SUB-03", "K-CB-01"), "",
        "a partition that is about to be revoked is still read",
        (Replacement(STATE, "Reader.readable", "partition in membership.pending_revocation or ", ""),),
    ),
    Mutant(
        "pause-forgotten", R, ("K-SUB-05",), "",
        "a pause holds nothing back",
        (
            Replacement(STATE, "Reader.fetchable", "and not state.paused ", ""),
            Replacement(HANDING, "_keeps", "state.paused", "False"),
        ),
    ),
    Mutant(
        "committed-offset-beats-seek", R, ("K-POS-05", "K-POS-08"), "",
        "a committed offset that was requested before a seek undoes it",
        (
            Replacement(
                COMMITTED, "take", " or state.state is not FetchState.INITIALIZING", "",
            ),
            Replacement(COMMITTED, "_same", "frozenset(lookup.partitions) == frozenset(partitions)", "True"),
        ),
    ),
    Mutant(
        "reset-beats-seek", R, ("K-POS-03",), "",
        "the answer to a reset undoes a seek that came meanwhile, and a reset to the other end",
        (
            Replacement(POSITIONS, "reset_answered", " or state.state is not FetchState.AWAIT_RESET", ""),
            Replacement(POSITIONS, "reset_answered", "state.reset == sent.policies[each.partition]", "True"),
        ),
    ),
    Mutant(
        "lookup-of-old-generation-used", R, ("K-POS-08",), "",
        "a committed offset that was requested in another generation becomes the position",
        (Replacement(COMMITTED, "_same", "lookup.identity == _identity(turn)", "True"),),
    ),
    Mutant(
        "unstable-offsets-read", R, ("K-OFF-01",), "",
        "a fetch of offsets does not wait for open transactions",
        (Replacement(COMMITTED, "maybe_send_lookup", "require_stable=True", "require_stable=False"),),
    ),
    Mutant(
        "leader-not-asked-again", R, ("K-POS-07",), "",
        "the position is not validated against the log of a new leader",
        (
            Replacement(
                PARTITION, "Partition.led_by",
                "self.validate(replace(self.position, leader=leader))",
                "replace(self, position=replace(self.position, leader=leader))",
            ),
        ),
    ),
    Mutant(
        "truncation-not-seen", R, ("K-POS-07",), "",
        "the leader's log ends before the position, and the position stays",
        (Replacement(POSITIONS, "_complete", "end >= asked.offset", "True"),),
    ),
    Mutant(
        "poll-without-limit", R, ("K-POLL-03",), "",
        "a poll returns all fetched records of a partition",
        (
            Replacement(
                HANDING, "_hand_out",
                "head.records[: got.left], head.records[got.left :]",
                "head.records, head.records[:0]",
            ),
        ),
    ),
    Mutant(
        "two-fetches-at-once", R, ("K-FETCH-01",), "",
        "a broker gets another fetch before it has answered the last one",
        (
            Replacement(
                FETCHING, "send_fetches",
                "{sent.node for sent in reader.sent.values() if isinstance(sent, SentFetch)}",
                "set[int]()",
            ),
        ),
    ),
    Mutant(
        "out-of-range-too-late", R, ("K-POS-04",), "",
        "a fetch that was out of range resets a position that has moved since",
        (Replacement(HANDING, "_out_of_range", "state.position.offset == head.offset", "True"),),
    ),
    Mutant(
        "callbacks-in-order-of-answers", R, ("K-OFF-18",), "",
        "the callback of a commit runs before that of an earlier one",
        (Replacement(COMMITS, "callbacks_due", "break", "continue"),),
    ),
    Mutant(
        "retriable-error-reported-as-final", R, ("K-OFF-18", "N-CMT-06"), "",
        "the callback does not learn that the commit may be retried",
        (Replacement(COMMITS, "_finish", "replace(outcome.problem, kind=_K.RETRIABLE_COMMIT)", "outcome.problem"),),
    ),
    Mutant(
        "commits-without-identity", R, ("K-OFF-02", "N-CMT-01"), "",
        "a member commits without its identity, so that it cannot be fenced",
        (Replacement(COMMITS, "_send", 'if member else ("", -1)', 'if False else ("", -1)'),),
    ),
    Mutant(
        "member-commits-everything", R, ("K-CB-01", "N-REC-04"), "",
        "before a rebalance other positions than the requested ones are committed",
        (Replacement(COMMITS, "wanted", " if each in partitions", ""),),
    ),
    Mutant(
        "interval-never-due", R, ("K-OFF-04",), "",
        "each poll restarts the interval of automatic commits",
        (
            Replacement(
                COMMITS, "maybe_auto_commit",
                "settings, due = turn.reader.settings, turn.reader.commit_due_ms",
                "restart_interval(turn)\nsettings, due = turn.reader.settings, turn.reader.commit_due_ms",
            ),
        ),
    ),
)  # fmt: skip

"""Traces of the wire that were once rejected wrongly, each beside copies that must be rejected."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fencepost.protocol.profiles import PROFILES
from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.judge.checker.history import histories
from fencepost_conformance.judge.checker.search import Limits, Search
from fencepost_conformance.judge.checker.verdict import Verdict
from fencepost_conformance.traces.files import WireTrace, read_traces
from fencepost_conformance.traces.lines import NamesLine, ReceivedLine, SentLine, WireLine

KEPT = Path(__file__).parents[2] / "kept" / "wire"
TOPIC_ID = "46aecd41-3e60-4462-8c81-aadf562d3fd6"
OTHER_ID = "00000000-0000-4000-8000-000000000001"
MINUTE_MS = 60_000
Edit = Callable[[WireLine], WireLine | None]


def kept(name: str) -> WireTrace:
    (trace,) = read_traces(KEPT / f"{name}.jsonl")
    assert isinstance(trace, WireTrace)
    return trace


def edited(trace: WireTrace, edit: Edit) -> WireTrace:
    """Apply ``edit`` to each line, and drop the lines for which it returns None."""
    lines = tuple(line for line in map(edit, trace.lines) if line is not None)
    return replace(trace, lines=lines, numbers=())


def body_with(line: WireLine, old: str, new: str) -> WireLine:
    """Return the line with a piece of its body, as JSON text, replaced."""
    assert isinstance(line, SentLine | ReceivedLine)
    text = json.dumps(line.body)
    assert old in text
    return line.model_copy(update={"body": json.loads(text.replace(old, new))})


def with_last_offset(trace: WireTrace, offset: int) -> WireTrace:
    """Give the answer to the last fetch this offset."""
    last = trace.lines[-1]
    (row,) = last.body["groups"][0]["topics"][0]["partitions"]  # type: ignore[union-attr,index,call-overload]
    was = f'"committed_offset": {row["committed_offset"]}'
    return edited(trace, lambda line: body_with(line, was, f'"committed_offset": {offset}') if line is last else line)


def two_topics(line: WireLine) -> WireLine:
    """Let the member subscribe to two topics, so that the id of neither is known."""
    if isinstance(line, SentLine) and line.api_key == 68:
        return body_with(line, '["orders"]', '["orders", "payments"]')
    return line


def verdict(trace: WireTrace, **given: Any) -> Verdict:
    return check_trace(trace, given=given)


@pytest.mark.parametrize("name", ["one-admin", "monitor", "created-in-trace"])
def test_a_topic_by_id_and_by_name_is_one(name: str) -> None:
    trace = kept(name)
    assert verdict(trace).outcome == "accepted"
    (refusal,) = verdict(with_last_offset(trace, 4)).refusals
    assert "was answered with offset 4" in refusal.seen
    assert verdict(with_last_offset(trace, -1)).outcome == "refused"


@pytest.mark.parametrize("name", ["one-admin", "monitor"])
def test_an_id_and_a_name_may_be_the_same_topic_if_unknown(name: str) -> None:
    trace = edited(kept(name), two_topics)
    assert verdict(trace).outcome == "accepted"
    assert verdict(with_last_offset(trace, 4)).outcome == "accepted"
    names = NamesLine(at_ms=0, connection=1, names={TOPIC_ID: "orders"})
    named = replace(trace, lines=(*trace.lines[:2], names, *trace.lines[2:]))
    assert verdict(named).outcome == "accepted"
    assert verdict(with_last_offset(named, 4)).outcome == "refused"


def test_a_recreated_topic_has_another_id() -> None:
    """A fetch by the new id finds nothing of a commit under the old one; a fetch by name does (O-FETCH-06)."""
    trace = kept("monitor")
    names = NamesLine(at_ms=0, connection=1, names={TOPIC_ID: "orders", OTHER_ID: "orders"})

    def by_id(topic_id: str, offset: int) -> WireTrace:
        def edit(line: WireLine) -> WireLine:
            if line in trace.lines[-2:]:
                line = body_with(line, '"name": "orders"', f'"topic_id": "{topic_id}"')
                return line.model_copy(update={"api_version": 10})
            return line

        made = edited(trace, edit)
        return with_last_offset(replace(made, lines=(*made.lines[:2], names, *made.lines[2:])), offset)

    assert verdict(by_id(OTHER_ID, -1)).outcome == "accepted"
    assert verdict(by_id(OTHER_ID, 9)).outcome == "refused"
    assert verdict(by_id(TOPIC_ID, 9)).outcome == "accepted"
    assert verdict(by_id(TOPIC_ID, -1)).outcome == "refused"


@pytest.mark.parametrize("several", [True, False])
def test_an_offset_that_was_committed_by_name_may_be_kept_under_either_id(*, several: bool) -> None:
    """If the topic was recreated, a fetch by its id may find nothing."""
    trace = kept("monitor")
    names = {TOPIC_ID: "orders", **({OTHER_ID: "orders"} if several else {})}

    def edit(line: WireLine) -> WireLine:
        if isinstance(line, SentLine | ReceivedLine) and line.api_key == 8:
            return body_with(line, f'"topic_id": "{TOPIC_ID}"', '"name": "orders"').model_copy(
                update={"api_version": 9}
            )
        if line in trace.lines[-2:]:
            return body_with(line, '"name": "orders"', f'"topic_id": "{TOPIC_ID}"').model_copy(
                update={"api_version": 10}
            )
        return line

    made = edited(trace, edit)
    learned = NamesLine(at_ms=0, connection=1, names=names)
    made = replace(made, lines=(*made.lines[:2], learned, *made.lines[2:]))
    assert verdict(made).outcome == "accepted"
    assert verdict(with_last_offset(made, -1)).outcome == ("accepted" if several else "refused")


def fetched_at(trace: WireTrace, at_ms: int) -> WireTrace:
    """Move the last fetch to this time."""
    return edited(trace, lambda line: line.model_copy(update={"at_ms": at_ms}) if line in trace.lines[-2:] else line)


@pytest.mark.parametrize(("name", "kept_ms"), [("retention-0", 0), ("retention-1500", 1_500)])
def test_an_offset_is_gone_when_its_commit_has_asked_for_it(name: str, kept_ms: int) -> None:
    trace = kept(name)
    committed_ms = 513
    assert verdict(trace).outcome == "accepted"
    if kept_ms:  # not earlier
        early = fetched_at(trace, committed_ms + kept_ms - 100)
        assert verdict(early).outcome == "refused"
        assert verdict(with_last_offset(early, 5)).outcome == "accepted"
    checks = {"offsets_retention_check_interval_ms": 2_000}
    for wait_ms, outcome in ((4_000, "accepted"), (6_000, "refused")):  # a check every 2 s, and 3 s of slack
        late = with_last_offset(fetched_at(trace, committed_ms + kept_ms + wait_ms), 5)
        assert verdict(late, **checks).outcome == outcome
        assert verdict(late).outcome == "accepted"  # by default, Kafka checks every 10 minutes


def test_an_offset_of_a_group_with_members_stays_as_long_as_they_may_subscribe_to_it() -> None:
    """Kafka keeps the offsets of subscribed topics, whatever retention the commit asked for (O-EXP-10)."""
    trace = kept("retention-0")
    beat = SentLine(
        at_ms=600, connection=1, correlation_id=9, api_key=12, api_version=4,
        body={"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": None},
    )  # fmt: skip
    late = with_last_offset(fetched_at(trace, 10_000), 5)
    with_member = replace(late, lines=(*late.lines[:-2], beat, *late.lines[-2:]))
    checks = {"offsets_retention_check_interval_ms": 2_000}
    assert "expired" not in "".join(
        allowed for each in verdict(with_member, **checks).refusals for allowed in each.allowed
    )
    assert "expired" in verdict(late, **checks).refusals[0].allowed[0]


def test_an_offset_is_gone_after_the_retention_of_the_broker() -> None:
    trace = kept("retention-of-the-broker")
    assert verdict(trace).outcome == "refused"
    assert verdict(trace, offsets_retention_ms=MINUTE_MS).outcome == "accepted"
    assert verdict(trace, offsets_retention_ms=2 * MINUTE_MS).outcome == "refused"  # not earlier
    still = with_last_offset(trace, 5)
    settings = {"offsets_retention_ms": MINUTE_MS, "offsets_retention_check_interval_ms": 5_000}
    assert verdict(still, **settings).outcome == "refused"  # and not long after
    assert verdict(still, **{**settings, "offsets_retention_check_interval_ms": 15_000}).outcome == "accepted"


def test_a_retention_that_was_assumed_is_named() -> None:
    trace = replace(kept("retention-of-the-broker"), assumed=("offsets_retention_ms",))
    (refusal,) = verdict(trace).refusals
    assert "would be accepted with offsets.retention.minutes=1," in refusal.hint


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("txn-makes-a-group", '"error_code": 0', '"error_code": 68'),
        ("previous-epoch-after-overlap", '"member_epoch": 6', '"member_epoch": 1'),
        ("sync-timer-after-the-upgrade", '"error_code": 25', '"error_code": 81'),
        ("timeout-of-another-join", "", ""),
        ("join-timer-outlives-a-sync", "", ""),
        ("metadata-before-the-epoch", "", ""),
        ("join-beside-a-sync", "", ""),
        ("instance-id-asked-for-in-vain", "", ""),
        ("offsets-of-a-dropped-group", "", ""),
        ("unknown-id-joins-a-consumer-group", "", ""),
        ("ended-before-its-sync-is-answered", "", ""),
    ],
)
def test_answers_of_kafka_to_forged_requests_are_accepted(name: str, old: str, new: str) -> None:
    """Each kept trace covers a case: of overlapping requests, the answer of the other may hold; a timer of one protocol
    continues under the other; a commit within a transaction creates a group. With another answer at the end, the first
    three are rejected."""
    trace = kept(name)
    assert verdict(trace).outcome == "accepted"
    if old:
        last = [line for line in trace.lines if isinstance(line, ReceivedLine)][-1]
        wrong = edited(trace, lambda line: body_with(line, old, new) if line is last else line)
        assert verdict(wrong).outcome == "refused"


def with_code(trace: WireTrace, api: int, was: int, code: int) -> WireTrace:
    """Replace an error code in the answers of an API."""

    def edit(line: WireLine) -> WireLine:
        if isinstance(line, ReceivedLine) and line.api_key == api and f'"error_code": {was}}}' in json.dumps(line.body):
            return body_with(line, f'"error_code": {was}}}', f'"error_code": {code}}}')
        return line

    return edited(trace, edit)


def test_a_marker_may_come_after_the_next_commit() -> None:
    """AddOffsetsToTxn returned CONCURRENT_TRANSACTIONS (51), so the previous transaction was still ending. Without that
    error, it had certainly ended."""
    trace = kept("late-marker")
    assert verdict(trace).outcome == "accepted"
    (refusal,) = verdict(with_code(trace, 25, 51, 0)).refusals
    assert "was answered with offset 8" in refusal.seen


def test_an_unverified_transaction_shows_nothing_about_the_group() -> None:
    trace = kept("not-verified")
    assert verdict(trace).outcome == "accepted"
    for code in (15, 25):  # versions 0 and 1 have the first one
        assert verdict(with_code(trace, 28, 14, code)).outcome == "refused"


@pytest.mark.parametrize(
    ("name", "steps", "api", "was", "code"),
    [
        ("joins-without-an-answer", 2_000, 11, 23, 25),
        ("forged-beside-each-client", 250, 11, 79, 25),
        ("fenced-before-the-first-generation", 250, 12, 25, 0),
        ("join-behind-its-generation", 250, 12, 82, 22),
    ],
)
def test_overlapping_joins_are_judged_in_few_steps(name: str, steps: int, api: int, was: int, code: int) -> None:
    trace = kept(name)
    assert check_trace(trace, limits=Limits(steps=steps, second_look=0)).outcome == "accepted"
    wrong = edited(trace, partial(with_error, api=api, was=was, code=code))
    assert wrong.lines != trace.lines
    assert check_trace(wrong, limits=Limits(steps=10_000, second_look=0, detail=500)).outcome == "refused"


def with_error(line: WireLine, api: int, was: int, code: int) -> WireLine:
    """Replace the error code ``was`` in an answer of the API."""
    if not isinstance(line, ReceivedLine) or line.api_key != api or line.body.get("error_code") != was:
        return line
    return line.model_copy(update={"body": {**line.body, "error_code": code}})


def without(trace: WireTrace, connection: int, correlation_id: int) -> WireTrace:
    """Return the trace without one request and its answer."""
    gone = connection, correlation_id
    return edited(
        trace,
        lambda line: (
            None
            if isinstance(line, SentLine | ReceivedLine) and (line.connection, line.correlation_id) == gone
            else line
        ),
    )


def test_a_sync_that_overlaps_an_upgrade_does_not_show_the_protocol_of_its_member() -> None:
    trace = kept("sync-beside-its-upgrade")
    assert verdict(trace).outcome == "accepted"
    last = trace.lines[-2]
    wrong = edited(trace, lambda line: body_with(line, "static-0", "static-1") if line is last else line)
    (refusal,) = verdict(wrong).refusals  # no member has this instance id
    assert refusal.rules == ("M-STATIC-01", "M-STATIC-03")


def test_a_replacement_is_also_found_by_the_instance_id_of_the_replaced_member() -> None:
    """Up to 4.3. From 4.4 on a member is found only by its present instance id (V-123)."""
    trace = kept("replaced-after-a-new-name")
    assert verdict(trace).outcome == "accepted"
    for wrong in (without(trace, 6, 1), without(trace, 5, 2)):
        assert "X-HB-01" in verdict(wrong).refusals[0].rules
    (refusal,) = check_trace(trace, profile=PROFILES["kafka-4.4"]).refusals
    # the first member is not replaced in 4.4, and keeps its second instance id
    assert refusal.rules == ("M-STATIC-02",)


def test_the_join_of_a_member_that_has_a_regex_does_not_name_a_topic_id() -> None:
    trace = kept("rejoin-keeps-its-regex")
    assert verdict(trace).outcome == "accepted"
    last, row = trace.lines[-1], '"partition_index": 2, "committed_offset": '
    wrong = edited(trace, lambda line: body_with(line, f"{row}-1", f"{row}776") if line is last else line)
    assert "was answered with offset 776" in verdict(wrong).refusals[0].seen
    assert verdict(without(trace, 1, 1)).outcome == "accepted"  # the names are unknown
    # the answer of CreateTopics counts, even if the member existed before the trace
    assert not [each for each in verdict(without(trace, 4, 1)).refusals if "was fetched" in each.seen]


@pytest.mark.parametrize(("answered_ms", "outcome"), [(940, "refused"), (950, "accepted")])
def test_a_timer_that_runs_out_before_a_join_is_written_may_end_its_member(answered_ms: int, outcome: str) -> None:
    """The timer of the earlier join was set at 467 ms at the earliest; 20 ms are allowed for clocks that differ."""
    trace = kept("ended-before-its-join-is-written")
    assert verdict(trace).outcome == "accepted"
    early = edited(trace, lambda line: line.model_copy(update={"at_ms": min(line.at_ms, answered_ms)}))
    assert verdict(early).outcome == outcome


def test_a_member_may_leave_before_its_join_is_answered() -> None:
    """In that case its id does not show that the group was alive before the trace."""
    trace = kept("left-before-its-join-is-answered")
    assert verdict(trace).outcome == "accepted"
    assert verdict(without(trace, 5, 1)).outcome == "undecided"
    last = trace.lines[-1]
    wrong = edited(
        trace, lambda line: body_with(line, '"error_code": 25', '"error_code": 82') if line is last else line
    )
    assert verdict(wrong).outcome == "refused"


def test_a_leave_for_a_while_may_be_answered_after_its_replacement() -> None:
    """After the replacement, the member that left is removed (M-STATIC-03)."""
    trace = kept("leave-beside-its-replacement")
    assert verdict(trace).outcome == "accepted"
    (refusal,) = verdict(without(trace, 2, 11)).refusals
    assert refusal.rules == ("M-DESC-01",)


def test_an_unknown_partition_shows_nothing_about_the_epoch() -> None:
    """The row of an unknown partition never reaches the group (O-COMMIT-32)."""
    trace = kept("unknown-partition-at-an-old-epoch")
    assert verdict(trace).outcome == "accepted"
    last = trace.lines[-1]
    wrong = edited(trace, lambda line: body_with(line, '"error_code": 3', '"error_code": 0') if line is last else line)
    (refusal,) = verdict(wrong).refusals
    assert refusal.rules == ("O-COMMIT-32",)


def test_a_commit_that_stores_nothing_leaves_no_group() -> None:
    """Kafka leaves a group, so that the next commit gets another error, unless a check for expired offsets has deleted
    it (O-COMMIT-39)."""
    trace = kept("commit-that-stores-nothing")
    assert verdict(trace).outcome == "accepted"
    (history,) = histories(trace).values()
    kafka = partial(Search, history, trace.settings, PROFILES["kafka-4.4"], Limits())
    assert not kafka().run()
    assert kafka(deletions_upto=len(history.events) - 1).run()


def test_a_commit_may_come_after_the_join_of_its_member_that_overlaps_it() -> None:
    """Without that join the member is unknown (O-COMMIT-30)."""
    trace = kept("commit-beside-the-join-of-its-member")
    assert verdict(trace).outcome == "accepted"
    (refusal,) = verdict(without(trace, 2, 2)).refusals
    assert refusal.rules == ("O-COMMIT-30",)


def test_a_join_that_changes_nothing_keeps_the_timeouts_of_the_one_before() -> None:
    """The rebalance timeout of 0 stays, so the member is removed soon after the upgrade (C-JOIN-51)."""
    trace = kept("join-that-changes-nothing-keeps-its-timeouts")
    assert verdict(trace).outcome == "accepted"
    (refusal,) = verdict(without(trace, 11, 1)).refusals  # the JoinGroup with the timeout of 0
    assert "X-HB-01" in refusal.rules


def test_a_group_without_a_record_need_not_be_listed() -> None:
    """O-COMMIT-39: a commit that stores nothing creates the group, which lists show once a record is replicated."""
    trace = kept("listed-after-a-record")
    assert verdict(trace).outcome == "accepted"
    commit, answer, *later = trace.lines
    stored = [body_with(commit, "m" * 4_097, "m"), body_with(answer, '"error_code": 12', '"error_code": 0')]
    late = [line.model_copy(update={"at_ms": line.at_ms + 5_000}) for line in later]
    (refusal,) = verdict(replace(trace, lines=(*stored, *late), numbers=())).refusals
    assert "C-ADM-05" in refusal.rules


def test_a_leave_whose_downgrade_fails_keeps_its_member() -> None:
    """X-DOWN-09: the static member is still there, so its instance id fences another one."""
    trace = kept("leave-whose-downgrade-fails")
    assert verdict(trace).outcome == "accepted"
    left = edited(trace, lambda line: left_for_good(line) if line.at_ms == 2120 else line)
    (refusal,) = verdict(left).refusals
    assert refusal.rules == ("M-STATIC-05",)


def left_for_good(line: WireLine) -> WireLine:
    """The answer to a leave that succeeded."""
    assert isinstance(line, ReceivedLine)
    body = {
        **line.body,
        "error_code": 0,
        "error_message": None,
        "member_id": "wtywKXgPTeC2yeQLTGXxiQ",
        "member_epoch": -1,
    }
    return line.model_copy(update={"body": body})


def test_a_member_that_joins_after_its_removal_has_no_instance_id() -> None:
    """M-TMR-02: it did not revoke in time, and its next join without an instance id may be that of a new member."""
    trace = kept("rejoin-after-the-revocation-timeout")
    assert verdict(trace).outcome == "accepted"
    early = edited(
        trace, lambda line: line.model_copy(update={"at_ms": line.at_ms - 1_300}) if line.at_ms > 3_600 else line
    )
    early = edited(early, lambda line: line.model_copy(update={"at_ms": 2_650}) if line.at_ms == 3_534 else line)
    early = edited(early, lambda line: line.model_copy(update={"at_ms": 2_600}) if line.at_ms == 2_928 else line)
    (refusal,) = verdict(early).refusals
    assert "M-FENCE-01" in refusal.rules


def test_an_assignor_that_fails_on_a_partition_that_came_late_is_undecided() -> None:
    """A-UHET-06: topics appeared in Metadata three seconds after their creation, so the coordinator was late too."""
    trace = kept("partition-that-came-late")
    assert verdict(trace).outcome == "undecided"
    (refusal,) = verdict(without(trace, 1, 9)).refusals  # the Metadata that lacked the topics
    assert refusal.rules == ("M-HB-12",)


def test_an_overlap_leaves_the_subscription_unknown() -> None:
    """M-REC-25: two requests that overlap subscribe to different expressions. The next one with either of them may
    change the subscription, so the member revokes at its epoch, and need not move to another."""
    trace = kept("subscription-unknown-after-an-overlap")
    assert verdict(trace).outcome == "accepted"
    joins, theirs, mine, others = trace.lines[:2], trace.lines[3:5], trace.lines[2:6:3], trace.lines[6:]
    apart = [line.model_copy(update={"at_ms": 4_000 + at}) for at, line in enumerate((*theirs, *mine))]
    (refusal,) = verdict(replace(trace, lines=(*joins, *apart, *others), numbers=())).refusals
    assert refusal.rules == ("M-REC-04", "M-REC-20")


def test_a_replaced_member_has_lost_its_instance_id() -> None:
    """X-JOIN-06, X-SYNC-01: a static classic member was replaced, and its member id joins again without the instance
    id. A request with both is fenced, since the instance id is another member's."""
    trace = kept("replaced-member-rejoins-without-its-instance-id")
    assert verdict(trace).outcome == "accepted"
    without_instance = edited(
        trace,
        lambda line: (
            body_with(line, '"static-0"', "null") if isinstance(line, SentLine) and line.connection == 11 else line
        ),
    )
    (refusal,) = verdict(without_instance).refusals
    assert refusal.rules == ("X-HB-01",)


def test_a_leave_does_not_create_a_dropped_group() -> None:
    """C-JOIN-15: a JoinGroup with a member id drops an empty consumer group from memory, and a stable fetch then shows
    no offsets. The answer to a leave, sent before that JoinGroup, does not create the group again."""
    trace = kept("offsets-of-a-group-dropped-beside-a-leave")
    assert verdict(trace).outcome == "accepted"
    (refusal,) = verdict(without(trace, 14, 1)).refusals  # the JoinGroup
    assert refusal.rules == ("O-COMMIT-14", "O-FETCH-06")


def test_a_dynamic_member_may_turn_classic_and_let_the_group_be_downgraded() -> None:
    """X-JOIN-13, X-JOIN-24: while a JoinGroup of the last member with the consumer protocol is under way, the departure
    of another member may downgrade the group, which then refuses an unknown member."""
    trace = kept("last-consumer-member-turns-classic")
    assert verdict(trace).outcome == "accepted"
    (refusal,) = verdict(without(trace, 13, 1)).refusals  # the JoinGroup
    assert refusal.rules == ("X-JOIN-06", "X-JOIN-07")

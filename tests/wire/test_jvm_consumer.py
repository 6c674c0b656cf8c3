"""Kafka's own classes stepped over consumer groups: inputs and outputs, field by field."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from jvm_session import JvmSession
from jvm_traces import RELEASE, KafkaOf, require_harness

from fencepost.protocol import consumer_messages as c
from fencepost.protocol import consumer_records as r
from fencepost.protocol import events as ev
from fencepost.protocol.consumer_view import ConsumerGroupState, ConsumerGroupView, MemberState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import DescribeGroupsRequest, ListGroupsRequest, ListGroupsResponse, RequestBody
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3, PROFILES
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost_conformance.generate.generator import Generated, generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.compare.lockstep import as_far_as_recorded, first_difference
from fencepost_conformance.judge.rows.check import Checker, as_row
from fencepost_conformance.judge.rows.job import Job, TraceOutcome
from fencepost_conformance.targets.core import Core
from fencepost_conformance.targets.ids import MemberIds, kafka_uuid
from fencepost_conformance.targets.kafka_jvm import KafkaJvm
from fencepost_conformance.traces.files import EventTrace, read_traces
from fencepost_conformance.traces.observation import Observation

pytestmark = pytest.mark.jvm

ORDERS, CLICKS = b"\x01" * 16, b"\x02" * 16
TOPICS = (ev.Topic("orders", ORDERS, 3), ev.Topic("clicks", CLICKS, 1))
START = (ev.TopicsChanged(0, TOPICS, version=1), ev.Load(0, leader_epoch=1, records=()))
REGEX = ev.TaskKey(ev.TaskKind.REGEX, "g")
SEEDS = range(6)
DOCS = Path(__file__).parents[2] / "docs"
FINDINGS = sorted((DOCS / "findings" / "consumer").glob("*.jsonl"))


@pytest.fixture(scope="module")
def kafka(kafka_of: KafkaOf) -> KafkaJvm:
    return kafka_of(RELEASE)


@pytest.fixture(scope="module")
def old(kafka_of: KafkaOf) -> KafkaJvm:
    return kafka_of("4.0.2")


def request(at_ms: int, number: int, body: RequestBody, version: int = 1, denied: Sequence[str] = ()) -> ev.Request:
    return ev.Request(
        at_ms,
        id=number,
        version=version,
        client_id="client",
        client_host="/127.0.0.1",
        body=body,
        denied=frozenset(),
        denied_topics=frozenset(denied),
    )


def join(
    at_ms: int,
    number: int,
    member: str = "m",
    names: tuple[str, ...] | None = ("orders",),
    *,
    group: str = "g",
    instance: str | None = None,
    regex: str | None = None,
    version: int = 1,
    denied: Sequence[str] = (),
) -> ev.Request:
    body = c.ConsumerGroupHeartbeatRequest(
        group,
        member_id=member,
        member_epoch=0,
        instance_id=instance,
        rack_id="rack",
        rebalance_timeout_ms=5_000,
        subscribed_topic_names=names,
        subscribed_topic_regex=regex,
        server_assignor="range",
        topic_partitions=(),
    )
    return request(at_ms, number, body, version, denied)


def beat(
    at_ms: int, number: int, member: str = "m", epoch: int = 2, *, group: str = "g", instance: str | None = None,
    owned: tuple[c.TopicPartitions, ...] | None = None,
) -> ev.Request:  # fmt: skip
    body = c.ConsumerGroupHeartbeatRequest(
        group, member_id=member, member_epoch=epoch, instance_id=instance, topic_partitions=owned
    )
    return request(at_ms, number, body)


def run(target: KafkaJvm, *events: ev.Event, settings: Settings | None = None) -> list[Observation]:
    return target.run(settings or Settings(), INTENDED, [*START, *events])


def views(seen: Sequence[Observation]) -> dict[str, ConsumerGroupView]:
    """Return the consumer groups at the end."""
    now: dict[str, ConsumerGroupView] = {}
    for one in seen:
        for name, view in one.consumer_groups.items():
            if view is None:
                del now[name]
            else:
                now[name] = view
    return now


def armed(seen: Sequence[Observation]) -> dict[ev.TimerKey, int]:
    now: dict[ev.TimerKey, int] = {}
    for one in seen:
        for key, at in one.timers.items():
            if at is None:
                now.pop(key, None)
            else:
                now[key] = at
    return now


def session(group: str, member: str) -> ev.TimerKey:
    return ev.TimerKey(ev.TimerKind.CONSUMER_SESSION, group, member)


def reply(seen: Observation) -> c.ConsumerGroupHeartbeatResponse:
    (one,) = seen.replies
    assert isinstance(one.body, c.ConsumerGroupHeartbeatResponse)
    return one.body


def test_a_first_member_writes_its_records_and_is_answered_when_they_are_replicated(kafka: KafkaJvm) -> None:
    joined, replicated = run(kafka, join(10, 1, instance="i"), ev.Appended(11, offset=5))[2:]
    hash_ = joined.records[1].value.metadata_hash  # type: ignore[union-attr]
    assert hash_ != 0
    held = r.AssignedPartitions(ORDERS, (0, 1, 2), assignment_epochs=(2, 2, 2))
    assert joined.records == (
        Record(
            r.ConsumerGroupMemberMetadataKey("g", "m"),
            r.ConsumerGroupMemberMetadataValue(
                instance_id="i",
                rack_id="rack",
                client_id="client",
                client_host="/127.0.0.1",
                subscribed_topic_names=("orders",),
                subscribed_topic_regex="",
                rebalance_timeout_ms=5_000,
                server_assignor="range",
            ),
        ),
        Record(r.ConsumerGroupMetadataKey("g"), r.ConsumerGroupMetadataValue(2, metadata_hash=hash_)),
        Record(
            r.ConsumerGroupTargetAssignmentMemberKey("g", "m"),
            r.ConsumerGroupTargetAssignmentMemberValue((c.TopicPartitions(ORDERS, (0, 1, 2)),)),
        ),
        Record(
            r.ConsumerGroupTargetAssignmentMetadataKey("g"),
            r.ConsumerGroupTargetAssignmentMetadataValue(2, assignment_timestamp=10),
        ),
        Record(
            r.ConsumerGroupCurrentMemberAssignmentKey("g", "m"),
            r.ConsumerGroupCurrentMemberAssignmentValue(
                2, previous_member_epoch=0, state=0, assigned_partitions=(held,), partitions_pending_revocation=()
            ),
        ),
    )
    assert joined.timers == {
        session("g", "m"): 45_010,
        ev.TimerKey(ev.TimerKind.OPERATION, operation=1): 5_010,
    }
    view = joined.consumer_groups["g"]
    assert view is not None
    assert (view.state, view.group_epoch, view.static_members) == (ConsumerGroupState.STABLE, 2, (("i", "m"),))
    assert view.partition_epochs == ((ORDERS, 0, 2), (ORDERS, 1, 2), (ORDERS, 2, 2))
    assert (view.members[0].assigned, view.members[0].server_assignor) == ((held,), "range")
    assert view.refresh_deadline is None  # another group object set it than the one of the replay
    assert reply(replicated) == c.ConsumerGroupHeartbeatResponse(
        ErrorCode.NONE,
        member_id="m",
        member_epoch=2,
        heartbeat_interval_ms=5_000,
        assignment=(c.TopicPartitions(ORDERS, (0, 1, 2)),),
    )


def test_an_old_release_writes_its_own_records(old: KafkaJvm) -> None:
    """Epochs from 1, topic metadata instead of a hash, no times, no assignment epochs (V-30, V-34, V-53, V-73)."""
    (joined,) = run(old, join(10, 1))[2:]
    kinds = {type(record.key): record.value for record in joined.records}
    assert kinds[r.ConsumerGroupPartitionMetadataKey] == r.ConsumerGroupPartitionMetadataValue(
        (r.TopicMetadata(ORDERS, "orders", 3),)
    )
    assert kinds[r.ConsumerGroupMetadataKey] == r.ConsumerGroupMetadataValue(1)
    assert kinds[r.ConsumerGroupTargetAssignmentMetadataKey] == r.ConsumerGroupTargetAssignmentMetadataValue(1)
    view = views([joined])["g"]
    assert (view.metadata_hash, view.legacy_metadata) == (0, True)
    assert view.members[0].assigned == (r.AssignedPartitions(ORDERS, (0, 1, 2)),)


def test_a_revocation_arms_the_rebalance_timer_which_fences(kafka: KafkaJvm) -> None:
    timer = ev.TimerKey(ev.TimerKind.CONSUMER_REBALANCE, "g", "m")
    seen = run(
        kafka, join(0, 1), join(10, 2, "n"), beat(1_010, 3, "n"), beat(1_020, 4), ev.TimerFired(6_020, timer),
    )  # fmt: skip
    assert armed(seen[:-1])[timer] == 6_020
    assert [row.state for row in views(seen[:-1])["g"].members] == [
        MemberState.UNREVOKED_PARTITIONS,
        MemberState.UNRELEASED_PARTITIONS,
    ]
    assert [row.member_id for row in views(seen)["g"].members] == ["n"]
    assert seen[-1].records[0] == Record(r.ConsumerGroupCurrentMemberAssignmentKey("g", "m"), None)
    early = run(kafka, join(0, 1), join(10, 2, "n"), beat(1_010, 3, "n"), beat(1_020, 4), ev.TimerFired(6_019, timer))
    assert early[-1].error == "NoSuchTimer"


def test_a_regex_is_resolved_at_the_event_of_the_trace(kafka: KafkaJvm) -> None:
    seen = run(
        kafka, join(0, 1, names=None, regex="o.*"), beat(100, 2, epoch=1), ev.TaskDone(500, REGEX),
        ev.TaskDone(501, REGEX),
    )  # fmt: skip
    assert [one.tasks for one in seen] == [(), (), (REGEX,), (), (), ()]
    assert views(seen[:4])["g"].regexes == ()
    assert seen[4].records == (
        Record(
            r.ConsumerGroupRegularExpressionKey("g", "o.*"),
            r.ConsumerGroupRegularExpressionValue(("orders",), version=1, timestamp=500),
        ),
        Record(r.ConsumerGroupMetadataKey("g"), seen[4].records[1].value),
    )
    assert ev.TimerKey(ev.TimerKind.OPERATION, operation=-5) in seen[4].timers  # of the event with index 4
    assert seen[5].error == "NoSuchTask"


#: Expressions that RE2/J rejects, one for each of its reasons.
BROKEN = (
    "(", "(((", "(?:", "é(", "日本[", "[", "[a", "[]", "[^]", "[[:alpha:]", "a)", ")", "*", "a|*", "(+)", "a(*b)",
    "**", "a**", "a*+", "a???", "a{1,2}{3}", "x{2}??", "a{2,1}", "a{1001}", "a{1,1001}", "\\", "a\\", "[\\", "\\8",
    "\\1", "\\Z", "\\k", "\\u1234", "\\xZZ", "\\x{110000}", "\\x{", "[a-\\d]", "\\pX", "\\p{Foo}", "[[:foo:]]",
    "[z-a]", "(?P<>a)", "(?P<n", "(?P<a b>x)", "(?P=n)", "(?=a)", "ord(?=ers)", "(?!a)", "(?i", "(?z)", "(?-)",
    "(?>a)", "(?#c)", "(?x)a b", "(?P",
)  # fmt: skip
#: The RE2/J of Kafka 4.0, which does not know groups named as in ``(?<n>a)``, gives another reason.
LOOKING_BEHIND = ("(?<=a)", "(?<!a)")
#: Expressions that only one of RE2 and RE2/J accepts (M-RX-01).
ONLY_RE2 = ("\\C", "(?P<n>a)(?P<n>b)", "(?P<é>a)", "x{99999999999}")
ONLY_RE2J = ("(a{100}){100}", "\\é")


@pytest.mark.parametrize("release", [RELEASE, "4.0.2", pytest.param("4.4.0", marks=pytest.mark.all)])
def test_a_regex_that_does_not_compile_is_answered_in_kafkas_words(kafka_of: KafkaOf, release: str) -> None:
    """The message names the expression and the reason (M-VAL-08)."""
    same = BROKEN if release == "4.0.2" else (*BROKEN, *LOOKING_BEHIND)
    tried = (*same, *ONLY_RE2, *ONLY_RE2J)
    events = [*START, *(join(10, n, f"m{n}", None, group=f"g{n}", regex=each) for n, each in enumerate(tried, 1))]
    theirs = kafka_of(release).run(Settings(), INTENDED, events)
    ours = Core().run(Settings(), INTENDED, events)
    said = [
        {each: reply(one).error_message if one.replies else None for each, one in zip(tried, seen[2:], strict=True)}
        for seen in (theirs, ours)
    ]
    kafkas, cores = said
    assert {each for each in tried if kafkas[each] is None} == {*ONLY_RE2J}
    assert {each for each in tried if cores[each] is None} == {*ONLY_RE2}
    assert {each: cores[each] for each in same} == {each: kafkas[each] for each in same}
    assert cores["ord(?=ers)"] == (
        "SubscribedTopicRegex `ord(?=ers)` is not a valid regular expression: invalid or unsupported Perl syntax."
    )


def test_a_resolution_that_fails_is_started_again(kafka: KafkaJvm) -> None:
    seen = run(
        kafka, join(0, 1, names=None, regex="o.*"), ev.TaskDone(500, REGEX, failed=True), beat(501, 2, epoch=1),
        ev.TaskDone(502, REGEX),
    )  # fmt: skip
    assert (seen[3].records, seen[3].error, seen[4].tasks) == ((), None, (REGEX,))
    assert views(seen)["g"].regexes[0].topics == ("orders",)


def test_a_task_ends_with_the_partition(kafka: KafkaJvm) -> None:
    seen = run(
        kafka,
        join(0, 1, names=None, regex="o.*"),
        ev.Unload(1, leader_epoch=2),
        ev.Load(2, leader_epoch=3, records=()),
        ev.TaskDone(3, REGEX),
    )
    assert seen[-1].error == "NoSuchTask"


def test_topics_that_the_member_may_not_describe(kafka: KafkaJvm) -> None:
    """The right is checked when the task runs, for the request that started it (M-VAL-02, M-DESC-01, M-RX-06)."""
    by_name = run(kafka, join(0, 1, denied=["orders"]))[-1]
    assert reply(by_name).error_code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    seen = run(
        kafka, join(0, 1, names=None, regex=".*", denied=["orders"]), ev.TaskDone(1, REGEX),
        beat(1_001, 2, epoch=1), ev.Appended(1_002, offset=7),
        request(1_003, 3, c.ConsumerGroupDescribeRequest(("g",)), denied=["clicks"]),
        request(1_004, 4, c.ConsumerGroupDescribeRequest(("g",)), denied=["orders"]),
    )  # fmt: skip
    assert views(seen)["g"].regexes[0].topics == ("clicks",)
    bodies = [one.replies[0].body for one in seen[-2:]]
    groups = [body.groups[0] for body in bodies if isinstance(body, c.ConsumerGroupDescribeResponse)]
    assert [group.error_code for group in groups] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.NONE]
    assert groups[1].members[0].target_assignment == (c.NamedTopicPartitions(CLICKS, "clicks", (0,)),)


def test_topics_grow_move_and_are_recreated(kafka: KafkaJvm) -> None:
    """M-EPOCH-03, M-META-03, M-META-06, M-RACK-01."""
    grown = (ev.Topic("orders", ORDERS, 4),)
    moved = (ev.Topic("orders", ORDERS, 4, (frozenset({"a", "b"}),) * 4),)
    anew = (ev.Topic("orders", CLICKS, 4),)
    seen = run(
        kafka,
        join(0, 1),
        ev.TopicsChanged(2_000, grown, version=2),
        beat(2_001, 2),
        ev.TopicsChanged(4_000, moved, version=3),
        beat(4_001, 3, epoch=3),
        ev.TopicsChanged(6_000, anew, version=4),
        beat(6_001, 4, epoch=4, owned=()),
        ev.TopicsChanged(8_000, anew, version=5),
        beat(8_001, 5, epoch=5),
        ev.TopicsChanged(9_000, (), version=6),
        beat(9_002, 6, epoch=5),
    )
    epochs = [view.group_epoch for one in seen for view in one.consumer_groups.values() if view and one.records]
    assert epochs == [2, 3, 4, 5, 6]
    assert views(seen[:9])["g"].members[0].assigned == (
        r.AssignedPartitions(CLICKS, (0, 1, 2, 3), assignment_epochs=(5,) * 4),
    )
    assert views(seen)["g"].metadata_hash == 0
    (refused,) = run(kafka, ev.TopicsChanged(1, (ev.Topic("orders", ORDERS, 3),), version=2))[2:]
    assert refused.error is None


def test_a_group_has_its_own_configuration_and_no_other_trace_has_it(kafka: KafkaJvm) -> None:
    """A value out of range becomes the bound (M-CFG-01)."""
    config = ev.GroupConfig(consumer_session_timeout_ms=99_000, consumer_heartbeat_interval_ms=7_000)
    seen = run(
        kafka, ev.GroupConfigChanged(0, "g", config), join(1, 1), ev.GroupConfigChanged(2, "g", None), beat(3, 2)
    )
    assert [armed(seen[:n])[session("g", "m")] for n in (4, 6)] == [60_001, 45_003]
    assert reply(run(kafka, ev.GroupConfigChanged(0, "g", config), join(1, 1), ev.Appended(2, offset=5))[-1]) == (
        c.ConsumerGroupHeartbeatResponse(
            ErrorCode.NONE,
            member_id="m",
            member_epoch=2,
            heartbeat_interval_ms=7_000,
            assignment=(c.TopicPartitions(ORDERS, (0, 1, 2)),),
        )
    )
    assert armed(run(kafka, join(1, 1)))[session("g", "m")] == 45_001


def test_settings_reach_kafka(kafka: KafkaJvm) -> None:
    settings = Settings(
        group_consumer_session_timeout_ms=7_000, group_consumer_min_session_timeout_ms=7_000,
        group_consumer_max_size=1, group_consumer_assignors=("range",), group_consumer_assignment_interval_ms=0,
    )  # fmt: skip
    seen = run(kafka, join(0, 1), join(1, 2, "n"), settings=settings)
    assert armed(seen)[session("g", "m")] == 7_000
    assert reply(seen[-1]).error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    off = run(kafka, join(0, 1), settings=Settings(consumer_protocol_enabled=False))
    assert reply(off[-1]).error_code is ErrorCode.UNSUPPORTED_VERSION
    with pytest.raises(ValueError, match="regex_min_refresh_interval_ms"):
        run(kafka, settings=Settings(regex_min_refresh_interval_ms=1))


def test_ids_that_kafka_draws_match_the_suite(kafka: KafkaJvm) -> None:
    """Kafka and the core draw another id instead of one that begins with a hyphen (M-VAL-26)."""
    wanted = 210  # the first such id is number 205
    seen = run(kafka, *(join(n, n + 1, "", version=0) for n in range(wanted)))
    drawn = [
        record.key.member_id
        for one in seen
        for record in one.records
        if isinstance(record.key, r.ConsumerGroupMemberMetadataKey)
    ]
    ids = MemberIds()
    assert drawn == [ids.uuid() for _ in range(wanted)]
    assert any(kafka_uuid(n).startswith("-") for n in range(wanted))


def test_timers_of_two_groups_can_have_one_key(kafka: KafkaJvm) -> None:
    """A fault (docs/findings.md): group ``g`` with member ``0-x``, group ``g-0`` with member ``x``. The second member
    leaves, and cancels the session timer of the first; the first member never expires."""
    seen = run(kafka, join(0, 1, "0-x"), join(1_000, 2, "x", group="g-0"), beat(1_001, 3, "x", -1, group="g-0"))
    assert [one.timers[session("g", "0-x")] for one in seen[2:4]] == [45_000, None]
    assert [one.timers[session("g-0", "x")] for one in seen[3:]] == [46_000, None]
    assert [row.member_id for row in views(seen)["g"].members] == ["0-x"]
    assert {key.kind for key in armed(seen)} == {ev.TimerKind.OPERATION, ev.TimerKind.EXPIRY}


def test_groups_of_both_kinds_are_listed_and_described(kafka: KafkaJvm) -> None:
    seen = run(
        kafka, join(0, 1), ev.Appended(1, offset=5), request(2, 2, ListGroupsRequest(types_filter=("consumer",)), 5),
        request(3, 3, DescribeGroupsRequest(("g",)), 6),
    )  # fmt: skip
    listed = seen[-2].replies[0].body
    assert isinstance(listed, ListGroupsResponse)
    assert [(row.group_id, row.group_type, row.group_state) for row in listed.groups] == [("g", "consumer", "Stable")]


@pytest.fixture(scope="module", params=[GroupProtocol.CONSUMER, GroupProtocol.MIXED])
def made(request: pytest.FixtureRequest, kafka: KafkaJvm) -> list[Generated]:
    return [
        generate(seed, KAFKA_4_3, 40, request.param, session=lambda settings, _: JvmSession(kafka, settings))
        for seed in SEEDS
    ]


def test_a_trace_played_against_kafka_runs_the_same_in_one_go(made: list[Generated], kafka: KafkaJvm) -> None:
    """No event of the generator is impossible, and neither Kafka nor the harness keeps state between traces."""
    for trace, again in zip(made, kafka.run_many([(t.settings, t.events) for t in made]), strict=True):
        assert trace.failure is None
        for index, (one, other) in enumerate(zip(trace.observations, again, strict=True)):
            following = trace.events[index + 1] if index + 1 < len(trace.events) else None
            if not isinstance(following, ev.AppendFailed):  # its failure was not known when the event was played
                assert one == other, (trace.seed, index)


def test_kafka_loads_its_own_records_after_translation(made: list[Generated], kafka: KafkaJvm) -> None:
    """Every record passes both translations: the groups after a fail-over equal those before it."""
    compared = 0
    for trace in made:
        log: list[Record] = []
        base = 0
        known: dict[str, ConsumerGroupView | None] = {}
        for event, one in zip(trace.events, trace.observations, strict=True):
            if isinstance(event, ev.AppendFailed):
                del log[base:]
            elif isinstance(event, ev.Load):
                log = list(event.records)
            base = len(log)
            log += one.records
            known.update(one.consumer_groups)
        owned = [event for event in trace.events if isinstance(event, ev.Load | ev.Unload)]
        if not isinstance(owned[-1], ev.Load):
            continue
        topics = [event for event in trace.events if isinstance(event, ev.TopicsChanged)][-1:]
        seen = kafka.run(
            trace.settings, INTENDED, [*topics, ev.Load(trace.events[-1].at_ms, leader_epoch=1, records=tuple(log))]
        )
        loaded = views(seen)
        for name, view in known.items():
            if view is not None:
                assert _hard(loaded[name]) == _hard(view)
                compared += 1
    assert compared > 2


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: path.stem)
def test_kafka_still_has_its_faults(path: Path, kafka: KafkaJvm) -> None:
    (trace,) = read_traces(path)
    assert isinstance(trace, EventTrace)
    recorded = [seen for seen in trace.observations if seen is not None]
    assert (
        first_difference(as_far_as_recorded(kafka.run(trace.settings, INTENDED, trace.events), recorded), recorded)
        is None
    )
    assert f"(findings/consumer/{path.name})" in (DOCS / "findings.md").read_text()


@pytest.mark.parametrize(("release", "profile"), [("4.1.2", "kafka-4.1"), ("4.3.1", "kafka-4.3")])
@pytest.mark.parametrize("protocol", [GroupProtocol.CONSUMER, GroupProtocol.MIXED])
def test_the_core_behaves_like_kafka(
    release: str, profile: str, protocol: GroupProtocol, kept: Callable[..., list[Generated]]
) -> None:
    """A few of the traces that ``fencepost conform`` runs by the million, and the kept traces."""
    require_harness(release)
    checker = Checker(Job(f"kafka:{release}", profile, 60, model=False, protocol=protocol))
    try:
        rows = checker.check(range(20))
        odd = kept(protocol, PROFILES[profile])
        rows += [as_row(trace, found) for trace, found in zip(odd, checker.examine(odd), strict=True)]
    finally:
        checker.close()
    assert [(row.seed, row.outcome, row.field) for row in rows if row.outcome != TraceOutcome.AGREED] == []


def test_core_and_model_know_the_topics_as_kafka_4_0_does() -> None:
    """In this trace a check of the topics is lost, and a target is due (V-136)."""
    require_harness("4.0.2")
    checker = Checker(Job("kafka:4.0.2", "kafka-4.0", 60, model=True, protocol=GroupProtocol.CONSUMER))
    try:
        rows = checker.check([4932])
    finally:
        checker.close()
    assert [row.outcome for row in rows] == [TraceOutcome.AGREED]


def _hard(view: ConsumerGroupView) -> tuple[object, ...]:
    """Return the state that the log restores: everything except the deadline, and old records of a release."""
    return (
        view.group_epoch, view.metadata_hash, view.assignment_epoch, view.assignment_timestamp, view.members,
        view.static_members, view.target, view.partition_epochs, view.regexes,
    )  # fmt: skip

"""Two targets side by side: differences are found, the run continues, and causes are separated from consequences."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import pytest

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.embedded import (
    Subscription,
    decode_subscription,
    encode_subscription,
    version_of,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Appended, Event, Load, Reply, Request, Topic, TopicsChanged
from fencepost.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    Protocol,
    RequestBody,
)
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.profiles import INTENDED, KAFKA_4_2, KAFKA_4_3
from fencepost.protocol.settings import Settings
from fencepost_conformance.cli import main
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.compare.leaves import Seen, leaves
from fencepost_conformance.judge.diff.groups import Groups
from fencepost_conformance.judge.diff.job import Job, Row, parse_side
from fencepost_conformance.judge.diff.pair import Pair
from fencepost_conformance.judge.diff.run import CHUNK, Runner, row_of, run, side_by_side
from fencepost_conformance.judge.diff.shortest import shortest
from fencepost_conformance.judge.diff.side import CoreLive
from fencepost_conformance.judge.known import read_known
from fencepost_conformance.targets.core import Core
from fencepost_conformance.traces.files import EventTrace, read_traces
from fencepost_conformance.traces.observation import Observation

CONSUMER = GroupProtocol.CONSUMER


def compared(one: str, other: str, traces: int, protocol: GroupProtocol = CONSUMER) -> Groups:
    found = Groups()
    for rows in run(Job(parse_side(one), parse_side(other), 60, protocol), range(traces), workers=1):
        found.add_all(rows)
    return found


@pytest.mark.parametrize("protocol", list(GroupProtocol))
def test_equal_targets_have_no_groups_of_differences(protocol: GroupProtocol) -> None:
    found = compared("core:kafka-4.3", "core:kafka-4.3", 15, protocol)
    assert not found.groups
    assert found.traces == 15
    assert found.steps >= 15 * 60


def test_where_releases_count_from_is_one_difference_and_not_one_in_each_epoch() -> None:
    """A new group begins at epoch 1, and the first member brings it to 2 (V-30)."""
    found = compared("core:kafka-4.2", "core:kafka-4.3", 30)
    group = found.groups["ConsumerGroupHeartbeat: records[ConsumerGroupMetadata].value.epoch +1->+2"]
    assert group.always == ("1", "2")
    assert group.following == 0
    epochs = [key for key in found.groups if "epoch " in key and key != group.key]
    assert len(epochs) <= 2, epochs


def test_the_same_rows_in_any_number_of_processes() -> None:
    job = Job(parse_side("core:kafka-4.2"), parse_side("core:kafka-4.3"), 30, CONSUMER)
    alone, several = ([row for rows in run(job, range(5, 47), workers) for row in rows] for workers in (1, 2))
    assert alone == several


class _Planted(CoreLive):
    """The core with a planted fault."""

    fault: Callable[[int, Event, Observation], Observation]

    def __init__(self, *words: object) -> None:
        super().__init__(*words)  # type: ignore[arg-type]
        self.handled = 0

    def feed(self, event: Event) -> Observation:
        self.handled += 1
        return type(self).fault(self.handled, event, super().feed(event))


def planted(fault: Callable[[int, Event, Observation], Observation], protocol: GroupProtocol, traces: int) -> Groups:
    kind = type("_Faulty", (_Planted,), {"fault": staticmethod(fault)})
    job = Job(parse_side("core"), parse_side("core"), 60, protocol)
    found = Groups()
    for seed in range(traces):
        _, pair = side_by_side(seed, INTENDED, 60, protocol, lambda settings: against(settings, kind))
        found.add(row_of(job, seed, pair))
    return found


def against(settings: Settings, kind: type[CoreLive]) -> Pair:
    return Pair(CoreLive(settings, INTENDED), kind(settings, INTENDED))


def test_a_difference_without_consequences_is_reported_at_every_step() -> None:
    def unknown(handled: int, event: Event, seen: Observation) -> Observation:
        replies = tuple(
            Reply(reply.request_id, replace(reply.body, error_code=ErrorCode.UNKNOWN_MEMBER_ID))
            if isinstance(reply.body, HeartbeatResponse) and reply.body.error_code is ErrorCode.NONE
            else reply
            for reply in seen.replies
        )
        return replace(seen, replies=replies)

    found = planted(unknown, GroupProtocol.CLASSIC, 20)
    assert list(found.groups) == ["Heartbeat: reply.error_code NONE->UNKNOWN_MEMBER_ID"]
    assert found.groups[next(iter(found.groups))].following == 0


def test_a_lost_request_is_one_cause_however_many_differences_follow() -> None:
    """One side loses the first JoinGroup of a trace, so it has another member, another leader, another group."""

    class Deaf(CoreLive):
        def feed(self, event: Event) -> Observation:
            if isinstance(event, Request) and type(event.body).__name__ == "JoinGroupRequest" and event.id <= 3:
                return Observation()
            return super().feed(event)

    causes: set[str] = set()
    following = 0
    for seed in range(12):
        _, pair = side_by_side(seed, INTENDED, 60, GroupProtocol.CLASSIC, lambda settings: against(settings, Deaf))
        causes |= {cause.key.split(" ")[0] for cause in pair.causes}
        following += sum(pair.following.values())
    assert causes == {"JoinGroup:"}
    assert following > 100


def test_the_trace_of_a_seed_is_reproduced() -> None:
    job = Job(parse_side("core:kafka-4.2"), parse_side("core:kafka-4.3"), 40, CONSUMER)
    with Runner(job) as runner:
        (trace, pair), (again, other) = runner.make(7), runner.make(7)
    assert trace == again
    assert pair.causes == other.causes


def test_known_differences_leave_nothing_to_find(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["diff", "core:kafka-4.2", "core:kafka-4.3", "--protocol", "consumer", "--traces", "6", "--workers", "1"]
    with pytest.raises(SystemExit) as first:
        main([*words, "--json"])
    result = json.loads(capsys.readouterr().out)
    assert first.value.code == 1
    keys = [group["key"] for group in result["groups"]]
    assert len(keys) > 2
    file = tmp_path / "known.txt"
    file.write_text("# of 4.3\n\n" + "".join(f"{key} -- as the release notes say\n" for key in [*keys, "never: met"]))
    with pytest.raises(SystemExit) as second:
        main([*words, "--json", "--known", str(file)])
    result = json.loads(capsys.readouterr().out)
    assert second.value.code == 0
    assert result["passed"]
    assert result["never_met"] == ["never: met"]
    assert {group["known"] for group in result["groups"]} == {"as the release notes say"}
    file.write_text("".join(f"{key} -- but one\n" for key in keys[1:]))
    with pytest.raises(SystemExit) as third:
        main([*words, "--known", str(file)])
    assert third.value.code == 1
    assert "known: but one" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a key without a reason\n", "line 1: expected KEY -- REASON, found 'a key without a reason'"),
        ("# fine\nJoinGroup: reply missing --\n", "line 2: expected KEY -- REASON"),
        ("k -- one\n\nk -- two\n", "line 3: this key is already in line 1: k"),
    ],
)
def test_a_meaningless_line_is_reported_with_its_number(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "known.txt"
    file.write_text(text)
    with pytest.raises(CannotRun) as refused:
        read_known(file)
    assert f"{file}, {said}" in str(refused.value)


def test_a_file_of_known_differences_with_errors(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "none.txt", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(CannotRun, match=said):
            read_known(path)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(CannotRun, match="UTF-8"):
        read_known(tmp_path / "bytes")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("core:kafka-9.9", "no profile of the core 'kafka-9.9'"),
        ("broker:4.3.1", "a broker cannot be compared event by event"),
        ("127.0.0.1:9092", "a broker cannot be compared event by event"),
        ("nonsense", "no target 'nonsense'"),
    ],
)
def test_a_side_that_cannot_be_compared(name: str, said: str) -> None:
    with pytest.raises(CannotRun) as refused:
        parse_side(name)
    assert said in str(refused.value)


def test_differences_between_two_releases_are_those_of_the_rule_book() -> None:
    """Each group has a short trace, and is caused by switches that cite rows of 13.4; nothing else differs."""
    found = Groups()
    jobs = [
        Job(parse_side("core:kafka-4.2"), parse_side("core:kafka-4.3"), 60, protocol)
        for protocol in (CONSUMER, GroupProtocol.MIXED)
    ]
    for job in jobs:
        for rows in run(job, range(16), workers=1):
            found.add_all(rows)
    small = list(shortest(jobs, found.ordered(), workers=1))
    assert {each.key for each in small} == found.groups.keys()
    assert len(small) > 10
    rows = set()
    for each in small:
        assert each.explanation.switches, each.key
        for name, cites in each.explanation.switches:
            assert name.startswith("old_") or name == "fault_classic_members_starve", each.key
            rows |= set(re.findall(r"V-\d+", cites))
        assert len(each.mine) <= 12, each.key
        assert each.explanation.one.refused is None, each.key
    assert rows >= {"V-12", "V-30", "V-38", "V-53", "V-60"}


def test_the_page_and_the_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    words = ["diff", "core:kafka-4.2", "core:kafka-4.3", "--protocol", "consumer", "--traces", "4", "--workers", "1"]
    with pytest.raises(SystemExit) as left:
        main([*words, "-o", str(out), "--json"])
    assert left.value.code == 1
    result = json.loads(capsys.readouterr().out)
    assert json.loads((out / "diff.json").read_text()) == result
    shown = (out / "report.html").read_text()
    assert "http" not in shown
    for group in result["groups"]:
        assert escape(group["key"]) in shown
        assert group["shortest"]["switches"]
    assert shown.count("data-marked") == 2 * len(result["groups"])
    for number in range(1, len(result["groups"]) + 1):
        mine, theirs = read_traces(out / "traces" / f"{number:02}.jsonl")
        assert isinstance(mine, EventTrace)
        assert isinstance(theirs, EventTrace)
        for trace in (mine, theirs):  # the observations are those of the core under that profile
            assert Core().run(trace.settings, trace.profile, trace.events) == list(trace.observations)
        last = [
            Seen(
                trace.observations[-1],
                {},
                {each.id: each.body.group_id for each in trace.events if hasattr(each, "id")},
            )
            for trace in (mine, theirs)
        ]
        assert leaves(*last), result["groups"][number - 1]["key"]


def test_the_results_before_an_interruption_are_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = Runner.row

    def cut(runner: Runner, seed: int) -> Row:
        if seed == CHUNK + 3:
            raise KeyboardInterrupt
        return whole(runner, seed)

    monkeypatch.setattr(Runner, "row", cut)
    words = ["diff", "core:kafka-4.2", "core:kafka-4.3", "--protocol", "consumer", "--traces", "60", "--workers", "1"]
    with pytest.raises(SystemExit) as left:
        main([*words, "--json"])
    result = json.loads(capsys.readouterr().out)
    assert left.value.code == 1  # the completed traces differ
    assert result["counts"]["traces"] == CHUNK
    assert result["groups"]
    assert f"interrupted; {CHUNK} of 60 traces done" in result["error"]


def counting_apart() -> Pair:
    """Kafka 4.2 counts a new group from 0, 4.3 from 1 (V-30): m1 is at epoch 1 on one side, and at 2 on the other."""
    pair = Pair(CoreLive(Settings(), KAFKA_4_2), CoreLive(Settings(), KAFKA_4_3))
    body = ConsumerGroupHeartbeatRequest(
        "g",
        member_id="m1",
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=("t",),
        server_assignor="range",
        topic_partitions=(),
    )
    pair.feed(TopicsChanged(0, (Topic("t", bytes(15) + b"t", 1),), version=1))
    pair.feed(Load(0, leader_epoch=1, records=()))
    pair.feed(Request(0, id=1, version=1, client_id="c", client_host="/127.0.0.1", body=body))
    pair.feed(Appended(0, offset=len(pair.one.log)))
    epochs = [side.live.consumer_groups["g"].members[0].member_epoch for side in (pair.one, pair.other)]
    assert epochs == [1, 2]
    return pair


def translated(pair: Pair, version: int, body: RequestBody) -> Any:
    pair.feed(Request(1, id=50, version=version, client_id="c", client_host="/127.0.0.1", body=body))
    event, _ = pair.theirs[-1]
    assert isinstance(event, Request)
    return event.body


@pytest.mark.parametrize(("epoch", "theirs"), [(1, 2), (2, 3), (4, 5), (5, 5), (100, 100), (0, 0), (-1, -1)])
def test_an_epoch_keeps_its_distance_from_the_members_own(epoch: int, theirs: int) -> None:
    """An epoch far from the member's own is passed unchanged, and so are 0 and -1, which have a special meaning."""
    beat = ConsumerGroupHeartbeatRequest("g", member_id="m1", member_epoch=epoch)
    assert translated(counting_apart(), 1, beat).member_epoch == theirs
    assert (
        translated(counting_apart(), 4, HeartbeatRequest("g", generation_id=epoch, member_id="m1")).generation_id
        == theirs
    )


@pytest.mark.parametrize(("generation", "theirs"), [(1, 2), (2, 3), (100, 100), (-1, -1)])
@pytest.mark.parametrize("version", [2, 3])
def test_a_generation_inside_a_subscription_does_so_too(version: int, generation: int, theirs: int) -> None:
    """Owned partitions count with the generation in the same subscription (X-JOIN-12). Bytes that cannot be parsed are
    unchanged."""
    said = Subscription(("t",), None, (TopicPartition("t", 0),), generation)
    protocols = (Protocol("range", encode_subscription(said, version)), Protocol("other", b"\x00"))
    join = JoinGroupRequest(
        "g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=30_000,
        member_id="m1",
        protocol_type="consumer",
        protocols=protocols,
    )
    one, other = translated(counting_apart(), 9, join).protocols
    assert decode_subscription(one.metadata) == replace(said, generation_id=theirs)
    assert (version_of(one.metadata), other) == (version, protocols[1])


def test_a_member_that_sends_its_epoch_is_fenced_on_neither_side() -> None:
    """Without translation, the epoch of the first side would be an old one on the other side, which would reject it."""
    pair = counting_apart()
    beat = ConsumerGroupHeartbeatRequest("g", member_id="m1", member_epoch=1, topic_partitions=())
    pair.feed(Request(1, id=2, version=1, client_id="c", client_host="/127.0.0.1", body=beat))
    replies = [reply.body.error_code for seen in pair.seen[-1] for reply in seen.replies]
    assert replies == [ErrorCode.NONE] * 2

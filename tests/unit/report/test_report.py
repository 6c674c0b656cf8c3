"""Reports for people: a trace in words, as a text chart, and as a page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree as ET

import pytest

from fencepost.member.consumer_protocol import Assignment, encode_assignment
from fencepost.member.partitions import TopicPartition
from fencepost.protocol import events as ev
from fencepost.protocol.consumer_view import ConsumerGroupState, MemberState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue, Record, RecordKey
from fencepost.protocol.view import GroupState, GroupView, MemberView
from fencepost_conformance.show.replay.graph import text_chart, who_held_what
from fencepost_conformance.show.report.chart import Chart, chart_svg, plan_of
from fencepost_conformance.show.report.chart_page import chart_data, chart_html, packed
from fencepost_conformance.show.report.folding import heartbeats
from fencepost_conformance.show.report.holdings import after_each, changed
from fencepost_conformance.show.report.names import assignment_words, compact, learn
from fencepost_conformance.show.report.record_words import KINDS, record_words
from fencepost_conformance.show.report.steps import COORDINATOR, Answer, Kind, StepDescriber, StepWords
from fencepost_conformance.show.report.wire_words import wire_lanes, wire_steps
from fencepost_conformance.show.report.words import event_words
from fencepost_conformance.traces.files import EventTrace, WireTrace, read_traces
from fencepost_conformance.traces.observation import Observation
from fencepost_server.look.made import Made
from fencepost_server.look.page import page

from .consumer_trace import EVENTS, OBSERVATIONS, ONE, TWO, group, member

MADE = Made("1.2.3", "", "today", "a test")
CORPUS = Path(__file__).parents[2] / "corpus"
DOCS = Path(__file__).parents[3] / "docs"


def chart(marked: int | None = None) -> Chart:
    describer = StepDescriber(EVENTS, OBSERVATIONS, [("M-HB-01",), ("M-REC-10", "M-REC-11")])
    return Chart("a trace", ("a note",), describer.lanes(), describer.steps(), marked)


def wire(name: str) -> WireTrace:
    (trace,) = read_traces(CORPUS / f"{name}.jsonl.gz")
    assert isinstance(trace, WireTrace)
    return trace


# --- words -----------------------------------------------------------------------------------------------------------


def test_every_event_without_a_sender_has_its_own_words() -> None:
    made: dict[type, ev.Event] = {
        ev.TimerFired: ev.TimerFired(0, ev.TimerKey(ev.TimerKind.CONSUMER_JOIN, "g", "m")),
        ev.TaskDone: ev.TaskDone(0, ev.TaskKey(ev.TaskKind.REGEX, "g"), failed=True),
        ev.Appended: ev.Appended(0, offset=3),
        ev.AppendFailed: ev.AppendFailed(0, ErrorCode.NOT_ENOUGH_REPLICAS),
        ev.TopicsChanged: ev.TopicsChanged(0, (ev.Topic("t", bytes(16), 2),), version=4),
        ev.GroupConfigChanged: ev.GroupConfigChanged(0, "g", None),
        ev.LoadStarted: ev.LoadStarted(0, leader_epoch=1),
        ev.Load: ev.Load(0, leader_epoch=1, records=()),
        ev.LoadFailed: ev.LoadFailed(0, leader_epoch=1),
        ev.Unload: ev.Unload(0, leader_epoch=None),
    }
    assert set(made) == set(get_args(ev.Event)) - {ev.Request}
    texts = [event_words(event) for event in made.values()]
    assert len(set(texts)) == len(made)
    assert "timer fires: rejoin of m" in texts
    assert "task regex of g fails" in texts


def test_a_load_at_a_known_epoch_settles_nothing() -> None:
    """It comes at a known epoch, and the log continues (F-LOAD-03)."""
    wrote = Observation(records=(Record(GroupMetadataKey("g"), None),))
    events = [
        ev.Load(0, leader_epoch=1, records=()),
        ev.Unload(0, leader_epoch=None),
        ev.Load(0, leader_epoch=2, records=()),
        ev.TopicsChanged(1, (), version=1),
    ]
    late = [
        ev.Load(2, leader_epoch=2, records=()),
        ev.Unload(2, leader_epoch=1),
        ev.LoadFailed(2, leader_epoch=1),
        ev.Appended(3, offset=1),
        ev.TopicsChanged(4, (), version=2),
    ]
    seen = [Observation()] * 3 + [wrote] + [Observation()] * 4 + [wrote, Observation()]
    steps = StepDescriber([*events, *late, ev.Unload(5, leader_epoch=None)], seen).steps()
    first, second = steps[3].append, steps[8].append
    assert first is not None
    assert second is not None
    assert (first.fate, first.failed) == ("replicated at event 7", False)
    assert (second.first, second.failed) == (1, True)
    assert second.fate == "not replicated when the partition was lost at event 9"


def test_every_kind_of_record_has_a_name() -> None:
    assert set(KINDS) == set(get_args(RecordKey))


def test_partitions_are_shown_in_runs() -> None:
    assert compact([("t", 2), ("t", 0), ("t", 1), ("u", 7), ("t", 5)]) == "t:0-2,5 u:7"
    assert compact([]) == "nothing"


def test_assignments_are_shown_as_partitions_as_text_or_by_their_length() -> None:
    written = encode_assignment(Assignment((TopicPartition("t", 1), TopicPartition("t", 0))))
    assert assignment_words(written) == "t:0-1"
    assert assignment_words(b"mine") == "'mine'"
    assert assignment_words(b"\xff\x00") == "2 B"
    row = GroupMetadataMember(
        "m",
        group_instance_id=None,
        client_id="c",
        client_host="h",
        rebalance_timeout=1,
        session_timeout=1,
        subscription=b"",
        assignment=written,
    )
    record = Record(
        GroupMetadataKey("g"),
        GroupMetadataValue(
            "consumer", generation=3, protocol="range", leader="m", current_state_timestamp=0, members=(row,)
        ),
    )
    assert record_words(record, learn((), ())) == "Group g: generation 3 protocol range leader m [m=t:0-1]"


# --- steps -----------------------------------------------------------------------------------------------------------


def test_a_client_with_several_members_has_a_column_for_each() -> None:
    describer = StepDescriber(EVENTS, OBSERVATIONS)
    assert describer.lanes() == ["client /127.0.0.1 one", "client /127.0.0.1 2b7c", "coordinator", "log"]
    assert {step.who for step in describer.steps()} < set(describer.lanes())


def test_records_are_shown_with_offsets_and_fate() -> None:
    appends = {step.index: step.append for step in chart().steps if step.append}
    fates = {index: (append.first, append.end, append.fate, append.failed) for index, append in appends.items()}
    lost = "not replicated when the partition was lost at event 13"
    assert fates == {
        3: (0, 3, "replicated at event 4", False),
        6: (3, 5, lost, True),
        7: (5, 6, "failed at event 8: NOT_ENOUGH_REPLICAS", True),
        9: (5, 6, lost, True),  # the offset was free again
        10: (6, 7, lost, True),
    }


def test_a_step_shows_request_answer_epochs_and_partitions() -> None:
    step = chart().steps[7]
    assert step.brief == "ConsumerGroupHeartbeat one epoch 1"
    assert [(answer.brief, answer.error) for answer in step.answers] == [("epoch 1, own t:0-1", False)]
    assert step.timers == ("revocation of one at 65000",)
    (now,) = step.groups
    assert (now.state, now.epochs) == ("Reconciling", (("group epoch", 2), ("assignment epoch", 2)))
    one = next(row for row in now.members if row.member == ONE)
    assert (one.holds, one.giving_up, one.state) == ((("t", 0), ("t", 1)), (("t", 2),), "UNREVOKED_PARTITIONS")
    assert one.epochs == "epoch 1 (before 0)"


def test_an_error_is_shown_as_an_error() -> None:
    (answer,) = chart().steps[11].answers
    assert (answer.brief, answer.error) == ("FENCED_MEMBER_EPOCH", True)


def test_a_classic_assignment_counts_while_its_generation_is_stable() -> None:
    def seen(state: GroupState) -> Observation:
        written = encode_assignment(Assignment((TopicPartition("t", 0),)))
        row = MemberView(
            "m",
            group_instance_id=None,
            client_id="c",
            client_host="h",
            rebalance_timeout_ms=1,
            session_timeout_ms=1,
            protocols=(),
            assignment=written,
            is_new=False,
            awaiting_join=False,
            awaiting_sync=False,
        )
        view = GroupView(
            "g",
            state=state,
            previous_state=state,
            generation_id=2,
            protocol_type="consumer",
            protocol_name="range",
            leader="m",
            members=(row,),
            static_members=(),
            pending_join=frozenset(),
            pending_sync=frozenset(),
            new_member_added=False,
        )
        return Observation(groups={"g": view})

    names = learn((), ())
    (stable,), (preparing,) = (
        changed(seen(state), names) for state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE)
    )
    assert (stable.members[0].holds, stable.members[0].giving_up) == ((("t", 0),), ())
    assert (preparing.members[0].holds, preparing.members[0].giving_up) == ((), (("t", 0),))


def test_a_converted_group_is_shown_with_its_present_kind() -> None:
    view = group(ConsumerGroupState.STABLE, 1, (member("m", 1, MemberState.STABLE, (0,)),), ())
    (now,) = changed(Observation(groups={"g": None}, consumer_groups={"g": view}), learn((), ()))
    assert now.kind == "consumer"
    assert not now.gone


# --- the wire --------------------------------------------------------------------------------------------------------


def test_topics_that_were_created_in_a_trace_have_their_names() -> None:
    steps = wire_steps(wire("consumer-crash-java"))
    given = next(answer.text for step in steps for answer in step.answers if "own consumer" in answer.text)
    assert given.endswith("own consumer-crash-java-a:0-7")


def test_a_recorded_trace_shows_the_assignments_of_the_members() -> None:
    steps = wire_steps(wire("cooperative-confluent-kafka"))
    assert wire_lanes(wire("cooperative-confluent-kafka")) == ["admin", "one", "two", "three", "coordinator"]
    held = [
        [partition for row in standing.members for partition in row.holds]
        for groups in after_each([step.groups for step in steps])
        for standing in groups.values()
    ]
    assert max(map(len, held)) == 8
    assert all(len(set(partitions)) == len(partitions) for partitions in held)
    assert held[-1] == []


# --- text ------------------------------------------------------------------------------------------------------------


def test_the_chart_of_text_is_plain_and_fits() -> None:
    lines = [line.plain for line in text_chart(chart(marked=9), 100)]
    assert max(map(len, lines)) <= 100
    assert lines[0] == "A client /127.0.0.1 one   B client /127.0.0.1 2b7c   ◆ coordinator   ≡ log"
    assert lines[1] == "A  B  ◆  ≡"
    assert any(
        re.fullmatch(r"│  ●──>  │ +6     3000 ms  #2 ConsumerGroupHeartbeat v1 g member 2b7c .*", line)
        for line in lines
    )
    assert any(line.startswith("╪══╪══╪══╪") for line in lines)  # fail-over
    assert [line for line in lines if "✗   9" in line]
    assert any(line.endswith("rules    M-REC-10 M-REC-11") for line in lines)


def test_the_table_of_owners_shows_holders_and_revocations() -> None:
    lines = [line.plain for line in who_held_what(chart().steps)]
    assert lines[2].startswith("A one   B 2b7c")
    assert lines[3].split() == ["step", "3", "7", "9", "10", "12", "13"]
    assert lines[-1].split() == ["t:2", "A", "(A)", "·", "B", "B", "·"]


def test_two_owners_at_the_same_time_are_marked() -> None:
    two = (member(ONE, 1, MemberState.STABLE, (0,)), member(TWO, 1, MemberState.STABLE, (0,)))
    seen = Observation(consumer_groups={"g": group(ConsumerGroupState.STABLE, 1, two, ())})
    describer = StepDescriber((EVENTS[0],), (seen,))
    assert who_held_what(describer.steps())[-1].plain.split() == ["t:0", "!AB"]
    assert 'class="clash"' in chart_svg(Chart("", (), describer.lanes(), describer.steps()))
    assert 'class="clash"' not in chart_svg(chart())


# --- the page --------------------------------------------------------------------------------------------------------


def test_the_page_needs_nothing_else() -> None:
    html = page("<title>", chart_html(chart()), MADE)
    assert "<title>&lt;title&gt;</title>" in html
    assert not re.search(r"https?:|src=|href=|@import|<link", html)


def test_every_step_has_a_band_and_a_panel_with_its_rules() -> None:
    data = chart_data(plan_of(chart(marked=9)))
    assert len(data["steps"]) == len(EVENTS)
    assert data["marked"] == 9
    for at, (at_ms, height, kind, _, _, _, band, _, panel, _) in enumerate(data["steps"]):
        assert (kind == "step marked") == (at == 9) or "failover" in kind
        assert f">{at_ms}</text>" in band
        assert f'height="{height}"' in band
        assert f"<h3>step {at} " in panel
    rule = re.search(r'<summary title="([^"]+)">M-REC-10</summary>([^<]+)<', data["steps"][1][8])
    assert rule is not None
    assert rule[1] == rule[2] != ""
    assert data["heads"].count("coordinator") == 1


def test_equal_states_and_pictures_are_in_the_page_once() -> None:
    data = chart_data(plan_of(chart()))
    for name in ("states", "cells"):
        assert len({*data[name]}) == len(data[name])
    changed = [sum(is_new for _, is_new in row[9]) for row in data["steps"]]
    assert changed == [sum(not group.gone for group in step.groups) for step in chart().steps]


def test_a_packed_chart_has_the_same_html() -> None:
    data = chart_data(plan_of(chart(marked=9)))
    data["cells"].append("<b>a tag</b> and text")
    small = packed(data)
    assert len({*small["pieces"]}) == len(small["pieces"])

    def html(places: list[int]) -> str:
        return "".join(small["pieces"][at] for at in places)

    for name in ("cells", "states"):
        assert [html(each) for each in small[name]] == data[name]
    for before, after in zip(data["steps"], small["steps"], strict=True):
        assert [*after[:6], html(after[6]), after[7], html(after[8]), after[9]] == before


def long_chart(clients: Sequence[str], steps: int) -> Chart:
    """Requests of several clients in turn, each with its answer."""
    rows = [
        StepWords(
            at, at * 500, Kind.REQUEST, clients[at % len(clients)], COORDINATOR, f"#{at} SyncGroup g", "SyncGroup g",
            (Answer(clients[at % len(clients)], at, "SyncGroup NONE", "NONE", error=False),), rules=("C-SYNC-03",),
        )
        for at in range(steps)
    ]  # fmt: skip
    return Chart("long", (), [*clients, COORDINATOR], rows)


def test_a_step_of_a_long_trace_takes_few_bytes() -> None:
    clients = ["client 0", "client 1", "client 2"]
    short, long = (len(chart_html(long_chart(clients, steps))) for steps in (100, 5_100))
    assert (long - short) / 5_000 < 350


@pytest.mark.parametrize(
    ("form", "name"),
    [("forger #{}", "forger (400)"), ("one /127.0.0.1 m-{}", "(400)"), ("{}: 127.0.0.1:9000", "no client id")],
)
def test_connections_of_one_client_share_a_lane_if_they_are_many(form: str, name: str) -> None:
    few, many = (plan_of(long_chart([form.format(at) for at in range(count)], 400)) for count in (3, 400))
    assert len(few.columns) == 4
    assert len(many.columns) == 2
    assert many.width < few.width + 500
    assert chart_data(many)["clients"] == [next(iter(many.columns))]
    assert {tuple(row[3]) for row in chart_data(many)["steps"]} == {(next(iter(many.columns)),)}
    assert name in chart_data(many)["heads"]
    assert max(len(line.plain) for line in text_chart(long_chart([form.format(at) for at in range(400)], 400))) <= 100


@pytest.mark.parametrize(("kind", "steps"), [("held m0", [3]), ("held m0 leaving", [7]), ("held m1", [10])])
def test_the_strips_show_the_owners(kind: str, steps: list[int]) -> None:
    """The strips of a step show who holds each partition from then on, with a letter where this changes."""
    data = chart_data(plan_of(chart()))
    shown = [[data["cells"][cell] for _, cell in row[7]] for row in data["steps"]]
    begun = [at for at, cells in enumerate(shown) if any(f'"{kind}"' in each and "<text" in each for each in cells)]
    assert begun == steps
    picture = ET.fromstring(chart_svg(chart()))
    kinds = [each.get("class") for each in picture.iter("{http://www.w3.org/2000/svg}rect")]
    assert kinds.count(kind) == sum(f'"{kind}"' in each for cells in shown for each in cells)


def test_heartbeats_without_news_can_be_folded() -> None:
    steps = wire_steps(wire("consumer-crash-java"))
    quiet = heartbeats(steps)
    assert len(quiet) > 20
    for at in quiet:
        step = steps[at]
        assert "Heartbeat" in (step.brief or step.answers[0].text)
        assert not any(answer.error for answer in step.answers)
        assert not step.groups
    mine = [step.index for step in chart().steps if step.index in heartbeats(chart().steps)]
    assert mine == []


def test_a_request_is_folded_with_its_answer() -> None:
    """On the wire an answer is a separate step."""
    steps = wire_steps(wire("consumer-crash-java"))
    asked = {(step.who, step.what.split(" ")[0]): at for at, step in enumerate(steps) if step.what}
    quiet = heartbeats(steps)
    for at, step in enumerate(steps):
        for answer in step.answers:
            request = asked.get((step.whom, f"#{answer.request_id}"))
            if request is not None and "ConsumerGroupHeartbeat" in answer.text:
                assert (request in quiet) == (at in quiet)


def test_text_of_a_trace_is_escaped() -> None:
    hostile = StepWords(0, 0, chart().steps[0].kind, "<b>", "coordinator", "<script>", "<script>")
    assert "<script>" not in chart_html(Chart("<script>", ("<script>",), ["<b>", "coordinator"], [hostile]))


def test_the_picture_of_the_documentation_is_of_its_trace() -> None:
    (trace,) = read_traces(DOCS / "reconciliation.jsonl")
    assert isinstance(trace, EventTrace)
    describer = StepDescriber(trace.events, trace.observations)
    picture = chart_svg(Chart(trace.name, (), describer.lanes(), describer.steps()))
    assert ET.fromstring(picture) is not None
    assert (DOCS / "reconciliation.svg").read_text() == picture, "draw it again: fencepost replay … --svg …"
    drawn = "\n".join(line.plain for line in who_held_what(describer.steps()) if line.plain)
    assert drawn in (DOCS / "conformance.md").read_text()

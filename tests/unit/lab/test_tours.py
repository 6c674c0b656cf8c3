"""The tours, the comparison side by side, and saved sessions."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from test_lab import EVERYTHING, Actions, played, run, start

from fencepost_conformance.cli import main
from fencepost_conformance.generate.lab import Lab, Protocol, parse_actions, parse_start
from fencepost_conformance.generate.lab.journal import Kind
from fencepost_conformance.generate.lab.saving import events_trace, wire_trace
from fencepost_conformance.generate.lab.sides import sides
from fencepost_conformance.generate.lab.tours import TOURS, Tour
from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.show.lab.view import sides_view
from fencepost_conformance.traces.files import EventTrace, read_traces, write_traces
from fencepost_conformance.traces.lines import ReceivedLine

ARTICLES = Path(__file__).parents[3] / "docs" / "rules" / "11-articles.md"


@pytest.mark.parametrize("tour", TOURS.values(), ids=TOURS)
def test_each_chapter_shows_what_its_text_says(tour: Tour) -> None:
    lab = Lab(parse_start(dict(tour.start)))
    for number, chapter in enumerate(tour.chapters, 1):
        assert not chapter.holds(lab), f"the claim of chapter {number} holds before its actions"
        lab.play(parse_actions([dict(action) for action in chapter.actions]))
        assert chapter.holds(lab), f"chapter {number}: {chapter.text}"
    assert [row.text for row in lab.journal.rows if row.kind is Kind.ALERT] == []


def test_tours_name_statements_of_the_articles() -> None:
    book = ARTICLES.read_text(encoding="utf-8") + (ARTICLES.parent / "09-properties.md").read_text(encoding="utf-8")
    for tour in TOURS.values():
        named = re.split(r"[,;] ", tour.articles)
        assert named
        assert [each for each in named if f"| {each} |" not in book and f"**{each}**" not in book] == []


SCRIPT: Actions = [
    start("c1"),
    start("c2"),
    run(20_000),
    start("c3"),
    run(20_000),
    {"do": "crash", "client": "c2"},
    run(30_000),
]


def test_protocols_are_compared_by_the_same_script() -> None:
    lab = played(SCRIPT)
    found = {protocol: side.lab for protocol, side in sides(lab)}
    assert list(found) == list(Protocol)
    assert {each.now for each in found.values()} == {lab.now}
    assert all(set(each.owners().values()) == {("c1",), ("c3",)} for each in found.values())
    eager, cooperative, consumer = (found[each].ownership for each in Protocol)
    assert eager.returned > 0 == cooperative.returned == consumer.returned
    assert min(each.moved for each in (eager, cooperative, consumer)) >= 4  # two partitions to c3, two of c2
    same = [each for each in sides_view(lab)["sides"] if each["protocol"] == "consumer"]
    assert same[0]["counters"]["moved"] == lab.ownership.moved


def test_what_a_side_cannot_do_is_skipped_and_said() -> None:
    lab = played([start("c1", "consumer"), run(41), {"do": "lose"}, {"do": "step"}, run(9_000)])
    assert [bool(side.skipped) for _, side in sides(lab)] == [False, False, False]
    lab = played([start("c1", "consumer"), run(200), {"do": "step"}, {"do": "lose"}, run(9_000)])
    skipped = {protocol: side.skipped for protocol, side in sides(lab)}
    assert skipped[Protocol.CONSUMER] == ()
    assert any("no message is on its way" in reason for reasons in skipped.values() for reason in reasons)


SAVED = {
    "everything": EVERYTHING,
    "script": SCRIPT,
    "mixed": [start("c1", "eager"), run(5_000), start("c2"), run(15_000)],
}


@pytest.mark.parametrize("name", SAVED)
def test_a_saved_session_is_replayed(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab, path = played(SAVED[name]), tmp_path / "lab-trace.jsonl"
    write_traces(path, [events_trace(lab)])
    (read,) = read_traces(path)
    assert isinstance(read, EventTrace)
    assert (read.events, read.observations) == (events_trace(lab).events, events_trace(lab).observations)
    with pytest.raises(SystemExit) as ended:
        main(["replay", str(path), "--json"])
    assert (ended.value.code, json.loads(capsys.readouterr().out)["verdict"]) == (0, "passed")


@pytest.mark.parametrize("name", SAVED)
def test_saved_messages_are_valid_and_a_changed_answer_is_not(name: str, tmp_path: Path) -> None:
    trace = wire_trace(played(SAVED[name]))
    path = tmp_path / "lab-wire.jsonl"
    write_traces(path, [trace])
    assert check_trace(next(iter(read_traces(path))), name).verdict == "passed"  # type: ignore[arg-type]
    for field in ("member_epoch", "generation_id"):
        for place, line in enumerate(trace.lines):
            if isinstance(line, ReceivedLine) and isinstance(epoch := line.body.get(field), int) and epoch > 0:
                wrong = line.model_copy(update={"body": {**line.body, field: epoch + 7}})
                changed = replace(trace, lines=(*trace.lines[:place], wrong, *trace.lines[place + 1 :]))
                assert check_trace(changed, name).verdict == "failed"
                break

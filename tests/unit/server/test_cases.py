"""The named cases on the bundled server: each passes, and each fails if one field that it compares is falsified."""

from __future__ import annotations

import asyncio
import copy
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest

from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings
from fencepost_conformance.common.addresses import Address
from fencepost_conformance.judge.cases.case import CASES, Case
from fencepost_conformance.judge.cases.catalogue import chosen
from fencepost_conformance.judge.cases.peer import BrokerUnderTest, reported
from fencepost_conformance.judge.cases.play import Ending, Played, play, play_all
from fencepost_conformance.run.commands.conform_cases import result_of
from fencepost_conformance.show.report.cases import junit, not_supported
from fencepost_conformance.show.report.cases_page import cases_page
from fencepost_server.faults import Fault, Plan
from fencepost_server.look.made import Made

from .served import play as in_loop
from .served import running

MADE = Made("1.2.3", "", "today", "a test")

#: a short wait for further members; sessions are long, since a busy machine is slow
SETTINGS = Settings(group_initial_rebalance_delay_ms=200)
#: short sessions for the cases that wait for their end
SHORT = Settings(
    group_initial_rebalance_delay_ms=200,
    group_consumer_session_timeout_ms=10_000,
    group_consumer_min_session_timeout_ms=1_000,
    group_consumer_heartbeat_interval_ms=500,
    group_consumer_min_heartbeat_interval_ms=100,
)
AT_ONCE = 30
#: how many fields are falsified, one after another, until the case fails
LAST = 16
#: a field that a case compares: connection, number of the answer on it, and path
Field = tuple[str, int, str]


def quick() -> list[Case]:
    """The cases that do not wait for a session or a rebalance timeout."""
    return [case for case in CASES.values() if case.waits_s <= 4]


def slow() -> list[Case]:
    return [case for case in CASES.values() if case.waits_s > 4]


def _other(value: Any) -> list[Any]:
    """Return values that a broker with a fault could answer instead."""
    match value:
        case bool():
            return [not value]
        case int():
            return [-1, value + 1]
        case bytes():
            return [b"", value + b"x"]
        case str():
            return ["UNKNOWN_SERVER_ERROR", ""] if value.isupper() else ["", f"{value}x"]
        case list():
            return [value[:-1]] if value else [[{}]]
        case None:
            return [{"topic_partitions": [{"topic_id": "x", "partitions": [0]}]}]
        case _:
            return [None]


def _falsified(answer: Any, path: str, turn: int) -> Any:
    """Return the answer with another value at a path; the answer itself if the path is not in it."""
    changed = copy.deepcopy(answer)
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    try:
        place = changed
        for step in way:
            place = place[step]
        values = _other(place[last])
        place[last] = values[turn % len(values)]
    except (IndexError, KeyError, TypeError):
        return answer
    return changed


async def _bites(case: Case, broker: BrokerUnderTest, field: Field) -> bool:
    """Whether the case fails for one of the values that the field can have instead."""
    name, number, path = field
    for turn in range(2):

        def falsify(client: str, nth: int, answer: Any, turn: int = turn) -> Any:
            return _falsified(answer, path, turn) if (client, nth) == (name, number) else answer

        if (await play(case, broker, falsify)).ending is not Ending.PASSED:
            return True
    return False


async def _toothless(played: Played, broker: BrokerUnderTest) -> list[str]:
    """Return the case if none of the fields that it read last, falsified, makes it fail."""
    last = sorted(played.compared, key=lambda field: (field[0], field[1]), reverse=True)[:LAST]
    for field in last:
        if await _bites(played.case, broker, field):
            return []
    return [f"{played.case.name} {last}"]


def _session(cases: Sequence[Case], falsified: Sequence[Case], settings: Settings = SETTINGS) -> None:
    """Play cases, and some of them again with falsified answers."""

    async def session() -> None:
        async with running(settings=settings) as ready:
            broker = BrokerUnderTest(Address(ready.listen.host, ready.listen.port), INTENDED)
            broker = replace(broker, settings=await reported(broker))
            done = await play_all(cases, broker, AT_ONCE)
            failed = [f"{each.case.name} {each.ending}: {each.why}" for each in done if each.ending != "passed"]
            assert not failed, "\n".join(failed)
            room = asyncio.Semaphore(AT_ONCE)

            async def one(played: Played) -> list[str]:
                async with room:
                    return await _toothless(played, broker)

            wanted = [each for each in done if each.case in falsified]
            toothless = [text for texts in await asyncio.gather(*map(one, wanted)) for text in texts]
            assert not toothless, "\n".join(toothless)

    in_loop(session())


def test_each_case_passes() -> None:
    """Those about heartbeats are also played with falsified answers, and ``make test-all`` plays all so."""
    _session(quick(), [case for case in quick() if case.name.startswith("classic.heartbeat.")])


@pytest.mark.all
def test_each_case_fails_on_a_falsified_answer() -> None:
    _session(quick(), quick())


@pytest.mark.all
def test_each_slow_case_passes_and_fails_on_a_falsified_answer() -> None:
    _session(slow(), slow(), SHORT)


def _kind(answer: Any) -> str:
    """Return what an answer may be about: the offsets of partitions, or the end of a membership in a consumer group."""
    if "groups" in answer or "topics" in answer:
        return "offsets" if any(_codes_of_partitions(answer)) else ""
    ended = "member_epoch" in answer and (answer["member_epoch"] < 0 or answer["error_code"] != "NONE")
    return "left" if ended else ""


def _codes_of(played: Played) -> list[Field]:
    """Return where the answers of a case have error codes that are easily left unread: those of the partitions in
    OffsetFetch, and those of heartbeats that leave a consumer group. The number is that of the answer among those of
    its kind on its connection. The probe of a new topic does not belong to the case."""
    found: list[Field] = []
    asked: Counter[tuple[str, str]] = Counter()
    for each in played.exchanges:
        if each.answer is None or not (kind := _kind(each.answer)):
            continue
        number = asked[each.client, kind]
        asked[each.client, kind] += 1
        if kind == "offsets":
            found += [(each.client, number, path) for path in _codes_of_partitions(each.answer)]
        elif each.request["member_epoch"] < 0 and not each.request["group_id"].startswith("probe-"):
            found.append((each.client, number, "error_code"))
    return found


def _codes_of_partitions(answer: Any) -> Iterator[str]:
    groups = (
        {f"groups.{at}.": group for at, group in enumerate(answer["groups"])} if "groups" in answer else {"": answer}
    )
    for where, group in groups.items():
        for at, topic in enumerate(group.get("topics") or ()):
            for index, row in enumerate(topic.get("partitions", ())):
                if "committed_offset" in row:
                    yield f"{where}topics.{at}.partitions.{index}.error_code"


def _each_code_is_read(cases: Sequence[Case], least: int) -> None:
    """Falsify each such code by itself, in each answer on its connection from there on, since some cases ask again;
    expect the case to fail. ``least``: how many codes there are."""

    async def session() -> None:
        async with running(settings=SETTINGS) as ready:
            broker = BrokerUnderTest(Address(ready.listen.host, ready.listen.port), INTENDED)
            done = await play_all(cases, broker, AT_ONCE)
            room = asyncio.Semaphore(AT_ONCE)

            async def one(case: Case, field: Field) -> list[str]:
                client, first, path = field
                kind = "left" if path == "error_code" else "offsets"
                seen = count()

                def falsify(name: str, _: int, answer: Any) -> Any:
                    of_kind = name == client and _kind(answer) == kind
                    return _falsified(answer, path, 0) if of_kind and next(seen) >= first else answer

                async with room:
                    played = await play(case, broker, falsify)
                return [f"{case.name} {field}"] if played.ending is Ending.PASSED else []

            fields = [(each.case, field) for each in done for field in _codes_of(each)]
            assert len(fields) >= least
            unread = await asyncio.gather(*(one(case, field) for case, field in fields))
            assert not (texts := [text for each in unread for text in each]), "\n".join(texts)

    in_loop(session())


def test_the_codes_of_partitions_and_of_leaving_are_read() -> None:
    _each_code_is_read([CASES[name] for name in ("offsets.fetch.3", "offsets.fetch.5", "consumer.leave.1")], 5)


@pytest.mark.all
def test_each_code_of_partitions_and_of_leaving_is_read() -> None:
    _each_code_is_read(quick(), 70)


@pytest.mark.parametrize(
    ("name", "ending"), [("offsets.commit.1", Ending.PASSED), ("classic.heartbeat.6", Ending.FAILED)]
)
def test_a_broker_that_answers_no_heartbeat_is_judged_all_the_same(name: str, ending: Ending) -> None:
    """NOT_COORDINATOR to each Heartbeat does not show that the group has another coordinator: OffsetFetch works."""

    async def session() -> None:
        wrong = Plan((Fault(do="error", api="heartbeat", code="NOT_COORDINATOR"),))
        async with running(settings=SETTINGS, faults=wrong) as ready:
            broker = BrokerUnderTest(Address(ready.listen.host, ready.listen.port), INTENDED)
            played = await play(CASES[name], broker)
            assert played.ending is ending, played.why

    in_loop(session())


def test_another_error_than_a_rebalance_fails_the_case_about_it() -> None:
    async def session() -> None:
        wrong = Plan((Fault(do="error", api="heartbeat", code="ILLEGAL_GENERATION"),))
        async with running(settings=SETTINGS, faults=wrong) as ready:
            broker = BrokerUnderTest(Address(ready.listen.host, ready.listen.port), INTENDED)
            played = await play(CASES["classic.heartbeat.3"], broker)
            assert (played.ending, "ILLEGAL_GENERATION" in played.why) == (Ending.FAILED, True), played.why

    in_loop(session())


def test_a_case_is_chosen_by_its_name_or_what_is_above_it() -> None:
    assert [case.name for case in chosen(["classic.join.3"])] == ["classic.join.3"]
    assert {case.family for case in chosen(["offsets", "mixed.upgrade"])} == {"offsets", "mixed"}
    assert len(chosen([])) == len(CASES) >= 250


def _ended(ending: Ending) -> Played:
    return Played(CASES["classic.join.1"], ending, "" if ending is Ending.PASSED else "why", None, (), frozenset(), 0.1)


@pytest.mark.parametrize(
    ("ending", "strict", "status"),
    [
        (Ending.PASSED, False, 0),
        (Ending.FAILED, False, 1),
        (Ending.NOT_REACHED, False, 2),
        (Ending.KNOWN_FAULT, False, 0),
        (Ending.KNOWN_FAULT, True, 1),
        (Ending.NOT_SUPPORTED, False, 2),  # alone: nothing was decided
    ],
)
def test_the_exit_status_follows_from_the_endings(ending: Ending, *, strict: bool, status: int) -> None:
    cases = [CASES["classic.join.1"]]
    assert result_of([_ended(ending)], cases, 0.1, strict=strict).status == status


def test_junit_has_a_test_case_for_each_ending() -> None:
    suite = fromstring(junit([_ended(each) for each in Ending], "broker:4.4.0", 1.0))[0]
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5", "failures": "1", "errors": "1", "skipped": "1",
    }  # fmt: skip
    assert [[child.tag for child in each] for each in suite] == [
        [],
        ["failure"],
        ["system-out"],
        ["skipped"],
        ["error"],
    ]


def test_the_page_has_each_case_and_loads_nothing() -> None:
    played = [_ended(ending) for ending in Ending]
    result = result_of(played, [], 0.1, strict=False)
    shown = cases_page(played, "broker:4.4.0", "kafka-4.4", "fencepost conform broker:4.4.0", result, [], MADE)
    for ending in (Ending.FAILED, Ending.NOT_REACHED, Ending.KNOWN_FAULT):
        assert f"<h2>{ending.value.capitalize()} (1)</h2>" in shown
    assert shown.count("fencepost conform broker:4.4.0 --case classic.join.1") == 3
    assert "<li>why: classic.join.1</li>" in shown
    assert '<b class="bad">failed</b>' in shown
    assert not re.search(r"""(?:src|href)=["'](?!#)|@import|url\(""", shown)


def test_a_line_has_the_cases_that_lack_the_same() -> None:
    reasons = [
        "the broker does not support x; v1",
        "the broker does not support x; v2",
        "the broker does not support y",
    ]
    played = [replace(_ended(Ending.NOT_SUPPORTED), why=why) for why in reasons]
    assert {why: len(names) for why, names in not_supported(played).items()} == {
        "the broker does not support x": 2,
        "the broker does not support y": 1,
    }


def test_the_readme_says_how_many_cases_there_are() -> None:
    assert f"with {len(CASES)} named cases" in (Path(__file__).parents[3] / "README.md").read_text()

"""The named cases on brokers that close connections, answer garbage, are slow, or have only some APIs: one line says
so, and the other cases run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from partial import API_VERSIONS, Spoil, partial_broker
from served import Served

from fencepost_conformance.cli import main
from fencepost_conformance.common.addresses import Address
from fencepost_conformance.judge.cases import peer
from fencepost_conformance.show.report import cases as shown
from fencepost_conformance.traces.recorder.upstream import inspect

pytestmark = pytest.mark.slow
METADATA, COMMIT, FETCH, FIND, JOIN, HEARTBEAT, CREATE, DELETE, CONSUMER = 3, 8, 9, 10, 11, 12, 19, 20, 68
LEAVE, SYNC, DESCRIBE, LIST = 13, 14, 15, 16
#: a case that needs a topic with exactly three partitions
THREE = "offsets.commit.26"
Versions = dict[int, tuple[int, int]]


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, Versions]]:
    """Return the address of a coordinator, and its versions. Without FindCoordinator clients stay at the filter."""
    with Served("--profile", "kafka-4.4", "--setting", "group.initial.rebalance.delay.ms=0") as here:
        host, _, port = here.bootstrap.rpartition(":")
        versions = asyncio.run(inspect(Address(host, int(port)))).versions
        yield here.bootstrap, {key: bounds for key, bounds in versions.items() if key != FIND}


async def closes(_: bytes) -> bytes | None:
    return None


async def garbage(answer: bytes) -> bytes | None:
    return answer[:4] + b"\xff" * 20  # the correlation id is right


async def empty(_: bytes) -> bytes | None:
    return b""


async def hangs(answer: bytes) -> bytes | None:
    await asyncio.sleep(300)
    return answer


async def slow(answer: bytes) -> bytes | None:
    await asyncio.sleep(0.2)
    return answer


def conform(
    served: tuple[str, Versions],
    offered: Versions,
    spoiled: dict[int, Spoil],
    capsys: Any,
    *words: str,
    closed_from: dict[int, int] | None = None,
) -> tuple[Any, str, list[str]]:
    """Return the exit status, standard output in one line, and the lines of standard error without progress."""
    broker = partial_broker(served[0], offered, spoiled, closed_from)
    with broker as (address, _), pytest.raises(SystemExit) as left:
        main(["conform", address, "--profile", "kafka-4.4", *words])
    output = capsys.readouterr()
    return (
        left.value.code,
        " ".join(output.out.split()),
        [line for line in output.err.splitlines() if "fencepost" in line],
    )


def endings_of(out: str) -> dict[str, str]:
    return {each["case"]: each["ending"] for each in json.loads(out)["cases"]}


def of_cases(*names: str) -> list[str]:
    return [word for name in names for word in ("--case", name)]


@pytest.mark.parametrize("spoil", [closes, garbage, empty])
def test_a_broker_that_does_not_answer_at_all_is_one_line(
    served: tuple[str, Versions], spoil: Spoil, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = conform(served, served[1], {API_VERSIONS: spoil}, capsys)
    (line,) = err
    assert (status, out) == (2, "")
    assert line.endswith("; is this a Kafka broker?")


@pytest.mark.parametrize("spoil", [closes, garbage, empty])
def test_one_api_with_bad_answers_fails_its_cases_only(
    served: tuple[str, Versions], spoil: Spoil, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*of_cases("classic.heartbeat.1", "offsets.commit.1", "classic.join.1"), "--json"]
    status, out, _ = conform(served, served[1], {HEARTBEAT: spoil}, capsys, *words)
    assert status == 1
    assert endings_of(out) == {
        "classic.heartbeat.1": "failed",
        "offsets.commit.1": "passed",
        "classic.join.1": "passed",
    }


def test_a_version_without_answers_fails_its_case_only(
    served: tuple[str, Versions], capsys: pytest.CaptureFixture[str]
) -> None:
    """The other cases use the next lower version, as ``versions.sync_group.5`` does before what it tests."""
    names = ("classic.heartbeat.1", "versions.join_group.8", "versions.join_group.9", "versions.sync_group.5")
    words = of_cases(*names)
    status, out, _ = conform(served, served[1], {}, capsys, *words, "--json", closed_from={JOIN: 9})
    assert (status, endings_of(out)) == (1, dict.fromkeys(names, "passed") | {"versions.join_group.9": "failed"})
    _, out, _ = conform(served, served[1], {}, capsys, *of_cases("classic.heartbeat.1"), closed_from={JOIN: 9})
    assert "join_group v9: a plain request gets no answer that can be read" in out


def test_a_request_without_an_answer_fails_its_case(
    served: tuple[str, Versions], capsys: pytest.CaptureFixture[str]
) -> None:
    """The same version answers other requests, so a lower version does not hide the fault."""
    refused = (24).to_bytes(2)  # INVALID_GROUP_ID, after correlation id, tags and throttle time

    async def closes_if_refused(answer: bytes) -> bytes | None:
        return None if answer[9:11] == refused else answer

    words = [*of_cases("classic.join.9", "classic.join.2"), "--json"]
    status, out, _ = conform(served, served[1], {JOIN: closes_if_refused}, capsys, *words)
    assert (status, endings_of(out)) == (1, {"classic.join.9": "failed", "classic.join.2": "passed"})


@pytest.mark.parametrize(("created", "of_three"), [(1, "not supported"), (3, "passed")])
def test_a_broker_with_old_versions_is_judged_on_what_it_announces(
    created: int, of_three: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has no CreateTopics, and creates a topic when a client asks for its metadata."""
    offered = {METADATA: (0, 4), COMMIT: (2, 3), FETCH: (1, 3), JOIN: (0, 2), HEARTBEAT: (0, 1), LEAVE: (0, 1)}
    offered |= {SYNC: (0, 1), DESCRIBE: (0, 2), LIST: (0, 2)}
    words = ["--profile", "kafka-4.4", "--setting", "group.initial.rebalance.delay.ms=0"]
    names = ("classic.heartbeat.4", "offsets.commit.1", "offsets.fetch.1", "offsets.fetch.6", "consumer.join.1")
    with Served(*words, "--auto-create", str(created)) as here:
        words = [*of_cases(*names, THREE, "versions"), "--json"]
        status, out, _ = conform((here.bootstrap, {}), offered, {}, capsys, *words)
    endings = endings_of(out)
    assert status == 0, out
    assert {name: endings.pop(name) for name in (*names, THREE)} == {
        "classic.heartbeat.4": "passed",
        "offsets.commit.1": "passed",
        "offsets.fetch.1": "not supported",  # it reads a leader epoch, which version 3 does not have
        "offsets.fetch.6": "passed",
        "consumer.join.1": "not supported",
        THREE: of_three,
    }
    api = {
        JOIN: "join_group",
        SYNC: "sync_group",
        HEARTBEAT: "heartbeat",
        LEAVE: "leave_group",
        COMMIT: "offset_commit",
    }
    api |= {FETCH: "offset_fetch", DESCRIBE: "describe_groups", LIST: "list_groups"}
    judged = {f"versions.{api[key]}.{each}" for key in api for each in range(offered[key][0], offered[key][1] + 1)}
    assert {name for name, ending in endings.items() if ending == "passed"} == judged
    assert {ending for name, ending in endings.items() if name not in judged} == {"not supported"}


def test_a_broker_that_creates_no_topics_leaves_their_cases(
    served: tuple[str, Versions], capsys: pytest.CaptureFixture[str]
) -> None:
    offered = {key: bounds for key, bounds in served[1].items() if key != CREATE}
    words = [*of_cases("offsets.commit.1", "classic.heartbeat.1"), "--json"]
    status, out, _ = conform(served, offered, {}, capsys, *words)
    assert (status, endings_of(out)) == (0, {"offsets.commit.1": "not supported", "classic.heartbeat.1": "passed"})


def test_an_answer_that_does_not_come_leaves_its_cases_not_reached(
    served: tuple[str, Versions], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer, "ANSWER_S", 3.0)
    words = of_cases("offsets.commit.1", "classic.join.1")
    status, out, (line,) = conform(served, served[1], {COMMIT: hangs}, capsys, *words)
    assert status == 2
    assert "No verdict: 1 case" in out
    assert "no answer to offset_commit" in line
    assert "2 cases, 1 passed" in out


def test_a_broker_that_goes_away_leaves_all_cases_not_reached(
    served: tuple[str, Versions], capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[int] = []

    async def once(answer: bytes) -> bytes | None:
        asked.append(1)
        return answer if len(asked) == 1 else None

    status, out, (line,) = conform(
        served, served[1], {API_VERSIONS: once}, capsys, *of_cases("classic.join", "offsets")
    )
    assert status == 2
    assert out.count("no connection: ") == 1
    assert "76 undecided" in out
    assert "no connection: the broker closed the connection" in line


def test_a_slow_broker_is_named(
    served: tuple[str, Versions], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown, "_SLOW_S", 0.2)
    words = of_cases("offsets.commit.1", "offsets.commit.2")
    status, out, _ = conform(served, served[1], dict.fromkeys((METADATA, COMMIT, FETCH), slow), capsys, *words)
    assert status == 0
    assert "the broker is slow: half of its answers to heartbeat, metadata, offset_commit, offset_fetch took" in out


def test_a_broker_with_one_protocol_is_judged_on_it(
    served: tuple[str, Versions], capsys: pytest.CaptureFixture[str]
) -> None:
    offered = {key: served[1][key] for key in (METADATA, COMMIT, FETCH, CREATE, DELETE, CONSUMER)}
    words = ["--family", "classic", *of_cases("consumer.join.1", "offsets.commit.1")]
    status, out, err = conform(served, offered, {}, capsys, *words)
    assert (status, err) == (0, []), out
    assert "76 cases, 2 passed, 0 failed, 0 undecided" in out
    assert "the broker does not support join_group" in out
    assert 1 <= out.count("not supported: ") <= 8, "a line for each API"


def test_random_traces_follow_the_cases(
    served: tuple[str, Versions], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["conform", served[0], "--case", "classic.join.1", "--traces", "2", "--steps", "10", "--seed", "3"]
    words += ["--protocol", "classic", "--workers", "1", "-o", str(tmp_path), "--json"]
    with pytest.raises(SystemExit) as left:
        main(words)
    result = json.loads(capsys.readouterr().out)
    assert (left.value.code, result["counts"]["passed"]) == (0, 3)
    assert result["traces"]["classic"]["counts"]["traces"] == 2
    assert {path.name for path in tmp_path.iterdir()} == {"cases.json", "classic", "junit.xml", "report.html"}
    assert (tmp_path / "classic" / "report.html").is_file()
    assert "Random traces, judged by the model" in (tmp_path / "report.html").read_text()


def test_random_traces_that_a_broker_cannot_play_are_named(
    served: tuple[str, Versions], capsys: pytest.CaptureFixture[str]
) -> None:
    offered = {key: bounds for key, bounds in served[1].items() if key != CONSUMER} | {FIND: (0, 6)}
    words = [*of_cases("classic.join.1"), "--traces", "1", "--protocol", "consumer"]
    status, out, _ = conform(served, offered, {}, capsys, *words)
    assert status == 0
    assert "no random traces of consumer groups: " in out
    assert "does not offer ConsumerGroupHeartbeat" in out

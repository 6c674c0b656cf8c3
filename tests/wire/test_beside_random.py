"""Random scripts of requests get the same answers from Kafka 4.4.0 and from ``fencepost serve``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.server import kept, live, run
from fencepost_conformance.judge.server.brokers import Kafka, served
from fencepost_conformance.judge.server.compare import first_difference, shrink
from fencepost_conformance.judge.server.draw import scripts
from fencepost_conformance.judge.server.lines import Line, Tcp
from fencepost_conformance.judge.server.normal import Normal
from fencepost_conformance.judge.server.parts import Kind, part
from fencepost_conformance.judge.server.rights import Right, guarded_scripts
from fencepost_conformance.judge.server.script import RAW, Move, Run, Script
from fencepost_conformance.judge.server.world import NO_PRODUCER_ID
from fencepost_conformance.run.mutants.areas.catalogue import FAULTS
from fencepost_conformance.run.mutants.areas.copying import environment, faulty_copy
from fencepost_conformance.run.seeds import seed_line, seed_of_run
from fencepost_conformance.targets.jvm import jars, releases
from fencepost_server.apis.table import TABLE
from fencepost_server.security.acl import BITS, Resource, parse_rules
from tools.compare_server import compare_recorded, main

RELEASE = "4.4.0"
#: Kafka's answers to many parts, of 5,000 requests each: ``python -m tools.compare_server --keep
#: tests/wire/beside-4.4.0.zip --kind KIND --parts N``, to be repeated when other scripts or other rules are drawn
RECORDED = Path(__file__).with_name("beside-4.4.0.zip")
#: scripts that once differed, with Kafka's answers
KEPT = Path(__file__).parents[1] / "kept" / "requests"
#: parts of the record that a run compares; the first of each kind is always among them
PARTS = {Kind.PLAIN: 3, Kind.RIGHTS: 1, Kind.EXHAUSTED: 1}


@pytest.mark.parametrize("kind", PARTS, ids=str)
def test_serve_answers_as_kafka_has_answered(kind: Kind) -> None:
    words = ["--kind", kind, "--parts", str(PARTS[kind]), "--seed", str(seed_of_run()), "--against", str(RECORDED)]
    assert main(words) == 0


@pytest.mark.slow
@pytest.mark.all
@pytest.mark.parametrize("kind", PARTS, ids=str)
def test_serve_answers_as_kafka_has_answered_all_of_it(kind: Kind) -> None:
    assert main(["--kind", kind, "--against", str(RECORDED)]) == 0


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "requests"), [(Kind.PLAIN, 1_000), (Kind.RIGHTS, 600)])
def test_serve_answers_a_sample_as_kafka(kind: Kind, requests: int) -> None:
    """Over TCP, from another process, with new scripts in each run."""
    _with_kafka()
    seed = seed_of_run()
    words = [RELEASE, "--kind", kind, "--requests", str(requests), "--length", "25", "--seed", str(seed), "--port"]
    assert main(words) == 0, seed_line(seed)


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.all
@pytest.mark.parametrize(("kind", "requests"), [(Kind.PLAIN, 10_000), (Kind.RIGHTS, 6_000)])
def test_serve_answers_many_new_scripts_as_kafka(kind: Kind, requests: int) -> None:
    """Over TCP, from another process; ``make test-all`` plays many more within its own process."""
    _with_kafka()
    seed = seed_of_run()
    words = [RELEASE, "--kind", kind, "--requests", str(requests), "--seed", str(seed), "--port"]
    assert main(words) == 0, seed_line(seed)


def _with_kafka() -> None:
    try:
        jars.fetch(*releases.broker_artifacts(RELEASE))
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])


def test_a_planted_fault_is_seen_and_shrunk(tmp_path: Path) -> None:
    drawn = scripts(11, 400, 40, ("data",))
    faulty_copy(FAULTS["delete-records-at-the-end-refused"].replacements, tmp_path)
    with served() as right, served(environment(tmp_path)) as faulty:

        async def found() -> list[run.Found]:
            one, other = await run.all_answers(right, drawn, "test"), await run.all_answers(faulty, drawn, "test")
            compared = run.Compared()
            for script, first, second in zip(drawn, one, other, strict=True):
                compared.add(script, first, second)
            return await run.shrunk(compared, right, faulty)

        differences = asyncio.run(found())
    assert {each.difference.api for each in differences} == {"delete_records"}
    assert min(len(each.script) for each in differences) <= 3  # CreateTopics, Produce, DeleteRecords


def test_a_run_writes_each_difference_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a faulty server in place of Kafka."""
    faulty_copy(FAULTS["delete-records-at-the-end-refused"].replacements, tmp_path / "copy")
    plan = live.Plan(Kind.PLAIN, 400, 13, 40, 200, ("data",), folder=tmp_path / "found")

    @contextmanager
    def start() -> Iterator[Kafka]:
        with served(environment(tmp_path / "copy")) as faulty:
            yield Kafka(faulty, faulty)

    compared = live.play(plan, start)
    assert (compared.requests >= 300, compared.unsteady) == (True, 0)
    (path,) = (tmp_path / "found").iterdir()  # the second part shows the same difference
    case = kept.read(path)
    assert {case.script[-1].api, case.kafka[-1]["topics"][0]["partitions"][0]["error_code"]} == {"delete_records", 1}
    assert "of 400 requests compared" in capsys.readouterr().out


def test_a_difference_that_a_script_does_not_show_alone_does_not_count(tmp_path: Path) -> None:
    plan = live.Plan(Kind.PLAIN, 60, 11, 20, 60, ("data",), folder=tmp_path)

    @contextmanager
    def start() -> Iterator[Kafka]:
        with served() as place:
            forgetful = _ForgetsOnce(place)
            yield Kafka(forgetful, forgetful)

    compared = live.play(plan, start)
    assert (compared.differ, compared.unsteady) == (0, 1)
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("unsteady-")


@dataclass
class _ForgetsOnce:
    """A broker whose first connection ends at once."""

    place: Tcp
    settled: bool = False
    asked: bool = False

    async def connect(self) -> Line:
        line = await self.place.connect()
        if not self.asked:
            self.asked = True
            await line.close()
        return line


def test_a_server_repeats_its_answers() -> None:
    drawn = scripts(3, 600, 30)
    with served() as here:

        async def twice() -> tuple[Any, Any]:
            return await run.all_answers(here, drawn, "one1"), await run.all_answers(here, drawn, "two2")

        first, second = asyncio.run(twice())
    assert first == second


def test_all_that_is_served_is_asked_for_in_each_version() -> None:
    asked = {(move.api, move.version) for script in scripts(1, 40_000, 60) for move in script}
    asked.remove((RAW, 0))
    served_here = {(api.name, at) for api in TABLE.values() for at in range(max(api.low, api.least), api.high + 1)}
    left_out = {"sasl_handshake", "sasl_authenticate"}  # other tests cover them
    assert {each for each in served_here - asked if each[0] not in left_out} == set()
    assert asked <= served_here


@pytest.mark.parametrize("path", sorted(KEPT.glob("*.json")), ids=lambda path: path.stem)
def test_serve_answers_a_kept_script_as_kafka_has_answered(path: Path) -> None:
    """``python -m tools.compare_server --script FILE`` asks Kafka again, and writes its answers to the file."""
    case = kept.read(path)
    compared = run.Compared()
    drawn = case.part()
    theirs = [*[()] * case.number, case.kafka]
    asyncio.run(compare_recorded(case.kind, drawn, theirs, compared))
    assert (compared.differ, len(case.kafka)) == (0, len(case.script))


@pytest.mark.parametrize("kind", Kind, ids=str)
def test_a_script_is_the_same_in_a_file(kind: Kind, tmp_path: Path) -> None:
    drawn = part(kind, "test", 17, 600, 30)
    for number, script in enumerate(drawn.scripts):
        case = kept.Case.of(kind, drawn, number, script, [{"error_code": 0}], note="a difference")
        kept.write(tmp_path / "a" / "case.json", case)
        again = kept.read(tmp_path / "a" / "case.json")
        rows = [each.as_text() for each in again.transactions]
        assert rows == [each.as_text() for each in case.transactions]
        assert replace(again, transactions=case.transactions) == case
        assert again.part().scripts[number] == script


def test_scripts_follow_from_their_seed() -> None:
    assert scripts(5, 500, 30) == scripts(5, 500, 30) != scripts(6, 500, 30)
    assert guarded_scripts(5, 500, 30) == guarded_scripts(5, 500, 30) != guarded_scripts(6, 500, 30)


def test_no_script_guesses_a_producer_id() -> None:
    """A guessed id is that of a producer on one broker, and of no producer on the other."""
    guessed = {each for script in scripts(1, 20_000, 60) for move in script for each in _producer_ids(move.values)}
    assert {each for each in guessed if 0 <= each < NO_PRODUCER_ID} == set()
    assert {-1, NO_PRODUCER_ID} < guessed


def _producer_ids(values: Any) -> Iterator[int]:
    if isinstance(values, Mapping):
        for name, each in values.items():
            if name.endswith("producer_id") and isinstance(each, int):
                yield each
            yield from _producer_ids(each)
    elif isinstance(values, list):
        for each in values:
            yield from _producer_ids(each)


def test_the_recorded_rules_are_of_every_kind() -> None:
    rights = [right for each in guarded_scripts(11, 1500, 30) for right in each.rights]
    asked_for = {(kind, each.value) for kind in ("Topic", "Group") for each in BITS[Resource(kind)]}
    asked_for |= {("TransactionalId", "Write"), ("TransactionalId", "Describe"), ("Cluster", "Create")}
    assert asked_for <= {(each.kind, each.operation) for each in rights if each.allow}
    assert {(kind, allow) for kind, _ in asked_for for allow in (True, False)} <= {
        (each.kind, each.allow) for each in rights
    }
    assert {True, False} == {each.prefix for each in rights}
    assert {"*", "127.0.0.1", "127.0.0.10"} <= {each.host for each in rights}
    assert any(each.name == "*" for each in rights)
    assert any(each.user == "*" for each in rights)


def test_a_rule_is_the_same_in_a_file_and_in_a_request() -> None:
    right = Right(allow=False, user="u0a", operation="Read", kind="Topic", name="~t", prefix=True, host="10.0.0.7")
    (rule,) = parse_rules(right.line("s-"))
    assert (rule.allow, rule.principal, rule.name, rule.host) == (False, "User:u0a", "s-t*", "10.0.0.7")
    assert right.row("s-") == {
        "resource_type": 2, "resource_name": "s-t", "resource_pattern_type": 4, "principal": "User:u0a",
        "host": "10.0.0.7", "operation": 3, "permission_type": 2,
    }  # fmt: skip


def _move(name: str) -> Move:
    return Move("metadata", 1, {"topics": [{"name": name}]})


def test_only_moves_that_show_the_difference_are_left() -> None:
    script: Script = tuple(_move(str(at)) for at in range(40))

    def answers(script: Script) -> list[Mapping[str, Any]]:
        names = [move.values["topics"][0]["name"] for move in script]
        return [{"error_code": int(name == "30" and "7" in names[:at])} for at, name in enumerate(names)]

    async def examine(script: Script) -> Any:
        return first_difference(script, [{"error_code": 0}] * len(script), answers(script))

    async def small() -> Any:
        found = await examine(script)
        return await shrink(script, found, examine)

    shortest, why = asyncio.run(small())
    assert shortest == (_move("7"), _move("30"))
    assert (why.at, why.one, why.other) == (1, 0, 1)


@pytest.mark.parametrize(
    ("api", "one", "other"),
    [
        ("metadata", {"topics": [{"name": "p-a", "error_code": 3}]}, {"topics": [{"name": "p-a", "error_code": 0}]}),
        ("end_txn", {"error_code": 0, "producer_epoch": 3}, {"error_code": 0, "producer_epoch": 4}),
        ("list_offsets", {"topics": [{"name": "p-a", "partitions": [{"offset": 1}]}]}, {"topics": []}),
        ("delete_records", {"topics": [{"low_watermark": 3}]}, {"topics": [{"low_watermark": 2}]}),
    ],
)
def test_other_values_stay_different(api: str, one: Any, other: Any) -> None:
    first, second = (Normal(Run("p-", 0)).of(api, answer) for answer in (one, other))
    assert first != second


def test_a_value_that_a_broker_draws_is_named_by_its_place() -> None:
    values = [Normal(Run("p-", 0)).of("init_producer_id", {"producer_id": at, "producer_epoch": 0}) for at in (5, 99)]
    assert values[0] == values[1] == {"producer_id": "<0>", "producer_epoch": 0}

"""``fencepost validate --engine tlc``: TLC and the TLA+ specification decide about recorded traces."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.checker.verdict import Verdict
from fencepost_conformance.judge.tla.text import Data, Tokens, expression
from fencepost_conformance.judge.tla.validate import Choices, check_by_tlc, read_progress
from fencepost_conformance.judge.verdict import Verdict as Judged
from fencepost_conformance.run.validate.plan import Plan
from fencepost_conformance.run.validate.run import validate_traces
from fencepost_model.tlc.run import TlcMissing, find_jar, find_java
from tools.corpus_by_tlc import SLOW, read_rows

CORPUS: Final = Path(__file__).resolve().parents[1] / "corpus"
JOIN_AND_LEAVE: Final = "join-and-leave-java"
JOIN, HEARTBEAT, SYNC, CONSUMER_HEARTBEAT = 11, 12, 14, 68

Lines = list[dict[str, Any]]
Falsify = Callable[[Lines], int]


def verdicts(paths: list[Path]) -> list[Verdict]:
    try:
        find_java(), find_jar()
    except TlcMissing as missing:
        pytest.skip(str(missing))
    return [found for file in check_by_tlc(paths, Choices()) for found in file]


def verdict(path: Path) -> Verdict:
    (found,) = verdicts([path])
    return found


def lines_of(name: str) -> Lines:
    with gzip.open(CORPUS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def answers(lines: Lines, api: int) -> list[int]:
    """The positions of the answers NONE of an API."""
    return [
        number
        for number, line in enumerate(lines)
        if line["type"] == "received" and line["api_key"] == api and line["body"]["error_code"] == 0
    ]


def another_generation(lines: Lines) -> int:
    at = answers(lines, JOIN)[2]
    lines[at]["body"]["generation_id"] += 1
    return at + 1


def a_lost_member(lines: Lines) -> int:
    at = next(each for each in answers(lines, JOIN) if len(lines[each]["body"]["members"]) > 1)
    lines[at]["body"]["members"].pop()
    return at + 1


def anothers_assignment(lines: Lines) -> int:
    _, first, second, *_ = answers(lines, SYNC)
    lines[second]["body"]["assignment"] = lines[first]["body"]["assignment"]
    return second + 1


def an_error(lines: Lines) -> int:
    heartbeats = answers(lines, HEARTBEAT)
    at = heartbeats[len(heartbeats) // 2]
    lines[at]["body"]["error_code"] = 25
    return at + 1


def another_leader(lines: Lines) -> int:
    at = answers(lines, JOIN)[1]
    body = lines[at]["body"]
    body["leader"] = body["member_id"]
    return at + 1


def a_dropped_answer(lines: Lines) -> int:
    """The line of the next answer on the same connection: there the missing one shows."""
    at = answers(lines, JOIN)[1]
    connection = lines.pop(at)["connection"]
    return next(
        number
        for number, line in enumerate(lines[at:], at + 1)
        if line["type"] == "received" and line["connection"] == connection
    )


def another_epoch(lines: Lines) -> int:
    at = answers(lines, CONSUMER_HEARTBEAT)[4]
    lines[at]["body"]["member_epoch"] += 1
    return at + 1


def assigned_partitions_of_another(lines: Lines) -> int:
    """The second member gets its partitions although the first one has not given them up."""
    at = next(each for each in answers(lines, CONSUMER_HEARTBEAT) if lines[each]["body"]["assignment"] == [])
    last = max(each for each in answers(lines, CONSUMER_HEARTBEAT) if lines[each]["body"]["assignment"])
    lines[at]["body"]["assignment"] = lines[last]["body"]["assignment"]
    return at + 1


def a_fenced_member(lines: Lines) -> int:
    at = answers(lines, CONSUMER_HEARTBEAT)[3]
    lines[at]["body"] |= {"error_code": 110, "member_epoch": 0}
    return at + 1


def a_dropped_heartbeat(lines: Lines) -> int:
    at = answers(lines, CONSUMER_HEARTBEAT)[2]
    connection = lines.pop(at)["connection"]
    return next(
        number
        for number, line in enumerate(lines[at:], at + 1)
        if line["type"] == "received" and line["connection"] == connection
    )


CONSUMER: Final = "consumer-join-and-leave-java"
#: what is falsified in which recording, and a part of what was possible at that line
FALSIFIED: Final[dict[Falsify, tuple[str, str]]] = {
    another_generation: (JOIN_AND_LEAVE, "generation 2"),
    a_lost_member: (JOIN_AND_LEAVE, "members 'one-"),
    anothers_assignment: (JOIN_AND_LEAVE, "assignment join-and-leave-java-a 0,1,2,3"),
    an_error: (JOIN_AND_LEAVE, "NONE"),
    another_leader: (JOIN_AND_LEAVE, "leader 'one-"),
    a_dropped_answer: (JOIN_AND_LEAVE, "first the answer to JoinGroup v9"),
    another_epoch: (CONSUMER, "NONE, epoch 2"),
    assigned_partitions_of_another: (CONSUMER, "assignment no partitions"),
    a_fenced_member: (CONSUMER, "NONE, epoch 2"),
    a_dropped_heartbeat: (CONSUMER, "first the answer to ConsumerGroupHeartbeat v1"),
}


def falsified(tmp_path: Path, falsify: Falsify) -> tuple[Path, int]:
    lines = copy.deepcopy(lines_of(FALSIFIED[falsify][0]))
    line = falsify(lines)
    path = tmp_path / "falsified.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
    return path, line


@pytest.mark.tlc
def test_tlc_accepts_recorded_traces() -> None:
    names = (JOIN_AND_LEAVE, CONSUMER, "deletion-kafka-python")
    classic, consumer, deleted = verdicts([CORPUS / f"{name}.jsonl.gz" for name in names])
    assert [classic.verdict, consumer.verdict] == [Judged.PASSED, Judged.PASSED], (classic, consumer)
    assert [classic.events, consumer.events] == [62, 52]
    assert deleted.verdict is Judged.UNDECIDED
    assert "DeleteGroups, which the specification lacks" in deleted.reason


@pytest.mark.tlc
@pytest.mark.parametrize(
    "falsify",
    [pytest.param(each, marks=[] if each is another_generation else pytest.mark.all) for each in FALSIFIED],
    ids=lambda each: each.__name__,
)
def test_tlc_refuses_a_falsified_copy_at_its_line(tmp_path: Path, falsify: Falsify) -> None:
    path, line = falsified(tmp_path, falsify)
    found = verdict(path)
    assert found.verdict is Judged.FAILED
    (refusal,) = found.refusals
    assert refusal.line == line
    assert FALSIFIED[falsify][1] in " ".join(refusal.allowed)


#: the recordings, in parts that one run of TLC checks at once
PARTS: Final = 8
RECORDED: Final = sorted(CORPUS.glob("*.jsonl.gz"))


@pytest.mark.tlc
@pytest.mark.all
@pytest.mark.parametrize("part", range(PARTS))
def test_tlc_accepts_the_corpus(part: int) -> None:
    stored = {row.file: row for row in read_rows(CORPUS.parents[1] / "docs/trace-validation.json")}
    for found in verdicts(RECORDED[part::PARTS]):
        row = stored[Path(found.path).name]
        if row.reason.startswith(SLOW):  # with more time, TLC may find an explanation
            assert found.verdict in (Judged.PASSED, Judged.UNDECIDED), found
        else:
            assert (found.verdict, found.reason.partition(": ")[2]) == (Judged(row.verdict), row.reason), found


def test_progress_is_read_from_the_furthest_line() -> None:
    output = """@!@!@STARTMSG 2185:0 @!@!@
[reached |-> 1, missing |-> {}]
[reached |-> 2, missing |-> {}]
[reached |-> 2, possible |-> {[error |-> "NONE"]}]
[ possible |->
      { [error |-> "A"],
        [error |-> "B"] },
  reached |-> 3 ]
[missing |-> {"line_4"}, reached |-> 5]
"""
    found = read_progress(output)
    assert (found.number, found.missing, found.possible) == (5, ["line_4"], [])
    assert sorted(each["error"] for each in read_progress(output[: output.rindex("[")]).possible) == ["A", "B"]


def test_values_become_expressions() -> None:
    value: Data = {"id": 'a"b\\', "rows": ({"n": 1},), "set": frozenset({"x", "é"}), "flag": True, "none": ()}
    assert expression(value) == (
        '[id |-> "a\\"b\\\\", rows |-> <<[n |-> 1]>>, set |-> {"u+e9", "x"}, flag |-> TRUE, none |-> << >>]'
    )
    assert expression({"a-1": 2}) == '("a-1" :> 2)'


def test_different_bytes_have_different_names() -> None:
    names = Tokens("assignment")
    one, two = b"\0\0" + b"\0\0\0\0" + b"\0\0\0\0", b"\0\1" + b"\0\0\0\0" + b"\0\0\0\0"
    assert names[one] == names[one] == "no partitions"
    assert names[two] == "no partitions (variant 2)"


def test_only_tlc_keeps_modules(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="--export needs --engine tlc"):
        validate_traces(Plan((CORPUS / "alone-java.jsonl.gz",), export=tmp_path))

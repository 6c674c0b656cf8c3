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

CORPUS: Final = Path(__file__).resolve().parents[1] / "corpus"
JOIN_AND_LEAVE: Final = "join-and-leave-java"
JOIN, HEARTBEAT, LEAVE, SYNC = 11, 12, 13, 14

Lines = list[dict[str, Any]]
Falsify = Callable[[Lines], int]


def verdict(path: Path) -> Verdict:
    try:
        find_java(), find_jar()
    except TlcMissing as missing:
        pytest.skip(str(missing))
    (found,) = check_by_tlc(path, Choices())
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


#: what is falsified, and a part of what was possible at that line
FALSIFIED: Final[dict[Falsify, str]] = {
    another_generation: "generation 2",
    a_lost_member: "members 'one-",
    anothers_assignment: "assignment join-and-leave-java-a 0,1,2,3",
    an_error: "NONE",
    another_leader: "leader 'one-",
    a_dropped_answer: "first the answer to JoinGroup v9",
}


def falsified(tmp_path: Path, falsify: Falsify) -> tuple[Path, int]:
    lines = copy.deepcopy(lines_of(JOIN_AND_LEAVE))
    line = falsify(lines)
    path = tmp_path / "falsified.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
    return path, line


@pytest.mark.tlc
def test_tlc_accepts_a_recorded_trace() -> None:
    found = verdict(CORPUS / f"{JOIN_AND_LEAVE}.jsonl.gz")
    assert found.verdict is Judged.PASSED, found
    assert found.events == 62


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
    assert FALSIFIED[falsify] in " ".join(refusal.allowed)


#: of consumer groups and groups of both protocols, which this specification does not have
OTHER_PROTOCOLS: Final = ("consumer-", "mixed-")
CLASSIC: Final = sorted(
    path.name.removesuffix(".jsonl.gz")
    for path in CORPUS.glob("*.jsonl.gz")
    if not path.name.startswith(OTHER_PROTOCOLS)
)


@pytest.mark.tlc
@pytest.mark.all
@pytest.mark.parametrize("name", CLASSIC)
def test_tlc_accepts_the_corpus(name: str) -> None:
    found = verdict(CORPUS / f"{name}.jsonl.gz")
    assert found.verdict in (Judged.PASSED, Judged.UNDECIDED), found
    if found.verdict is Judged.UNDECIDED:
        assert "which the specification lacks" in found.reason


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

"""The output of commands is readable at 80 columns, and complete at 40: no word is broken, no cell is cut."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import cache

import pytest
from rich.console import Console, Group, RenderableType
from rich.text import Text

from fencepost_conformance.common import repository
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.checker.verdict import Refusal, Verdict
from fencepost_conformance.judge.findings.catalogue import FINDINGS
from fencepost_conformance.judge.findings.judge import Judged
from fencepost_conformance.judge.findings.judge import Verdict as Presence
from fencepost_conformance.judge.findings.table import read_tickets
from fencepost_conformance.judge.rows.check import Checker
from fencepost_conformance.judge.rows.job import Job
from fencepost_conformance.judge.rows.job import Row as TraceRow
from fencepost_conformance.judge.rows.summary import Summary
from fencepost_conformance.judge.rulebook.standing import Standing
from fencepost_conformance.judge.rulebook.texts import rule_book
from fencepost_conformance.judge.verdict import Tally
from fencepost_conformance.judge.verdict import Verdict as Passes
from fencepost_conformance.run.bench.measure import Row as Figure
from fencepost_conformance.run.commands import bench, mutants, rules, validate
from fencepost_conformance.run.mainjob import Finding, Stage, table_of
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.run.mutants.kill import Kill
from fencepost_conformance.run.mutants.kill import Verdict as Tried
from fencepost_conformance.run.mutants.table import as_row
from fencepost_conformance.show import console as speech
from fencepost_conformance.show.findings import Outcome
from fencepost_conformance.show.listing import Listing
from fencepost_conformance.show.report import checked, terminal
from fencepost_model.system.checking import Row
from fencepost_model.system.manifest import read_manifest

ENTRIES = read_manifest(repository.root() / "spec")
LONGEST = max(ENTRIES, key=lambda entry: len(entry.breaks or ""))
MUTANT = max(MUTANTS, key=len)


def explored(name: str, breaks: str | None, *wrong: str) -> Row:
    expected = "holds" if breaks is None else "violates"
    return Row(name, "python", expected, breaks, 1_234_567, 7_654_321, 99, 123.4, [breaks] if breaks else [], [*wrong])


@cache
def summary() -> Summary:
    job = Job("kafka:4.3.1", "kafka-4.3", 20, False, GroupProtocol.CLASSIC)
    core = Checker(Job("core", "kafka-4.3", 20, True, GroupProtocol.CLASSIC))
    gathered = Summary(job)
    gathered.add_all(core.check([1, 2, 3]))
    failed = {"event": 17, "field": "records[0].value.subscribed_topic_names", "left": "[a, b]", "right": "x " * 70}
    plain = {"steps": 17, "replies": 0, "records": 0, "timers": 0, "followed": 0, "digest": ""}
    group = "JoinGroup: reply.member_id differs"
    gathered.add_all(
        [TraceRow(seed=4, outcome="differed", divergence="", coverage=b"", group=group, **failed, **plain)]
    )
    known = failed | {"event": 3, "field": "", "left": "", "right": ""}
    gathered.add_all(
        [TraceRow(seed=5, outcome="diverged", divergence="heap-order", coverage=b"", group="", **known, **plain)]
    )
    return gathered


def found(*kills: Kill) -> Listing:
    table = Listing(("mutant", "source", "found by"))
    table.add(*as_row(Tried(MUTANT, kills)))
    return table


SEEN = "JoinGroup of c1 answered REBALANCE_IN_PROGRESS"
REFUSAL = Refusal("orders-of-the-day", 1_234, 5, SEEN, ("a, b",), ("C-JOIN-43",))
PATH = "a/folder/of/traces/" + "recorded-" * 4 + "today.jsonl.gz"
VERDICTS = [Verdict(PATH, "t", "refused", refusals=(REFUSAL,)), Verdict(PATH, "t", "broken", 3, "no JSON [a]")]
BY_NAME = {entry.name: entry for entry in ENTRIES}
WRONG = "reached 3 states, expected 4"
ALL_FOUND = [explored(entry.name, entry.breaks) for entry in ENTRIES]
ONE_WRONG = [explored(entry.name, None, *([WRONG] if entry is LONGEST else [])) for entry in ENTRIES]
KILL = Kill("lockstep", "records[].value", 1_234, 56, "")
FIGURE = Figure("explorer", "states of two clients", 12e6, "states/s", "TLC with two workers", 3e6, 4.0, "1")
STAGE = Stage("core against model, random traces", ())

AT = ("impl/fencepost/x.py:3", "impl/fencepost/x.py:14")
EVERYWHERE = dict.fromkeys(("specified", "modelled", "implemented", "tested"), AT)
STANDINGS = [
    Standing(rule_book()["C-JOIN-43"], EVERYWHERE, {"decided": 5, "wire": 3}, None),
    Standing(rule_book()["C-JOIN-44"], {}, {}, None),
    Standing(rule_book()["O-TXN-01"], {}, {}, "transactional offset commits are not part of the project yet"),
]
FINDING = max(FINDINGS, key=lambda finding: len(finding.name))
RELEASES = [f"kafka:{release}" for release in ("4.0.2", "4.1.2", "4.2.1", "4.2.2", "4.3.1", "4.4.0")]
PLAYED = {release: {FINDING.name: Judged(Presence.PRESENT, "why")} for release in RELEASES}

#: the output, and the words that name the result
SHOWN: dict[str, tuple[Callable[[], RenderableType], tuple[str, ...]]] = {
    "check": (
        lambda: checked.table(ALL_FOUND, BY_NAME, each=True),
        (f"✓ {LONGEST.name}", f"breaks {LONGEST.breaks}"),
    ),
    "check, summed up": (
        lambda: checked.table(ONE_WRONG, BY_NAME, each=False),
        ("✓ all", "✗ all but 1", f"✗ {LONGEST.name}", WRONG),
    ),
    "check --list": (
        lambda: checked.catalogue(ENTRIES),
        (LONGEST.name, f"break {LONGEST.breaks}", LONGEST.about.split()[-1]),
    ),
    "conform": (
        lambda: terminal.tables(summary()),
        ("heap-order", "docs/divergences.md", "kafka:4.3.1, or the model", "[a, b]", "reply.member_id"),
    ),
    "mutants": (lambda: found(KILL), (f"✓ {MUTANT}", "after 1,234 steps (seed 56)")),
    "mutants, one survives": (found, (f"✗ {MUTANT}", "it survived")),
    "mutants --list": (mutants.catalogue, (MUTANT, MUTANTS[MUTANT].words.split()[-1])),
    "validate": (
        lambda: validate.table(VERDICTS),
        ("C-JOIN-43", "REBALANCE_IN_PROGRESS", "orders-of-the-day"),
    ),
    "bench": (lambda: bench.table([FIGURE]), ("12,000,000.0 states/s", "4.00")),
    "findings": (
        lambda: Outcome([FINDING], PLAYED, {}, read_tickets(repository.root() / "docs" / "findings")).shown(),
        (FINDING.name, "4.4.0", "● present"),
    ),
    "rules": (lambda: rules.by_rule(STANDINGS), ("C-JOIN-43", "missing")),
    "rules, summed up": (lambda: rules.summary(STANDINGS), ("C-JOIN-*", "out of scope, because")),
    "rules, one": (lambda: Group(*rules.whole(STANDINGS[0])), ("C-JOIN-43", "quiet", "impl/fencepost/x.py:3,14")),
    "make run": (
        lambda: table_of([Finding(STAGE, Passes.FAILED, 12, {"counts": {"traces": 3}})]),
        ("failed", "3 traces"),
    ),
}  # fmt: skip


def lines(shown: RenderableType, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False).print(shown)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def words(lines: list[str]) -> set[str]:
    return {word.rstrip(",:") for line in lines for word in re.findall(r"[^\s─]+", line)}


#: headings of first columns; none is needed where each cell is alone on its line
LISTED = {"rule", "rules", "finding", "configuration", "groups", "coverage", "mutant", "trace", "benchmark"} | {
    "known",
    "difference",
    "seed",
    "what",
}


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("name", SHOWN)
def test_no_word_is_broken_or_lost(name: str, width: int) -> None:
    made, phrases = SHOWN[name]
    shown = made()
    narrow, wide = lines(shown, width), lines(shown, 1_000)
    assert max(map(len, narrow)) <= width
    assert {word for word in words(wide) - LISTED if len(word) <= width - 4} <= words(narrow)
    text = " ".join(" ".join(line.split()) for line in narrow)
    for phrase in phrases:
        assert all(word in text for word in phrase.split() if len(word) <= width - 4)
    assert text.count("…") == "".join(wide).count("…")


def test_hundreds_of_configurations_are_summed_up() -> None:
    assert len(ENTRIES) > 100
    assert len(lines(SHOWN["check, summed up"][0](), 80)) < 24


def test_a_table_where_it_fits_and_blocks_where_it_does_not() -> None:
    listing = Listing(("name", "verdict"), [("one", "[red]does not pass[/]"), ("another", "passed")])
    table = [line.split() for line in lines(listing, 80)]
    assert table[1] == ["name", "verdict"]
    assert table[3:5] == [["one", "does", "not", "pass"], ["another", "passed"]]
    assert lines(listing, 12) == ["one", "  verdict:", "  does not", "  pass", "another", "  verdict:", "  passed"]
    listing = Listing(("traces", "what"), [("13", "a word " * 9)], numbers=frozenset(("traces",)))
    assert lines(listing, 20)[0] == "traces: 13"


def test_brackets_of_a_value_are_not_markup() -> None:
    found_by = as_row(Tried(MUTANT, (Kill("a", "records[0]", 1, 2, ""),)))[2]
    assert Text.from_markup(found_by).plain.startswith("a: records[0]")


@pytest.mark.parametrize(
    ("tally", "done", "line", "status"),
    [
        (Tally(1), "", "it: passed (2 steps, 1 passed, 0 failed, 0 undecided, 0 broken)", 0),
        (Tally(1, 3), "", "it: failed (2 steps, 1 passed, 3 failed, 0 undecided, 0 broken)", 1),
        (None, "", "it: 2 steps", 0),
        (None, "wrote t.jsonl", "it: wrote t.jsonl (2 steps)", 0),
    ],
)
def test_only_checks_that_could_have_failed_count_as_passed(
    tally: Tally | None, done: str, line: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        speech.finish(speech.Result("it", tally, {"steps": 2}, done=done), as_json=False)
    assert (" ".join(capsys.readouterr().out.split()), ended.value.code) == (line, status)


def test_a_count_without_a_plain_name_is_printed_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        speech.finish(speech.Result("conform", None, {"diverged": 63}, words=terminal.WORDS), as_json=False)
    assert capsys.readouterr().out == "conform: 63 ended at known differences\n"

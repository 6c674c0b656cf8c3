"""Passed means decided: every command that checks gives its exit status, JSON, text and reports by one definition.

``FORMS`` has each form of each command. A form plants items of each verdict in the command's own work and runs the
command. ``absent`` gives the reason if a verdict cannot occur.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias
from xml.etree import ElementTree as ET

import pytest

from fencepost.certification.statement import CLAIMS
from fencepost_conformance import cli
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.generate.simulate.broken import Broken
from fencepost_conformance.judge.checker.verdict import Verdict as Checked
from fencepost_conformance.judge.client import run as member_run
from fencepost_conformance.judge.client.judge import Difference
from fencepost_conformance.judge.client.judge import Judged as JudgedSchedule
from fencepost_conformance.judge.client.kinds import Half
from fencepost_conformance.judge.compaction.core import Checked as CheckedLoads
from fencepost_conformance.judge.diff import run as diff_run
from fencepost_conformance.judge.diff.job import Found
from fencepost_conformance.judge.diff.job import Row as DiffRow
from fencepost_conformance.judge.findings.judge import Judged as JudgedFinding
from fencepost_conformance.judge.findings.judge import Verdict as Presence
from fencepost_conformance.judge.rows import check as pipeline_check
from fencepost_conformance.judge.rows.job import Job, Row, TraceOutcome
from fencepost_conformance.judge.rows.summary import Summary
from fencepost_conformance.judge.rulebook.standing import Standing
from fencepost_conformance.judge.rulebook.texts import rule_book
from fencepost_conformance.judge.sweep.run import Outcome as SweptOutcome
from fencepost_conformance.judge.sweep.session import Books
from fencepost_conformance.judge.tla import validate as tla
from fencepost_conformance.judge.verdict import Outcome, Tally, Verdict, outcome_of
from fencepost_conformance.run import mainjob
from fencepost_conformance.run.certify.making import Made
from fencepost_conformance.run.certify.plan import Planned
from fencepost_conformance.run.commands import certify, check, conform, findings, mutants, rules, simulate, store
from fencepost_conformance.run.doctor import parts as doctor_parts
from fencepost_conformance.run.doctor import report as doctor_report
from fencepost_conformance.run.doctor.jobs import Job as DoctorsJob
from fencepost_conformance.run.falsify import __main__ as falsify
from fencepost_conformance.run.falsify import judge as falsify_judge
from fencepost_conformance.run.falsify.falsehoods import falsehoods
from fencepost_conformance.run.mutants import killers, suite
from fencepost_conformance.run.mutants.kill import Kill
from fencepost_conformance.run.pipeline import engines, local, over_wire
from fencepost_conformance.run.validate import run as validating
from fencepost_conformance.show import files as report_files
from fencepost_conformance.targets.jvm import harness
from fencepost_conformance.targets.jvm.process import ProcessFault
from fencepost_conformance.traces.files import WireTrace, read_traces, write_traces
from fencepost_model.system import checking
from fencepost_model.tlc.run import TlcBroke, TlcRun, TlcSlow
from tools import compaction, testall
from tools import sweep as sweeping

PASSED, FAILED, UNDECIDED, BROKEN = Verdict
CORPUS = Path(__file__).parents[2] / "corpus"
ROOT = Path(__file__).parents[3]
WHY = "planted for the test"

Kinds: TypeAlias = Sequence[Verdict]
Plant: TypeAlias = Callable[[pytest.MonkeyPatch, Path, Kinds], list[str]]


@dataclass(frozen=True)
class Form:
    """A form of a command.

    - ``plant``: prepares one item of each of these verdicts, and returns the words of the command.
    - ``run``: the function to call with them.
    - ``absent``: verdicts that cannot occur, and why.
    - ``report``: whether it writes JUnit XML and a page under ``-o``.
    - ``why``: the reasons that must be shown.
    - ``one``: whether it checks a single item, which has failed or passed.
    """

    command: str
    plant: Plant
    absent: Mapping[Verdict, str] = field(default_factory=dict)
    report: bool = False
    run: Callable[[list[str]], None] = cli.main
    has_json: bool = True
    why: Mapping[Verdict, str] = field(default_factory=lambda: dict.fromkeys(Verdict, WHY))
    one: bool = False


# --- conform ---------------------------------------------------------------------------------------------------------

OUTCOMES = {
    PASSED: TraceOutcome.AGREED,
    FAILED: TraceOutcome.DIFFERED,
    UNDECIDED: TraceOutcome.UNDECIDED,
    BROKEN: TraceOutcome.BROKEN,
}


def row(seed: int, kind: Verdict) -> Row:
    group = "JoinGroup: reply differs" if kind is FAILED else ""
    return Row(seed, OUTCOMES[kind].value, "", 0, "", WHY, "", 1, 1, 0, 0, 0, b"", "", group)


def rows_instead(monkeypatch: pytest.MonkeyPatch, _: Path, kinds: Kinds) -> list[str]:
    monkeypatch.setattr(local, "_check", lambda _, chunk: [row(seed, kinds[seed]) for seed in chunk])
    monkeypatch.setattr(report_files, "_shrunk_failures", lambda *_: ([], ""))  # these traces do not fail again
    return ["conform", "--profile", "intended", "--traces", str(len(kinds)), "--workers", "1"]


def on_kafka(monkeypatch: pytest.MonkeyPatch, path: Path, kinds: Kinds) -> list[str]:
    monkeypatch.setattr(engines, "_require_harness", lambda _: None)
    words = rows_instead(monkeypatch, path, kinds)
    return [word for word in words if word not in ("--profile", "intended")] + ["--target", "kafka:4.4.0"]


def on_spark(monkeypatch: pytest.MonkeyPatch, path: Path, kinds: Kinds) -> list[str]:
    """``tests/spark/test_pipeline.py`` tests how Spark sums up rows."""

    def run(plan: Any, *_: object) -> Summary:
        summary = Summary(plan.job)
        summary.add_all(row(seed, kind) for seed, kind in enumerate(kinds))
        return summary

    @contextmanager
    def spark_at(*_: object) -> Iterator[engines.Engine]:
        yield run

    monkeypatch.setattr(engines, "_spark_at", spark_at)
    return [*rows_instead(monkeypatch, path, kinds), "--engine", "spark"]


def wire_traces() -> dict[Verdict, WireTrace]:
    (good,) = read_traces(CORPUS / "alone-java.jsonl.gz")
    assert isinstance(good, WireTrace)
    false = next(each.trace for each in falsehoods(good) if each.kind == "heartbeat-unknown-member")
    return {PASSED: good, FAILED: false, UNDECIDED: replace(good, lines=()), BROKEN: good}


def over_the_wire(monkeypatch: pytest.MonkeyPatch, _: Path, kinds: Kinds) -> list[str]:
    """Traces with the answers of a broker, each given to the checker. The verdict "broken" is planted."""
    traces, look = wire_traces(), over_wire.check_trace

    async def play_all(plan: Any, _: object, summary: Summary, *more: Any) -> None:
        advance: Callable[[int], None] = more[-1]
        for seed, kind in enumerate(kinds):
            broken = Checked("", "", "broken", 0, WHY)
            monkeypatch.setattr(over_wire, "check_trace", look if kind is not BROKEN else lambda _, b=broken, **__: b)
            summary.add_judged(over_wire.judge(plan.job, seed, traces[kind]))
            advance(1)

    monkeypatch.setattr(over_wire, "_all", play_all)
    words = ["conform", "--target", "127.0.0.1:9", "--profile", "kafka-4.4", "--traces", str(len(kinds))]
    monkeypatch.setattr(over_wire, "require_open", lambda _: None)
    return words


def beside_kafkas_client(half: Half) -> Plant:
    def plant(monkeypatch: pytest.MonkeyPatch, _: Path, kinds: Kinds) -> list[str]:
        def judge(seed: int) -> JudgedSchedule:
            if kinds[seed] is BROKEN:
                raise ProcessFault(WHY)
            differs = Difference(seed, 0, {"kind": "poll"}, {"commands": (1, 2)})
            return JudgedSchedule(seed, 1, differs if kinds[seed] is FAILED else None)

        monkeypatch.setattr(member_run, "judge_of", lambda _: SimpleNamespace(judge=judge))
        monkeypatch.setattr("fencepost_conformance.run.commands.conform_member.clients.command", lambda *_: [])
        words = ["conform", "--side", half.value, "--target", "kafka:4.4.0", "--protocol", "classic", "--workers", "1"]
        return [*words, "--traces", str(len(kinds))]

    return plant


# --- validate, replay, falsify ---------------------------------------------------------------------------------------


def files(folder: Path, kinds: Kinds) -> list[Path]:
    (good,) = read_traces(CORPUS / "alone-java.jsonl.gz")
    lines = gzip.decompress((CORPUS / "alone-java.jsonl.gz").read_bytes()).decode().splitlines()
    texts = {
        PASSED: "\n".join(lines),
        UNDECIDED: lines[0],
        BROKEN: "\n".join([*lines[:6], lines[6].replace('"type":', '"tipe":')]),
    }
    paths = []
    for number, kind in enumerate(kinds):
        paths.append(folder / f"{number}-{kind}.jsonl")
        if kind is FAILED:
            write_traces(paths[-1], [wire_traces()[FAILED]])
        else:
            paths[-1].write_text(texts[kind] + "\n")
    assert isinstance(good, WireTrace)
    return paths


def validated(monkeypatch: pytest.MonkeyPatch, folder: Path, kinds: Kinds) -> list[str]:
    del monkeypatch
    return ["validate", "--workers", "1", *map(str, files(folder, kinds))]


def validated_on_spark(monkeypatch: pytest.MonkeyPatch, folder: Path, kinds: Kinds) -> list[str]:
    """On the same files. ``tests/wire/test_validate.py`` tests that Spark gives the same verdicts."""
    from fencepost_conformance.run.validate import on_spark as spark  # noqa: PLC0415
    from fencepost_conformance.run.validate.plan import Plan, check_one  # noqa: PLC0415

    def verdicts(plan: Plan, _: object) -> Iterator[list[Checked]]:
        yield from (check_one(path, plan.limits, plan.profile, plan.given) for path in plan.files)

    monkeypatch.setattr(spark, "on_spark", verdicts)
    return [*validated(monkeypatch, folder, kinds), "--engine", "spark"]


def validated_by_tlc(monkeypatch: pytest.MonkeyPatch, folder: Path, kinds: Kinds) -> list[str]:
    """On the same files. TLC explains the traces without the falsified answer. ``tests/wire/test_validate_by_tlc.py``
    runs TLC itself."""

    def run_tlc(module: Path, cfg: Path, **_: object) -> TlcRun:
        del module
        traces = (cfg.parent / "TraceData.tla").read_text().split("\n\n    ")
        explained = [number for number, text in enumerate(traces, 1) if "UNKNOWN_MEMBER_ID" not in text]
        output = "\n".join(f"[explained |-> {number}]" for number in explained) + "\n[reached |-> 1]"
        return TlcRun("TheTraceIsNotExplained" if explained else None, None, 1, 1, 1, 0.0, output=output)

    monkeypatch.setattr(tla, "run_tlc", run_tlc)
    return [*validated(monkeypatch, folder, kinds), "--engine", "tlc"]


def slow_tlc(monkeypatch: pytest.MonkeyPatch, folder: Path, kinds: Kinds) -> list[str]:
    """An undecided trace is one for which TLC takes too long."""
    words = validated_by_tlc(monkeypatch, folder, [PASSED if kind is UNDECIDED else kind for kind in kinds])
    slow = {folder / f"{number}-{PASSED}.jsonl" for number, kind in enumerate(kinds) if kind is UNDECIDED}
    run, names = tla.run_tlc, {str(path) for path in slow}

    def run_slowly(module: Path, cfg: Path, **more: Any) -> TlcRun:
        raise TlcSlow(WHY, "")

    def check(paths: Sequence[Path], choices: Any) -> list[list[Checked]]:
        found = []
        for path in paths:
            monkeypatch.setattr(tla, "run_tlc", run_slowly if str(path) in names else run)
            found += tla.check_by_tlc([path], choices)
        return found

    monkeypatch.setattr(validating, "check_by_tlc", check)
    return words


def replayed(monkeypatch: pytest.MonkeyPatch, folder: Path, kinds: Kinds) -> list[str]:
    del monkeypatch
    file = folder / "all.jsonl"
    file.write_text("".join(path.read_text() for path in files(folder, kinds)))
    return ["replay", str(file)]


def falsified(monkeypatch: pytest.MonkeyPatch, folder: Path, kinds: Kinds) -> list[str]:
    """One falsified copy for each verdict except broken, which is a file that cannot be read."""
    copies = [kind for kind in kinds if kind is not BROKEN]
    copy = next(each for each in falsehoods(wire_traces()[PASSED]) if each.kind == "heartbeat-unknown-member")
    words = iter({PASSED: "refused", FAILED: "accepted", UNDECIDED: "undecided"}[kind] for kind in copies)
    refusal = SimpleNamespace(line=copy.first)

    def look(_: object) -> Any:
        word = next(words)
        return SimpleNamespace(outcome=word, refusals=[refusal] if word == "refused" else [], reason=WHY)

    @contextmanager
    def here(_: int) -> Iterator[Any]:
        yield SimpleNamespace(map=map)

    monkeypatch.setattr(falsify, "worker_processes", here)
    monkeypatch.setattr(falsify_judge, "falsehoods", lambda *_: [copy] * len(copies))
    monkeypatch.setattr(falsify_judge, "check_trace", look)
    (folder / "traces").mkdir()
    made = files(folder / "traces", [PASSED] * bool(copies) + [BROKEN] * (BROKEN in kinds))
    return [str(path) for path in made]


def run_falsify(words: list[str]) -> None:
    falsify.falsify(words, 0, 1)


# --- diff, check, findings, mutants, simulate, rules, store ----------------------------------------------------------


def side_by_side(monkeypatch: pytest.MonkeyPatch, _: Path, kinds: Kinds) -> list[str]:
    differs = (Found("JoinGroup: reply differs", 0, "a", "b", (), 1),)

    def compared(_: object, seed: int) -> DiffRow:
        kind = kinds[seed]
        found, broken = (differs if kind is FAILED else ()), (WHY if kind is BROKEN else "")
        return DiffRow(seed, GroupProtocol.CLASSIC, 1, found, {}, broken)

    monkeypatch.setattr(diff_run.Runner, "row", compared)
    monkeypatch.setattr(harness, "command", lambda *_: [])
    words = ["diff", "core", "core:kafka-4.2", "--protocol", "classic", "--no-shrink", "--workers", "1"]
    return [*words, "--traces", str(len(kinds))]


CONFIGURATIONS = ("EagerQuiet", "EagerFaults", "ConsumerQuiet", "ConsumerAlone")


def configuration(entry: Any, kind: Verdict, engine: str) -> checking.Row:
    made = checking.Row(entry.name, engine, "holds", None, 1, 1, 1, 0.0)
    made.wrong = [WHY] if kind is FAILED else []
    made.stopped = WHY if kind is UNDECIDED else ""
    return made


def explored(engine: str) -> Plant:
    def plant(monkeypatch: pytest.MonkeyPatch, _: Path, kinds: Kinds) -> list[str]:
        names = CONFIGURATIONS[: len(kinds)]

        def one(entry: Any, **_: object) -> checking.Row:
            kind = kinds[names.index(entry.name)]
            if kind is BROKEN:
                raise TlcBroke(WHY) if engine == "tlc" else ValueError(WHY)
            return configuration(entry, kind, engine)

        @contextmanager
        def no_spark(*_: object) -> Iterator[Any]:
            yield SimpleNamespace(cluster=False, session=None, cores=1)

        for name in ("check_python", "check_tlc", "check_spark"):
            monkeypatch.setattr(check, name, one)
        monkeypatch.setattr(check, "started", no_spark)
        return ["check", *names, "--engine", engine, "--workers", "1"]

    return plant


def played(monkeypatch: pytest.MonkeyPatch, _: Path, kinds: Kinds) -> list[str]:
    """One target for each verdict; for each, the fault is pinned as present."""
    targets = {f"core:{kind}": kind for kind in kinds}
    presence = {PASSED: Presence.PRESENT, FAILED: Presence.GONE, UNDECIDED: Presence.DIFFERENT}

    @contextmanager
    def opened(target: str) -> Iterator[Verdict]:
        if targets[target] is BROKEN:
            raise ProcessFault(WHY)
        yield targets[target]

    def judged(chosen: Any, folder: object, kind: Verdict, *, advance: object) -> dict[str, JudgedFinding]:
        del folder, advance
        return {each.name: JudgedFinding(presence[kind], WHY) for each in chosen}

    monkeypatch.setattr(findings, "opened", opened)
    monkeypatch.setattr(findings, "judge_all", judged)
    monkeypatch.setattr(findings, "read_pinned", lambda _: {each: {"wedged-group": "present"} for each in targets})
    return ["findings", "wedged-group", *(word for each in targets for word in ("--target", each))]


def planted_mutants(monkeypatch: pytest.MonkeyPatch, _: Path, kinds: Kinds) -> list[str]:
    names = list(mutants.MUTANTS)[: len(kinds)]
    now: list[Verdict] = []

    @contextmanager
    def planted(mutant: Any) -> Iterator[None]:
        now[:] = [kinds[names.index(mutant.name)]]
        yield

    def the_check() -> Iterator[Kill]:
        if now == [BROKEN]:
            raise LookupError(WHY)
        if now == [PASSED]:
            yield Kill("product", "E2", 1, 0, "")

    monkeypatch.setattr(suite, "planted", planted)
    monkeypatch.setattr(suite, "CHECKS", dict.fromkeys(suite.CHECKS, (the_check,)))
    monkeypatch.setattr(suite, "ALL_CHECKS", ())
    monkeypatch.setattr(killers, "pinned", lambda: dict.fromkeys(names, ("product: E2",)))
    return ["mutants", *names, "--workers", "1"]


def simulated(monkeypatch: pytest.MonkeyPatch, _: Path, kinds: Kinds) -> list[str]:
    def run(plan: Any) -> Any:
        if kinds[plan.seed] is BROKEN:
            raise LookupError(WHY)
        broken = Broken("LIV-05", "a group does not settle") if kinds[plan.seed] is FAILED else None
        return simulate.ClusterReport(plan, 1, 1, {}, broken)

    monkeypatch.setattr(simulate, "simulate_cluster", run)
    return ["simulate", "--seed", "0", "--runs", str(len(kinds))]


def standings(monkeypatch: pytest.MonkeyPatch, _: Path, kinds: Kinds) -> list[str]:
    there = ("impl/fencepost/x.py:3",)
    places = dict.fromkeys(("specified", "modelled", "implemented", "tested"), there)
    missing = {"C-JOIN-43"} if FAILED in kinds else set()
    found = [Standing(rule, {} if rule.id in missing else places, {}, None) for rule in rule_book().values()]
    monkeypatch.setattr(rules, "read_standings", lambda _: found)
    return ["rules"]


def stored(monkeypatch: pytest.MonkeyPatch, _: Path, kinds: Kinds) -> list[str]:
    faults = ("a checksum is wrong",) if FAILED in kinds else ()
    found = SimpleNamespace(partitions=1, records=1, batches=1, values=1, faults=faults)
    monkeypatch.setattr(store, "check_file", lambda _: found)
    return ["store", "check", "a.sqlite"]


def examined(monkeypatch: pytest.MonkeyPatch, _: Path, kinds: Kinds) -> list[str]:
    """Jobs that need one part each, which is installed or not."""
    names = [f"job-{number}" for number in range(len(kinds))]
    found = {name: doctor_parts.Part(name, kind is PASSED, WHY) for name, kind in zip(names, kinds, strict=True)}
    monkeypatch.setattr(doctor_report, "JOBS", {name: DoctorsJob(name, (name,)) for name in names})
    monkeypatch.setattr(doctor_report, "PARTS", dict.fromkeys(names))
    monkeypatch.setattr(doctor_report, "look", found.__getitem__)
    return ["doctor", *names]


# --- make run, make test-all, and programs without a command ---------------------------------------------------------

STATUS = {PASSED: 0, FAILED: 1, UNDECIDED: 2, BROKEN: 2}


def staged(module: Any) -> Plant:
    def plant(monkeypatch: pytest.MonkeyPatch, folder: Path, kinds: Kinds) -> list[str]:
        stages = [mainjob.Stage(kind.value, ("check",)) for kind in kinds]

        def run(stage: mainjob.Stage, _: Path) -> mainjob.Finding:
            kind = Verdict(stage.title)
            result = {} if kind is BROKEN else {"verdict": "any", "error": WHY if kind is UNDECIDED else ""}
            return mainjob.Finding(stage, mainjob.verdict_of(STATUS[kind], result), 0.0, result)

        monkeypatch.setattr(module, "stages", lambda *_: stages)
        monkeypatch.setattr(module, "run_stage", run)
        monkeypatch.setattr(module.repository, "root", lambda: folder)
        monkeypatch.setattr(module, "listen_to_sigterm", lambda: None)
        if module is testall:
            monkeypatch.setattr(
                testall, "run_tests", lambda _: mainjob.Finding(mainjob.Stage("every test", ()), PASSED)
            )
            monkeypatch.setattr(testall, "REQUESTS", {})
        return []

    return plant


def certified(monkeypatch: pytest.MonkeyPatch, folder: Path, kinds: Kinds) -> list[str]:
    """A plan with one check for each verdict; a broken one is a missing link."""
    plan = [
        Planned(name=name, stage=mainjob.Stage(kind.value, ("check",)))
        for name, kind in zip(CLAIMS, kinds, strict=False)
    ]

    def make(checks: Sequence[Planned], *_: object, **__: object) -> Iterator[Made]:
        for each in checks:
            kind = Verdict(each.stage.title)
            counts = {"passed": int(kind is PASSED)}
            yield Made(each, mainjob.Finding(each.stage, kind, 0.0, {"counts": counts, "error": WHY}))

    monkeypatch.setattr(certify, "planned", lambda *_: plan)
    monkeypatch.setattr(certify, "make", make)
    return ["certify", str(folder / "certificate.json")]


def loaded(monkeypatch: pytest.MonkeyPatch, _: Path, kinds: Kinds) -> list[str]:
    found = CheckedLoads(complaints=[WHY] if FAILED in kinds else [])
    found.loads["whole"] = len(kinds)  # type: ignore[index]
    monkeypatch.setattr(compaction, "on_core", lambda *_: iter([("classic: loads", found)]))
    return []


def swept(monkeypatch: pytest.MonkeyPatch, _: Path, kinds: Kinds) -> list[str]:
    """One broker for each verdict."""
    words = {PASSED: "accepted", FAILED: "refused", UNDECIDED: "undecided"}

    @contextmanager
    def running(name: str) -> Iterator[str]:
        if name == BROKEN:
            raise CannotRun(WHY)
        yield name

    async def sweep(name: str, *_: object, **__: object) -> Any:
        checked = Checked("", "", words[Verdict(name)], 0, WHY)  # type: ignore[arg-type]
        return SweptOutcome({}, Books(), checked)

    monkeypatch.setattr(sweeping, "running", running)
    monkeypatch.setattr(sweeping, "sweep", sweep)
    monkeypatch.setattr(sweeping, "profile_of", lambda _: None)
    monkeypatch.setattr(sweeping, "ALL", tuple(Verdict))
    return [*map(str, kinds), "--short"]


def run_sweep(words: list[str]) -> None:
    raise SystemExit(sweeping.main(words))


#: traces in files, and stages, one of which could not run
OF_FILES = {UNDECIDED: "there is nothing to check", BROKEN: "'type'"}
STAGE = {UNDECIDED: WHY, BROKEN: "broken"}

FORMS = {
    "conform": Form("conform", rows_instead, report=True),
    "conform on Kafka in a JVM": Form("conform", on_kafka, report=True),
    "conform over the wire": Form("conform", over_the_wire, report=True, why={**OF_FILES, BROKEN: WHY}),
    "conform --engine spark": Form("conform", on_spark, report=True),
    **{
        f"conform --side {half}": Form(
            "conform",
            beside_kafkas_client(half),
            {UNDECIDED: "both clients answer each event of a schedule, and the answers are equal or not"},
        )
        for half in Half
    },
    "validate": Form("validate", validated, why=OF_FILES),
    "validate --engine spark": Form("validate", validated_on_spark, why=OF_FILES),
    "validate --engine tlc": Form("validate", validated_by_tlc, why=OF_FILES),
    "validate --engine tlc, too slow": Form("validate", slow_tlc, why={**OF_FILES, UNDECIDED: WHY}),
    "replay": Form("replay", replayed, why=OF_FILES),
    "falsify": Form("falsify", falsified, run=run_falsify, has_json=False, why={**OF_FILES, UNDECIDED: WHY}),
    "diff": Form("diff", side_by_side, {UNDECIDED: "two sides that ran are equal or not"}),
    "check --engine python": Form("check", explored("python")),
    "check --engine tlc": Form("check", explored("tlc"), {UNDECIDED: "TLC comes to its end or breaks"}),
    "check --engine spark": Form("check", explored("spark"), {UNDECIDED: "it has no limits that stop it early"}),
    "findings": Form("findings", played),
    "mutants": Form("mutants", planted_mutants, {UNDECIDED: "the checks find a mutant or do not"}),
    "simulate": Form("simulate", simulated, {UNDECIDED: "a group that does not settle in time breaks a promise"}),
    "rules": Form(
        "rules",
        standings,
        dict.fromkeys((UNDECIDED, BROKEN), "a rule is cited or not; a broken book cannot be read"),
    ),
    "store": Form(
        "store",
        stored,
        dict.fromkeys(
            (UNDECIDED, BROKEN),
            "a file that cannot be opened is bad input (CannotRun); test_sqlite.py has folders",
        ),
        one=True,
    ),
    "doctor": Form(
        "doctor",
        examined,
        dict.fromkeys((UNDECIDED, BROKEN), "a part is there or missing"),
        why=dict.fromkeys(Verdict, WHY),
    ),
    "certify": Form("certify", certified),
    "make run": Form("make run", staged(mainjob), run=lambda _: mainjob.main(), has_json=False, why=STAGE),
    "make test-all": Form("make test-all", staged(testall), run=lambda _: testall.main(), has_json=False, why=STAGE),
    "sweep": Form("sweep", swept, run=run_sweep, has_json=False),
    "compaction": Form(
        "compaction",
        loaded,
        dict.fromkeys((UNDECIDED, BROKEN), "a log gives the live state or not; a JVM that dies is CannotRun"),
        run=lambda _: compaction.compaction(1, 0, "intended", ""),
        has_json=False,
    ),
}

#: commands that check nothing, and why
NOT_JUDGING = {
    "serve": "serves until it is stopped",
    "record": "writes a trace, which validate judges",
    "import": "makes a trace from a packet capture; validate judges it",
    "diagram": "draws",
    "promises": "lists what other commands check",
    "graph": "shows a graph to walk; check judges it",
    "lab": "plays a group by hand; validate judges the trace that it saves",
    "bench": "measures; nothing is asserted",
    "history": "shows what a log contains; broken rules are a part of that",
    "decode": "prints records",
    "watch": "shows a running cluster",
}
#: modules that are run by name
MODULES = {
    "cli": "the command line itself",
    "submit": "the command line for spark-submit",
    "run.mainjob": "make run",
    "run.matrix": "make matrix: plays conform and shows what it found",
    "tools.testall": "make test-all",
    "run.falsify": "falsify",
    "tools.sweep": "sweep",
    "tools.compaction": "compaction",
    "run.compiled": "builds",
    "tools.corpus": "records the corpus; validate and falsify judge it",
    "tools.corpus_by_tlc": "stores verdicts of validate; tests/wire/test_corpus_by_tlc.py reads them",
    "tools.kafka_values": "writes values",
    "tools.serde": "writes what Kafka's serde said; tests/unit/codec judges it",
    "tools.digests": "prints digests",
    "tools.offsets_log": "writes a log",
    "tools.screenshots": "draws pages",
    "tools.evidence.core": "writes evidence, which rules shows",
    "tools.evidence.member": "writes evidence, which rules shows",
    "tools.evidence.traces": "writes evidence, which rules shows",
    "run.bench.core_probe": "measures",
    "run.bench.load_probe": "measures",
    "run.bench.records_probe": "measures",
    "tools.corpus.member": "a client",
    "tools.corpus.admin": "a client",
    "traces": "prints a schema",
    "tools.compare_server": "an answer agrees or differs; tests/wire/test_beside_random.py plants faults",
    # an exception in a schedule and a schedule that never ends are failures too
    "tools.virtual": "a schedule can only pass or fail; tests/quality/test_virtual_time.py plants faults",
}

SETS = ((PASSED,), (PASSED, FAILED), (PASSED, UNDECIDED), (PASSED, BROKEN), (UNDECIDED,), (BROKEN,), tuple(Verdict))
RUNS = [
    pytest.param(form, kinds, id=f"{name}: {', '.join(kinds)}")
    for name, form in FORMS.items()
    for kinds in dict.fromkeys(tuple(kind for kind in each if kind not in form.absent) for each in SETS)
    if kinds
]


@dataclass(frozen=True)
class Ran:
    status: object
    out: str
    err: str


def ran(form: Form, words: list[str]) -> Ran:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        form.run(words)
    return Ran(ended.value.code, out.getvalue(), err.getvalue())


@pytest.mark.parametrize(("form", "kinds"), RUNS)
def test_the_outcome_follows_from_the_verdicts(
    form: Form, kinds: Kinds, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    expected = Outcome.FAILED if FAILED in kinds else Outcome.INCOMPLETE if {*kinds} > {PASSED} else Outcome.PASSED
    expected = Outcome.INCOMPLETE if expected is Outcome.PASSED and kinds != (PASSED,) else expected
    words = form.plant(monkeypatch, tmp_path, kinds)
    shown = ran(form, words)
    assert shown.status == expected.status, shown
    plain = " ".join(shown.out.split())
    assert (f"{form.command}: {expected}" if form.has_json or form.command.startswith("make") else expected) in plain
    for kind in {UNDECIDED, BROKEN}.intersection(kinds):
        assert kind in plain
        assert form.why[kind] in plain
    if {UNDECIDED, BROKEN}.intersection(kinds) and form.has_json:
        assert "No verdict" in plain
        assert shown.err.strip().splitlines()[-1].startswith(f"fencepost {form.command}: ")

    if not form.has_json:
        return
    out = tmp_path / "out"
    monkeypatch.undo()
    more = ["-o", str(out)] if form.report else []
    (tmp_path / "again").mkdir()
    result = json.loads(ran(form, [*form.plant(monkeypatch, tmp_path / "again", kinds), *more, "--json"]).out)
    assert (result["verdict"], result["passed"], result["status"]) == (
        expected,
        expected is Outcome.PASSED,
        expected.status,
    )
    for kind in Verdict:
        assert (result["counts"][kind] > 0) == (kind in kinds and not (form.one and kind is PASSED and FAILED in kinds))
    for kind in (UNDECIDED, BROKEN):
        assert len(result[kind]) == result["counts"][kind]
        assert all(each["what"] and each["why"] for each in result[kind])
    assert ("error" in result) == bool({UNDECIDED, BROKEN}.intersection(kinds))
    if form.report:
        is_reported(out, result)


def is_reported(out: Path, result: dict[str, Any]) -> None:
    """JUnit and the page agree with the JSON."""
    root = ET.parse(out / "junit.xml").getroot()
    (suite_,) = root
    open_ = result["counts"]["undecided"] + result["counts"]["broken"]
    assert (suite_.get("errors"), suite_.get("failures")) == (str(open_), str(result["counts"]["failed"]))
    assert (len(root.findall(".//error")), len(root.findall(".//failure"))) == (open_, result["counts"]["failed"])
    assert root.findall(".//skipped") == []
    assert {each.get("type") for each in root.findall(".//error")} == {
        kind for kind in (UNDECIDED, BROKEN) if result[kind]
    }
    page = (out / "report.html").read_text()
    assert f'<b class="{"good" if result["passed"] else "bad"}">{result["verdict"]}</b>' in page
    assert ("No verdict" in page) == bool(open_)
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["verdict"], summary["undecided"], summary["broken"]) == tuple(
        result[name] for name in ("verdict", "undecided", "broken")
    )
    for each in (*result["undecided"], *result["broken"]):
        assert each["what"] in page
        assert Path(each["file"]).exists() if "file" in each else each["replay"].startswith("fencepost replay ")


def test_no_command_is_forgotten() -> None:
    judging = {form.command for form in FORMS.values()}
    assert judging & NOT_JUDGING.keys() == set()
    others = {"make run", "make test-all", "falsify", "compaction", "sweep"}
    assert (judging - others) | NOT_JUDGING.keys() == cli.COMMANDS.keys()
    suite = Path(cli.__file__).parent
    run_by_name = {
        ".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__main__")
        for package, base in ((suite, suite), (suite.parent / "tools", suite.parent))
        for path in package.rglob("*.py")
        if path.name == "__main__.py" or '__name__ == "__main__"' in path.read_text()
    }
    assert run_by_name == MODULES.keys()


def test_no_engine_or_side_is_forgotten() -> None:
    assert {f"conform --side {side}" for side in conform.SIDES if side != "coordinator"} <= FORMS.keys()
    assert {f"check --engine {engine}" for engine in check.Engine} <= FORMS.keys()
    for command, all_engines in (("conform", engines.ENGINES), ("validate", validating.ENGINES)):
        assert {command} | {
            f"{command} --engine {engine}" for engine in all_engines if engine != "local"
        } <= FORMS.keys()


def test_impossible_verdicts_have_a_reason() -> None:
    assert all(reason for form in FORMS.values() for reason in form.absent.values())
    assert not any({PASSED, FAILED} & form.absent.keys() for form in FORMS.values())


@pytest.mark.parametrize(
    ("tally", "stopped", "expected"),
    [
        (Tally(3), False, Outcome.PASSED),
        (Tally(), False, Outcome.INCOMPLETE),
        (Tally(3), True, Outcome.INCOMPLETE),
        (Tally(3, undecided=1), False, Outcome.INCOMPLETE),
        (Tally(3, broken=1), False, Outcome.INCOMPLETE),
        (Tally(3, 1, 1, 1), True, Outcome.FAILED),
    ],
)
def test_the_definition(tally: Tally, stopped: bool, expected: Outcome) -> None:
    assert outcome_of(tally, stopped=stopped) is expected


def test_a_core_that_ran_alone_is_undecided(tmp_path: Path) -> None:
    words = ["conform", "--profile", "intended", "--traces", "3", "--steps", "5", "--workers", "1", "--no-model"]
    shown = ran(FORMS["conform"], [*words, "--json"])
    result = json.loads(shown.out)
    assert (shown.status, result["counts"]["undecided"], result["undecided"][0]["why"]) == (
        2,
        3,
        pipeline_check.NOT_COMPARED,
    )


def test_accepted_differences_pass_and_are_listed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.write_text("JoinGroup: reply differs -- as written down\n")
    for name in ("conform", "diff"):
        words = FORMS[name].plant(monkeypatch, tmp_path, (PASSED, FAILED))
        result = json.loads(ran(FORMS[name], [*words, "--known", str(known), "--json"]).out)
        assert (result["status"], result["counts"]["passed"], result["counts"]["failed"]) == (0, 2, 0)
        assert result["groups"][0]["known"] == "as written down"
        monkeypatch.undo()


def test_junit_is_red_where_only_accepted_failures_are_kept(tmp_path: Path) -> None:
    """If more failures occur than are kept, the first ones may all be accepted."""
    from fencepost_conformance.judge.known import Accepted  # noqa: PLC0415
    from fencepost_conformance.judge.rows.summary import KEPT  # noqa: PLC0415
    from fencepost_conformance.show.report.junit import junit  # noqa: PLC0415

    summary = Summary(Job("core", "intended", 5))
    summary.add_all(row(seed, FAILED) for seed in range(KEPT))
    summary.add(replace(row(KEPT, FAILED), group="SyncGroup: another"))
    summary.accepted = {"JoinGroup: reply differs": Accepted("JoinGroup: reply differs", "known", 1)}
    suite_ = ET.fromstring(junit(summary, 1.0))[0]
    assert (summary.outcome, suite_.get("failures")) == (Outcome.FAILED, "1")


def test_a_fault_of_the_suite_is_not_a_failure_of_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise LookupError(WHY)

    monkeypatch.setattr(local, "_check", fails)
    shown = ran(FORMS["conform"], ["conform", "--traces", "1", "--workers", "1", "--json"])
    assert (shown.status, json.loads(shown.out)["passed"]) == (2, False)
    assert WHY in shown.err

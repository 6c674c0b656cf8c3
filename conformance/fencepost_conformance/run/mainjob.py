"""``make run``: the whole chain of evidence once, short enough to wait for.

Runs the project's own commands one after the other, each with its progress, collects their JSON results, and ends with
a table and the path of the report. Stages that need a JDK are skipped without one, and listed. The random traces differ
in each run (``seeds``); for differences the output has the seed, and the command that shows it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from ..common import repository
from ..common.counting import counted
from ..common.errors import CannotRun
from ..common.interruption import interruptible, listen_to_sigterm
from ..judge.verdict import Outcome, Tally, Verdict, outcome_of
from ..show.listing import Listing
from ..targets.jvm import jars
from ..targets.jvm.releases import NEWEST
from . import seeds

NEEDS_JDK = "needs a JDK 17 or later (java and javac on the PATH; Debian: apt-get install openjdk-17-jdk-headless)"


#: Graphs of every family: quick ones, with commits in groups, and one that must break; and a large one.
#: ``check --engine tlc`` has all graphs.
GRAPHS = (
    *("EagerCommits", "EagerFaults", "KafkaTwoOwners", "ConsumerCommits", "ConsumerAlone", "LostLeave"),
    *("MixedCommits", "MixedStaticAlone", "KafkaUpgradeFails"),
    *("LogThreeBrokers", "LogTombstoneUnseen", "OffsetsQuiet", "OffsetsUnstableAnswered"),
)


@dataclass(frozen=True, slots=True)
class Stage:
    """One command of the main job; ``words`` are its arguments."""

    title: str
    words: tuple[str, ...]
    needs_jdk: bool = False


@dataclass(slots=True)
class Finding:
    """The result of a stage. ``verdict``: None if it was skipped; ``interrupted``: it did not reach its end;
    ``result``: the command's JSON output."""

    stage: Stage
    verdict: Verdict | None
    seconds: float = 0.0
    result: dict[str, Any] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def word(self) -> str:
        """The verdict for the table."""
        if self.verdict is None:
            return "skipped"
        return "interrupted" if self.interrupted and self.verdict is not Verdict.FAILED else self.verdict.value


#: seconds that an interrupted command may take to end its processes and report
_PATIENCE_S = 30.0

#: random traces of each protocol, in each of the two runs on Spark
TRACES = 1_500


def stages(out: Path, seed: int) -> list[Stage]:
    """Return the stages. ``seed``: the first one of the random traces; those against Kafka follow the others."""
    spark = ("conform", "--engine", "spark", "--protocol", "all", "--traces", str(TRACES))
    return [
        Stage("model, explored exhaustively", ("check",)),
        Stage("model against TLA+, graph by graph", ("check", "--engine", "tlc", *GRAPHS), needs_jdk=True),
        Stage(
            "core against model, as intended and as Kafka: random traces of all protocols on Spark",
            (*spark, "--seed", str(seed), "-o", str(out / "core")),
            needs_jdk=True,  # Spark itself needs one
        ),
        Stage(
            f"core and model against Kafka {NEWEST}, random traces of the same kinds on Spark",
            (*spark, "--target", f"kafka:{NEWEST}", "--seed", str(seed + TRACES), "-o", str(out / "kafka")),
            needs_jdk=True,
        ),
        Stage("recorded traces of real clients", ("validate", "tests/corpus")),
    ]


def run_stage(stage: Stage, folder: Path) -> Finding:
    """Run one command; its progress goes to the terminal, its JSON is returned.

    On an interrupt the command is ended and its partial result returned; no other stage should run then."""
    words = [sys.executable, "-m", "fencepost_conformance.cli", *stage.words, "--json"]
    began = time.monotonic()
    said = ""
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True) as command:
        with interruptible() as cut:
            said, _ = command.communicate()
        if cut.happened:
            command.terminate()  # a terminal's Ctrl-C has reached it too; then this has no effect
            try:
                said, _ = command.communicate(timeout=_PATIENCE_S)
            except subprocess.TimeoutExpired:
                command.kill()
    seconds = time.monotonic() - began
    try:
        result = json.loads(said)
    except json.JSONDecodeError:
        result = {}
    return Finding(stage, verdict_of(command.returncode, result), seconds, result, cut.happened)


def verdict_of(status: int, result: dict[str, Any]) -> Verdict:
    """Return the verdict on a stage from its exit status and JSON: a command without a result could not run."""
    if status in (0, 1):
        return Verdict.FAILED if status else Verdict.PASSED
    return Verdict.UNDECIDED if "verdict" in result else Verdict.BROKEN


def table_of(findings: list[Finding]) -> Listing:
    columns = ("what", "verdict", "seconds", "done")
    table = Listing(columns, title="Fencepost: the chain of evidence", numbers=frozenset(("seconds",)))
    colours = {Verdict.PASSED: "green", None: "yellow"}
    for each in findings:
        done = each.result.get("counts", {})
        counts = ", ".join(counted(value, name.replace("_", " ")) for name, value in done.items())
        colour = colours.get(each.verdict, "red")
        table.add(each.stage.title, f"[{colour}]{each.word}[/]", f"{each.seconds:.0f}", counts)
    return table


def main() -> None:
    listen_to_sigterm()
    console = Console()
    try:
        seed = seeds.seed_of_run()
    except CannotRun as reason:
        console.print(f"make run: {reason}")
        raise SystemExit(2) from None
    console.print(seeds.seed_line(seed))
    root = repository.root()
    out = root / "out" / "run"
    shutil.rmtree(out, ignore_errors=True)  # rows of an earlier run may come from other code, but would count as done
    out.mkdir(parents=True)
    has_jdk = jars.has_jdk()
    findings: list[Finding] = []
    for number, stage in enumerate(stages(out, seed), 1):
        if stage.needs_jdk and not has_jdk:
            findings.append(Finding(stage, None))
            continue
        console.print(f"[bold]{number}. {stage.title}[/]  fencepost {' '.join(stage.words)}")
        findings.append(run_stage(stage, root))
        if findings[-1].interrupted:
            break
    console.print(table_of(findings))
    for note in notes_of(findings):
        console.print(note, soft_wrap=True, highlight=False)
    summary = [
        {"what": each.stage.title, "verdict": each.word, "seconds": round(each.seconds, 1), "result": each.result}
        for each in findings
    ]
    result = {"seed": seed, "verdict": outcome_of_stages(findings), "stages": summary}
    (out / "summary.json").write_text(json.dumps(result, indent=1, default=str), encoding="utf-8")
    console.print(f"report: {out.relative_to(root)}/ (summary.json, a report.html for each protocol and profile)")
    console.print(f"the command is {command_of(root)}; {command_of(root)} --help lists its commands")
    outcome = outcome_of_stages(findings)
    console.print(f"make run: {outcome}")
    raise SystemExit(outcome.status)


def notes_of(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield lines below the table: skipped stages, why a stage is incomplete, and how to show differences."""
    for each in findings:
        if each.verdict is None:
            yield f"[yellow]skipped[/] {each.stage.title}: {NEEDS_JDK}"
        elif each.result.get("error"):
            yield f"[yellow]{each.word}[/] {each.stage.title}: {escape(str(each.result['error']))}"
    for command in dict.fromkeys(command for each in findings for command in replays(each.result)):
        yield f"[red]see it:[/] {command}"


def command_of(root: Path) -> str:
    """Return how to call ``fencepost`` from the checkout: it is on the PATH only in an active environment."""
    command = Path(sys.executable).with_name("fencepost")
    return str(command.relative_to(root)) if command.is_relative_to(root) else str(command)


def replays(result: Any) -> Iterator[str]:
    """Yield the commands that show a stage's differences, wherever they are in its result."""
    if isinstance(result, dict):
        if isinstance(result.get("replay"), str):
            yield result["replay"]
        result = list(result.values())
    if isinstance(result, list):
        for each in result:
            yield from replays(each)


def outcome_of_stages(findings: Sequence[Finding]) -> Outcome:
    """Return the outcome of all stages; a stage skipped without a JDK is listed and does not count."""
    tally = Tally.of(each.verdict for each in findings if each.verdict is not None)
    return outcome_of(tally, stopped=any(each.interrupted for each in findings))


if __name__ == "__main__":
    main()

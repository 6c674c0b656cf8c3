"""``make run``: the whole chain of evidence once, small enough to wait for.

Runs the project's own commands one after the other, each with its progress, gathers their JSON results, and ends with a
table and the place of the report. What needs a JDK is skipped without one, and named.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from . import repository
from .counting import counted

NEEDS_JDK = "needs a JDK 17 or later (java and javac on the PATH; Debian: apt-get install openjdk-17-jdk-headless)"


#: of either protocol: quick graphs, a large one, and ones that must break; ``check --engine tlc`` has them all
GRAPHS = ("EagerQuiet", "EagerFaults", "KafkaTwoOwners", "ConsumerQuiet", "ConsumerAlone", "LostLeave")


@dataclass(frozen=True, slots=True)
class Stage:
    """One command of the main job; ``words`` are its arguments."""

    title: str
    words: tuple[str, ...]
    needs_jdk: bool = False


@dataclass(slots=True)
class Finding:
    """What became of a stage. ``verdict``: held, does not hold, could not run, skipped or interrupted; ``result``: what
    the command printed as JSON."""

    stage: Stage
    verdict: str
    seconds: float = 0.0
    result: dict[str, Any] = field(default_factory=dict)


#: random traces of each protocol, in each of the two runs on Spark
TRACES = 1_500


def stages(out: Path) -> list[Stage]:
    spark = ("conform", "--engine", "spark", "--protocol", "all", "--traces", str(TRACES))
    return [
        Stage("model, explored exhaustively", ("check",)),
        Stage("model against TLA+, graph by graph", ("check", "--engine", "tlc", *GRAPHS), needs_jdk=True),
        Stage(
            "core against model, as intended and as Kafka: random traces of all protocols on Spark",
            (*spark, "--seed", "1", "-o", str(out / "core")),
            needs_jdk=True,  # Spark itself runs on one
        ),
        Stage(
            "core and model against Kafka 4.3.1, random traces of the same kinds on Spark",
            (*spark, "--target", "kafka:4.3.1", "--seed", "10001", "-o", str(out / "kafka")),
            needs_jdk=True,
        ),
        Stage("recorded traces of real clients", ("validate", "tests/corpus")),
    ]


def run_stage(stage: Stage, folder: Path) -> Finding:
    """Run one command; its progress goes to the terminal, its JSON comes back."""
    words = [sys.executable, "-m", "fencepost_conformance.cli", *stage.words, "--json"]
    began = time.monotonic()
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    seconds = time.monotonic() - began
    verdict = {0: "held", 1: "does not hold"}.get(done.returncode, "could not run")
    try:
        result = json.loads(done.stdout)
    except json.JSONDecodeError:
        result = {}
    return Finding(stage, verdict, seconds, result)


def table_of(findings: list[Finding]) -> Table:
    table = Table("what", "verdict", "seconds", "done", title="Fencepost: the chain of evidence")
    colours = {"held": "green", "skipped": "yellow"}
    for each in findings:
        done = each.result.get("counts", {})
        counts = ", ".join(counted(value, name.replace("_", " ")) for name, value in done.items())
        colour = colours.get(each.verdict, "red")
        table.add_row(each.stage.title, f"[{colour}]{each.verdict}[/]", f"{each.seconds:.0f}", counts)
    return table


def main() -> None:
    root = repository.root()
    out = root / "out" / "run"
    shutil.rmtree(out, ignore_errors=True)  # rows of an earlier run may be of other code, and would be taken for done
    out.mkdir(parents=True)
    console = Console()
    has_jdk = all(shutil.which(tool) for tool in ("java", "javac"))
    findings: list[Finding] = []
    for number, stage in enumerate(stages(out), 1):
        if stage.needs_jdk and not has_jdk:
            findings.append(Finding(stage, "skipped"))
            continue
        console.print(f"[bold]{number}. {stage.title}[/]  fencepost {' '.join(stage.words)}")
        try:
            findings.append(run_stage(stage, root))
        except KeyboardInterrupt:
            findings.append(Finding(stage, "interrupted"))
            break
    console.print(table_of(findings))
    for each in findings:
        if each.verdict == "skipped":
            console.print(f"[yellow]skipped[/] {each.stage.title}: {NEEDS_JDK}")
    summary = [
        {"what": each.stage.title, "verdict": each.verdict, "seconds": round(each.seconds, 1), "result": each.result}
        for each in findings
    ]
    (out / "summary.json").write_text(json.dumps(summary, indent=1, default=str), encoding="utf-8")
    console.print(f"report: {out.relative_to(root)}/ (summary.json, a report.html for each protocol and profile)")
    raise SystemExit(status_of(findings))


def status_of(findings: list[Finding]) -> int:
    """1 if something was found, else 2 if something could not run, else 0."""
    verdicts = {each.verdict for each in findings}
    if "does not hold" in verdicts:
        return 1
    return 0 if verdicts <= {"held", "skipped"} else 2


if __name__ == "__main__":
    main()

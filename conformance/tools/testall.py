"""``make test-all``: every test, then random traces with a new seed. First it prints what that adds."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from fencepost_conformance.common import repository
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.common.interruption import interruptible, listen_to_sigterm
from fencepost_conformance.judge.verdict import Verdict
from fencepost_conformance.run import seeds
from fencepost_conformance.run.mainjob import Finding, Stage, notes_of, outcome_of_stages, run_stage, table_of
from fencepost_conformance.targets.jvm import jars
from fencepost_conformance.targets.jvm.releases import NEWEST

#: random traces of each protocol, on each target
TRACES = 3_000
#: random requests to Kafka and to ``fencepost serve``, by the kind of their scripts
REQUESTS = {"plain": 1_000_000, "rights": 100_000}
#: the folder for scripts whose answers differ
DIFFERENCES = Path("out/requests")
ADDS = (
    "make test-all adds to make test:\n"
    "  the tests marked 'all', long versions of other tests (pytest -m all --collect-only lists them)\n"
    f"  {TRACES:,} random traces of each protocol: core against model, and both against Kafka\n"
    f"  {sum(REQUESTS.values()):,} random requests to fencepost serve and to Kafka\n"
)
TESTS = ("-m", "pytest", "--numprocesses", "3", "--dist", "loadfile", "--no-loadscope-reorder", "--durations", "15")


def stages(seed: int) -> list[Stage]:
    """Return the random checks; their seeds do not overlap."""
    words = ("conform", "--protocol", "all", "--traces", str(TRACES))
    return [
        Stage("core against model, random traces", (*words, "--seed", str(seed))),
        Stage(
            f"core and model against Kafka {NEWEST}, random traces",
            (*words, "--target", f"kafka:{NEWEST}", "--seed", str(seed + TRACES)),
            needs_jdk=True,
        ),
    ]


def run_tests(root: Path) -> Finding:
    """Run every test. Pytest's exit status 1 means that a test failed; others that the run did not reach its end."""
    return _run("every test", TESTS, root)


def run_requests(root: Path, kind: str, seed: int) -> Finding:
    """Play random requests on Kafka and on ``fencepost serve``. It prints a line for every 5,000 of them, and writes
    each difference to a file."""
    what = ("--kind", kind, "--requests", str(REQUESTS[kind]), "--length", "30", "--seed", str(seed))
    words = (*what, "--out", str(DIFFERENCES))
    title = f"fencepost serve against Kafka, random requests: {kind}"
    return _run(title, ("-m", "tools.compare_server", *words), root)


def _run(title: str, words: Sequence[str], root: Path) -> Finding:
    began = time.monotonic()
    with subprocess.Popen([sys.executable, *words], cwd=root) as command:
        with interruptible() as cut:
            command.wait()
        if cut.happened:
            command.terminate()  # a terminal's Ctrl-C has reached it too
    verdict = {0: Verdict.PASSED, 1: Verdict.FAILED}.get(command.returncode, Verdict.BROKEN)
    return Finding(Stage(title, ()), verdict, time.monotonic() - began, interrupted=cut.happened)


def main() -> None:
    console = Console(highlight=False)
    listen_to_sigterm()
    try:
        seed = seeds.seed_of_run()
    except CannotRun as reason:
        console.print(f"make test-all: {reason}")
        raise SystemExit(2) from None
    console.print(ADDS + seeds.seed_line(seed), soft_wrap=True)
    root = repository.root()
    findings = [run_tests(root)]
    has_jdk = jars.has_jdk()
    for stage in stages(seed):
        if findings[-1].interrupted:
            break
        console.print(f"[bold]{stage.title}[/]  fencepost {' '.join(stage.words)}")
        findings.append(Finding(stage, None) if stage.needs_jdk and not has_jdk else run_stage(stage, root))
    for kind, count in REQUESTS.items():
        if findings[-1].interrupted:
            break
        console.print(f"[bold]fencepost serve against Kafka[/], {count:,} random requests: {kind}")
        if has_jdk:
            findings.append(run_requests(root, kind, seed))
        else:
            findings.append(Finding(Stage(f"fencepost serve against Kafka: {kind}", (), needs_jdk=True), None))
    console.print(table_of(findings))
    for note in notes_of(findings):
        console.print(note, soft_wrap=True)
    console.print(seeds.seed_line(seed))
    outcome = outcome_of_stages(findings)
    console.print(f"make test-all: {outcome}")
    raise SystemExit(outcome.status)


if __name__ == "__main__":
    main()

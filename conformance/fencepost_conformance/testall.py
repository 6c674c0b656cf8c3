"""``make test-all``: every test, then random traces with a seed of this run. It begins by saying what that adds."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time

from rich.console import Console

from . import repository, seeds
from .console import CannotRun
from .interruption import interruptible, listen_to_sigterm
from .jvm.releases import NEWEST
from .mainjob import NEEDS_JDK, Finding, Stage, replays, run_stage, status_of, table_of

#: random traces of each protocol, on each target
TRACES = 3_000
ADDS = (
    "make test-all adds to make test:\n"
    "  the tests marked 'all', which do more of what others sample (pytest -m all --collect-only names them)\n"
    f"  {TRACES:,} random traces of each protocol: core against model, and both against Kafka\n"
)
TESTS = ("-m", "pytest", "--numprocesses", "2", "--dist", "loadfile", "--durations", "15")


def stages(seed: int) -> list[Stage]:
    """The random checks; each begins where no seed of the other lies."""
    words = ("conform", "--protocol", "all", "--traces", str(TRACES))
    return [
        Stage("core against model, random traces", (*words, "--seed", str(seed))),
        Stage(
            f"core and model against Kafka {NEWEST}, random traces",
            (*words, "--target", f"kafka:{NEWEST}", "--seed", str(seed + TRACES)),
            needs_jdk=True,
        ),
    ]


def main() -> None:
    console = Console(highlight=False)
    listen_to_sigterm()
    try:
        seed = seeds.seed_of_run()
    except CannotRun as reason:
        console.print(f"make test-all: {reason}")
        raise SystemExit(2) from None
    console.print(ADDS + seeds.told(seed), soft_wrap=True)
    root = repository.root()
    began = time.monotonic()
    with subprocess.Popen([sys.executable, *TESTS], cwd=root) as tests:
        with interruptible() as cut:
            tests.wait()
        if cut.happened:
            tests.terminate()  # of a terminal's Ctrl-C it has heard itself
    verdict = "interrupted" if cut.happened else "held" if tests.returncode == 0 else "does not hold"
    findings = [Finding(Stage("every test", ()), verdict, time.monotonic() - began)]
    has_jdk = all(shutil.which(tool) for tool in ("java", "javac"))
    for stage in stages(seed):
        if findings[-1].verdict == "interrupted":
            break
        console.print(f"[bold]{stage.title}[/]  fencepost {' '.join(stage.words)}")
        findings.append(Finding(stage, "skipped") if stage.needs_jdk and not has_jdk else run_stage(stage, root))
    console.print(table_of(findings))
    if not has_jdk:
        console.print(f"[yellow]skipped[/] what {NEEDS_JDK}")
    for command in dict.fromkeys(command for each in findings for command in replays(each.result)):
        console.print(f"[red]differs[/] see it: {command}", soft_wrap=True)
    console.print(seeds.told(seed))
    raise SystemExit(status_of(findings))


if __name__ == "__main__":
    main()

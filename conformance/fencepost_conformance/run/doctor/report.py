"""The report of ``fencepost doctor``, in plain text, since rich may be missing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

from ...common.errors import CannotRun
from ...common.nearest import unknown
from ...judge.verdict import Tally, Verdict
from ...show.console import Result
from .jobs import JOBS, lacking, missed
from .parts import PARTS, Part, look


def run(names: Sequence[str], *, as_json: bool) -> NoReturn:
    """Print what is installed and which jobs can run, and leave.

    Args:
        names: the jobs to judge. If empty, all are shown and none is judged.
        as_json: print one JSON object.

    Raises:
        CannotRun: there is no such job.
        SystemExit: with the status of ``verdict.outcome_of``: 0 if each job that was asked for can run, else 1.
    """
    for name in names:
        if name not in JOBS:
            raise CannotRun(unknown("job", name, JOBS, f"there are {', '.join(JOBS)}"))
    jobs = list(dict.fromkeys(names)) or list(JOBS)
    concerned = {part for name in jobs for part in (*JOBS[name].needs, *JOBS[name].uses)}
    parts = {name: look(name) for name in PARTS if not names or name in concerned}
    tally = Tally.of(Verdict.FAILED if lacking(JOBS[name], parts) else Verdict.PASSED for name in jobs)
    result = Result("doctor", tally if names else None, {"jobs": len(jobs)}, things="jobs")
    if as_json:
        result.details = details(jobs, parts)
        print(json.dumps(result.as_json()))
    else:
        print(
            "\n".join([*lines(jobs, parts), "", f"doctor: {result.outcome or 'nothing judged'} ({result.numbers()})"])
        )
    raise SystemExit(result.status)


def lines(jobs: Iterable[str], parts: Mapping[str, Part]) -> list[str]:
    """A line for each part and each job."""
    wide = max(map(len, (*PARTS, *JOBS)))
    report = ["Installed"]
    for name, part in parts.items():
        report.append(f"  {'ok     ' if part.there else 'missing'}  {name:<{wide}}  {part.text}")
    report += ["", "Jobs"]
    for name in jobs:
        job = JOBS[name]
        if without := lacking(job, parts):
            report.append(f"  cannot   {name:<{wide}}  {job.what} (missing: {_names(without)})")
        elif without := missed(job, parts):
            report.append(f"  can run  {name:<{wide}}  {job.what} (without {_names(without)})")
        else:
            report.append(f"  can run  {name:<{wide}}  {job.what}")
    return report


def _names(parts: Iterable[Part]) -> str:
    return ", ".join(each.name for each in parts)


def details(jobs: Iterable[str], parts: Mapping[str, Part]) -> dict[str, object]:
    """The report as JSON data."""
    return {
        "parts": {name: {"there": part.there, "text": part.text} for name, part in parts.items()},
        "can_run": {name: not lacking(JOBS[name], parts) for name in jobs},
        "lacking": {name: [part.name for part in lacking(JOBS[name], parts)] for name in jobs},
    }

"""``fencepost doctor``: what is installed, and which jobs can run."""

from __future__ import annotations

from typing import Annotated

import typer

from ..doctor.jobs import JOBS
from ..doctor.report import run


def doctor(
    jobs: Annotated[list[str] | None, typer.Argument(help=f"jobs to judge: {', '.join(JOBS)}")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Show what is installed, and for each job what it needs. Exit status 1 if a job that is named cannot run."""
    run(jobs or [], as_json=as_json)

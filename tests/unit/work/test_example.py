"""The program that docs/workers.md shows runs as it is, and does every job though a worker is killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "workers.py"


def test_every_job_is_done_though_a_worker_is_killed() -> None:
    told = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=True, timeout=120)
    assert "worker A is killed" in told.stdout
    assert "400 jobs are done" in told.stdout
    assert told.stderr == ""

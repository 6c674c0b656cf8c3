"""No output depends on how a process hashes texts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PROBE = Path(__file__).with_name("hash_probe.py")


def test_outcomes_and_their_order_do_not_depend_on_the_hash_seed() -> None:
    found = {}
    for seed in ("0", "1", "2", "3"):
        told = subprocess.run(
            [sys.executable, str(PROBE), "6"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        found[seed] = json.loads(told.stdout)
    assert len(found["0"]) > 100
    for seed, rows in found.items():
        assert {what for what, digest in rows.items() if digest != found["0"][what]} == set(), f"hash seed {seed}"

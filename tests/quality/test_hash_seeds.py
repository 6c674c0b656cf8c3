"""No output depends on how a process hashes texts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROBE = Path(__file__).with_name("hash_probe.py")


@pytest.mark.parametrize(
    ("count", "hash_seeds", "least"), [("2", "012", 60), pytest.param("6", "0123", 100, marks=pytest.mark.all)]
)
def test_outcomes_and_their_order_do_not_depend_on_the_hash_seed(count: str, hash_seeds: str, least: int) -> None:
    found = {}
    for seed in hash_seeds:
        ran = subprocess.run(
            [sys.executable, str(PROBE), count],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        found[seed] = json.loads(ran.stdout)
    assert len(found["0"]) > least
    for seed, rows in found.items():
        assert {what for what, digest in rows.items() if digest != found["0"][what]} == set(), f"hash seed {seed}"

"""Each run has a new random seed, prints it, and accepts a given one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.run.mainjob import replays, stages
from fencepost_conformance.run.seeds import BOUND, VARIABLE, seed_line, seed_of_run


def test_seeds_are_others_each_time_unless_one_is_asked_for() -> None:
    drawn = {seed_of_run({}) for _ in range(20)}
    assert len(drawn) > 15
    assert all(0 <= seed < BOUND for seed in drawn)
    assert max(drawn) > 2**24  # from all seeds, not from a few
    assert {seed_of_run({VARIABLE: "17"}), seed_of_run({VARIABLE: "017"})} == {17}
    assert 0 <= seed_of_run({VARIABLE: ""}) < BOUND


def test_the_printed_hint_asks_for_the_same_seed() -> None:
    (name, value) = re.findall(r"(\w+)=(\d+)", seed_line(4711))[0]
    assert seed_of_run({name: value}) == 4711


@pytest.mark.parametrize("wanted", ["-1", "x", "1.5", str(BOUND), "1 2", "²"])
def test_a_wrong_seed_is_rejected(wanted: str) -> None:
    with pytest.raises(CannotRun, match=f"{VARIABLE} is .*; give a number from 0 to {BOUND - 1}"):
        seed_of_run({VARIABLE: wanted})


def test_the_main_job_draws_its_traces_from_the_seed() -> None:
    for seed in (1, 77_000_000):
        random = [stage.words for stage in stages(Path("out"), seed) if stage.words[0] == "conform"]
        given = [int(words[words.index("--seed") + 1]) for words in random]
        counts = [int(words[words.index("--traces") + 1]) for words in random]
        assert given == [seed, seed + counts[0]]


def test_the_main_job_rejects_a_wrong_seed_before_it_does_anything(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "fencepost_conformance.run.mainjob"]
    done = subprocess.run(
        words, cwd=tmp_path, env={VARIABLE: "many"}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert done.stdout.startswith("make run: FENCEPOST_SEED is 'many'")


def test_the_main_job_names_the_commands_that_show_a_difference() -> None:
    failures = [{"seed": seed, "replay": f"fencepost replay {seed}"} for seed in (3, 5)]
    nested = {"profiles": {"intended": {"protocols": {"mixed": {"failures": failures}}}}, "counts": {"traces": 2}}
    assert list(replays(nested)) == ["fencepost replay 3", "fencepost replay 5"]
    assert list(replays({"counts": {}})) == []

"""Exploration by digests, with and without Spark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fencepost_model.explore.search import explore
from fencepost_model.system.families import system_of
from fencepost_model.system.manifest import read_manifest, read_problem
from fencepost_model.system.spread import Worker, canonical, split, unique, without

ENTRIES = {entry.name: entry for entry in read_manifest(Path(__file__).parents[2] / "spec")}


def test_equal_values_have_one_form_and_others_another() -> None:
    assert canonical(frozenset({"b", "a"})) == canonical(frozenset({"a", "b"}))
    different = [
        1,
        True,
        "1",
        b"1",
        None,
        (),
        frozenset(),
        (1,),
        ("1",),
        ((1,), ()),
        ((1, ()),),
        ("ab", "c"),
        ("a", "bc"),
    ]
    assert len({canonical(each) for each in different}) == len(different)


def test_rows_are_sorted_out_as_sets() -> None:
    rows = np.random.default_rng(1).integers(0, 3, (200, 24), dtype=np.uint8)
    rows[:, 1:] //= 3
    seen, every = unique(rows[:90]), unique(rows)
    assert {*map(bytes, without(every, seen))} == {*map(bytes, every)} - {*map(bytes, seen)}
    parts = list(split(every, 3))
    assert sorted(bytes(row) for _, part in parts for row in part) == sorted(map(bytes, every))


def test_workers_that_share_nothing_find_the_same_graph() -> None:
    problem = read_problem(ENTRIES["EagerQuiet"])
    workers = [Worker(problem), Worker(problem)]
    frontier, known = workers[0].initial()
    seen = frontier
    states, generated = 0, len(frontier)
    while frontier.size:
        states += len(frontier)
        answers = [
            worker.expand(frontier[place::2], known) for place, worker in enumerate(workers) if len(frontier[place::2])
        ]
        for _, report in answers:
            known |= report.values
            generated += report.generated
            assert not report.broken
        frontier = without(unique(np.concatenate([rows for rows, _ in answers])), seen)
        seen = unique(np.concatenate([seen, frontier]))
    found = explore(system_of(problem))
    assert (states, generated) == (found.states, found.generated)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.all
def test_spark_finds_the_fault_at_the_same_depth(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from fencepost_conformance.run.cluster.place import Place  # noqa: PLC0415
    from fencepost_conformance.run.cluster.session import spark_session  # noqa: PLC0415
    from fencepost_model.system.checking import check_spark  # noqa: PLC0415

    session = spark_session(Place(cores=1), tmp_path)
    try:
        row = check_spark(ENTRIES["SameGeneration"], session, workers=1)
    finally:
        session.stop()
    assert (row.wrong, row.violated, row.depth) == ([], ["EveryJoinPhaseEndsInANewGeneration"], 7)

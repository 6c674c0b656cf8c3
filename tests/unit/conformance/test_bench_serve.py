"""``fencepost bench serve``: the results of the load generator become rows, and missing results are reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.run.bench import golang, serve, served


def line(test: str, **told: Any) -> dict[str, Any]:
    return {"test": test, "conns": 4, "target_cpu_us_per_op": 50.0, **told}


def test_each_case_of_a_server_is_put_beside_the_same_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {
        "Kafka": [
            line("hb-classic", ops_per_s=20_000),
            line("rebalance", members=10, all_synced_p50_ms=4.0),
            line("reconcile", members=100, converged_p50_ms=20.0, converged_cpu_p50_ms=10),
        ],
        "fencepost": [
            line("hb-classic", ops_per_s=5_000, target_cpu_us_per_op=150.0),
            line("rebalance", members=10, all_synced_p50_ms=3.0),
            line("reconcile", members=10, converged_p50_ms=3.0),  # a case that Kafka does not have
            line("reconcile", members=100, converged_p50_ms=30.0, converged_cpu_p50_ms=40),
        ],
        "kfake": [line("hb-classic", ops_per_s=40_000)],
    }
    monkeypatch.setattr(serve, "TESTS", ("all",))
    monkeypatch.setattr(serve, "run", lambda generator, server, words: told[server.name])
    found = {name: serve.measured(Path("generator"), served.Server(name, "", 1, 0.0)) for name in told}
    rows = {(row.name, row.versus): (row.ratio, row.aim) for row in serve._rows(found)}
    assert rows == {
        ("serve: heartbeats, classic, 4 connections", "Kafka"): (0.25, ""),
        ("serve: heartbeats, classic, 4 connections, a core", "Kafka"): (pytest.approx(1 / 3), serve.THIRD),
        ("serve: heartbeats, classic, 4 connections", "kfake"): (0.125, ""),
        ("serve: classic join, 10 members", "Kafka"): (0.75, serve.NO_LONGER),
        ("serve: KIP-848 join, 100 members", "Kafka"): (1.5, serve.NO_LONGER),
        ("serve: KIP-848 join, 100 members, processor time", "Kafka"): (4.0, ""),
    }


def test_the_median_of_several_rounds_is_reported() -> None:
    rounds = [{"a": {"test": "hb", "ops_per_s": rate}} for rate in (5.0, 90.0, 7.0)]
    assert serve.medians(rounds) == {"a": {"test": "hb", "ops_per_s": 7.0}}


def test_without_go_the_bench_names_the_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golang.shutil, "which", lambda name: None)
    with pytest.raises(CannotRun, match="Go is not installed"):
        serve.serve()


@pytest.mark.clients
@pytest.mark.slow
@pytest.mark.all
def test_the_generator_finds_nothing_wrong_with_the_answers(tmp_path: Path) -> None:
    """The generator checks every answer: its error and id, one generation for all members, one owner for each
    partition, and the committed offsets."""
    try:
        generator = golang.program("coordload")
    except CannotRun as reason:
        pytest.skip(str(reason))
    words = "-tests hb-classic,hb-consumer,commit,rebalance,reconcile -hb-sizes 10 -sizes 10,100 -reps 3 -dur 500ms"
    with served.fencepost(tmp_path / "data") as server:
        lines = serve.run(generator, server, words)
    assert {each["test"] for each in lines} == {"hb-classic", "hb-consumer", "commit", "rebalance", "reconcile"}

"""``fencepost bench serve``: the results of the load generator become rows, and missing results are reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.run.bench import golang, serve, served
from fencepost_conformance.run.bench.parts import Parts
from fencepost_conformance.run.bench.start import Start, Starts

START = Start(0.2, 0.1, 0.4, 0.3)


def raising(error: Exception) -> Callable[[], NoReturn]:
    def act() -> NoReturn:
        raise error

    return act


def line(test: str, **fields: Any) -> dict[str, Any]:
    return {"test": test, "conns": 4, "target_cpu_us_per_op": 50.0, **fields}


def test_each_case_of_a_server_is_put_beside_the_same_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = {
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
    loads = (serve.Load("all", "", 60),)
    monkeypatch.setattr(serve, "run", lambda generator, server, load: figures[server.name])
    found = {
        name: serve.measured(Parts("serve", 60), Path("generator"), served.Server(name, "", 1, 0.0), loads)
        for name in figures
    }
    rows = {
        (row.name, row.versus): (row.ratio, row.goal)
        for row in serve.rows_of(found.pop("fencepost"), found, "fencepost")
    }
    assert rows == {
        ("serve: heartbeats, classic, 4 connections", "Kafka"): (0.25, ""),
        ("serve: heartbeats, classic, 4 connections, a core", "Kafka"): (pytest.approx(1 / 3), serve.THIRD),
        ("serve: heartbeats, classic, 4 connections", "kfake"): (0.125, ""),
        ("serve: classic join, 10 members", "Kafka"): (0.75, serve.NO_LONGER),
        ("serve: KIP-848 join, 10 members", ""): (None, serve.NO_LONGER),
        ("serve: KIP-848 join, 100 members", "Kafka"): (1.5, serve.NO_LONGER),
        ("serve: KIP-848 join, 100 members, processor time", "Kafka"): (4.0, ""),
    }


def test_the_median_of_several_rounds_is_reported() -> None:
    rounds = [{"a": {"test": "hb", "ops_per_s": rate}} for rate in (5.0, 90.0, 7.0)]
    assert serve.medians(rounds) == {"a": {"test": "hb", "ops_per_s": 7.0}}
    assert serve.medians([{}, *rounds[:1]]) == rounds[0]  # one round was late


def test_commits_with_several_requests_in_flight_are_a_separate_case() -> None:
    one, sixteen = (serve.case(line("commit", partitions=1, depth=depth)) for depth in (1, 16))
    assert one == "commits of 1, 4 connections"
    assert sixteen == "commits of 1, 4 connections, 16 in flight on each"


def test_without_go_the_bench_names_the_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golang.shutil, "which", lambda name: None)
    monkeypatch.setattr(serve, "kafka", raising(CannotRun("Java is not installed")))
    monkeypatch.setattr(serve, "starts", lambda rounds: Starts(START, START, None, "kfake: Go is not installed"))
    found = serve.serve()
    assert found.skipped["serve: Kafka 4.4.0: start"] == "Java is not installed"
    assert "Go is not installed" in found.skipped["serve: build of the load generator and of kfake"]
    assert {row.name.split(":")[0] for row in found.rows} == {"start"}  # the port is measured anyway


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
    tests = "hb-classic,hb-consumer,commit,rebalance,reconcile"
    words = f"-tests {tests} -hb-sizes 10 -sizes 10,100 -reps 3 -dur 500ms"
    with served.fencepost(tmp_path / "data") as server:
        lines = serve.run(generator, server, serve.Load("all", words, 60))
    assert {each["test"] for each in lines} == {"hb-classic", "hb-consumer", "commit", "rebalance", "reconcile"}

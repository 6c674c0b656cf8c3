"""A watch of a Kafka broker while scripts of the corpus run with real clients: it shows what the recordings contain."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path

import pytest
from test_history_of_scripts import CLIENT, kafka, played, recorded

from fencepost_conformance.common.addresses import parse_address
from fencepost_conformance.judge.history.events import Kind
from fencepost_conformance.judge.watch.board import Board
from fencepost_conformance.run.watching.session import Watching, watch
from fencepost_conformance.traces.wire.access import OPEN
from tools.corpus.produce import takes

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.all, pytest.mark.broker]

SCRIPTS = ("join-and-leave", "consumer-join-and-leave", "consumer-crash")


def test_watch_shows_the_groups_of_scripts_on_kafka(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install -e '.[clients]'")
    chosen = [take for name in SCRIPTS for take in takes([f"{name}-{CLIENT}"], java=False)]
    members: dict[str, set[str]] = defaultdict(set)
    owned: dict[str, set[tuple[str, int]]] = defaultdict(set)
    states: dict[str, set[str]] = defaultdict(set)
    generations: dict[str, set[int]] = defaultdict(set)
    kinds: dict[str, list[Kind]] = defaultdict(list)

    def keep(board: Board) -> None:
        for row in board.groups(0):
            states[row["group"]].add(row["state"])
            generations[row["group"]].add(row.get("generation", row.get("epoch", 0)))
            for member in row["members"]:
                members[row["group"]].add(member["member"])
                assert member["client"]
                assert member["host"] == "/127.0.0.1"
                owned[row["group"]] |= {(name, each) for name, every in member["assignment"].items() for each in every}
        while board.rebalances.new:
            happened = board.rebalances.new.popleft()
            if not isinstance(happened.event, str):
                kinds[happened.group].append(happened.event.kind)

    async def session(bootstrap: str) -> Board:
        until = asyncio.Event()
        setup = Watching(at=parse_address(bootstrap, "bootstrap"), access=OPEN, interval_s=0.2)
        watching = asyncio.create_task(watch(setup, lambda *_: None, keep, until))
        await played(chosen, broker, tmp_path)
        await asyncio.sleep(3)  # the last looks and records
        until.set()
        return await watching

    with kafka() as broker:
        board = asyncio.run(session(broker.bootstrap))
    assert board.warnings() == []
    metrics = [line for line in board.metrics(0) if line.startswith("fencepost_group_")]
    for take in chosen:
        said, name = recorded(tmp_path / f"{take.name}.jsonl.gz"), take.name
        assert members[name] <= said.joined
        assert members[name]
        assert owned[name]
        assert "Stable" in states[name]
        assert generations[name] & said.completed
        commits = sum(map(len, said.commits.values()))
        assert f'fencepost_group_commits_total{{group="{name}"}} {commits}' in metrics
        row = next(each for each in board.groups(0) if each["group"] == name)
        assert {(each["topic"], each["partition"]): each["committed"] for each in row["offsets"]} == {
            place: offsets[-1] for place, offsets in said.commits.items()
        }
        kind = Kind.GENERATION if take.scenario.protocol == "classic" else Kind.BEGAN
        assert kinds[name].count(kind) >= len(said.completed - {0})
        assert row["rebalances"] == kinds[name].count(kind) + kinds[name].count(Kind.EMPTY)
        assert any(
            f'fencepost_group_rebalances_total{{group="{name}",cause="member joined"}}' in each for each in metrics
        )

"""The lease of nodes on one database compared with a model; the test controls the time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from fencepost.store import NodeInUse, PostgresLease, PostgresStore

from .postgres import Postgres

_Value = TypeVar("_Value")
#: Longer than any test, so that only the clock of the test counts.
SECONDS: Final = 10_000
#: Node and address of each process. The first three are one node: once elsewhere, and once started again.
PROCESSES: Final = ((1, "a", 1), (1, "b", 1), (1, "a", 1), (2, "c", 2))


@dataclass(slots=True)
class Database:
    """The model. Nodes by number: its process, and the time of its last claim. ``until``: the end of the lease."""

    now: int = 0
    nodes: dict[int, tuple[int, int]] = field(default_factory=dict)
    leader: int = -1
    epoch: int = 0
    until: int = 0

    def lives(self, node: int) -> bool:
        return node in self.nodes and self.nodes[node][1] + SECONDS > self.now


class World:
    """A database and all processes, one for all runs of the machine."""

    def __init__(self, where: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.store = PostgresStore(where, 1, schema="lease machine")
        self.do(self.store.open())
        self.leases = [PostgresLease(where, node, SECONDS, schema="lease machine") for node, _, _ in PROCESSES]
        for lease in self.leases:
            self.do(lease.open())

    def do(self, asked: Coroutine[Any, Any, _Value]) -> _Value:
        return self.loop.run_until_complete(asked)

    def run(self, *statements: str) -> None:
        connection = self.leases[0]._connection
        for statement in statements:
            connection.run(statement)

    def close(self) -> None:
        for lease in self.leases:
            self.do(lease.close())
        self.do(self.store.close())
        self.loop.close()


class LeaseMachine(RuleBasedStateMachine):
    """Processes join, fall silent, lead and are replaced."""

    world: World

    @initialize()
    def begin(self) -> None:
        self.model = Database()
        self.ids: set[int] = set()
        self.world.run("DELETE FROM nodes", "UPDATE lease SET node_id = -1, epoch = 0, until = now()")

    @rule(seconds=st.sampled_from((1, SECONDS // 2, SECONDS - 100, SECONDS + 100)))
    def wait(self, seconds: int) -> None:
        self.model.now += seconds
        span = f"make_interval(secs => {seconds})"
        self.world.run(f"UPDATE nodes SET seen = seen - {span}", f"UPDATE lease SET until = until - {span}")

    @rule(process=st.integers(0, 3))
    def join(self, process: int) -> None:
        node, host, port = PROCESSES[process]
        other = self.model.nodes.get(node)
        asked = self.world.leases[process].join(host, port)
        if other is not None and PROCESSES[other[0]] != PROCESSES[process] and self.model.lives(node):
            with pytest.raises(NodeInUse):
                self.world.do(asked)
            return
        self.world.do(asked)
        self.model.nodes[node] = process, self.model.now

    @rule(process=st.integers(0, 3))
    def beat(self, process: int) -> None:
        model, (node, _, _) = self.model, PROCESSES[process]
        if node in model.nodes and model.nodes[node][0] == process:
            model.nodes[node] = process, model.now
        seen = self.world.do(self.world.leases[process].beat())
        living = [PROCESSES[model.nodes[each][0]] for each in sorted(model.nodes) if model.lives(each)]
        assert [(each.node_id, each.host, each.port) for each in seen.peers] == living
        assert (seen.leader, seen.epoch) == (model.leader if model.until > model.now else None, model.epoch)

    @rule(process=st.integers(0, 3))
    def claim(self, process: int) -> None:
        model = self.model
        found = self.world.do(self.world.leases[process].claim())
        if model.until > model.now:
            assert found is None
            return
        model.epoch += 1
        model.leader, model.until = PROCESSES[process][0], model.now + SECONDS
        assert found == model.epoch

    @rule(process=st.integers(0, 3), back=st.sampled_from((0, 0, 1, 2)))
    def renew(self, process: int, back: int) -> None:
        model = self.model
        mine = model.leader == PROCESSES[process][0] and not back
        assert self.world.do(self.world.leases[process].renew(model.epoch - back)) == mine
        if mine:
            model.until = model.now + SECONDS

    @rule(process=st.integers(0, 3), back=st.sampled_from((0, 0, 1)))
    def release(self, process: int, back: int) -> None:
        model = self.model
        self.world.do(self.world.leases[process].release(model.epoch - back))
        if model.leader == PROCESSES[process][0] and not back:
            model.until = model.now

    @rule(process=st.integers(0, 3))
    def give_an_id(self, process: int) -> None:
        made = self.world.do(self.world.leases[process].producer_id())
        assert made not in self.ids
        self.ids.add(made)

    @invariant()
    def one_leads(self) -> None:
        self.beat(0)


def chosen(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
    )


def _run(postgres: Postgres, examples: int, steps: int) -> None:
    LeaseMachine.world = World(postgres.where)
    try:
        run_state_machine_as_test(LeaseMachine, settings=chosen(examples, steps))
    finally:
        LeaseMachine.world.close()


def test_leases_are_held_one_at_a_time(postgres: Postgres) -> None:
    _run(postgres, 30, 30)


@pytest.mark.all
def test_leases_are_held_one_at_a_time_for_long(postgres: Postgres) -> None:
    _run(postgres, 500, 50)

"""Workers on a virtual loop: over a broker in the same process, or over the Kafka port and a network that fails.

The guarantees that are checked, under every failure:

- While a worker works on a partition and the coordinator has it as a member, no other member begins with the partition,
  unless a request has just arrived that its client had given up (docs/divergences.md).
  A static member of KIP-848 that has left for a while, for example because its program was too slow, does not count:
  the partitions that it should have revoked are free then, as in Kafka.
  Static classic members over the port are an exception, as in Kafka: a member whose JoinGroup comes after the rebalance
  timeout stays in the group, and the leader does not learn which partitions it owns.
- A commit that returned is durable. Once another worker has committed a partition, no commit of an earlier share of it
  follows in the log. In one process none follows a later share of the same worker either. Over the port it can, as with
  Kafka: the network may delay a commit until after the worker has sent it again.
- A lost share commits nothing.
- Once nothing fails, every partition gets a worker within ``SETTLED_S`` and keeps it, and the workers commit again.
  Static classic members are an exception, as in Kafka: if a member is replaced while its partitions should move, it has
  nothing to revoke, so no rebalance assigns them. The next member that joins gets them.
- A worker that leaves has left within ``FAREWELL_S``, even if its task is cancelled, and no task is leaked.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from random import Random
from typing import Final

from fencepost.protocol.partitions import TopicPartition
from fencepost.work import Worker

from .broken import Broken
from .broker import PARTITIONS, FaultyBroker
from .loop import Ran, run
from .programs import Program, Programs, check_order
from .store import FaultyStore
from .worker_plan import Way, plan_of

#: a session, two rebalances, and the retries of a load
SETTLED_S: Final = 20.0
#: how long a schedule rests: mostly a rebalance and a session, and sometimes long enough for all logins to end
RESTS_S: Final = (*[5.0] * 7, SETTLED_S)
#: at rest, some program commits within this time
COMMITTED_S: Final = 3.0
_LOOKS_S: Final = 0.5


class Schedule:
    """One run: call ``play``; ``seen`` then counts the events."""

    def __init__(self, seed: int, way: Way) -> None:
        random = self._random = Random(seed)
        self.plan = plan_of(random, way)
        self.seen: Counter[str] = Counter()
        self._store = FaultyStore(PARTITIONS, self.plan.store, Random(random.random()))
        self._broker = FaultyBroker(self.plan, self._store, random, self.seen)
        self._programs = Programs(self.plan, self._broker, self._store, random, self.seen)

    async def play(self) -> None:
        async with self._store, AsyncExitStack() as stack:
            stack.push_async_callback(self._hang_up)
            await self._broker.start()
            worker = await self._broker.connect(stack)
            for _ in range(self.plan.workers):
                self._programs.hire(worker)
            for _ in range(self.plan.disturbances):
                await asyncio.sleep(self._random.random() * 3)
                await self._disturb(worker)
            await self._come_to_rest(worker)
            await self._leave_all()

    async def _hang_up(self) -> None:
        self._programs.cancel()
        await self._broker.shut_down()
        await asyncio.sleep(1)  # closed connections end by themselves

    # what goes wrong

    async def _disturb(self, worker: Callable[..., Worker]) -> None:
        random = self._random
        running = self._programs.running
        program = random.choice(running) if running else None
        kinds = ["join", "move", "grow", "restart"]
        if program is not None:
            kinds += ["leave", "crash", "cancel", "return"]
        if self._broker.has_network:
            kinds += ["cut", "cut"]
        elif program is not None:
            kinds += ["trouble", "trouble"]
        if self.plan.security.tls:
            kinds += ["strange certificate"]
        kind = random.choice(kinds)
        if kind == "restart" and not (self.plan.restarts and self.plan.remote):
            kind = "join"
        self.seen[kind] += 1
        if kind == "join":
            self._programs.hire(worker)
        elif kind == "move":
            await self._broker.move()
        elif kind == "grow":
            self._broker.grow()
        elif kind == "restart":
            await self._broker.restart(random.choice((0.0, 1.0, 4.0)))
        elif kind == "strange certificate":
            await self._broker.show_strange_certificate()
        elif kind == "cut":
            self._broker.cut()
        elif kind == "trouble" and program is not None:
            self._broker.trouble(program.worker)
        elif program is not None:
            await self._dismiss(program, kind, worker)

    async def _dismiss(self, program: Program, kind: str, worker: Callable[..., Worker]) -> None:
        running = self._programs.running
        running.remove(program)
        if kind == "cancel":
            program.task.cancel()
        elif kind == "leave" or program.task.done():
            program.stops.set()
        else:
            with suppress(RuntimeError):
                program.worker.crash()
        running.append(program)
        await program.has_ended()
        running.remove(program)
        if kind == "return" and self.plan.static:
            self._programs.hire(worker, program.name)

    # the end

    async def _come_to_rest(self, worker: Callable[..., Worker]) -> None:
        self._programs.calm = True
        self._broker.become_calm()
        await self._settle()
        for program in [*self._programs.running]:
            if program.task.done():
                await program.has_ended()
                self._programs.running.remove(program)
        if not self._programs.running:
            self._programs.hire(worker)
            await self._settle()
        self._broker.check_network()
        if self._programs.unowned() and self.plan.static_classic:
            self.seen["partition left over by a static member"] += 1
            self._programs.hire(worker)
            await self._settle()
        if unowned := self._programs.unowned():
            raise Broken(f"at rest {_named(unowned)} are not worked on by exactly one worker")
        await self._commit_again()
        check_order(self._store, remote=self.plan.remote)

    async def _settle(self) -> None:
        """Wait until every partition has had one program for a while, at most ``SETTLED_S``."""
        rest_s, rested_s = self._random.choice(RESTS_S), 0.0
        for _ in range(int(SETTLED_S / _LOOKS_S)):
            await asyncio.sleep(_LOOKS_S)
            rested_s = 0.0 if self._programs.unowned() else rested_s + _LOOKS_S
            if rested_s >= rest_s:
                return

    async def _commit_again(self) -> None:
        before = self.seen["commit"]
        for _ in range(int(COMMITTED_S / _LOOKS_S)):
            await asyncio.sleep(_LOOKS_S)
            if self.seen["commit"] > before:
                return
        raise Broken(f"the workers have not committed for {COMMITTED_S:g} s at rest")

    async def _leave_all(self) -> None:
        programs = [*self._programs.running]
        for program in programs:
            if self._random.random() < 0.3:
                program.task.cancel()
            else:
                program.stops.set()
        for program in programs:
            await program.has_ended()
        self._broker.check_network()
        check_order(self._store, remote=self.plan.remote)


def _named(partitions: list[TopicPartition]) -> str:
    return ", ".join(f"{each.topic}-{each.partition}" for each in partitions)


def play(seed: int, way: Way) -> tuple[Ran, Schedule]:
    """Run one schedule."""
    schedule = Schedule(seed, way)
    return run(schedule.play(), Random(seed)), schedule

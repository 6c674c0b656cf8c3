"""The programs of workers: each works on its shares and commits, with callbacks that are slow or fail.

They check the guarantees of a share: while a program works on a partition and its member is in the group, no other
program begins with that partition; a commit that returned is durable; a lost share commits nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from fencepost.protocol.partitions import TopicPartition
from fencepost.work import CommitFailed, Share, ShareLost, Worker, WorkerFailed

from .broken import Broken
from .broker import GROUP, SESSION_MS, FaultyBroker
from .store import FaultyStore
from .worker_plan import Plan

REBALANCE_MS: Final = 3_000
#: a callback that hangs, the rebalance timeout, and the wait for the answer to the leave
FAREWELL_S: Final = 15.0


@dataclass(slots=True, eq=False)
class Program:
    """One worker and its program. ``works_on``: the partitions of ``share`` that the program works on now; ``turn``
    counts its shares."""

    number: int
    name: str
    worker: Worker
    task: asyncio.Task[None] = field(init=False)
    share: Share | None = None
    works_on: frozenset[TopicPartition] = frozenset()
    turn: int = 0
    old: Share | None = None
    stops: asyncio.Event = field(default_factory=asyncio.Event)

    async def has_ended(self) -> None:
        """Wait for its end. Raises ``Broken`` if that takes too long, and what the program raised."""
        done, _ = await asyncio.wait({self.task}, timeout=FAREWELL_S)
        if not done:
            raise Broken(f"{self.name} has not ended {FAREWELL_S:g} s after its program was stopped")
        if not self.task.cancelled() and (raised := self.task.exception()) is not None:
            raise raised


class Programs:
    """The programs that run, in ``running``; ``seen`` counts events. While ``calm`` is set nothing is slow or fails."""

    def __init__(
        self, plan: Plan, broker: FaultyBroker, store: FaultyStore, random: Random, seen: Counter[str]
    ) -> None:
        self.running: list[Program] = []
        self.calm = False
        self._plan = plan
        self._broker = broker
        self._store = store
        self._random = random
        self._seen = seen
        self._made = 0
        self._offset = 0

    def hire(self, worker: Callable[..., Worker], name: str | None = None) -> None:
        """Start a program with a new worker. ``name``: the instance id of a static member, if it returns."""
        self._made += 1
        options: dict[str, Any] = {
            "protocol": self._plan.protocol,
            "rebalance_timeout_ms": REBALANCE_MS,
            "request_timeout_ms": 1_000,
            "metadata_max_age_ms": 2_000,
        }
        if self._plan.protocol == "classic":
            options |= {"session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": 500}
        if self._plan.static:
            options["instance_id"] = name or f"instance-{self._made}"
        for call in ("gained", "revoked", "lost"):
            if self._random.random() < 0.4:
                options[call] = self._callback
        named = str(options.get("instance_id", f"worker-{self._made}"))
        program = Program(self._made, named, worker(GROUP, ["t"], **options))
        program.task = asyncio.create_task(self._run(program), name="program")
        self.running.append(program)

    async def _callback(self, partitions: frozenset[TopicPartition]) -> None:
        await asyncio.sleep(0)
        if self.calm:
            return
        roll = self._random.random()
        if roll < 0.1:
            self._seen["callback slow"] += 1
            await asyncio.sleep(self._random.choice((0.2, 1.0, 4.0)))
        elif roll < 0.13:
            self._seen["callback raised"] += 1
            raise ValueError("a callback fails")

    async def _run(self, program: Program) -> None:
        try:
            async with program.worker as worker:
                stopping = asyncio.create_task(self._stop_when(program), name="stop")
                try:
                    async for share in worker:
                        await self._body(program, share)
                finally:
                    stopping.cancel()
        except WorkerFailed:
            self._seen["worker failed"] += 1
        finally:
            program.works_on, program.share = frozenset(), None

    async def _stop_when(self, program: Program) -> None:
        await program.stops.wait()
        await program.worker.leave()

    async def _body(self, program: Program, share: Share) -> None:
        program.turn += 1
        self._begin_work(program, share)
        try:
            if program.old is not None and program.old.lost and len(program.old):
                await self._commit_lost(program.old)
            with suppress(ShareLost, CommitFailed, TimeoutError):
                while await share.rest(0.7 if self.calm else self._random.choice((0.05, 0.2, 0.7))):
                    await self._commit(program, share)
            if not self.calm and self._random.random() < 0.2:
                self._seen["slow program"] += 1
                await asyncio.sleep(self._random.choice((0.1, 1.0, 5.0)))
        finally:
            program.works_on, program.share, program.old = frozenset(), None, share

    def _begin_work(self, program: Program, share: Share) -> None:
        self._seen["share"] += 1
        for other in self.running:
            if other is program or not other.works_on & share.partitions or other.share is None or other.share.lost:
                continue
            if not self._broker.has_member(program.worker.member_id):
                self._seen["removed member begins"] += 1  # it has not heard of it yet
            elif self._broker.has_member(other.worker.member_id):
                if self._plan.static_classic and self._plan.remote:
                    self._seen["overlap of a static member"] += 1
                    continue
                if self._broker.heard_late():
                    self._seen["overlap after a late request"] += 1
                    continue
                both = sorted(other.works_on & share.partitions)[0]
                raise Broken(f"{program.name} begins with {both} while {other.name} works on it")
            else:
                self._seen["overlap after removal"] += 1
        program.share, program.works_on = share, share.partitions

    async def _commit(self, program: Program, share: Share) -> None:
        self._offset += 1
        offset = self._offset
        several = self._random.sample(list(share), self._random.randint(1, len(share)))
        try:
            await share.commit(dict.fromkeys(several, offset), metadata=f"{program.number}/{program.turn}")
        except ShareLost:
            self._seen["share lost"] += 1
            if not share.lost:
                raise Broken(f"a commit of {program.name} raised ShareLost, and the share is not lost") from None
            raise
        self._seen["commit"] += 1
        for each in several:
            if (GROUP, each.topic, each.partition, offset) not in self._store.durable:
                raise Broken(f"{program.name} committed {offset} of {each.topic}-{each.partition}: not in the store")

    async def _commit_lost(self, share: Share) -> None:
        self._offset += 1
        self._seen["commit of a lost share"] += 1
        try:
            await share.commit(dict.fromkeys(share, self._offset))
        except ShareLost:
            return
        raise Broken("a share that is lost has committed")

    def unowned(self) -> list[TopicPartition]:
        """Return the partitions that do not have exactly one program."""
        counts = Counter(each for program in self.running for each in program.works_on)
        partitions = (TopicPartition("t", number) for number in range(self._broker.topic.partitions))
        return [each for each in partitions if counts[each] != 1]

    def cancel(self) -> None:
        """Cancel the tasks of all programs."""
        for program in self.running:
            program.task.cancel()


def check_order(store: FaultyStore, *, remote: bool) -> None:
    """Check that no commit of an earlier share follows one of a later share in the log. Raises ``Broken``."""
    newest: dict[tuple[str, int], tuple[int, int]] = {}  #: worker and share of the last commit of each partition
    over: dict[tuple[str, int, int], int] = {}  #: by partition and worker, the newest share that ended
    for commit in (commit for log in store.log.values() for commit in log):
        number, _, share = store.metadata[commit].partition("/")
        label, place = (int(number), int(share)), commit[1:3]
        before = newest.get(place, label)
        if before[0] != label[0]:
            over[(*place, before[0])] = before[1]
        elif before[1] > label[1] and not remote:
            raise Broken(f"share {label} commits {commit[1]}-{commit[2]} after {before} did")
        if label[1] <= over.get((*place, label[0]), 0):
            raise Broken(f"share {label} commits {commit[1]}-{commit[2]} again after worker {before[0]} did")
        newest[place] = label[0], max(label[1], before[1] if before[0] == label[0] else 0)

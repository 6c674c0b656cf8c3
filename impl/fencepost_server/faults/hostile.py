"""The wrappers that inject the faults of a plan, in front of the dispatch and of the store."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from typing import Final, Generic, Protocol, TypeVar

from fencepost.aio import GroupBroker
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record
from fencepost.store import AppendError, Store
from fencepost.wire.frames import RequestHeader, read_request_header
from fencepost_server.faults.plan import Chances, Fault, Plan
from fencepost_server.security.session import Session

_log = logging.getLogger(__name__)

#: APIs without faults: a client needs them before it can send requests of groups.
_SPARED: Final = ("api_versions", "sasl_handshake", "sasl_authenticate")


class Link(Protocol):
    """A connection of a client."""

    session: object

    async def send(self, answer: bytes) -> None:
        """Send an answer."""

    def drop(self, reason: str) -> None:
        """Close the connection without an answer."""


LinkT = TypeVar("LinkT", bound=Link)
LinkIn_contra = TypeVar("LinkIn_contra", bound=Link, contravariant=True)


class Answers(Protocol[LinkIn_contra]):
    """The part that answers frames: the dispatch of the server, or another broker."""

    async def __call__(self, connection: LinkIn_contra, frame: bytes) -> bytes | None:
        """Return the answer; None if there is none."""

    def refuse(self, frame: bytes, code: ErrorCode) -> bytes:
        """Return the answer that rejects a request."""


class Hostile(Generic[LinkT]):
    """A wrapper of ``dispatch`` that answers frames with the faults of the plan. ``done`` counts the faults by kind."""

    def __init__(self, dispatch: Answers[LinkT], plan: Plan) -> None:
        self.done: Counter[str] = Counter()
        self._dispatch = dispatch
        self._plan = plan
        self._chances = Chances(plan, "lose", "delay", "double", "reorder", "close", "error")
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._held: dict[LinkT, list[bytes]] = {}
        self._late: set[asyncio.Task[None]] = set()

    @property
    def now_ms(self) -> float:
        """The time since the server's start."""
        return (self._loop.time() - self._began) * 1_000

    async def __call__(self, connection: LinkT, frame: bytes) -> bytes | None:
        """Return the answer; None if there is none, or it is sent later."""
        session = connection.session
        if isinstance(session, Session) and session.bare:  # after SaslHandshake v0: a token without a header
            return await self._dispatch(connection, frame)
        header = read_request_header(frame)
        fault = None
        if header.api not in _SPARED:
            fault = self._chances.next(header.api, header.client_id or "", self.now_ms)
        if fault is None:
            answer = await self._dispatch(connection, frame)
        else:
            self._note(fault, header)
            answer = await self._spoilt(fault, connection, frame)
        if answer is None or (fault is not None and fault.do == "reorder"):
            return answer
        for held in self._held.pop(connection, ()):
            await connection.send(answer)
            answer = held  # an answer that was held back follows this one
        return answer

    async def _spoilt(self, fault: Fault, connection: LinkT, frame: bytes) -> bytes | None:
        if fault.do == "error":
            return self._dispatch.refuse(frame, ErrorCode[fault.code])
        if fault.do == "close" and not fault.handled:
            connection.drop("injected fault")
            return None
        answer = await self._dispatch(connection, frame)
        match fault.do:
            case "close":
                connection.drop("injected fault")
            case "delay":
                await asyncio.sleep(fault.ms / 1_000)
                return answer
            case "double" if answer is not None:
                await connection.send(answer)
                return answer
            case "reorder" if answer is not None:
                self._held.setdefault(connection, []).append(answer)
                task = self._loop.create_task(self._at_last(connection, fault.ms / 1_000))
                self._late.add(task)
                task.add_done_callback(self._late.discard)
        return None

    async def _at_last(self, connection: LinkT, seconds: float) -> None:
        await asyncio.sleep(seconds)
        for held in self._held.pop(connection, ()):
            await connection.send(held)

    def _note(self, fault: Fault, header: RequestHeader) -> None:
        self.done[fault.do] += 1
        code = f" {fault.code}" if fault.do == "error" else ""
        _log.info("fault: %s%s, %s %s of %s", fault.do, code, header.api, header.correlation_id, header.client_id)

    async def moves(self, groups: GroupBroker) -> None:
        """Move the coordinators as planned, until cancelled."""
        every = [fault for fault in self._plan.faults if fault.do == "move"]
        await asyncio.gather(*[self._moves(fault, groups) for fault in every])

    async def _moves(self, fault: Fault, groups: GroupBroker) -> None:
        moved = 0
        while fault.times is None or moved < fault.times:
            await asyncio.sleep(fault.ms / 1_000)
            moved += 1
            self.done["move"] += 1
            _log.info("fault: move, coordinators are unavailable for %s ms", fault.for_ms)
            partitions = sorted(groups.led)
            await asyncio.gather(*[groups.move(each, fault.for_ms / 1_000) for each in partitions])


class FailingStore:
    """A wrapper of a store whose appends fail as planned. All other calls go to the store."""

    def __init__(self, store: Store, plan: Plan) -> None:
        self.failed = 0
        self._store = store
        self._failing: dict[int, AppendError] = {}
        self._chances = Chances(plan, "fail_append")
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self.open, self.close, self.lead, self.load = store.open, store.close, store.lead, store.load
        self.due, self.compact, self.write = store.due, store.compact, store.write
        self.kept, self.batches = store.kept, store.batches

    def append(self, partition: int, records: Sequence[Record], *, leader_epoch: int) -> asyncio.Future[None]:
        """Append records, or fail as planned without writing any of them."""
        failure = self._failing.get(partition)
        if failure is None:
            fault = self._chances.next("append", "", (self._loop.time() - self._began) * 1_000)
            if fault is None:
                return self._store.append(partition, records, leader_epoch=leader_epoch)
            self.failed += 1
            _log.info("fault: fail_append %s, %s records of partition %s", fault.code, len(records), partition)
            failure = self._failing[partition] = AppendError(ErrorCode[fault.code], "injected fault")
            self._loop.call_soon(self._failing.pop, partition)
        done: asyncio.Future[None] = self._loop.create_future()
        done.set_exception(failure)
        return done

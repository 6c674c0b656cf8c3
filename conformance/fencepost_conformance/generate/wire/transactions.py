"""A transactional producer over the wire: it commits offsets within transactions, and ends or abandons them.

InitProducerId, AddOffsetsToTxn and EndTxn go to the coordinator of the transactional id, TxnOffsetCommit to that of the
group. Every version that the broker offers is used.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, Final

from ...traces.wire.questions import questions
from .asking import ADD_OFFSETS_TO_TXN, END_TXN, INIT_PRODUCER_ID, transaction_coordinator
from .cast import Producer
from .connection import Connection

_TXN_OFFSET_COMMIT: Final = 28
#: the share of traces with a producer
_SHARE: Final = 0.4
_TIMEOUT_MS: Final = 30_000
#: errors after which a producer retries, and how often: the coordinator loads, or ends the previous transaction
_AGAIN: Final = frozenset((14, 15, 16, 51))
_TRIES, _AGAIN_S = 20, 0.1
#: EndTxn raises the producer's epoch from this version on (KIP-890)
_END_BUMPS: Final = 5


async def transactions(stage: Any, prefix: str, rng: Random) -> None:
    """Run one transaction after another while the trace lasts; in some traces none. Raises ``MalformedFrame``.

    ``stage``: the ``Stage`` of the trace, whose module imports this one.
    """
    ranges = stage.place.offer.ranges
    needed = {INIT_PRODUCER_ID, ADD_OFFSETS_TO_TXN, END_TXN, _TXN_OFFSET_COMMIT}
    if rng.random() >= _SHARE or not needed <= ranges.keys() or stage.cast.transaction(rng, Producer("", 0, 0)) is None:
        return
    transactional_id = f"{prefix}-tx"
    async with questions(stage.at.host, stage.at.port, stage.place.access) as broker:
        at = await transaction_coordinator(broker, transactional_id, stage.at, stage.place.offer)
    if at is None:
        return
    coordinator, groups = await stage.connect(at), await stage.connect()
    try:
        program = _Program(stage, coordinator, groups, rng, transactional_id)
        while stage.budget > 0:
            await asyncio.sleep(rng.choice((0.05, 0.3, 1.0)))
            if not await program.transaction():
                return
    finally:
        coordinator.close()
        groups.close()


class _Program:
    def __init__(
        self, stage: Any, coordinator: Connection, groups: Connection, rng: Random, transactional_id: str
    ) -> None:
        self._stage, self._coordinator, self._groups, self._rng = stage, coordinator, groups, rng
        self._producer = Producer(transactional_id, -1, -1)

    async def transaction(self) -> bool:
        """Run one transaction; returns False if the producer cannot begin one."""
        rng = self._rng
        if (self._producer.epoch < 0 or rng.random() < 0.1) and not await self._begin():
            return False
        for _ in range(rng.choice((1, 1, 2))):
            made = self._stage.cast.transaction(rng, self._producer)
            if made is None or not self._stage.takes():
                return False
            group_id: Any = getattr(made[1], "group_id", "")
            if not await self._ask(ADD_OFFSETS_TO_TXN, "add_offsets_to_txn", group_id=group_id):
                self._producer = Producer(self._producer.transactional_id, -1, -1)
                return True
            version, body = made
            await self._groups.ask(version, body, "producer")
        if rng.random() < 0.9:  # otherwise the transaction stays open until the next InitProducerId aborts it
            await asyncio.sleep(rng.choice((0.0, 0.1, 0.5)))
            await self._end(committed=rng.random() < 0.7)
        else:
            self._producer = Producer(self._producer.transactional_id, -1, -1)
        return True

    async def _begin(self) -> bool:
        name = self._producer.transactional_id
        answer = await self._asked(
            INIT_PRODUCER_ID, "init_producer_id", {"transactional_id": name, "transaction_timeout": _TIMEOUT_MS}
        )
        if answer.error_code.value:
            return False
        self._producer = Producer(name, int(answer.producer_id), int(answer.producer_epoch))
        return True

    async def _end(self, *, committed: bool) -> None:
        version = self._version(END_TXN)
        answer = await self._asked(END_TXN, "end_txn", self._named(committed=committed), version)
        if answer.error_code.value:
            self._producer = Producer(self._producer.transactional_id, -1, -1)
        elif version >= _END_BUMPS:
            name = self._producer.transactional_id
            self._producer = Producer(name, int(answer.producer_id), int(answer.producer_epoch))

    async def _ask(self, key: int, api: str, **values: Any) -> bool:
        answer = await self._asked(key, api, self._named(**values))
        return not answer.error_code.value

    async def _asked(self, key: int, api: str, values: dict[str, Any], version: int | None = None) -> Any:
        """Return the answer, once the coordinator is ready for the request."""
        version = self._version(key) if version is None else version
        for _ in range(_TRIES):
            answer = await self._coordinator.ask_plain(api, version, values)
            if answer.error_code.value not in _AGAIN:
                break
            await asyncio.sleep(_AGAIN_S)
        return answer

    def _version(self, key: int) -> int:
        return self._rng.randint(*self._stage.place.offer.ranges[key])

    def _named(self, **values: Any) -> dict[str, Any]:
        producer = self._producer
        return {
            "transactional_id": producer.transactional_id,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.epoch,
            **values,
        }

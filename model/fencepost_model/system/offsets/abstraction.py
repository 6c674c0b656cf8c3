"""States of the closed system of offsets as the specification's variables: the abstraction under which E1 compares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...offsets.state import Offsets
from ...tlc.values import TlaValue, function, record
from ..variables import Makers, each_client, under_way
from .closed import ACKNOWLEDGED, DECISION, FAULTS, LOG, OffsetsSystem
from .config import OffsetsConfig
from .kept import Entry, entries
from .state import Batch, Endpoint, Log, Reply, Request

VARIABLES: Final = (
    "epoch",
    "grant",
    "lease",
    "log",
    "unreplicated",
    "member",
    "txn",
    "requests",
    "replies",
    "acknowledged",
    "faultsLeft",
)


def entry_value(entry: Entry) -> TlaValue:
    return record(offset=entry.offset, producer=entry.producer, number=entry.number, pending=entry.pending)


class _Values:
    """Values that need the names of holders and partitions."""

    def __init__(self, config: OffsetsConfig) -> None:
        self.config = config

    def by_part(self, values: Iterable[TlaValue]) -> TlaValue:
        return function(zip(self.config.parts, values, strict=True))

    def store(self, offsets: Offsets) -> TlaValue:
        """Return the entries that count of each partition, in the order of the log."""
        return self.by_part(
            tuple(entry_value(each) for each in entries(offsets, part)) for part in range(len(self.config.parts))
        )

    def reply(self, to: str, reply: Reply) -> TlaValue:
        part = self.config.parts[reply.part]
        return record(api=reply.api, to=to, part=part, error=reply.error, entry=entry_value(reply.entry))

    def request(self, sender: str, request: Request) -> TlaValue:
        fields: dict[str, TlaValue] = {
            "api": request.api,
            "from": sender,
            "awaited": request.awaited,
            "epoch": request.epoch,
            "part": self.config.parts[request.part],
        }
        if request.api != "Fetch":
            fields["offset"] = request.offset
        if request.api == "TxnCommit":
            fields["number"] = request.number
        return function(fields)

    def batch(self, batch: Batch) -> TlaValue:
        holders, parts = self.config.holders, self.config.parts
        return record(
            store=self.store(batch.store),
            answers=frozenset(self.reply(holders[to], reply) for to, reply in batch.answers),
            ends=frozenset(() if batch.ends is None else [holders[batch.ends]]),
            expired=frozenset(() if batch.expired is None else [parts[batch.expired]]),
            deleted=frozenset(() if batch.deleted is None else [parts[batch.deleted]]),
        )

    def open(self, log: Log) -> TlaValue:
        return tuple(self.batch(batch) for batch in log.open)

    def lease(self, endpoint: Endpoint) -> TlaValue:
        return record(epoch=endpoint.lease.epoch, resources=endpoint.lease.resources)

    def member(self, endpoint: Endpoint) -> TlaValue:
        member = endpoint.member
        unknown = self.config.max_offset + 1
        return record(
            position=self.by_part(unknown if at is None else at for at in member.positions),
            dirty=member.dirty,
            waiting=member.waiting,
            begun=member.begun,
        )

    def txn(self, endpoint: Endpoint) -> TlaValue:
        producer = endpoint.producer
        return record(
            number=producer.number,
            state=producer.state,
            offsets=self.by_part(producer.offsets),
            aborted=producer.aborted,
        )


def makers(system: OffsetsSystem) -> Makers:
    """Return how to read each of the specification\'s variables in a state."""
    values, endpoints, holders = _Values(system.config), tuple(system.endpoints), system.config.holders
    return {
        "epoch": ((DECISION,), lambda decision: decision.epoch),
        "grant": ((DECISION,), lambda decision: function(zip(holders, decision.grant, strict=True))),
        "lease": (endpoints, each_client(holders, values.lease)),
        "log": ((LOG,), lambda log: values.store(log.stable)),
        "unreplicated": ((LOG,), values.open),
        "member": (endpoints, each_client(holders, values.member)),
        "txn": (endpoints, each_client(holders, values.txn)),
        "requests": (endpoints, under_way(holders, "requests", values.request)),
        "replies": (endpoints, under_way(holders, "replies", values.reply)),
        "acknowledged": ((ACKNOWLEDGED,), values.by_part),
        "faultsLeft": ((FAULTS,), lambda faults: record(**system.environment.by_name(faults))),
    }

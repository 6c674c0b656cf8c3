"""The closed log's states as the specification's variables: the abstraction under which E1 compares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...tlc.values import TlaValue, function, record
from ..variables import Makers
from .closed import Acknowledged, LogSystem
from .state import Broker, Cluster, Row

VARIABLES: Final = (
    "log",
    "end",
    "highWatermark",
    "elections",
    "knownEpoch",
    "inSync",
    "memory",
    "waiting",
    "acknowledged",
)


def makers(system: LogSystem) -> Makers:
    """Return how to read each of the specification\'s variables in a state."""
    config, brokers = system.config, tuple(system.numbers)
    cluster = (system.cluster,)

    def row(each: Row) -> TlaValue:
        return record(offset=each.offset, epoch=each.epoch, key=config.keys[each.key], value=each.value)

    def of_each(of: Callable[[Broker], TlaValue]) -> tuple[tuple[int, ...], Callable[..., TlaValue]]:
        def made(*found: Broker) -> TlaValue:
            return function((name, of(each)) for name, each in zip(config.brokers, found, strict=True))

        return brokers, made

    def memory(broker: Broker) -> TlaValue:
        contents = function(zip(config.keys, broker.memory.contents, strict=True))
        return record(state=contents, next=broker.memory.upto)

    def waiting(broker: Broker) -> TlaValue:
        return frozenset(row(each) for each in broker.copy.rows if each.offset in broker.memory.unanswered)

    def elections(found: Cluster) -> TlaValue:
        return tuple(record(leader=config.brokers[each.leader], start=each.start) for each in found.elections)

    def acknowledged(acknowledged: Acknowledged) -> TlaValue:
        return frozenset(row(each) for each in acknowledged if each is not None)

    return {
        "log": of_each(lambda broker: frozenset(row(each) for each in broker.copy.rows)),
        "end": of_each(lambda broker: broker.copy.end),
        "highWatermark": of_each(lambda broker: broker.copy.high_watermark),
        "elections": (cluster, elections),
        "knownEpoch": of_each(lambda broker: broker.known_epoch),
        "inSync": (cluster, lambda found: frozenset(config.brokers[each] for each in found.in_sync)),
        "memory": of_each(memory),
        "waiting": of_each(waiting),
        "acknowledged": ((system.acknowledged,), acknowledged),
    }

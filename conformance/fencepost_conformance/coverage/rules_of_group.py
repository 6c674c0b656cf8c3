"""The rules that a step has shown of a consumer group, with members of one protocol or of both, and the reasons why
others are not shown by any trace."""

from __future__ import annotations

from collections.abc import Iterator

from fencepost.protocol import consumer_messages as c

from . import rules_conversion, rules_mixed
from .consumer_situation import ConsumerSituation
from .open_rules import OpenRules, Tables, names
from .rules_consumer import ANY, HEARTBEAT, OF_MEMBER_STATE, OF_STATE

#: rules of all three parts that only traces of mixed groups show
MIXED_RULES: tuple[str, ...] = tuple(
    dict.fromkeys(
        names((*rules_mixed.OF_BODY.values(), rules_mixed.ANY, rules_conversion.UPGRADE, rules_conversion.ANY))
    )
)
_HOW = "says how Kafka does it; every record, view, timer and answer that comes of it is compared"
UNREACHED_MIXED_RULES: dict[str, str] = {
    "X-JOIN-25": "concerns streams groups, which these traces do not hold",
    "X-DOWN-30": _HOW,
    "X-DOWN-31": "says in what an early draft differs",
    "X-ROLL-01": "a scenario of a cluster: its first part is M-VAL-01, and a trace has one setting of the feature",
    "X-ROLL-02": "a scenario of many steps; they are the conversions of X-UP-* and X-DOWN-*",
}


def consumer_rules_of(situation: ConsumerSituation, left: OpenRules, *, met: bool) -> Iterator[str]:
    """The rules that decided in this step, of those that are ``left``; ``met``: a request of the classic protocol met a
    consumer group."""
    for tables in _tables(situation, met=met):
        yield from left.shown(tables, situation)
    for view in situation.seen.consumer_groups.values():
        if view is not None:
            yield OF_STATE[view.state]
            yield from (OF_MEMBER_STATE[row.state] for row in view.members)


def _tables(situation: ConsumerSituation, *, met: bool) -> Iterator[Tables]:
    yield ANY
    yield rules_mixed.ANY
    yield rules_conversion.ANY
    classic = situation.classic_before
    if met:
        yield rules_mixed.OF_BODY[type(situation.body)]
    elif isinstance(situation.body, c.ConsumerGroupHeartbeatRequest):
        yield rules_conversion.UPGRADE if classic is not None and classic.members else HEARTBEAT

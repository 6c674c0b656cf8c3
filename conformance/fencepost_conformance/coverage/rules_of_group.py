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
    yield from left.shown(_tables(situation, met=met), situation)
    for view in situation.seen.consumer_groups.values():
        if view is not None:
            yield OF_STATE[view.state]
            yield from (OF_MEMBER_STATE[row.state] for row in view.members)


#: what is asked for in any step, and in one with such a request
_ANY: Tables = (*ANY, *rules_mixed.ANY, *rules_conversion.ANY)
_HEARTBEAT: Tables = (*_ANY, *HEARTBEAT)
_UPGRADE: Tables = (*_ANY, *rules_conversion.UPGRADE)
_OF_BODY = {body: (*_ANY, *tables) for body, tables in rules_mixed.OF_BODY.items()}


def _tables(situation: ConsumerSituation, *, met: bool) -> Tables:
    if met:
        return _OF_BODY[type(situation.body)]
    if isinstance(situation.body, c.ConsumerGroupHeartbeatRequest):
        classic = situation.classic_before
        return _UPGRADE if classic is not None and classic.members else _HEARTBEAT
    return _ANY

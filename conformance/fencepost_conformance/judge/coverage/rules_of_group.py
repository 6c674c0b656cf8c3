"""The rules about a consumer group that a step has shown, with members of one protocol or of both, and the reasons why
no trace shows the others."""

from __future__ import annotations

from fencepost.protocol import consumer_messages as c

from . import rules_conversion, rules_mixed
from .consumer_situation import ConsumerSituation
from .open_rules import OpenRules, Selection, names, parts_of
from .rules_consumer import ANY, HEARTBEAT, OF_MEMBER_STATE, OF_STATE

#: rules of all three parts that only traces of mixed groups show
MIXED_RULES: tuple[str, ...] = tuple(
    dict.fromkeys(
        names((*rules_mixed.TO_CONSUMER_GROUP, *rules_mixed.ANY, *rules_conversion.UPGRADE, *rules_conversion.ANY))
    )
)
_HOW = "says how Kafka does it; every resulting record, view, timer and answer is compared"
UNREACHED_MIXED_RULES: dict[str, str] = {
    "X-JOIN-25": "concerns streams groups, which these traces do not contain",
    "X-DOWN-30": _HOW,
    "X-DOWN-31": "says how an early draft differs",
    "X-ROLL-01": "a scenario of a cluster: its first part is M-VAL-01, and a trace has one setting of the feature",
    "X-ROLL-02": "a scenario of many steps; they are the conversions of X-UP-* and X-DOWN-*",
}


#: tables for any step; for a request of the classic protocol that met a consumer group; for a heartbeat; and for one
#: that met a classic group
_ANY = (*ANY, *rules_mixed.ANY, *rules_conversion.ANY)
_TO_CONSUMER_GROUP, _HEARTBEAT = Selection((*_ANY, *rules_mixed.TO_CONSUMER_GROUP)), Selection((*_ANY, *HEARTBEAT))
_UPGRADE = Selection((*_ANY, *rules_conversion.UPGRADE))


def consumer_rules_of(situation: ConsumerSituation, left: OpenRules, *, to_consumer_group: bool) -> list[str]:
    """Return the rules that decided in this step, of those that are ``left``; ``to_consumer_group``: a
    request of the classic protocol met a consumer group."""
    body, seen = situation.body, situation.seen
    selection = _TO_CONSUMER_GROUP if to_consumer_group else _HEARTBEAT
    if isinstance(body, c.ConsumerGroupHeartbeatRequest):
        classic = situation.classic_before
        selection = _UPGRADE if classic is not None and classic.members else _HEARTBEAT
    happened = type(situation.event if body is None else body)
    found = left.shown(selection.of(happened, parts_of(seen)), situation)
    for view in seen.consumer_groups.values():
        if view is not None:
            found.append(OF_STATE[view.state])
            found += [OF_MEMBER_STATE[row.state] for row in view.members]
    return found

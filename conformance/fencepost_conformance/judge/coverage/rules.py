"""The rules of the classic protocol that a trace can show, and the reasons why no trace shows the others.

Consumer groups add the rules of ``rules_of_group``. A step reaches a rule if the rule decides what happens in it. This
module does not check that the core follows the rule; the comparison of the same step does.
"""

from __future__ import annotations

from fencepost.protocol import events as ev
from fencepost.protocol import messages as m
from fencepost.protocol.records import GroupMetadataKey

from .open_rules import OpenRules, Part, Selection, Table, names, parts_of
from .rules_join import JOIN
from .rules_rest import ANY, APPENDED, DELETE, DESCRIBE, FAILED, HEARTBEAT, LEAVE, LIST, SYNC, TIMER
from .situation import Situation

#: the other timers belong to consumer groups
_TIMERS = (ev.TimerKind.JOIN, ev.TimerKind.SYNC, ev.TimerKind.SESSION, ev.TimerKind.OPERATION)


def _answered(s: Situation) -> bool:
    return s.answer is not None


def _of_classic(s: Situation) -> bool:
    return isinstance(s.event, ev.TimerFired) and s.event.key.kind in _TIMERS


_HAPPENED = (
    Table(TIMER, _of_classic, of=(ev.TimerFired,)),
    Table(FAILED, _of_classic, of=(ev.TimerFired,), needs=Part.REPLIES),
    Table(FAILED, of=(ev.AppendFailed,), needs=Part.REPLIES),
    Table(APPENDED, of=(ev.Appended,)),
    *ANY,
)
_ASKED = (
    *JOIN,
    Table(SYNC, of=(m.SyncGroupRequest,)),
    Table(HEARTBEAT, of=(m.HeartbeatRequest,)),
    Table(LEAVE, of=(m.LeaveGroupRequest,)),
    # these concern the answer, so they are tested only if it came in this step
    Table(DESCRIBE, _answered, of=(m.DescribeGroupsRequest,)),
    Table(LIST, _answered, of=(m.ListGroupsRequest,)),
    Table(DELETE, of=(m.DeleteGroupsRequest,)),
)
#: tables where a request met a consumer group, and otherwise
_TO_CONSUMER_GROUP, _ALL = Selection(_HAPPENED), Selection((*_HAPPENED, *_ASKED))

#: rules that a state or a transition shows
_OF_TRANSITION = {
    "state Empty": "C-ST-01",
    "state PreparingRebalance": "C-ST-02",
    "state CompletingRebalance": "C-ST-03",
    "state Stable": "C-ST-04",
    "transition Empty → PreparingRebalance": "C-ST-10",
    "transition Stable → PreparingRebalance": "C-ST-11",
    "transition CompletingRebalance → PreparingRebalance": "C-ST-12",
    "transition PreparingRebalance → CompletingRebalance": "C-ST-13",
    "transition PreparingRebalance → Empty": "C-ST-14",
    "transition CompletingRebalance → Stable": "C-ST-15",
}
_OF_EVENT = ("C-ST-07", "C-ST-16", "C-ST-17")

RULES: tuple[str, ...] = tuple(
    dict.fromkeys(
        [
            *names((*_HAPPENED, *_ASKED)),
            *_OF_TRANSITION.values(),
            *_OF_EVENT,
        ]
    )
)

_CONSUMER = "concerns groups of the consumer, share or streams kind, which these traces do not contain"
_DEAD = "no request reaches a Dead group: the coordinator that holds it no longer owns the partition"
_CLIENT = "says what clients send; traces between real clients and brokers show it"
#: rules that no trace can show; no evidence may count for them
CLASSIC_CANNOT_OCCUR: dict[str, str] = {
    **dict.fromkeys(("C-ST-05", "C-JOIN-30", "C-JOIN-38a", "C-SYNC-07", "C-HB-07", "C-LEAVE-05"), _DEAD),
    "C-JOIN-03": "the component is running whenever a trace runs",
    "C-JOIN-56": "cannot occur: an Empty group has no members",
    "C-STATIC-11": "cannot occur: an instance id that is mapped has a member",
    "C-SYNC-20b": "cannot occur: leaving Completing or Stable, or emptying the set, cancels the timer",
    "C-HB-10": "cannot occur: an Empty group has no members",
}  # fmt: skip
UNREACHED_RULES: dict[str, str] = CLASSIC_CANNOT_OCCUR | {
    **dict.fromkeys(
        (
            *("C-ST-08", "C-JOIN-08", "C-JOIN-09", "C-JOIN-10", "C-JOIN-15"),
            *("C-SYNC-06", "C-HB-06", "C-LEAVE-04", "C-ADM-06"),
        ),
        _CONSUMER,
    ),
    **dict.fromkeys((*(f"C-REJ-{n:02}" for n in range(1, 11)), "C-LEAVE-26", "C-JOIN-62"), _CLIENT),
    "C-ST-25": "an illegal transition; that none occurs is checked at every step",
    "C-SCOPE-01": "defines a rebalance in general",
    "C-JOIN-57": "holds by C-JOIN-49 and C-JOIN-51; each answer's members list is compared",
    "C-ADM-11": "concerns the expiry of offsets, which these traces do not contain",
}  # fmt: skip


def rules_of(situation: Situation, features: set[str], left: OpenRules, *, to_consumer_group: bool) -> list[str]:
    """Return the rules that decided in this step; ``features`` are its states and transitions. Rules that are not
    ``left``, since they were reached before, may be left out. ``to_consumer_group``: the request met a consumer group,
    so none of these rules decides."""
    event, seen = situation.event, situation.seen
    happened = type(event if situation.body is None else situation.body)
    found = [_OF_TRANSITION[name] for name in features if name in _OF_TRANSITION]
    found += left.shown((_TO_CONSUMER_GROUP if to_consumer_group else _ALL).of(happened, parts_of(seen)), situation)
    if isinstance(event, ev.Load) and any(view and view.members for view in seen.groups.values()):
        found.append("C-ST-07")
    elif isinstance(event, ev.Unload) and situation.groups:
        found.append("C-ST-16")
    elif any(record.value is None and isinstance(record.key, GroupMetadataKey) for record in seen.records):
        found.append("C-ST-17")
    return found

"""Kafka's names for timers, which two timers may share (M-TMR-01, C-TMR-11).

Kafka keeps the timers of a partition under one string each: `heartbeat-GROUP-MEMBER`, `session-timeout-GROUP-MEMBER`,
`rebalance-timeout-GROUP-MEMBER`, and `join-` and `sync-` before GROUP for a classic group, before GROUP-MEMBER for a
member of a consumer group. Groups and members may have the hyphen in their names, so the string can often be read in
several ways, and arming or cancelling a timer does the same to whatever other timer it stands for.
"""

from __future__ import annotations

from functools import lru_cache

from fencepost.protocol.events import TimerKey, TimerKind

#: Kinds that share a prefix: of a classic group, and of a member of a consumer group.
_OF_GROUPS = {TimerKind.CONSUMER_JOIN: TimerKind.JOIN, TimerKind.CONSUMER_SYNC: TimerKind.SYNC}
_OF_MEMBERS = {of_group: of_member for of_member, of_group in _OF_GROUPS.items()}


@lru_cache(maxsize=1 << 12)
def groups_alike(group_id: str, member_id: str) -> frozenset[str]:
    """The names that a group would have to have so that one of its timers has the same string: a quick way to see that
    there is none."""
    rest = f"{group_id}-{member_id}" if member_id else group_id
    cuts = (at for at, letter in enumerate(rest) if letter == "-")
    return frozenset((*(rest[:at] for at in cuts), rest)) - {group_id}


def namesakes(key: TimerKey) -> tuple[TimerKey, ...]:
    """The other timers that Kafka has under the same string."""
    of_group = key.kind if key.kind in _OF_MEMBERS else _OF_GROUPS.get(key.kind)
    of_member = _OF_MEMBERS.get(key.kind, key.kind)
    rest = key.group_id if key.kind in _OF_MEMBERS else f"{key.group_id}-{key.member_id}"
    cuts = (at for at, letter in enumerate(rest) if letter == "-")
    found = [TimerKey(of_member, rest[:at], rest[at + 1 :]) for at in cuts]
    if of_group is not None:
        found.append(TimerKey(of_group, rest))
    return tuple(each for each in found if each != key)

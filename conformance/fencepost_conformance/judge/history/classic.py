"""Classic groups: each GroupMetadata record is a whole generation (F-REC-02).

A classic coordinator writes no record when a rebalance begins. The record of a generation has the time at which all
members had joined, and is written when the leader's assignment arrives. So the log shows the second part of a
rebalance, and only the difference between two generations shows why it began.
"""

from __future__ import annotations

from collections import defaultdict

from fencepost.protocol.embedded import PROTOCOL_TYPE, SchemaError, decode_assignment, subscribed_topics
from fencepost.protocol.records import GroupMetadataValue

from ...common.counting import counted
from .events import UNKNOWN_MS, Event, Kind, MemberRow, Place, Reason, Why, kind_of
from .life import CLASSIC, Life

EMPTY = "Empty"
STABLE = "Stable"


def take(life: Life, value: GroupMetadataValue, at_ms: int, offset: int, *, gapped: bool, quiet: bool) -> None:
    """Take the record of a generation. ``gapped``: records may be missing since the group's last one. ``quiet``: the
    group was converted just now, so that its partitions did not move."""
    before, old = life.epoch, life.members
    fresh = life.protocol != CLASSIC
    life.protocol, life.epoch = CLASSIC, value.generation
    now = {
        each.member_id: old.get(each.member_id)
        or MemberRow(each.member_id, each.group_instance_id, each.client_id, each.client_host, at_ms, True)
        for each in value.members
    }
    reasons = _differences(life, value, now, at_ms, offset)
    life.members, life.leader = now, value.leader
    if before is not None and not fresh and value.generation < before:
        said = f"generation {value.generation} follows generation {before}"
        life.breach(at_ms, offset, "INV-GEN-02", said)
    if value.members and value.leader not in now:
        life.breach(at_ms, offset, "INV-MEM-04", f"the leader {value.leader} is not a member")
    if fresh or before is None or value.generation != before:
        _generation(life, value, before if not fresh else None, reasons, at_ms, offset, gapped=gapped)
    life.state = STABLE if value.members else EMPTY
    places = _owners(life, value, at_ms, offset)
    life.own(at_ms, offset, places, quiet=quiet)


def _generation(  # noqa: PLR0917
    life: Life,
    value: GroupMetadataValue,
    before: int | None,
    reasons: list[Reason],
    at_ms: int,
    offset: int,
    *,
    gapped: bool,
) -> None:
    skipped = 0 if before is None or gapped else value.generation - before - 1
    cause, why = "; ".join(each.text for each in reasons), kind_of(reasons)
    if not value.members:
        if value.generation > 0:
            life.rebalances += before is not None
            life.add_event(Event(at_ms, offset, Kind.EMPTY, value.generation, cause=cause, why=why))
        return
    life.rebalances += 1
    duration = None
    if value.current_state_timestamp > 0 and at_ms != UNKNOWN_MS:
        duration = max(at_ms - value.current_state_timestamp, 0)
        life.took(duration)
    said = [counted(len(value.members), "members"), f"assignor {value.protocol}", f"leader {value.leader}"]
    if skipped > 0:
        said.append(f"{counted(skipped, 'generations')} before it got no assignment")
        life.rebalances += skipped
    if not cause:
        cause = "no member joined or left: a member joined again, or its topics or their partitions changed"
    life.add_event(
        Event(
            at_ms,
            offset,
            Kind.GENERATION,
            value.generation,
            duration_ms=duration,
            cause=cause,
            details=", ".join(said),
            why=why,
        )
    )


def _differences(
    life: Life, value: GroupMetadataValue, now: dict[str, MemberRow], at_ms: int, offset: int
) -> list[Reason]:
    """Tell which members came, went and changed; return that as reasons."""
    old, reasons = life.members, list[Reason]()
    came = [member_id for member_id in now if member_id not in old]
    went = [member_id for member_id in old if member_id not in now]
    instances = {row.instance_id: row.member_id for row in old.values() if row.instance_id and row.member_id in went}
    for member_id in came:
        row = now[member_id]
        former = instances.get(row.instance_id) if row.instance_id else None
        if former is not None:
            went.remove(former)
            said = f"instance {row.instance_id}: {member_id} replaced {former}"
            life.add_event(Event(at_ms, offset, Kind.REPLACED, value.generation, (former, member_id), details=said))
            reasons.append(Reason(Why.REPLACED, said))
        else:
            life.add_event(Event(at_ms, offset, Kind.JOINED, value.generation, (member_id,), details=whence(row)))
            reasons.append(Reason(Why.JOINED, f"{member_id} joined"))
    for member_id in went:
        life.add_event(Event(at_ms, offset, Kind.GONE, value.generation, (member_id,), details="left or was removed"))
        reasons.append(Reason(Why.GONE, f"{member_id} left or was removed"))
        life.topics.pop(member_id, None)
    for each in value.members:
        topics = _topics(each.subscription, value.protocol_type)
        known = life.topics.get(each.member_id)
        if each.member_id in old and known is not None and known != topics:
            said = f"{each.member_id} changed its topics"
            life.add_event(Event(at_ms, offset, Kind.CHANGED, value.generation, (each.member_id,), details="topics"))
            reasons.append(Reason(Why.CHANGED, said))
        life.topics[each.member_id] = topics
    return reasons


def whence(row: MemberRow) -> str:
    """Return the client of a member in words."""
    instance = f"instance {row.instance_id}, " if row.instance_id else ""
    return f"{instance}client {row.client_id or '(no id)'} at {row.client_host or '(no address)'}"


def _topics(subscription: bytes, protocol_type: str) -> tuple[object, ...]:
    if protocol_type != PROTOCOL_TYPE:
        return (subscription,)
    try:
        return tuple(sorted(subscribed_topics(subscription)))
    except SchemaError:
        return (subscription,)


def _owners(life: Life, value: GroupMetadataValue, at_ms: int, offset: int) -> dict[Place, str]:
    """Return the owners, and report partitions that the leader gave to several members (INV-OWN-01)."""
    if value.protocol_type != PROTOCOL_TYPE:
        return {}
    owners: dict[Place, list[str]] = defaultdict(list)
    for each in value.members:
        try:
            given = decode_assignment(each.assignment).partitions if each.assignment else ()
        except SchemaError:
            continue
        for topic, partition in dict.fromkeys(given):
            owners[Place(topic, partition)].append(each.member_id)
    for place, members in owners.items():
        if len(members) > 1:
            said = f"the leader gave {place.topic}-{place.partition} to {' and '.join(members)}"
            life.breach(at_ms, offset, "INV-OWN-01", said)
    return {place: members[0] for place, members in owners.items()}

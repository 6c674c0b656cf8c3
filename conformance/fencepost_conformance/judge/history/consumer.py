"""Consumer groups (KIP-848): one record for each step of a member and of the group (F-REC-03…16).

A rebalance begins with a new group epoch. It ends when the target has that epoch and every member has reached it, or
when no member is left.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from typing import Final

from fencepost.protocol.consumer_records import (
    AssignedPartitions,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberValue,
)
from fencepost.protocol.consumer_view import MemberState

from .classic import EMPTY, STABLE, whence
from .events import Event, Kind, MemberRow, Place, Reason, Why
from .life import CLASSIC, CONSUMER, Gone, Life

#: the epoch of a static member that left for a while
_AWAY: Final = -2


def topic_text(topic_id: bytes) -> str:
    """Return a topic id as Kafka prints it."""
    return urlsafe_b64encode(topic_id).rstrip(b"=").decode()


def enter(life: Life) -> None:
    """Make the group a consumer group, if it is not yet."""
    if life.protocol != CONSUMER:
        life.protocol, life.epoch, life.target_epoch, life.state = CONSUMER, None, None, ""


def member(life: Life, member_id: str, value: ConsumerGroupMemberMetadataValue | None, at_ms: int, offset: int) -> None:
    """Take the record of a member."""
    if value is None:
        _leave(life, member_id, at_ms, offset)
        return
    enter(life)
    known = life.members.get(member_id)
    classic = value.classic_member_metadata is not None
    since = at_ms if known is None else known.since_ms
    row = MemberRow(member_id, value.instance_id, value.client_id, value.client_host, since, classic)
    topics = (tuple(sorted(value.subscribed_topic_names)), value.subscribed_topic_regex or "", value.server_assignor)
    before = life.topics.get(member_id)
    life.members[member_id], life.topics[member_id] = row, topics
    life.timeouts[member_id] = value.rebalance_timeout_ms
    life.arrived.add(member_id)
    if known is None and not _reached(life, member_id):
        life.behind.add(member_id)
    former = _replaced(life, row)
    if former is not None:
        old = former.row.member_id
        said = f"instance {row.instance_id}: {member_id} replaced {old}"
        if old == member_id:
            said = f"instance {row.instance_id}: {member_id} came back"
        life.gone.remove(former)
        life.dropped.discard(old)
        life.add_event(Event(at_ms, offset, Kind.REPLACED, life.epoch, (old, member_id), details=said))
        life.reasons.append(Reason(Why.REPLACED, said))
        life.hand_over(at_ms, offset, old, member_id)
    elif known is None:
        life.add_event(
            Event(at_ms, offset, Kind.JOINED, life.epoch, (member_id,), details=whence(row) + _uses(classic))
        )
        life.reasons.append(Reason(Why.JOINED, f"{member_id} joined"))
    elif known.classic != classic:
        said = "now uses the classic protocol" if classic else "now uses the consumer protocol"
        life.add_event(Event(at_ms, offset, Kind.CHANGED, life.epoch, (member_id,), details=said))
        life.reasons.append(Reason(Why.CHANGED, f"{member_id} {said}"))
    elif before is not None and member_id not in life.converting and before != topics:
        life.add_event(Event(at_ms, offset, Kind.CHANGED, life.epoch, (member_id,), details="subscription or assignor"))
        life.reasons.append(Reason(Why.CHANGED, f"{member_id} changed its subscription or assignor"))


def _uses(classic: bool) -> str:
    return ", classic protocol" if classic else ""


def _replaced(life: Life, row: MemberRow) -> Gone | None:
    """Return the member of the same instance that was just removed."""
    if row.instance_id is None:
        return None
    return next((each for each in life.gone if each.row.instance_id == row.instance_id), None)


def _leave(life: Life, member_id: str, at_ms: int, offset: int) -> None:
    row = life.members.pop(member_id, None)
    life.topics.pop(member_id, None)
    life.behind.discard(member_id)
    timeout, since = life.timeouts.pop(member_id, None), life.revoking.pop(member_id, None)
    if row is None:
        return
    why, kind = "left or was fenced", Why.GONE
    if since is not None and timeout is not None and 0 < timeout <= at_ms - since:
        kind = Why.FENCED
        why = f"fenced, since it did not give up its partitions within its rebalance timeout of {timeout} ms"
    life.gone.append(Gone(row, at_ms, offset, Reason(kind, why)))


def group_epoch(life: Life, value: ConsumerGroupMetadataValue, at_ms: int, offset: int) -> None:
    """Take a group epoch."""
    settle(life, at_ms, offset)
    enter(life)
    if life.deduced:
        life.deduced, life.target_epoch = False, None
    epoch, before, same_topics = value.epoch, life.epoch, value.metadata_hash == life.metadata_hash
    life.epoch, life.metadata_hash = epoch, value.metadata_hash
    if before is None and life.converted:
        life.converted = False
        upgraded = any(life.members[each].classic for each in life.arrived if each in life.members)
        _arrive(life, at_ms, offset)
        # the records of the members and this one repeat the generation of the classic group; if it is empty, this one
        # alone does, and says where the count starts (M-VAL-22)
        if upgraded or not life.members:
            return
    if before is not None and epoch < before:
        life.breach(at_ms, offset, "INV-KIP-04", f"group epoch {epoch} follows group epoch {before}")
    if epoch == before:
        return
    life.converting.clear()
    life.arrived.clear()
    reasons = [*life.reasons]
    life.reasons.clear()
    if not reasons and not same_topics:
        reasons = [Reason(Why.TOPICS, "the subscribed topics or their partitions changed")]
    life.begins(at_ms, offset, epoch, reasons)
    _assess(life, at_ms, offset)


def _arrive(life: Life, at_ms: int, offset: int) -> None:
    """Tell the members that did not come along in a conversion: they left the classic group after its last record."""
    for member_id in sorted(life.converting - life.arrived):
        del life.members[member_id]
        life.topics.pop(member_id, None)
        life.add_event(Event(at_ms, offset, Kind.GONE, life.epoch, (member_id,), details="left or was removed"))
    life.converting &= life.arrived
    life.arrived.clear()


def target_member(life: Life, member_id: str, value: ConsumerGroupTargetAssignmentMemberValue | None) -> None:
    """Take the target assignment of a member."""
    if value is None:
        life.targets.pop(member_id, None)
        return
    enter(life)
    life.targets[member_id] = frozenset(
        [Place(topic_text(each.topic_id), number) for each in value.topic_partitions for number in each.partitions]
    )


def target_epoch(life: Life, epoch: int, at_ms: int, offset: int) -> None:
    """Take the epoch of a complete target (INV-KIP-03, INV-KIP-05)."""
    enter(life)
    if life.target_epoch is not None and epoch < life.target_epoch:
        life.breach(at_ms, offset, "INV-KIP-04", f"target epoch {epoch} follows target epoch {life.target_epoch}")
    if life.epoch is not None and epoch > life.epoch and not life.deduced:
        life.breach(at_ms, offset, "INV-KIP-03", f"target epoch {epoch} is above group epoch {life.epoch}")
    life.target_epoch = epoch
    _targets_are_disjoint(life, at_ms, offset)
    life.behind = {each for each in life.members if not _reached(life, each)}
    _assess(life, at_ms, offset)


def _targets_are_disjoint(life: Life, at_ms: int, offset: int) -> None:
    if sum(map(len, life.targets.values())) == len(frozenset().union(*life.targets.values())):
        return
    owner: dict[Place, str] = {}
    for member_id, places in life.targets.items():
        for place in sorted(places):
            other = owner.setdefault(place, member_id)
            if other != member_id:
                said = f"partition {place.partition} is in the targets of {other} and {member_id}"
                life.breach(at_ms, offset, "INV-KIP-05", said)


def current(
    life: Life, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None, at_ms: int, offset: int
) -> None:
    """Take the current assignment of a member (INV-KIP-01…04, 07)."""
    if value is None:
        life.current.pop(member_id, None)
        life.dropped.add(member_id)
        return
    settle(life, at_ms, offset)
    enter(life)
    before = life.current.get(member_id)
    assigned, pending = _places(value.assigned_partitions), _places(value.partitions_pending_revocation)
    _check(life, member_id, before, value, at_ms, offset)
    if assigned & pending:
        life.breach(at_ms, offset, "INV-KIP-02", f"{member_id} has a partition that is both assigned and to be revoked")
    life.current[member_id] = value
    if life.epoch is None and life.target_epoch is None and value.member_epoch > 0:
        life.epoch = life.target_epoch = value.member_epoch  # a new group has an epoch before its first record of one
        life.deduced = True
    if pending:
        life.revoking.setdefault(member_id, at_ms)
    else:
        life.revoking.pop(member_id, None)
    if value.member_epoch == _AWAY and (before is None or before.member_epoch != _AWAY):
        life.add_event(Event(at_ms, offset, Kind.AWAY, life.epoch, (member_id,)))
    life.hold(at_ms, offset, member_id, assigned | pending, quiet=member_id in life.converting)
    life.converting.discard(member_id)
    if _reached(life, member_id):
        life.behind.discard(member_id)
    elif member_id in life.members:
        life.behind.add(member_id)
    _assess(life, at_ms, offset)


def _check(  # noqa: PLR0917
    life: Life,
    member_id: str,
    before: ConsumerGroupCurrentMemberAssignmentValue | None,
    value: ConsumerGroupCurrentMemberAssignmentValue,
    at_ms: int,
    offset: int,
) -> None:
    epoch = value.member_epoch
    if before is not None and 0 < epoch < before.member_epoch:
        life.breach(at_ms, offset, "INV-KIP-04", f"{member_id}: member epoch {epoch} follows {before.member_epoch}")
    if life.target_epoch is not None and epoch > life.target_epoch and not life.deduced:
        said = f"{member_id}: member epoch {epoch} is above target epoch {life.target_epoch}"
        life.breach(at_ms, offset, "INV-KIP-03", said)
    unrevoked = value.state == MemberState.UNREVOKED_PARTITIONS.value
    if epoch != _AWAY and unrevoked != any(each.partitions for each in value.partitions_pending_revocation):
        said = f"{member_id}: its state and its partitions to be revoked contradict each other"
        life.breach(at_ms, offset, "INV-KIP-07", said)


def _places(rows: Iterable[AssignedPartitions]) -> frozenset[Place]:
    return frozenset([Place(topic_text(each.topic_id), number) for each in rows for number in each.partitions])


def _reached(life: Life, member_id: str) -> bool:
    held = life.current.get(member_id)
    return held is not None and held.member_epoch == life.target_epoch and held.state == MemberState.STABLE.value


def state_of(life: Life) -> str:
    """Return the state of a consumer group (M-ST-01…04, 06)."""
    if not life.members:
        return EMPTY
    if life.epoch is None or life.epoch != life.target_epoch:
        return "Assigning"
    return "Reconciling" if life.behind else STABLE


def _assess(life: Life, at_ms: int, offset: int) -> None:
    """Set the state of the group, and end the rebalance if it is at rest."""
    life.state = state_of(life)
    if life.state in (EMPTY, STABLE):
        life.ends(at_ms, offset, life.state)


def regex(life: Life, pattern: str, topics: tuple[str, ...] | None) -> None:
    """Take the topics that a regular expression matches."""
    if topics is None:
        life.regexes.pop(pattern, None)
        return
    enter(life)
    if life.regexes.get(pattern, ()) != topics:
        life.reasons.append(Reason(Why.REGEX, f"the regular expression {pattern!r} matches other topics"))
    life.regexes[pattern] = topics


def settle(life: Life, at_ms: int, offset: int) -> None:
    """Tell the members that were removed, now that no later record can say more about it."""
    if life.dropped:
        for member_id in sorted(life.dropped):
            life.hold(at_ms, offset, member_id, frozenset())
        life.dropped.clear()
    for each in life.gone:
        member_id = each.row.member_id
        life.add_event(
            Event(each.at_ms, each.offset, Kind.GONE, life.epoch, (member_id,), details=each.why.text, why=each.why.why)
        )
        life.reasons.append(Reason(each.why.why, f"{member_id} {each.why.text}"))
    life.gone.clear()


def converts_to_classic(life: Life, members: Iterable[str], at_ms: int, offset: int) -> None:
    """Take the group as converted to a classic one with these members: only the others have gone."""
    stay = {*members}
    kept = {each.row.member_id: each.row for each in life.gone if each.row.member_id in stay}
    life.gone = [each for each in life.gone if each.row.member_id not in stay]
    life.dropped -= stay
    settle(life, at_ms, offset)
    _convert(life, CONSUMER, CLASSIC, at_ms, offset)
    life.members = kept


def converts_to_consumer(life: Life, at_ms: int, offset: int) -> None:
    """Take the group as converted to a consumer group with the same members."""
    members, topics = life.members, life.topics
    _convert(life, CLASSIC, CONSUMER, at_ms, offset)
    life.members, life.topics, life.converting, life.converted = members, topics, set(members), True


def _convert(life: Life, old: str, new: str, at_ms: int, offset: int) -> None:
    life.ends(at_ms, offset, "converted")
    life.add_event(Event(at_ms, offset, Kind.CONVERTED, life.epoch, details=f"{old} to {new}"))
    clear(life, at_ms)
    life.protocol = new


def clear(life: Life, at_ms: int) -> None:
    """Forget the members and the assignments of a group that was removed or converted."""
    life.let_go(at_ms)
    for each in (life.targets, life.current, life.holdings, life.behind, life.revoking, life.timeouts, life.regexes):
        each.clear()
    life.members, life.topics = {}, {}
    life.gone.clear()
    life.dropped.clear()
    life.reasons.clear()
    life.converting.clear()
    life.rebalance, life.target_epoch, life.epoch, life.state = None, None, None, ""
    life.converted = life.deduced = False
    life.arrived.clear()
    life.removed, life.metadata_hash, life.leader = "", 0, None

"""Look-ups of committed offsets, for positions and for calls (K-OFF-01, K-POS-01, K-POS-08, N-CMT-04)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.offset_messages import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from fencepost.protocol.partitions import TopicPartition
from fencepost.quirks import varies
from fencepost_consumer.events import OffsetAndMetadata, Problem, ProblemKind
from fencepost_consumer.membership import Phase
from fencepost_consumer.partition import FetchState, Position
from fencepost_consumer.state import Lookup, LookupKey, Purpose, SentLookup
from fencepost_consumer.turn import Turn, ids_of
from fencepost_consumer.working_copy import Thrown

_E = ErrorCode
#: Errors of the group after which the look-up is retried; those of the second set also forget the coordinator.
_AGAIN = frozenset(
    {_E.COORDINATOR_LOAD_IN_PROGRESS, _E.UNSTABLE_OFFSET_COMMIT, _E.NETWORK_EXCEPTION, _E.REQUEST_TIMED_OUT}
)
_FORGET = frozenset({_E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR})
_UNKNOWN_TOPIC = frozenset({_E.UNKNOWN_TOPIC_OR_PARTITION, _E.UNKNOWN_TOPIC_ID})


def initialise(turn: Turn) -> bool:
    """Set the positions of initializing partitions to committed offsets (K-POS-01). Return true if none needs a look-up
    any longer. Throw the problem of the look-up, if it failed."""
    missing = turn.reader.initializing
    if not missing:
        return True
    drop_other(turn, missing)
    turn.check_coordinator(waits=True)
    lookup = turn.reader.lookups.get(Purpose.POSITIONS)
    if lookup is None or not (_one_for_all(turn) or _same(turn, lookup, missing)):
        deadline = turn.now + turn.reader.settings.default_api_timeout_ms
        lookup = begin(turn, Purpose.POSITIONS, missing, deadline)
    else:
        lookup = maybe_send_lookup(turn, Purpose.POSITIONS)
    usable = _usable(turn, lookup)
    turn.wake()  # the consumer polls the network here, even if the response is there already
    if not usable:
        return False
    drop(turn, Purpose.POSITIONS)
    if lookup.problem is not None:
        raise Thrown(lookup.problem)
    take(turn, lookup)
    return True


def take(turn: Turn, lookup: Lookup) -> None:
    """Set partitions without a position to the committed offsets (K-POS-01)."""
    for partition, found in (lookup.found or {}).items():
        if found is None or not turn.accepts_committed(partition, found):
            continue
        state = turn.reader.partitions.get(partition)
        if state is None or state.state is not FetchState.INITIALIZING:
            continue  # K-POS-08: no longer assigned, or the application has set a position
        turn.saw_epoch(partition, found.leader_epoch)
        turn.place(partition, Position(found.offset, found.leader_epoch, turn.leader(partition)))


def _one_for_all(turn: Turn) -> bool:
    """Whether a call uses any look-up, since it has checked the partitions when it began (K-POS-08)."""
    return turn.loops_in_calls and turn.reader.waiting is not None and turn.reader.waiting.looked


def _usable(turn: Turn, lookup: Lookup) -> bool:
    """Return whether the look-up is over, and may be used: a call with its own loop finds the coordinator first."""
    if not lookup.over:
        return False
    return not turn.loops_in_calls or turn.coordinator_known()


def _identity(turn: Turn) -> tuple[str, int]:
    """Return who sends the look-up. For a classic member, another generation needs another look-up (K-POS-08)."""
    membership = turn.reader.membership
    if turn.several_lookups or membership.phase is not Phase.STABLE:
        return "", -1
    return membership.identity


def _same(turn: Turn, lookup: Lookup, partitions: tuple[TopicPartition, ...]) -> bool:
    return frozenset(lookup.partitions) == frozenset(partitions) and lookup.identity == _identity(turn)


def drop_other(turn: Turn, partitions: tuple[TopicPartition, ...]) -> None:
    """Drop look-ups for other partitions, together with their failures. This happens before the coordinator is checked
    (K-POS-08)."""
    if not _one_for_all(turn):
        for key, lookup in tuple(turn.reader.lookups.items()):
            if not _same(turn, lookup, partitions):
                drop(turn, key)


def begin(turn: Turn, key: LookupKey, partitions: tuple[TopicPartition, ...], deadline_ms: int) -> Lookup:
    """Start a look-up in place of one for other partitions. The classic consumer has one at a time, which all calls for
    the same partitions share, for any purpose (K-POS-08). The new consumer can have several; one for the same
    partitions waits for the first (N-CMT-04)."""
    fresh = Lookup(partitions, _identity(turn), deadline_ms)
    if turn.several_lookups:
        alike = [
            other
            for other, each in turn.reader.lookups.items()
            if each.shares is None and not each.over and frozenset(each.partitions) == frozenset(partitions)
        ]
        fresh = replace(fresh, shares=alike[0] if alike else None)
    else:
        other = next((each for each in turn.reader.lookups if each is not key), None)
        if other is not None:
            shared = turn.reader.lookups[other]
            drop(turn, other)
            if _same(turn, shared, partitions):
                _put(turn, key, shared)
                return maybe_send_lookup(turn, key)
    _put(turn, key, fresh)
    return maybe_send_lookup(turn, key)


def maybe_send_lookup(turn: Turn, key: LookupKey) -> Lookup:
    """Send a look-up that waits for the coordinator or a back-off, if it may be sent now."""
    lookup = turn.reader.lookups[key]
    waits = lookup.request_id is not None or lookup.over or lookup.shares is not None or turn.reader.parting
    if waits or (lookup.retry_at is not None and turn.now < lookup.retry_at) or not turn.coordinator_known():
        return lookup
    names = ids_of(turn, lookup.partitions)
    topics: dict[str, list[int]] = {}
    for each in lookup.partitions:
        topics.setdefault(each.topic, []).append(each.partition)
    membership = turn.reader.membership
    known = turn.kip_848 and membership.epoch > 0  # N-CMT-04: both or neither
    group = OffsetFetchRequestGroup(
        turn.reader.settings.group_id,
        member_id=membership.member_id if known else None,
        member_epoch=membership.epoch if known else -1,
        topics=tuple(
            OffsetFetchRequestTopic(topic_id=turn.reader.topic_ids[name], partition_indexes=tuple(numbers))
            if names
            else OffsetFetchRequestTopic(name=name, partition_indexes=tuple(numbers))
            for name, numbers in topics.items()
        ),
    )
    body = OffsetFetchRequest((group,), require_stable=True)  # K-OFF-01
    request_id = turn.send(body, SentLookup(names))
    return _put(turn, key, replace(lookup, request_id=request_id, retry_at=None))


def answered(turn: Turn, request_id: int, sent: SentLookup, body: OffsetFetchResponse | None) -> bool:
    """Handle the response to a look-up. Return true if the node is not the coordinator, even if the look-up was given
    up. ``body`` None: no response arrived."""
    group = None if body is None else body.groups[0]
    for key, lookup in tuple(turn.reader.lookups.items()):
        if lookup.request_id != request_id:
            continue
        if group is None:
            _again(turn, key, lookup)
        elif group.error_code is _E.NONE:
            _read(turn, key, sent.names, lookup, group)
        else:
            _refused(turn, key, lookup, group.error_code)
    return group is not None and group.error_code in _FORGET


def _refused(turn: Turn, key: LookupKey, lookup: Lookup, error: ErrorCode) -> None:
    """Handle an error for the whole group (K-OFF-01, N-CMT-04)."""
    stale = error is _E.STALE_MEMBER_EPOCH and turn.kip_848 and turn.reader.membership.epoch > 0
    if error in _AGAIN or error in _FORGET or stale:
        _again(turn, key, lookup)
    else:
        plain = {_E.GROUP_AUTHORIZATION_FAILED}
        if turn.kip_848:  # N-CMT-04
            plain |= {_E.UNKNOWN_MEMBER_ID, _E.STALE_MEMBER_EPOCH}
        kind = ProblemKind.API if error in plain else ProblemKind.KAFKA
        _end(turn, key, replace(lookup, problem=Problem(kind, error)))


def _read(
    turn: Turn, key: LookupKey, names: Mapping[bytes, str], lookup: Lookup, group: OffsetFetchResponseGroup
) -> None:
    found: dict[TopicPartition, OffsetAndMetadata | None] = {}
    denied, unstable, unknown = [], False, False
    for topic in group.topics:
        name = topic.name or names.get(topic.topic_id, "")
        for each in topic.partitions:
            partition, error = TopicPartition(name, each.partition_index), each.error_code
            if error is _E.TOPIC_AUTHORIZATION_FAILED:
                denied.append(partition)
            elif error is _E.UNSTABLE_OFFSET_COMMIT:
                unstable = True
            elif error in _UNKNOWN_TOPIC and unknown_passes(turn):
                unknown = True
            elif error is not _E.NONE:
                problem = Problem(ProblemKind.KAFKA, error, (partition,))
                _end(turn, key, replace(lookup, problem=problem))
                return
            elif each.committed_offset < 0:
                found[partition] = None
            else:
                epoch = each.committed_leader_epoch
                found[partition] = OffsetAndMetadata(
                    each.committed_offset, None if epoch < 0 else epoch, each.metadata or ""
                )
    if denied:
        problem = Problem(ProblemKind.API, _E.TOPIC_AUTHORIZATION_FAILED, tuple(denied))
        _end(turn, key, replace(lookup, problem=problem))
    elif unstable or (unknown and turn.now + turn.backoff(lookup.attempts) < lookup.deadline_ms):
        _again(turn, key, lookup)
    else:  # N-CMT-04: partitions of unknown topics count as not committed
        _end(turn, key, replace(lookup, found=found))


def unknown_passes(turn: Turn) -> bool:
    """Return whether the look-up retries a topic that the coordinator does not know. For the new consumer, the topic
    may be so new that only the client knows it (N-CMT-04)."""
    return turn.kip_848 and turn.rules.unknown_topics_are_retried


def _again(turn: Turn, key: LookupKey, lookup: Lookup) -> None:
    """Retry after a back-off. Look-ups of the new consumer whose time is over fail instead (N-POLL-03)."""
    sharing = [other for other, each in turn.reader.lookups.items() if each.shares == key]
    over = [each for each in sharing if turn.now >= turn.reader.lookups[each].deadline_ms]
    late = Problem(ProblemKind.TIMEOUT)
    for each in over:
        _put(turn, each, replace(turn.reader.lookups[each], shares=None, problem=late))
    left = [each for each in sharing if each not in over]
    if turn.several_lookups and turn.now >= lookup.deadline_ms:
        if left:
            pass_on(turn, key, lookup, left)
        _put(turn, key, replace(lookup, request_id=None, problem=late))
        return
    retry_at = turn.now + turn.backoff(lookup.attempts)
    lookup = replace(lookup, request_id=None, attempts=lookup.attempts + 1, retry_at=retry_at)
    rest = {other: each for other, each in turn.reader.lookups.items() if other != key}
    turn.reader = turn.reader._replace(lookups={**rest, key: lookup})  # it is sent after those that wait already
    if left:
        pass_on(turn, key, lookup, left)


@varies
def pass_on(turn: Turn, key: LookupKey, lookup: Lookup, sharing: list[LookupKey]) -> None:
    """Let the last look-up in ``sharing`` ask next, with its own back-off or none yet; the others share it
    (N-CMT-04)."""
    *others, last = sharing
    rest = {other: each for other, each in turn.reader.lookups.items() if other != key and other not in sharing}
    waiting = {other: replace(turn.reader.lookups[other], shares=last) for other in reversed(others)}
    first = replace(turn.reader.lookups[last], shares=None)
    turn.reader = turn.reader._replace(lookups={**rest, last: first, **waiting, key: replace(lookup, shares=last)})


def _end(turn: Turn, key: LookupKey, lookup: Lookup) -> None:
    """End a look-up, and all that share it."""
    _put(turn, key, replace(lookup, request_id=None))
    for other, each in turn.reader.lookups.items():
        if each.shares == key:
            _put(turn, other, replace(each, shares=None, found=lookup.found, problem=lookup.problem))


def forsake(turn: Turn, keys: list[LookupKey]) -> None:
    """Let these look-ups wait for themselves, that is, until their time is over."""
    for key in keys:
        _put(turn, key, replace(turn.reader.lookups[key], shares=key))


def _put(turn: Turn, key: LookupKey, lookup: Lookup) -> Lookup:
    turn.reader = turn.reader._replace(lookups={**turn.reader.lookups, key: lookup})
    return lookup


def drop(turn: Turn, key: LookupKey) -> None:
    """Remove a look-up. The first one that shares it takes it over."""
    rest = dict(turn.reader.lookups)
    lookup = rest.pop(key, None)
    sharing_keys = [other for other, each in rest.items() if each.shares == key]
    if lookup is not None and sharing_keys:
        for other in sharing_keys:
            rest[other] = replace(rest[other], shares=sharing_keys[0])
        rest[sharing_keys[0]] = replace(lookup, deadline_ms=rest[sharing_keys[0]].deadline_ms)
    turn.reader = turn.reader._replace(lookups=rest)


def blocks(turn: Turn) -> bool:
    """Return whether the classic consumer is busy with a look-up of positions, and does nothing else meanwhile."""
    lookup = turn.reader.lookups.get(Purpose.POSITIONS)
    missing = turn.reader.initializing
    if not turn.loops_in_calls or lookup is None or not missing:
        return False
    if not (_one_for_all(turn) or _same(turn, lookup, missing)):
        return False
    turn.check_coordinator()
    return not _usable(turn, maybe_send_lookup(turn, Purpose.POSITIONS))


def take_finished(turn: Turn, purpose: Purpose) -> Lookup | None:
    """Remove and return a look-up that is over; None if it is not."""
    lookup = turn.reader.lookups.get(purpose)
    if lookup is None or not _usable(turn, lookup):
        return None
    drop(turn, purpose)
    return lookup


def forgets(turn: Turn) -> bool:
    """Return whether a look-up is dropped when one of its partitions is no longer assigned. With manual assignment the
    classic consumer keeps it, as long as the next look-up is for the same partitions (K-POS-08)."""
    if not turn.rules.old_look_ups_dropped:
        return not turn.java
    return not turn.keeps_lookup_of_manual or turn.reader.mode.automatic


def forget(turn: Turn) -> None:
    """Drop the look-up of positions if one of its partitions is no longer assigned."""
    lookup = turn.reader.lookups.get(Purpose.POSITIONS)
    if lookup is not None and not turn.reader.partitions.keys() >= set(lookup.partitions):
        drop(turn, Purpose.POSITIONS)


def give_up(turn: Turn) -> None:
    """End the look-up of a call that no longer waits. The next call of the classic consumer may still use it."""
    lookup = turn.reader.lookups.get(Purpose.CALL)
    drop(turn, Purpose.CALL)
    if lookup is not None and lookup.retry_at is None and not turn.several_lookups:
        _put(turn, Purpose.POSITIONS, lookup)


def fail(turn: Turn, problem: Problem) -> None:
    """Fail look-ups that wait for the coordinator, because it cannot be looked up."""
    for key, lookup in turn.reader.lookups.items():
        if lookup.request_id is None and not lookup.over and lookup.shares is None:
            _end(turn, key, replace(lookup, problem=problem))

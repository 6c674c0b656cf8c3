"""Looking up what the group has committed, for positions and for who asks (K-OFF-01, K-POS-01, K-POS-08, N-CMT-04)."""

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

from .events import OffsetAndMetadata, Problem, ProblemKind
from .membership import Phase
from .naming import ids_of
from .partition import FetchState, Position
from .settings import Client
from .state import Lookup, LookupKey, Purpose, SentLookup
from .turn import Thrown, Turn

_E = ErrorCode
#: Errors of the group after which the look-up is tried again; the latter forget the coordinator.
_AGAIN = frozenset(
    {_E.COORDINATOR_LOAD_IN_PROGRESS, _E.UNSTABLE_OFFSET_COMMIT, _E.NETWORK_EXCEPTION, _E.REQUEST_TIMED_OUT}
)
_FORGET = frozenset({_E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR})
_UNKNOWN_TOPIC = frozenset({_E.UNKNOWN_TOPIC_OR_PARTITION, _E.UNKNOWN_TOPIC_ID})


def initialise(turn: Turn) -> bool:
    """Give committed offsets to the partitions without a position; true if nothing is left to be looked up. Throws what
    the look-up has met (K-POS-01)."""
    missing = turn.reader.initializing
    if not missing:
        return True
    if turn.client is Client.CLASSIC:
        drop_other(turn, missing)
        turn.check_coordinator(waits=True)
    lookup = turn.reader.lookups.get(Purpose.POSITIONS)
    if lookup is None or not (_one_for_all(turn) or _same(turn, lookup, missing)):
        deadline = turn.now + turn.reader.settings.default_api_timeout_ms
        lookup = begin(turn, Purpose.POSITIONS, missing, deadline)
    else:
        lookup = go_on(turn, Purpose.POSITIONS)
    usable = _usable(turn, lookup)
    turn.wake()  # it looks at the network here, whatever has come already
    if not usable:
        return False
    drop(turn, Purpose.POSITIONS)
    if lookup.problem is not None:
        raise Thrown(lookup.problem)
    take(turn, lookup)
    return True


def take(turn: Turn, lookup: Lookup) -> None:
    """Partitions without a position begin where the group has committed (K-POS-01)."""
    for partition, found in (lookup.found or {}).items():
        state = turn.reader.partitions.get(partition)
        if found is not None and turn.client is Client.CONSUMER:  # K-POS-08: whatever has become of the partition
            turn.saw_epoch(partition, found.leader_epoch)
        if found is None or state is None or state.state is not FetchState.INITIALIZING:
            continue  # K-POS-08: gone meanwhile, or the application has said where to read
        if turn.client is Client.CONSUMER and partition not in turn.reader.initializing:
            continue  # about to be revoked or lost
        turn.saw_epoch(partition, found.leader_epoch)
        turn.place(partition, Position(found.offset, found.leader_epoch, turn.leader(partition)))


def _one_for_all(turn: Turn) -> bool:
    """A call of the old consumer asks itself once, when it begins, whether a look-up is its own (K-POS-08)."""
    return turn.client is Client.CLASSIC and turn.reader.waiting is not None and turn.reader.waiting.looked


def _usable(turn: Turn, lookup: Lookup) -> bool:
    """Whether the look-up is over; the old consumer makes sure of the coordinator before it looks at an answer."""
    if not lookup.over:
        return False
    return turn.client is not Client.CLASSIC or turn.coordinator_known()


def _identity(turn: Turn) -> tuple[str, int]:
    """Who asks: to a classic member a look-up is another one in another generation (K-POS-08)."""
    membership = turn.reader.membership
    if turn.client is Client.CONSUMER or membership.phase is not Phase.STABLE:
        return "", -1
    return membership.identity


def _same(turn: Turn, lookup: Lookup, partitions: tuple[TopicPartition, ...]) -> bool:
    return frozenset(lookup.partitions) == frozenset(partitions) and lookup.identity == _identity(turn)


def drop_other(turn: Turn, partitions: tuple[TopicPartition, ...]) -> None:
    """What was looked up for others is forgotten before the coordinator is looked at, and so whatever comes of that
    (K-POS-08)."""
    if not _one_for_all(turn):
        for key, lookup in tuple(turn.reader.lookups.items()):
            if not _same(turn, lookup, partitions):
                drop(turn, key)


def begin(turn: Turn, key: LookupKey, partitions: tuple[TopicPartition, ...], deadline_ms: int) -> Lookup:
    """Start a look-up, instead of one that was for something else; the old consumer has one at a time, and who asks for
    the same shares it, whatever it is for (K-POS-08). The new one has several, and who asks for the same waits for the
    first (N-CMT-04)."""
    fresh = Lookup(partitions, _identity(turn), deadline_ms)
    if turn.client is Client.CONSUMER:
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
                return go_on(turn, key)
    _put(turn, key, fresh)
    return go_on(turn, key)


def go_on(turn: Turn, key: LookupKey) -> Lookup:
    """Send a look-up that waits for the coordinator or a back-off, if it may go now."""
    lookup = turn.reader.lookups[key]
    waits = lookup.request_id is not None or lookup.over or lookup.shares is not None
    waits |= turn.client is Client.CONSUMER and turn.reader.parting
    if waits or (lookup.retry_at is not None and turn.now < lookup.retry_at) or not turn.coordinator_known():
        return lookup
    names = ids_of(turn, lookup.partitions)
    topics: dict[str, list[int]] = {}
    for each in lookup.partitions:
        topics.setdefault(each.topic, []).append(each.partition)
    membership = turn.reader.membership
    known = turn.client is Client.CONSUMER and membership.epoch > 0  # N-CMT-04: both or neither
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
    """Take the answer in; true if it says that this is no coordinator, whoever may wait for it. ``body`` None: no
    answer has come."""
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
    """The whole group's answer is an error (K-OFF-01, N-CMT-04)."""
    stale = error is _E.STALE_MEMBER_EPOCH and turn.client is Client.CONSUMER and turn.reader.membership.epoch > 0
    if error in _AGAIN or error in _FORGET or stale:
        _again(turn, key, lookup)
    else:
        plain = {_E.GROUP_AUTHORIZATION_FAILED}
        if turn.client is Client.CONSUMER:  # N-CMT-04
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
    else:  # with something unknown: what is missing counts as not committed (N-CMT-04)
        _end(turn, key, replace(lookup, found=found))


@varies
def unknown_passes(turn: Turn) -> bool:
    """Whether a topic that the coordinator does not know is asked for again: to the new consumer it may be so new that
    only the client has heard of it (N-CMT-04)."""
    return turn.client is Client.CONSUMER


def _again(turn: Turn, key: LookupKey, lookup: Lookup) -> None:
    """After a back-off, but for those of the new consumer whose time is over (N-POLL-03)."""
    sharing = [other for other, each in turn.reader.lookups.items() if each.shares == key]
    over = [each for each in sharing if turn.now >= turn.reader.lookups[each].deadline_ms]
    late = Problem(ProblemKind.TIMEOUT)
    for each in over:
        _put(turn, each, replace(turn.reader.lookups[each], shares=None, problem=late))
    left = [each for each in sharing if each not in over]
    if turn.client is Client.CONSUMER and turn.now >= lookup.deadline_ms:
        if left:
            pass_on(turn, key, lookup, left)
        _put(turn, key, replace(lookup, request_id=None, problem=late))
        return
    retry_at = turn.now + turn.backoff(lookup.attempts)
    lookup = replace(lookup, request_id=None, attempts=lookup.attempts + 1, retry_at=retry_at)
    rest = {other: each for other, each in turn.reader.lookups.items() if other != key}
    turn.reader = turn.reader._replace(lookups={**rest, key: lookup})  # it goes out after those that wait already
    if left:
        pass_on(turn, key, lookup, left)


@varies
def pass_on(turn: Turn, key: LookupKey, lookup: Lookup, sharing: list[LookupKey]) -> None:
    """Who came last asks next, and the others wait for that; it has its own back-off, or none yet (N-CMT-04)."""
    *others, last = sharing
    rest = {other: each for other, each in turn.reader.lookups.items() if other != key and other not in sharing}
    waiting = {other: replace(turn.reader.lookups[other], shares=last) for other in reversed(others)}
    first = replace(turn.reader.lookups[last], shares=None)
    turn.reader = turn.reader._replace(lookups={**rest, last: first, **waiting, key: replace(lookup, shares=last)})


def _end(turn: Turn, key: LookupKey, lookup: Lookup) -> None:
    """It has brought something, to those too who share it."""
    _put(turn, key, replace(lookup, request_id=None))
    for other, each in turn.reader.lookups.items():
        if each.shares == key:
            _put(turn, other, replace(each, shares=None, found=lookup.found, problem=lookup.problem))


def forsake(turn: Turn, keys: list[LookupKey]) -> None:
    """These wait for themselves, which is until their time is over."""
    for key in keys:
        _put(turn, key, replace(turn.reader.lookups[key], shares=key))


def _put(turn: Turn, key: LookupKey, lookup: Lookup) -> Lookup:
    turn.reader = turn.reader._replace(lookups={**turn.reader.lookups, key: lookup})
    return lookup


def drop(turn: Turn, key: LookupKey) -> None:
    """Nobody waits for it any more. Who shares it takes it over."""
    rest = dict(turn.reader.lookups)
    lookup = rest.pop(key, None)
    heirs = [other for other, each in rest.items() if each.shares == key]
    if lookup is not None and heirs:
        for other in heirs:
            rest[other] = replace(rest[other], shares=heirs[0])
        rest[heirs[0]] = replace(lookup, deadline_ms=rest[heirs[0]].deadline_ms)
    turn.reader = turn.reader._replace(lookups=rest)


def blocks(turn: Turn) -> bool:
    """Whether the old consumer waits for what is committed, and looks at nothing else meanwhile."""
    lookup = turn.reader.lookups.get(Purpose.POSITIONS)
    missing = turn.reader.initializing
    if turn.client is not Client.CLASSIC or lookup is None or not missing:
        return False
    if not (_one_for_all(turn) or _same(turn, lookup, missing)):
        return False
    turn.check_coordinator()
    return not _usable(turn, go_on(turn, Purpose.POSITIONS))


def taken(turn: Turn, purpose: Purpose) -> Lookup | None:
    """A look-up that is over, which is forgotten with this."""
    lookup = turn.reader.lookups.get(purpose)
    if lookup is None or not _usable(turn, lookup):
        return None
    drop(turn, purpose)
    return lookup


@varies
def forgets(turn: Turn) -> bool:
    """Whether a look-up is given up with one of its partitions. Who assigns by hand had them all the time; the old
    consumer shares a look-up as long as it is for the same ones (K-POS-08)."""
    return turn.client is not Client.CLASSIC or turn.reader.mode.automatic


def forget(turn: Turn) -> None:
    """What is looked up for a partition that was taken away does not count if it comes back."""
    lookup = turn.reader.lookups.get(Purpose.POSITIONS)
    if lookup is not None and not turn.reader.partitions.keys() >= set(lookup.partitions):
        drop(turn, Purpose.POSITIONS)


def give_up(turn: Turn) -> None:
    """The call that asked waits no longer. What the old consumer has asked for may still serve the next who asks."""
    lookup = turn.reader.lookups.get(Purpose.CALL)
    drop(turn, Purpose.CALL)
    if lookup is not None and lookup.retry_at is None and turn.client is not Client.CONSUMER:
        _put(turn, Purpose.POSITIONS, lookup)


def fail(turn: Turn, problem: Problem) -> None:
    """The coordinator cannot be looked up: look-ups that wait for it fail."""
    for key, lookup in turn.reader.lookups.items():
        if lookup.request_id is None and not lookup.over and lookup.shares is None:
            _end(turn, key, replace(lookup, problem=problem))

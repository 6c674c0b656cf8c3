"""The steps of a member that change only itself, its producer, and its messages in flight."""

from __future__ import annotations

from collections.abc import Iterator

from . import rules
from .config import OffsetsConfig
from .state import UNKNOWN, Decision, Lane, Lease, Log, Member, Producer, Reply, Request


def fresh(config: OffsetsConfig) -> Member:
    """Return a member that knows nothing."""
    return Member((UNKNOWN,) * len(config.parts))


def ready(member: Member) -> bool:
    """Return whether the member can act: it waits for nothing and has no failed transaction to abort."""
    return not member.waiting and member.begun != "failed"


def learned(config: OffsetsConfig, number: int, lane: Lane, decision: Decision) -> Lane:
    """Return the lane after it learned of the last decision."""
    granted = decision.grant[number]
    kept = rules.keeps(lane.lease, decision, granted)
    member = lane.member
    positions = tuple(at if part in kept else UNKNOWN for part, at in zip(config.parts, member.positions, strict=True))
    lease = Lease(decision.epoch, rules.taken(lane.lease, granted))
    return lane._replace(lease=lease, member=member._replace(positions=positions, dirty=member.dirty & kept))


def learns(config: OffsetsConfig, number: int, lane: Lane, decision: Decision) -> Lane | None:
    """Return the lane after ``MemberLearnsDecision``, or None if that is not possible."""
    member = lane.member
    if lane.lease.epoch < decision.epoch and not member.waiting and member.begun == "none":
        return learned(config, number, lane, decision)
    return None


def sent(lane: Lane, request: Request) -> Lane:
    """Return the lane with the request in flight."""
    waiting = lane.member._replace(waiting=True)
    return lane._replace(member=waiting, requests=lane.requests | {request})


def processed(config: OffsetsConfig, lane: Lane, part: int) -> Lane | None:
    """Return the lane after one more record of the partition, or None if there is none or the member may not process
    it."""
    member, name = lane.member, config.parts[part]
    at = member.positions[part]
    if not ready(member) or name not in lane.lease.resources or at is UNKNOWN or at == config.max_offset:
        return None
    positions = (*member.positions[:part], at + 1, *member.positions[part + 1 :])
    return lane._replace(member=member._replace(positions=positions, dirty=member.dirty | {name}))


def fetches(config: OffsetsConfig, lane: Lane, part: int) -> Lane | None:
    """Return the lane after a fetch of the position, or None if the member does not need one."""
    member = lane.member
    if not ready(member) or config.parts[part] not in lane.lease.resources or member.positions[part] is not UNKNOWN:
        return None
    return sent(lane, Request("Fetch", True, lane.lease.epoch, part))


def commits(config: OffsetsConfig, lane: Lane, part: int) -> Lane | None:
    """Return the lane after a plain commit, or None if there is nothing to commit."""
    offset = lane.member.positions[part]
    if not ready(lane.member) or config.parts[part] not in lane.member.dirty or offset is None:
        return None
    return sent(lane, Request("Commit", True, lane.lease.epoch, part, offset))


def commits_in_transaction(config: OffsetsConfig, lane: Lane, part: int) -> Lane | None:
    """Return the lane after a commit in its transaction, which that may begin. None if there is nothing to commit, its
    last transaction is not over, or no transaction is left."""
    member, producer = lane.member, lane.producer
    offset = member.positions[part]
    if not ready(member) or config.parts[part] not in member.dirty or offset is None:
        return None
    if member.begun == "none":
        if producer.state != "none" or producer.number == config.transactions:
            return None
        producer = producer._replace(number=producer.number + 1, state="open")
    began = lane._replace(member=member._replace(begun="open"), producer=producer)
    return sent(began, Request("TxnCommit", True, lane.lease.epoch, part, offset, producer.number))


def aborting(producer: Producer) -> Producer:
    """Return a producer whose transaction will be undone."""
    nothing = (0,) * len(producer.offsets)
    return producer._replace(state="aborting", offsets=nothing, aborted=producer.aborted | {producer.number})


def aborts(config: OffsetsConfig, lane: Lane) -> Lane | None:
    """Return the lane after it aborted its transaction, or found it aborted, and lost its positions. None outside of a
    transaction."""
    if lane.member.begun == "none" or lane.member.waiting:
        return None
    producer = aborting(lane.producer) if lane.producer.state == "open" else lane.producer
    return lane._replace(member=fresh(config), producer=producer)


def ends(lane: Lane) -> tuple[Lane, tuple[int, ...]] | None:
    """Return the lane after it committed its transaction, and the offsets that are then promised. None if it may not
    commit."""
    member, producer = lane.member, lane.producer
    if member.begun != "open" or member.waiting or producer.state != "open":
        return None
    nothing = (0,) * len(producer.offsets)
    over = producer._replace(state="committing", offsets=nothing)
    return lane._replace(member=member._replace(begun="none"), producer=over), producer.offsets


def answered(config: OffsetsConfig, number: int, lane: Lane, decision: Decision) -> Iterator[tuple[Reply, Lane]]:
    """Yield each answer that may arrive now, and the lane after it."""
    for reply in sorted(lane.replies):
        member = lane.member._replace(waiting=False)
        if reply.error != "NONE":
            member = member._replace(begun="failed" if member.begun == "open" else member.begun)
        elif reply.api == "Fetch":
            positions = [*member.positions]
            positions[reply.part] = reply.entry.offset
            member = member._replace(positions=tuple(positions))
        else:
            member = member._replace(dirty=member.dirty - {config.parts[reply.part]})
        after = lane._replace(member=member, replies=lane.replies - {reply})
        if reply.error == "STALE_MEMBER_EPOCH" and member.begun == "none":
            after = learned(config, number, after, decision)
        yield reply, after


def unheard(lane: Lane, number: int, log: Log) -> tuple[Lane, Log]:
    """Return lane and log after the member has stopped waiting: no answer reaches it any more."""
    requests = frozenset(request._replace(awaited=False) for request in lane.requests)
    batches = tuple(
        batch._replace(answers=frozenset(each for each in batch.answers if each[0] != number)) for batch in log.open
    )
    return lane._replace(requests=requests, replies=frozenset()), log._replace(open=batches)


def deliverable(config: OffsetsConfig, lane: Lane, api: str) -> Iterator[Request]:
    """Yield the requests of that kind that may arrive now. One whose answer is awaited comes after those given up."""
    late = any(not request.awaited for request in lane.requests)
    for request in sorted(lane.requests):
        if request.api == api and (config.reorder or not request.awaited or not late):
            yield request

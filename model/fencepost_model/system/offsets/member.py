"""The steps of a member that change only itself, its producer, and its messages in flight."""

from __future__ import annotations

from collections.abc import Iterator

from .. import environment
from . import rules
from .config import OffsetsConfig
from .state import UNKNOWN, Decision, Endpoint, Lease, Log, Member, Producer, Reply, Request


def new_member(config: OffsetsConfig) -> Member:
    """Return a member that knows nothing."""
    return Member((UNKNOWN,) * len(config.parts))


def ready(member: Member) -> bool:
    """Return whether the member can act: it waits for nothing and has no failed transaction to abort."""
    return not member.waiting and member.begun != "failed"


def after_learning(config: OffsetsConfig, number: int, endpoint: Endpoint, decision: Decision) -> Endpoint:
    """Return the endpoint after it learned of the last decision."""
    granted = decision.grant[number]
    kept = rules.kept_partitions(endpoint.lease, decision, granted)
    member = endpoint.member
    positions = tuple(at if part in kept else UNKNOWN for part, at in zip(config.parts, member.positions, strict=True))
    lease = Lease(decision.epoch, rules.new_lease(endpoint.lease, granted))
    return endpoint._replace(lease=lease, member=member._replace(positions=positions, dirty=member.dirty & kept))


def learn_decision(config: OffsetsConfig, number: int, endpoint: Endpoint, decision: Decision) -> Endpoint | None:
    """Return the endpoint after ``MemberLearnsDecision``, or None if that is not possible."""
    member = endpoint.member
    if endpoint.lease.epoch < decision.epoch and not member.waiting and member.begun == "none":
        return after_learning(config, number, endpoint, decision)
    return None


def after_sending(endpoint: Endpoint, request: Request) -> Endpoint:
    """Return the endpoint with the request in flight."""
    waiting = endpoint.member._replace(waiting=True)
    return endpoint._replace(member=waiting, requests=endpoint.requests | {request})


def process(config: OffsetsConfig, endpoint: Endpoint, part: int) -> Endpoint | None:
    """Return the endpoint after one more record of the partition, or None if there is none or the member may not
    process it."""
    member, name = endpoint.member, config.parts[part]
    at = member.positions[part]
    if not ready(member) or name not in endpoint.lease.resources or at is UNKNOWN or at == config.max_offset:
        return None
    positions = (*member.positions[:part], at + 1, *member.positions[part + 1 :])
    return endpoint._replace(member=member._replace(positions=positions, dirty=member.dirty | {name}))


def fetch(config: OffsetsConfig, endpoint: Endpoint, part: int) -> Endpoint | None:
    """Return the endpoint after a fetch of the position, or None if the member does not need one."""
    member = endpoint.member
    if not ready(member) or config.parts[part] not in endpoint.lease.resources or member.positions[part] is not UNKNOWN:
        return None
    return after_sending(endpoint, Request("Fetch", True, endpoint.lease.epoch, part))


def commit(config: OffsetsConfig, endpoint: Endpoint, part: int) -> Endpoint | None:
    """Return the endpoint after a plain commit, or None if there is nothing to commit."""
    offset = endpoint.member.positions[part]
    if not ready(endpoint.member) or config.parts[part] not in endpoint.member.dirty or offset is None:
        return None
    return after_sending(endpoint, Request("Commit", True, endpoint.lease.epoch, part, offset))


def commit_in_transaction(config: OffsetsConfig, endpoint: Endpoint, part: int) -> Endpoint | None:
    """Return the endpoint after a commit in its transaction, which that may begin. None if there is nothing to commit,
    its last transaction is not over, or no transaction is left."""
    member, producer = endpoint.member, endpoint.producer
    offset = member.positions[part]
    if not ready(member) or config.parts[part] not in member.dirty or offset is None:
        return None
    if member.begun == "none":
        if producer.state != "none" or producer.number == config.transactions:
            return None
        producer = producer._replace(number=producer.number + 1, state="open")
    began = endpoint._replace(member=member._replace(begun="open"), producer=producer)
    return after_sending(began, Request("TxnCommit", True, endpoint.lease.epoch, part, offset, producer.number))


def aborting(producer: Producer) -> Producer:
    """Return a producer whose transaction will be undone."""
    nothing = (0,) * len(producer.offsets)
    return producer._replace(state="aborting", offsets=nothing, aborted=producer.aborted | {producer.number})


def abort(config: OffsetsConfig, endpoint: Endpoint) -> Endpoint | None:
    """Return the endpoint after it aborted its transaction, or found it aborted, and lost its positions. None outside
    of a transaction."""
    if endpoint.member.begun == "none" or endpoint.member.waiting:
        return None
    producer = aborting(endpoint.producer) if endpoint.producer.state == "open" else endpoint.producer
    return endpoint._replace(member=new_member(config), producer=producer)


def commit_transaction(endpoint: Endpoint) -> tuple[Endpoint, tuple[int, ...]] | None:
    """Return the endpoint after it committed its transaction, and the offsets that are then promised. None if it may
    not commit."""
    member, producer = endpoint.member, endpoint.producer
    if member.begun != "open" or member.waiting or producer.state != "open":
        return None
    nothing = (0,) * len(producer.offsets)
    over = producer._replace(state="committing", offsets=nothing)
    return endpoint._replace(member=member._replace(begun="none"), producer=over), producer.offsets


def answered(
    config: OffsetsConfig, number: int, endpoint: Endpoint, decision: Decision
) -> Iterator[tuple[Reply, Endpoint]]:
    """Yield each answer that may arrive now, and the endpoint after it."""
    for reply in sorted(endpoint.replies):
        member = endpoint.member._replace(waiting=False)
        if reply.error != "NONE":
            member = member._replace(begun="failed" if member.begun == "open" else member.begun)
        elif reply.api == "Fetch":
            positions = [*member.positions]
            positions[reply.part] = reply.entry.offset
            member = member._replace(positions=tuple(positions))
        else:
            member = member._replace(dirty=member.dirty - {config.parts[reply.part]})
        after = endpoint._replace(member=member, replies=endpoint.replies - {reply})
        if reply.error == "STALE_MEMBER_EPOCH" and member.begun == "none":
            after = after_learning(config, number, after, decision)
        yield reply, after


def stop_listening(endpoint: Endpoint, number: int, log: Log) -> tuple[Endpoint, Log]:
    """Return endpoint and log after the member has stopped waiting: no answer reaches it any more."""
    left = log._replace(open=environment.forget_answers(log.open, number))
    return environment.stop_listening(endpoint), left


def deliverable(config: OffsetsConfig, endpoint: Endpoint, api: str) -> Iterator[Request]:
    """Yield the requests of that kind that may arrive now."""
    return (each for each in environment.deliverable(endpoint.requests, config.reorder) if each.api == api)

"""Positions: where reading begins, and whether it may continue there (8.7, step 7 of K-POLL-01).

The position of a partition is the offset of the next record that a poll returns. It moves when records are returned
(``handing``), not when they are fetched. Only a *valid* position is fetched from. A partition is in one of four states
(``partition``):

- ``INITIALIZING``: it was just assigned. The group's committed offset becomes the position (``committed``). If there is
  none, the reset policy decides, and the partition goes to ``AWAIT_RESET``; with the policy ``none`` the poll throws.
- ``AWAIT_RESET``: the leader is asked for the offset that the policy means: the log's start, its end, or a time.
- ``AWAIT_VALIDATION``: there is a position, and the epoch of the record before it is known, but the leader or its epoch
  is new. A new leader may have a shorter log: a former leader accepted records that were never replicated. So the
  leader is asked where its log ends in that epoch. If the log reaches the position, it is valid. If not, the log was
  truncated, and the position moves back to the point of truncation, or the policy decides (KIP-320).
- ``FETCHING``: the position is valid.

Each request can be overtaken. While it is in flight, the application may seek, a rebalance may take the partition away
and bring it back, and metadata may name another leader. So each request remembers what it was asked for: the policy of
a reset, the position of a validation, the offset of a fetch. A response counts only if the partition still wants
exactly that. A seek therefore needs no cancellation: it changes the state, and late responses no longer fit.

Responses do not throw. A failure is kept, and the next pass throws it (``reset_problem``, ``validation_problem``),
because Kafka's consumers throw only in calls of the application. Retriable errors set ``retry_at`` and ask for new
metadata. While a request is in flight, ``retry_at`` is the request timeout, so each leader is asked once.
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.partitions import TopicPartition
from fencepost.quirks import varies
from fencepost_consumer import committed
from fencepost_consumer.broker import (
    AskedEpoch,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from fencepost_consumer.events import Problem, ProblemKind
from fencepost_consumer.partition import FetchState, Position
from fencepost_consumer.settings import Reset
from fencepost_consumer.state import SentReset, SentValidation
from fencepost_consumer.turn import Turn
from fencepost_consumer.working_copy import Thrown

#: Error of a leader that fails the whole response; any other error is retried.
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def update(turn: Turn) -> None:
    """Run one pass of position look-ups: validate, set committed ones, reset the rest (K-POLL-01). The new consumer's
    is in ``background``.

    Without leader epochs there is nothing to validate. kafka-python resets first, and each of its steps waits for the
    previous one (K-PY-02)."""
    if turn.uses_leader_epochs:
        validate(turn)
    else:
        send_resets(turn)
        if any(state.state is FetchState.AWAIT_RESET for state in turn.reader.partitions.values()):
            return
    fill(turn)


def fill(turn: Turn) -> None:
    """Run the rest of the pass after validation: set committed positions, reset the others."""
    if all(state.valid for state in turn.reader.partitions.values()):
        return
    if turn.reader.settings.group_id and not committed.initialise(turn):
        return
    reset_initializing(turn, turn.reader.initializing)
    send_resets(turn)


# --- reset ---


def reset_initializing(turn: Turn, partitions: tuple[TopicPartition, ...]) -> None:
    """Reset partitions without a committed offset by the policy; throw if there is none (K-POS-02)."""
    policy = turn.reader.settings.reset
    missing = tuple(each for each in turn.reader.initializing if each in partitions)
    if missing and policy.reset is Reset.NONE:
        raise Thrown(Problem(ProblemKind.NO_OFFSET, partitions=missing))
    for each in missing:
        turn.change(each, turn.reader.partitions[each].await_reset(policy))  # K-POS-02


def send_resets(turn: Turn) -> None:
    """Ask the leaders for reset offsets, each at most once per request timeout (K-POS-03)."""
    problem = turn.reader.reset_problem
    if problem is not None:
        turn.reader = turn.reader._replace(reset_problem=None)
        raise Thrown(problem)
    reader = turn.reader
    wanted = {
        each: state.reset
        for each, state in reader.partitions.items()
        if state.state is FetchState.AWAIT_RESET and state.reset is not None and not state.backs_off(turn.now)
    }
    for node, partitions in turn.by_leader({each: turn.leader(each) for each in wanted}).items():
        if turn.left_alone(node):
            unsent(turn, partitions)
            continue
        put_off(turn, partitions, reader.settings.request_timeout_ms)
        policies = {each: wanted[each] for each in partitions}
        body = ListOffsetsRequest(
            tuple((each, policy.timestamp(turn.now)) for each, policy in policies.items()),
            read_committed=reader.settings.read_committed,
        )
        turn.send_to(node, body, SentReset(node, policies))


def unsent(turn: Turn, partitions: list[TopicPartition]) -> None:
    """Handle a leader that has just failed to respond, so that no request is sent to it (K-FETCH-01)."""
    if turn.loses_requests_to_unavailable:
        _retry(turn, partitions)


def put_off(turn: Turn, partitions: list[TopicPartition], delay_ms: int) -> None:
    """Delay the next request to the leaders of these partitions, if still assigned."""
    for each in partitions:
        state = turn.reader.partitions.get(each)
        if state is not None:
            turn.change(each, replace(state, retry_at=turn.now + delay_ms))


def reset_answered(turn: Turn, sent: SentReset, body: ListOffsetsResponse | None) -> None:
    """Handle reset offsets from a leader; ``body`` None: no response arrived. Drop the result for a partition that has
    a position meanwhile, or another policy (K-POS-03). If a topic is denied, the whole response is dropped."""
    rows = [] if body is None else [each for each in body.partitions if each.partition in sent.policies]
    denied, again = [each.partition for each in rows if each.error_code is _DENIED], list(sent.policies)
    for each in () if denied else rows:
        if each.error_code is ErrorCode.NONE:
            again.remove(each.partition)
            state = turn.reader.partitions.get(each.partition)
            leader = turn.leader(each.partition)  # the leader known before this epoch was seen
            turn.saw_epoch(each.partition, each.leader_epoch)
            if each.offset < 0 or state is None or state.state is not FetchState.AWAIT_RESET:
                continue
            if state.reset == sent.policies[each.partition]:
                turn.place(each.partition, Position(each.offset, leader=leader))
    _retry(turn, again)
    if denied:
        problem = Problem(ProblemKind.API, _DENIED, tuple(denied))
        turn.reader = turn.reader._replace(reset_problem=turn.reader.reset_problem or problem)


def _retry(turn: Turn, partitions: list[TopicPartition]) -> None:
    if partitions:
        put_off(turn, partitions, turn.reader.settings.retry_backoff_ms)
        turn.want_metadata()


# --- validation ---


def validate(turn: Turn) -> None:
    """Compare positions with new metadata, and ask the leaders to validate uncertain ones (K-POS-07)."""
    check(turn)
    hold_against_metadata(turn)
    unsure = {
        each: state.position
        for each, state in turn.reader.partitions.items()
        if state.state is FetchState.AWAIT_VALIDATION and state.position is not None and not state.backs_off(turn.now)
    }
    for node, partitions in turn.by_leader({each: position.leader for each, position in unsure.items()}).items():
        if turn.loses_requests_to_unavailable and turn.left_alone(node):
            unsent(turn, partitions)
            continue
        put_off(turn, partitions, turn.reader.settings.request_timeout_ms)
        positions = {each: unsure[each] for each in partitions}
        asked = tuple(
            AskedEpoch(each, current_leader_epoch=position.leader.epoch or 0, leader_epoch=position.epoch or 0)
            for each, position in positions.items()
        )
        turn.send_to(node, OffsetForLeaderEpochRequest(asked), SentValidation(node, positions))


def check(turn: Turn) -> None:
    """Throw the failure of earlier validations (K-POS-07)."""
    problem = turn.reader.validation_problem
    if problem is not None:
        turn.reader = turn.reader._replace(validation_problem=None)
        raise Thrown(problem)


def hold_against_metadata(turn: Turn) -> None:
    """Mark positions whose leader has changed for validation (K-POS-07)."""
    if turn.reader.validated_version != turn.reader.metadata_version:
        turn.reader = turn.reader._replace(validated_version=turn.reader.metadata_version)
        for each, state in turn.reader.partitions.items():
            turn.change(each, state.led_by(turn.leader(each)))


def validation_answered(turn: Turn, sent: SentValidation, body: OffsetForLeaderEpochResponse | None) -> None:
    """Handle the end of the log in an epoch, as the leader sent it. At or after the position, the position is valid;
    before it, the log was truncated (K-POS-07). Results for an older position are dropped; if a topic is denied, all
    are."""
    rows = [] if body is None else [each for each in body.partitions if each.partition in sent.positions]
    denied, again = [each.partition for each in rows if each.error_code is _DENIED], list(sent.positions)
    truncated = []
    good = [] if denied else [each for each in rows if each.error_code is ErrorCode.NONE]
    for each in good:
        again.remove(each.partition)
    if body is None or denied:
        _retry(turn, again)
    elif not asked_again(turn, again, len(sent.positions)):
        return
    for each in good:
        if not _complete(turn, each.partition, sent.positions[each.partition], each.leader_epoch, each.end_offset):
            truncated.append(each.partition)
    problem = Problem(ProblemKind.API, _DENIED, tuple(denied)) if denied else None
    if truncated:
        problem = Problem(ProblemKind.TRUNCATION, partitions=tuple(truncated))
    if problem is not None:
        turn.reader = turn.reader._replace(validation_problem=turn.reader.validation_problem or problem)


@varies
def asked_again(turn: Turn, partitions: list[TopicPartition], asked: int) -> bool:
    """Ask again about the partitions that a response left open; ``asked``: number of partitions in the request. Return
    whether the rest of the response counts (K-POS-07)."""
    del asked
    _retry(turn, partitions)
    return True


def _complete(turn: Turn, partition: TopicPartition, asked: Position, epoch: int, end: int) -> bool:
    """Finish the validation of a position. Return false if the log was truncated and there is no reset policy."""
    state, policy = turn.reader.partitions.get(partition), turn.reader.settings.reset
    if state is None or state.state is not FetchState.AWAIT_VALIDATION or state.position != asked:
        return True
    if end >= 0 and epoch >= 0 and end >= asked.offset:
        turn.change(partition, state.validated())
    elif policy.reset is Reset.NONE:
        return False
    elif end < 0 or epoch < 0:
        turn.change(partition, state.await_reset(policy))
    else:
        turn.change(partition, state.seek_validated(Position(end, epoch, asked.leader)))
    return True

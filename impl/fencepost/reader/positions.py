"""Positions: where reading begins, and whether it may go on from there (8.7, step 7 of K-POLL-01)."""

from __future__ import annotations

from dataclasses import replace

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.partitions import TopicPartition
from fencepost.quirks import varies

from . import committed
from .broker import (
    AskedEpoch,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from .events import Problem, ProblemKind
from .partition import FetchState, Position
from .settings import Client, Reset
from .state import SentReset, SentValidation
from .turn import Thrown, Turn

#: Answers of a leader that concern all of a topic's readers; any other error is tried again.
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def update(turn: Turn) -> None:
    """One turn of looking for positions: check, take committed ones, reset the rest (K-POLL-01); that of the new
    consumer is in ``background``.

    kafka-python resets first and checks nothing, and each of its steps waits for the one before (K-PY-02)."""
    if turn.client is Client.KAFKA_PYTHON:
        send_resets(turn)
        if any(state.state is FetchState.AWAIT_RESET for state in turn.reader.partitions.values()):
            return
    else:
        validate(turn)
    fill(turn)


def fill(turn: Turn) -> None:
    """The rest of it, once positions are checked: take committed ones, reset the others."""
    if all(state.valid for state in turn.reader.partitions.values()):
        return
    if turn.reader.settings.group_id and not committed.initialise(turn):
        return
    reset_initializing(turn, turn.reader.initializing)
    send_resets(turn)


# --- reset ---


def reset_initializing(turn: Turn, partitions: tuple[TopicPartition, ...]) -> None:
    """Where nothing is committed of these the policy decides; without one it is thrown (K-POS-02)."""
    policy = turn.reader.settings.reset
    missing = tuple(each for each in turn.reader.initializing if each in partitions)
    if missing and policy.reset is Reset.NONE:
        raise Thrown(Problem(ProblemKind.NO_OFFSET, partitions=missing))
    for each in missing:
        turn.change(each, turn.reader.partitions[each].await_reset(policy))  # K-POS-02


def send_resets(turn: Turn) -> None:
    """Ask the leaders where to begin, each at most once in a request's timeout (K-POS-03)."""
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
    """Their leader has just not answered (K-FETCH-01): the old consumer does not ask it; to the new one the question is
    lost at once."""
    if turn.client is Client.CONSUMER:
        _retry(turn, partitions)


def put_off(turn: Turn, partitions: list[TopicPartition], delay_ms: int) -> None:
    """The leaders of those that are still assigned are not asked again before this has passed."""
    for each in partitions:
        state = turn.reader.partitions.get(each)
        if state is not None:
            turn.change(each, replace(state, retry_at=turn.now + delay_ms))


def reset_answered(turn: Turn, sent: SentReset, body: ListOffsetsResponse | None) -> None:
    """The leader has said where to begin; ``body`` None: it has not answered. An answer to who has moved meanwhile, or
    is to be reset by another policy, is dropped (K-POS-03). If a topic of it is denied none of it counts."""
    rows = [] if body is None else [each for each in body.partitions if each.partition in sent.policies]
    denied, again = [each.partition for each in rows if each.error_code is _DENIED], list(sent.policies)
    for each in () if denied else rows:
        if each.error_code is ErrorCode.NONE:
            again.remove(each.partition)
            state = turn.reader.partitions.get(each.partition)
            leader = turn.leader(each.partition)  # as it was known before this epoch was heard of
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
    """Hold positions against new metadata, and ask the leaders about those that are unsure (K-POS-07)."""
    check(turn)
    hold_against_metadata(turn)
    unsure = {
        each: state.position
        for each, state in turn.reader.partitions.items()
        if state.state is FetchState.AWAIT_VALIDATION and state.position is not None and not state.backs_off(turn.now)
    }
    for node, partitions in turn.by_leader({each: position.leader for each, position in unsure.items()}).items():
        if turn.client is Client.CONSUMER and turn.left_alone(node):
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
    """Throw what the leaders have said of positions that do not hold (K-POS-07)."""
    problem = turn.reader.validation_problem
    if problem is not None:
        turn.reader = turn.reader._replace(validation_problem=None)
        raise Thrown(problem)


def hold_against_metadata(turn: Turn) -> None:
    """Positions whose leader is another one since are unsure (K-POS-07)."""
    if turn.reader.validated_version != turn.reader.metadata_version:
        turn.reader = turn.reader._replace(validated_version=turn.reader.metadata_version)
        for each, state in turn.reader.partitions.items():
            turn.change(each, state.led_by(turn.leader(each)))


def validation_answered(turn: Turn, sent: SentValidation, body: OffsetForLeaderEpochResponse | None) -> None:
    """The leader has said where its log ends for the epoch: behind the position all is well, before it the log was cut
    off (K-POS-07). Answers about another position are dropped, and all of them if a topic is denied."""
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
    """What an answer to a question about so many has left open is asked again; whether the rest of it counts
    (K-POS-07)."""
    del asked
    _retry(turn, partitions)
    return True


def _complete(turn: Turn, partition: TopicPartition, asked: Position, epoch: int, end: int) -> bool:
    """False if the log was cut off and there is no policy for it."""
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

"""The rules about offsets that a step shows, by its request, the kind of its group, and the result.

An error is answered in the step of its request, when the group is still unchanged. For accepted requests the records
decide, since the answer comes later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fencepost.protocol import events as ev
from fencepost.protocol import offset_messages as om
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.offset_records import ControlKey, OffsetCommitKey
from fencepost.protocol.records import GroupMetadataKey
from fencepost.protocol.view import GroupState, GroupView

from ...traces.answers import errors_of
from ...traces.observation import Observation

OFFSET_RULES = (
    *(f"O-COMMIT-{n:02}" for n in (1, 2, 3, 6, 8, 9, 20, 21, 22, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33)),
    *(f"O-TXN-{n:02}" for n in (1, 2, 3, 4, 5, 7, 8, 14)),
    *(f"O-FETCH-{n:02}" for n in (1, 3, 4, 5, 6, 7, 8, 10, 11, 13)),
    *(f"O-DEL-{n:02}" for n in (1, 2, 3, 4, 5, 6)),
    *(f"O-EXP-{n:02}" for n in (12, 20, 23, 26)),
)  # fmt: skip
_ELSEWHERE = (E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS)


class Groups:
    """The groups before the step."""

    def __init__(self, classic: Mapping[str, GroupView], consumer: Mapping[str, ConsumerGroupView]) -> None:
        self.classic = classic
        self.consumer = consumer

    def missing(self, name: str) -> bool:
        """Whether there is no group of this name."""
        return name not in self.classic and name not in self.consumer


def offset_rules_of(event: ev.Event, seen: Observation, groups: Groups) -> Iterator[str]:
    """Yield the ids of the rules that decided in this step."""
    if isinstance(event, ev.Request):
        codes = {code for reply in seen.replies if reply.request_id == event.id for code in errors_of(reply.body)}
        match event.body:
            case om.OffsetCommitRequest() as body:
                yield from _commit(body, event, seen, codes, groups)
            case om.TxnOffsetCommitRequest() as body:
                yield from _txn(body, event, seen, codes, groups)
            case om.OffsetFetchRequest() as body:
                yield from _fetch(body, event, seen, codes, groups)
            case om.OffsetDeleteRequest() as body:
                yield from _delete(body, seen, codes, groups)
            case _:
                pass
    if any(isinstance(record.key, ControlKey) for record in seen.records):
        yield "O-TXN-08"
    gone = [record.key for record in seen.records if record.value is None]
    if isinstance(event, ev.TimerFired) and event.key.kind is ev.TimerKind.EXPIRY:
        yield "O-EXP-26"
        if any(isinstance(key, OffsetCommitKey) for key in gone):
            yield "O-EXP-12"
        if any(isinstance(key, GroupMetadataKey) for key in gone):
            yield "O-EXP-20"
    if isinstance(event, ev.TopicsChanged) and gone:
        yield "O-EXP-23"


def _commit(
    body: om.OffsetCommitRequest, event: ev.Request, seen: Observation, codes: set[E], groups: Groups
) -> Iterator[str]:
    by_code = {
        E.GROUP_AUTHORIZATION_FAILED: "O-COMMIT-01",
        E.TOPIC_AUTHORIZATION_FAILED: "O-COMMIT-02",
        E.UNKNOWN_TOPIC_ID: "O-COMMIT-02",
        E.UNKNOWN_TOPIC_OR_PARTITION: "O-COMMIT-03",
        E.OFFSET_METADATA_TOO_LARGE: "O-COMMIT-08",
        E.GROUP_ID_NOT_FOUND: "O-COMMIT-21",
        E.REBALANCE_IN_PROGRESS: "O-COMMIT-27",
        E.UNSUPPORTED_VERSION: "O-COMMIT-31",
        E.STALE_MEMBER_EPOCH: "O-COMMIT-32",
        **dict.fromkeys(_ELSEWHERE, "O-COMMIT-06"),
    }
    yield from (by_code[code] for code in codes if code in by_code)
    group, consumers = groups.classic.get(body.group_id), groups.consumer.get(body.group_id)
    nobody = body.generation_id_or_member_epoch < 0 and not body.member_id and body.group_instance_id is None
    if E.UNKNOWN_MEMBER_ID in codes:
        yield "O-COMMIT-30" if consumers is not None else "O-COMMIT-26" if nobody else "O-COMMIT-25"
    if E.ILLEGAL_GENERATION in codes:
        missing = groups.missing(body.group_id)
        yield "O-COMMIT-22" if missing else "O-COMMIT-32" if consumers is not None else "O-COMMIT-25"
    if not seen.records:
        return
    yield "O-COMMIT-09"
    if groups.missing(body.group_id):
        yield "O-COMMIT-20"
    elif group is not None:
        yield "O-COMMIT-24" if group.state is GroupState.EMPTY else "O-COMMIT-28"
    else:
        yield "O-COMMIT-33" if consumers is not None and consumers.members else "O-COMMIT-29"


def _txn(
    body: om.TxnOffsetCommitRequest, event: ev.Request, seen: Observation, codes: set[E], groups: Groups
) -> Iterator[str]:
    denied = {E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, E.GROUP_AUTHORIZATION_FAILED, E.TOPIC_AUTHORIZATION_FAILED}
    if codes & (denied | {E.UNKNOWN_TOPIC_OR_PARTITION}):
        yield "O-TXN-01"
    if event.version < 2 and E.COORDINATOR_NOT_AVAILABLE in codes:
        yield "O-TXN-02"
    if E.OFFSET_METADATA_TOO_LARGE in codes:
        yield "O-TXN-14"
    decided = bool(seen.records) or bool(codes & {E.ILLEGAL_GENERATION, E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID})
    if decided:
        missing = groups.missing(body.group_id)
        yield "O-TXN-03" if missing else "O-TXN-04" if body.group_id in groups.classic else "O-TXN-05"
    if any(record.producer is not None for record in seen.records):
        yield "O-TXN-07"


def _fetch(
    body: om.OffsetFetchRequest, event: ev.Request, seen: Observation, codes: set[E], groups: Groups
) -> Iterator[str]:
    if codes & {E.GROUP_AUTHORIZATION_FAILED, E.TOPIC_AUTHORIZATION_FAILED}:
        yield "O-FETCH-01"
    if codes & set(_ELSEWHERE):
        yield "O-FETCH-10"
    if codes & {E.UNKNOWN_MEMBER_ID, E.STALE_MEMBER_EPOCH, E.UNKNOWN_SERVER_ERROR, E.ILLEGAL_GENERATION}:
        yield "O-FETCH-05"
        yield "O-FETCH-11"
    if event.version >= 10 and E.UNKNOWN_TOPIC_ID in codes:
        yield "O-FETCH-13"
    if body.require_stable:
        if E.UNSTABLE_OFFSET_COMMIT in codes or not codes:
            yield "O-FETCH-08"
        return
    for reply in seen.replies:
        if reply.request_id != event.id or not isinstance(reply.body, om.OffsetFetchResponse):
            continue
        yield "O-FETCH-07"
        for group in reply.body.groups:
            if group.error_code is E.NONE:
                yield "O-FETCH-03" if groups.missing(group.group_id) else "O-FETCH-04"
                if any(row.committed_offset < 0 for topic in group.topics for row in topic.partitions):
                    yield "O-FETCH-06"


def _delete(body: om.OffsetDeleteRequest, seen: Observation, codes: set[E], groups: Groups) -> Iterator[str]:
    by_code = {
        E.GROUP_AUTHORIZATION_FAILED: "O-DEL-01",
        E.TOPIC_AUTHORIZATION_FAILED: "O-DEL-01",
        E.UNKNOWN_TOPIC_OR_PARTITION: "O-DEL-01",
        E.INVALID_GROUP_ID: "O-DEL-02",
        E.GROUP_ID_NOT_FOUND: "O-DEL-03",
        E.NON_EMPTY_GROUP: "O-DEL-04",
        E.GROUP_SUBSCRIBED_TO_TOPIC: "O-DEL-05",
        **dict.fromkeys(_ELSEWHERE, "O-DEL-02"),
    }
    yield from (by_code[code] for code in codes if code in by_code)
    if seen.records or E.NONE in codes:
        yield "O-DEL-06"

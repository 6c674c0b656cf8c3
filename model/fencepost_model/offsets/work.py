"""Requests about offsets, ends of transactions, expiry and deleted topics, as operations of a coordinator (11.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkerRequest,
    WriteTxnMarkerResponse,
)
from fencepost.protocol.offset_records import ControlKey, ControlValue, Producer
from fencepost.protocol.records import GroupMetadataKey, Record

from ..classic.slots import CommittedView, Written
from ..classic.state import EXPIRY_KIND, Group, Operation, Timer
from ..consumer.state import ConsumerGroup, Image
from ..consumer.tombstones import of_group
from ..machines import PREPARING, STABLE
from .checks import AnyGroup, may_delete
from .clean import delete, expire, with_topics
from .commit import commit
from .fetch import fetch, question
from .rows import Early, Entry, Fetched, answered, commit_answer, group_error
from .state import Offsets, Place
from .topics import sifted

if TYPE_CHECKING:
    from ..classic.work import Work
    from ..variant import Variant

#: The timer of the next expiry run; it belongs to no group (O-EXP-26).
EXPIRY: Final = Timer(EXPIRY_KIND)


def handle(work: Work, request: Request) -> bool:
    """Handle the request if it is about offsets and writes, or waits for writes. Returns whether it did."""
    body = request.body
    if isinstance(body, OffsetCommitRequest | TxnOffsetCommitRequest):
        _commit(work, request, body)
    elif isinstance(body, OffsetDeleteRequest):
        _delete(work, request, body)
    elif isinstance(body, OffsetFetchRequest):
        _fetch(work, request, body)
    elif isinstance(body, WriteTxnMarkerRequest):
        _end(work, request, body)
    else:
        return False
    return True


def _group(work: Work, group_id: str) -> AnyGroup | None:
    slot = work.slots.get(group_id)
    return None if slot is None else slot.group


def _commit(work: Work, request: Request, body: OffsetCommitRequest | TxnOffsetCommitRequest) -> None:
    sift = sifted(work.image, body, request.version, request.denied_topics)
    early = Early(sift.refused, tuple([each.row for each in sift.asked]), request.version)
    group = _group(work, body.group_id)
    settings, now = work.context.settings, work.context.now
    done = commit(settings, work.variant, group, body, sift.asked, version=request.version, now=now)
    work.rules.extend(done.rules)
    if done.error is not None:  # thrown, so it does not wait
        work.replies.append((request.id, commit_answer(body, early.failed(done.error), request.version)))
        return
    if isinstance(group, Group) and isinstance(body, OffsetCommitRequest) and group.state in (STABLE, PREPARING):
        draft = work.draft(body.group_id)
        if draft is not None:
            draft.arm_session(draft.members[body.member_id])  # O-COMMIT-28, not O-TXN-06
    if group is None:
        _simple(work, body.group_id, len(done.records))
    if done.records:
        work.written = Written(len(done.records), request.id, ((body.group_id, None),) if group is None else ())
    answer = commit_answer(body, (*sift.refused, *done.rows), request.version)
    work.submit(Operation(request.id, "", body, 0, answer, callback=early), list(done.records))


def _simple(work: Work, group_id: str, records: int) -> None:
    """Create a group that only holds offsets (O-COMMIT-20, O-TXN-03)."""
    if records:
        work.create(group_id)
        work.committed_views = (*work.committed_views, CommittedView(work.undurable + records, group_id, None))
    elif not work.variant.offsets.group_needs_record:
        work.rules.append("O-COMMIT-39")
        work.add_without_record(group_id)


def _delete(work: Work, request: Request, body: OffsetDeleteRequest) -> None:
    sift = sifted(work.image, body, request.version, request.denied_topics)
    group = _group(work, body.group_id)
    checked = may_delete(group)
    work.rules.extend(checked.rules)
    if group is None or checked.error is not None:
        work.replies.append((request.id, OffsetDeleteResponse(checked.error or ErrorCode.GROUP_ID_NOT_FOUND)))
        return
    places = [(each.row, Place(body.group_id, each.name, each.row.partition)) for each in sift.asked]
    rows, records = delete(group, work.topics.get(body.group_id), work.offsets, places)
    if records:
        work.written = Written(len(records), request.id)
    answer = OffsetDeleteResponse(ErrorCode.NONE, answered((*sift.refused, *rows)))
    work.submit(Operation(request.id, "", body, 0, answer), list(records))


def _fetch(work: Work, request: Request, body: OffsetFetchRequest) -> None:
    """Read the newest offsets and answer when they are replicated (O-FETCH-08). An error of a group is thrown; if all
    groups have one, the answer does not wait."""
    groups = {group_id: slot.group for group_id, slot in work.slots.items()}
    found = read(work.variant, work.image, request, body, groups=groups, offsets=work.offsets, stable=True)
    work.rules.extend(found.rules)
    fetched = Fetched(found.entries, request.version)
    if all(entry.requested is None for entry in found.entries):
        work.replies.append((request.id, fetched.answer()))
        return
    work.submit(Operation(request.id, "", body, 0, fetched.answer(), callback=fetched), [])


class Read(NamedTuple):
    """An entry for each requested group, and the rules that decided."""

    entries: tuple[Entry, ...]
    rules: tuple[str, ...]


def read(
    variant: Variant,
    image: Image,
    request: Request,
    body: OffsetFetchRequest,
    *,
    groups: Mapping[str, AnyGroup | None],
    offsets: Offsets,
    stable: bool,
) -> Read:
    """Return the entries of an OffsetFetch (O-FETCH-01)."""
    found: list[Entry] = []
    rules: list[str] = []
    for group in body.groups:
        if group.group_id in request.denied:
            requested = tuple([(topic.name, topic.topic_id, topic.partition_indexes) for topic in group.topics or ()])
            denied = ErrorCode.GROUP_AUTHORIZATION_FAILED
            found.append(Entry(group_error(group.group_id, requested, request.version, denied), None))
            continue
        asked = question(image, group, request.denied_topics, request.version)
        answer = fetch(variant, image, groups.get(group.group_id), offsets, asked, stable=stable)
        rules += answer.rules
        found.append(answer.entry)
    return Read(tuple(found), tuple(rules))


def _end(work: Work, request: Request, body: WriteTxnMarkerRequest) -> None:
    """End a transaction: apply the marker, then append it (O-TXN-08, O-TXN-11)."""
    work.rules.append("O-TXN-08")
    record = Record(
        ControlKey(body.committed),
        ControlValue(body.coordinator_epoch),
        Producer(body.producer_id, body.producer_epoch),
    )
    work.written = Written(1, request.id)
    work.submit(Operation(request.id, "", body, 0, WriteTxnMarkerResponse(ErrorCode.NONE)), [record])


def write_group_tombstones(work: Work, group_id: str, group: AnyGroup, records: list[Record]) -> None:
    """Write the tombstones of a group after ``records``, and remove it from memory (F-ORD-13, C-ADM-10)."""
    own = [Record(GroupMetadataKey(group_id), None)]
    records += of_group(group_id, group) if isinstance(group, ConsumerGroup) else own
    work.variant.classic.note_removal(work, group_id)
    work.committed_views = (*work.committed_views, CommittedView(work.undurable + len(records), group_id, group))


def run_expiry(work: Work, operation: int) -> None:
    """Remove expired offsets, and groups that nothing keeps (O-EXP-01...26). The next run is one interval later."""
    settings = work.context.settings
    work.rules.append("O-EXP-26")
    work.detached_timers.append(("", {EXPIRY: settings.offsets_retention_check_interval_ms}))
    records: list[Record] = []
    gone: list[tuple[str, AnyGroup]] = []
    for group_id, slot in sorted(work.slots.items()):
        if slot.group is None:
            continue
        done = expire(
            group_id,
            slot.group,
            work.topics.get(group_id),
            work.offsets,
            now=work.context.now,
            retention=settings.offsets_retention_ms,
        )
        records += done.records
        if done.records:
            work.rules.append("O-EXP-12")
        if done.deletes_group:
            work.rules.append("O-EXP-20")
            gone.append((group_id, slot.group))
            write_group_tombstones(work, group_id, slot.group, records)
    for group_id, _ in gone:
        work.delete(group_id)
    if records:
        work.written = Written(len(records), operation, tuple(gone))
    work.submit(Operation(operation, "", None, 0, timer=EXPIRY), records)


def topics_deleted(work: Work, before: Image, after: Image, operation: int) -> None:
    """Remove the offsets of deleted topics (O-EXP-23). A failure is only logged. A write without records still waits
    for earlier ones (F-RT-16)."""
    kept = {topic.topic_id for topic in after.topics}
    gone = [topic for topic in before.topics if topic.topic_id not in kept]
    records = with_topics(work.variant, work.offsets, gone)
    if records:
        work.rules.append("O-EXP-23")
        work.written = Written(len(records), operation)
    if gone:
        work.submit(Operation(operation, "", None, 0), records)

"""Commits, in a transaction or outside of one (rule book, 6.1 and 6.3), as the records that they write."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.offset_messages import ZERO_ID, OffsetCommitRequest, TxnOffsetCommitRequest
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue, Producer
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings

from ..widths import expiry
from .checks import AnyGroup, Committer, may_commit
from .rows import Row
from .topics import Asked

if TYPE_CHECKING:
    from ..variant import Variant

_FOREVER = -1


class Commit(NamedTuple):
    """The result of a commit: an ``error`` for all of it, else ``rows``."""

    error: ErrorCode | None
    rows: tuple[Row, ...] = ()
    records: tuple[Record, ...] = ()
    rules: tuple[str, ...] = ()


def commit(
    settings: Settings,
    variant: Variant,
    group: AnyGroup | None,
    body: OffsetCommitRequest | TxnOffsetCommitRequest,
    asked: tuple[Asked, ...],
    *,
    version: int,
    now: int,
) -> Commit:
    """Commit the partitions that the broker has let through. They become visible together, or not at all
    (O-COMMIT-10)."""
    accepted = [each for each in asked if not too_long(settings, each.what.committed_metadata)]
    checked = may_commit(variant, group, _by(body, version, accepted))
    if checked.error is not None:
        return Commit(checked.error, rules=("O-COMMIT-07", *checked.rules))
    rules = [*checked.rules, "O-COMMIT-14", *(["O-TXN-12"] if isinstance(body, TxnOffsetCommitRequest) else [])]
    if len(accepted) < len(asked):
        rules.append("O-TXN-14" if isinstance(body, TxnOffsetCommitRequest) else "O-COMMIT-08")
    rows = [
        each.row._replace(error=ErrorCode.NONE if each in accepted else ErrorCode.OFFSET_METADATA_TOO_LARGE)
        for each in asked
    ]
    records = [_record(variant, body, each, now) for each in accepted]
    return Commit(None, tuple(rows), tuple(records), tuple(rules))


def too_long(settings: Settings, metadata: str | None) -> bool:
    """Return whether the metadata is longer than allowed, in UTF-16 units (O-COMMIT-08)."""
    if metadata is None:
        return False
    return len(metadata.encode("utf-16-be", "surrogatepass")) // 2 > settings.offset_metadata_max_bytes


def _by(body: OffsetCommitRequest | TxnOffsetCommitRequest, version: int, accepted: list[Asked]) -> Committer:
    partitions = tuple([(each.topic_id, each.what.partition_index) for each in accepted])
    transactional = isinstance(body, TxnOffsetCommitRequest)
    epoch = body.generation_id if isinstance(body, TxnOffsetCommitRequest) else body.generation_id_or_member_epoch
    return Committer(body.member_id, body.group_instance_id, epoch, version, transactional, partitions)


def _has_retention(body: OffsetCommitRequest | TxnOffsetCommitRequest) -> bool:
    """Return whether the commit names a retention time; only such a commit expires by itself (O-COMMIT-14)."""
    return not isinstance(body, TxnOffsetCommitRequest) and body.retention_time_ms != _FOREVER


def _expires(body: OffsetCommitRequest | TxnOffsetCommitRequest, now: int) -> int:
    """Return when the commit expires (O-COMMIT-14). A commit with a retention time can expire at -1 too."""
    if isinstance(body, TxnOffsetCommitRequest) or not _has_retention(body):
        return _FOREVER
    return expiry(now, body.retention_time_ms)


def _stored_id(variant: Variant, body: OffsetCommitRequest | TxnOffsetCommitRequest, each: Asked) -> bytes:
    """Return the topic id where it is stored. The record of an offset with an expiry time has no field for it
    (F-REC-20)."""
    rules = variant.offsets
    if _has_retention(body) and not rules.expiring_offset_has_topic_id:
        return ZERO_ID
    if isinstance(body, TxnOffsetCommitRequest) and not rules.transactions_store_topic_ids:
        return ZERO_ID
    return each.topic_id if rules.stores_topic_ids else ZERO_ID


def _record(variant: Variant, body: OffsetCommitRequest | TxnOffsetCommitRequest, each: Asked, now: int) -> Record:
    expires, has_retention = _expires(body, now), _has_retention(body)
    value = OffsetCommitValue(
        each.what.committed_offset,
        leader_epoch=each.what.committed_leader_epoch if not has_retention else -1,
        metadata=each.what.committed_metadata or "",
        commit_timestamp=now,
        expire_timestamp=expires,
        topic_id=_stored_id(variant, body, each),
        expires_at_minus_one=has_retention and expires == _FOREVER,
    )
    producer = Producer(body.producer_id, body.producer_epoch) if isinstance(body, TxnOffsetCommitRequest) else None
    return Record(OffsetCommitKey(body.group_id, each.name, each.what.partition_index), value, producer)

"""Log records of offsets and transactions (F-REC-00, F-REC-11, O-TXN-07, O-TXN-08).

A commit in a transaction has the same record as a plain one; ``Record.producer`` says whose transaction it is, as the
header of its batch does in Kafka's log. A control record of that producer ends the transaction; its key says how.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from .frozen import quick
from .offset_messages import ZERO_ID


@quick
@dataclass(frozen=True, slots=True)
class OffsetCommitKey:
    """Key of the offset of one partition: type 1 (F-REC-00)."""

    group: str
    topic: str
    partition: int


@quick
@dataclass(frozen=True, slots=True)
class OffsetCommitValue:
    """A committed offset. ``leader_epoch`` and ``expire_timestamp`` are -1 if unset, ``topic_id`` is zero (O-COMMIT-14,
    F-REC-11). Times in ms. ``expires_at_minus_one``: the expiry was computed, and is -1. Kafka writes it as an expiry,
    and reads it as none (F-REC-20)."""

    offset: int
    _: KW_ONLY
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int
    expire_timestamp: int = -1
    topic_id: bytes = ZERO_ID
    expires_at_minus_one: bool = False


@quick
@dataclass(frozen=True, slots=True)
class Producer:
    """A transactional producer, as in the header of a batch."""

    producer_id: int
    producer_epoch: int


@quick
@dataclass(frozen=True, slots=True)
class ControlKey:
    """Key of the control record that ends a transaction, with a commit or an abort (F-REPLAY-05)."""

    committed: bool

    group: ClassVar[str] = ""  #: it has no group, but affects all in which its producer has pending offsets


@quick
@dataclass(frozen=True, slots=True)
class ControlValue:
    """Value of the control record: the epoch of the transaction coordinator."""

    coordinator_epoch: int

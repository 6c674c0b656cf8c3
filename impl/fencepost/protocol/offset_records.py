"""Log records of offsets, and what a transaction writes (F-REC-00, F-REC-11, O-TXN-07, O-TXN-08).

A commit of a transaction is the same record as a plain one; ``Record.producer`` tells whose transaction it is of, as
the header of its batch does in Kafka's log. A transaction ends with a control record of that producer: its key says
how.
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
    """What is committed. ``leader_epoch`` and ``expire_timestamp`` are -1 where there is none, ``topic_id`` is zero
    (O-COMMIT-14, F-REC-11). Times in ms."""

    offset: int
    _: KW_ONLY
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int
    expire_timestamp: int = -1
    topic_id: bytes = ZERO_ID


@quick
@dataclass(frozen=True, slots=True)
class Producer:
    """A transactional producer, as the header of a batch names it."""

    producer_id: int
    producer_epoch: int


@quick
@dataclass(frozen=True, slots=True)
class ControlKey:
    """Key of the record that ends a transaction: with a commit, or else with an abort (F-REPLAY-05)."""

    committed: bool

    group: ClassVar[str] = ""  #: it is of no group, but of all in which its producer has offsets pending


@quick
@dataclass(frozen=True, slots=True)
class ControlValue:
    """Value of the record that ends a transaction: the epoch of the transaction's coordinator."""

    coordinator_epoch: int

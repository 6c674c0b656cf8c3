"""What goes into the coordinator and what comes out.

An event carries the time at which it is handled, so the coordinator needs no clock. The log is outside: an outcome
names the records to append, and the driver tells with ``Appended`` and ``AppendFailed`` what became of them.

Order that a driver must keep (F-RT-03, F-RT-04, F-RT-05 with linger 0):

* events of one coordinator are handled one at a time;
* records of an outcome get the offsets that follow the last record, in order; offsets start at 0;
* ``AppendFailed`` comes directly after the step whose records could not be appended, before any other event; the
  offsets of those records are then free again;
* ``Appended(offset)`` says that every record *below* ``offset`` is replicated (the high watermark); it may come at
  once, or later with other events between;
* ``TimerFired`` is delivered for a timer that is set and due, never for one that was cancelled or replaced (F-RT-17);
* a new coordinator does not own the partition (F-RT-02): a trace begins with ``LoadStarted`` and ``Load``. A ``Load``
  without ``LoadStarted`` before it stands for both.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import TypeAlias

from .errors import ErrorCode
from .frozen import quick
from .logged import Logged
from .messages import RequestBody, ResponseBody
from .rebalances import RebalanceReport
from .records import Record


class TimerKind(Enum):
    """Which timer of a group or member (C-TMR-01…05, M-TMR-01…03)."""

    JOIN = "join"  #: join phase or initial delay of a group (C-TMR-01, C-TMR-11)
    SYNC = "sync"  #: pending syncs of a group (C-TMR-02)
    SESSION = "heartbeat"  #: session of a member or pending id (C-TMR-03…05)
    CONSUMER_SESSION = "consumer-session"  #: session of a member of a consumer group, of either protocol (M-TMR-01)
    CONSUMER_REBALANCE = "consumer-rebalance"  #: time to give up what is to be revoked (M-TMR-02)
    CONSUMER_JOIN = "consumer-join"  #: time for a classic member of a consumer group to rejoin (X-TMR-02)
    CONSUMER_SYNC = "consumer-sync"  #: time for it to send SyncGroup after its join (X-TMR-03)
    EXPIRY = "expiry"  #: next look for offsets that are too old, of the whole coordinator (O-EXP-26); it has no group
    OPERATION = "operation"  #: write operation not yet replicated (G-CFG-25, F-RT-09); ``member_id`` is unused

    __hash__ = object.__hash__  # a member is equal to itself only; keys of timers are looked up very often


@quick
@dataclass(frozen=True, slots=True)
class TimerKey:
    """Setting a timer under a key replaces the earlier one (C-TMR-11).

    ``OPERATION`` timers have no group; ``operation`` then is the id of the operation: the request's id, or for a write
    that a timer caused -(n + 1), where n is the number of events that the coordinator handled before that
    ``TimerFired`` (its index in the trace).
    """

    kind: TimerKind
    group_id: str = ""
    member_id: str = ""
    operation: int = 0


@quick
@dataclass(frozen=True, slots=True)
class Request:
    """A request arrives. ``id`` is the caller's and unique among open requests; the reply names it.

    ``denied`` holds the group ids for which the host's authorizer refuses the right that the API needs (C-JOIN-02,
    C-SYNC-02, C-HB-01, C-LEAVE-01, C-ADM-01, C-ADM-09). ``client_host`` is the text of the socket's address, with a
    slash before it in Kafka (G-WIRE-29). ``denied_topics`` are the names of the topics that the caller may not describe
    (M-VAL-02, M-DESC-01, M-RX-06), read or, with OffsetFetch, describe (O-COMMIT-02, O-FETCH-01).
    ``denied_transactional_ids`` are the transactional ids that the caller may not write (O-TXN-01).
    """

    at_ms: int
    _: KW_ONLY
    id: int
    version: int
    client_id: str
    client_host: str
    body: RequestBody
    denied: frozenset[str] = frozenset()
    denied_topics: frozenset[str] = frozenset()
    denied_transactional_ids: frozenset[str] = frozenset()


@quick
@dataclass(frozen=True, slots=True)
class TimerFired:
    """A timer that was set is due."""

    at_ms: int
    key: TimerKey


@quick
@dataclass(frozen=True, slots=True)
class Appended:
    """Every record below ``offset`` is durable."""

    at_ms: int
    _: KW_ONLY
    offset: int


@quick
@dataclass(frozen=True, slots=True)
class AppendFailed:
    """The records of the step just made were not appended (F-RT-08)."""

    at_ms: int
    error: ErrorCode


class TaskKind(Enum):
    """Work that the coordinator has done beside its own thread."""

    REGEX = "regex"  #: the topics that the regular expressions of a group match (M-RX-03, M-RX-04)


@quick
@dataclass(frozen=True, slots=True)
class TaskKey:
    """At most one task under a key is under way."""

    kind: TaskKind
    group_id: str


@quick
@dataclass(frozen=True, slots=True)
class TaskDone:
    """A task that an outcome started has run, and its result is taken up. ``failed``: it came to nothing.

    What it is about was fixed when it was started, the topics are those of now (M-RX-04), so the coordinator computes
    the result itself.
    """

    at_ms: int
    key: TaskKey
    _: KW_ONLY
    failed: bool = False


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Dynamic configuration of one group (G-CFG-28), in ms; None: not set."""

    consumer_session_timeout_ms: int | None = None
    consumer_heartbeat_interval_ms: int | None = None
    consumer_assignment_interval_ms: int | None = None


@quick
@dataclass(frozen=True, slots=True)
class GroupConfigChanged:
    """The group's dynamic configuration is now this one (M-CFG-01); ``config`` None: it has none any more."""

    at_ms: int
    group_id: str
    config: GroupConfig | None


@quick
@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the metadata image has it: partition count, and per partition the racks of its replicas."""

    name: str
    topic_id: bytes
    partitions: int
    racks: tuple[frozenset[str], ...] = ()


@quick
@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """The new image of all topics; ``version`` grows with every image (M-RX-03)."""

    at_ms: int
    topics: tuple[Topic, ...]
    _: KW_ONLY
    version: int = 0


@quick
@dataclass(frozen=True, slots=True)
class LoadStarted:
    """The partition was won at ``leader_epoch``; requests are refused until ``Load`` (F-RT-01, F-RT-02)."""

    at_ms: int
    _: KW_ONLY
    leader_epoch: int


@quick
@dataclass(frozen=True, slots=True)
class Load:
    """Loading ends with these records, in log order, up to the log's end (F-LOAD-01). The next record gets offset
    ``len(records)``.

    Who reads them from bytes hands in what the codec has made (``Logged``): they take a tenth of the time then.

    ``committed``: how many of them are replicated; None: all. What the others say is seen by reads once ``Appended``
    tells that all of them are, and they are replicated together."""

    at_ms: int
    _: KW_ONLY
    leader_epoch: int
    records: tuple[Record, ...] | Logged
    committed: int | None = None


@quick
@dataclass(frozen=True, slots=True)
class LoadFailed:
    """The log could not be read; the partition is not served until it is won again."""

    at_ms: int
    _: KW_ONLY
    leader_epoch: int


@quick
@dataclass(frozen=True, slots=True)
class Unload:
    """The partition was lost (F-UNLOAD-01); ``leader_epoch`` None unloads in any case (F-LOAD-03)."""

    at_ms: int
    _: KW_ONLY
    leader_epoch: int | None


Event: TypeAlias = (
    Request
    | TimerFired
    | TaskDone
    | Appended
    | AppendFailed
    | TopicsChanged
    | GroupConfigChanged
    | LoadStarted
    | Load
    | LoadFailed
    | Unload
)


@quick
@dataclass(frozen=True, slots=True)
class Reply:
    """Answers the request ``request_id``; each request is answered at most once."""

    request_id: int
    body: ResponseBody


@quick
@dataclass(frozen=True, slots=True)
class SetTimer:
    """Fires ``delay_ms`` after the event's time; replaces the timer of that key."""

    key: TimerKey
    delay_ms: int


@quick
@dataclass(frozen=True, slots=True)
class CancelTimer:
    """The timer of this key is not to fire."""

    key: TimerKey


TimerCommand: TypeAlias = SetTimer | CancelTimer


@quick
@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step asks for, each in order: append records, send replies, set or cancel timers, do work beside.

    For each of ``tasks`` the driver delivers one ``TaskDone``, later, unless the partition is lost before.
    ``rebalances`` report which groups rebalance, and why; a driver may log them."""

    records: tuple[Record, ...] = ()
    replies: tuple[Reply, ...] = ()
    timers: tuple[TimerCommand, ...] = ()
    tasks: tuple[TaskKey, ...] = ()
    rebalances: tuple[RebalanceReport, ...] = ()

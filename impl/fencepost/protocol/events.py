"""Events and outcomes of a coordinator.

Each event carries the time at which it is handled, so the coordinator needs no clock. The log is outside: an outcome
contains the records to append, and the driver reports with ``Appended`` or ``AppendFailed`` what happened to them.

Order that a driver must keep (F-RT-03, F-RT-04, F-RT-05 with linger 0):

* events of one coordinator are handled one at a time;
* records of an outcome get the offsets that follow the last record, in order; offsets start at 0;
* ``AppendFailed`` comes directly after the step whose records could not be appended, before any other event; the
  offsets of those records are then free again;
* ``Appended(offset)`` says that every record *below* ``offset`` is replicated (the high watermark); it may come
  directly after the step, or later with other events between;
* ``TimerFired`` is delivered for a timer that is set and due, never for one that was cancelled or replaced (F-RT-17);
* a new coordinator does not own the partition (F-RT-02): a trace begins with ``LoadStarted`` and ``Load``. A ``Load``
  without ``LoadStarted`` before it stands for both.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    """Kind of a timer of a group or member (C-TMR-01…05, M-TMR-01…03)."""

    JOIN = "join"  #: join phase or initial delay of a group (C-TMR-01, C-TMR-11)
    SYNC = "sync"  #: pending syncs of a group (C-TMR-02)
    SESSION = "heartbeat"  #: session of a member or pending id (C-TMR-03…05)
    CONSUMER_SESSION = "consumer-session"  #: session of a member of a consumer group, of either protocol (M-TMR-01)
    CONSUMER_REBALANCE = "consumer-rebalance"  #: time for a member to revoke partitions (M-TMR-02)
    CONSUMER_JOIN = "consumer-join"  #: time for a classic member of a consumer group to rejoin (X-TMR-02)
    CONSUMER_SYNC = "consumer-sync"  #: time for that member to send SyncGroup after its join (X-TMR-03)
    EXPIRY = "expiry"  #: next check for expired offsets, of the whole coordinator (O-EXP-26); it has no group
    OPERATION = "operation"  #: write operation not yet replicated (G-CFG-25, F-RT-09); ``member_id`` is unused

    __hash__ = object.__hash__  # a member equals only itself; timer keys are looked up very often


@quick
@dataclass(frozen=True, slots=True)
class TimerKey:
    """Key of a timer. Setting a timer with the same key replaces it (C-TMR-11).

    ``OPERATION`` timers have no group; ``operation`` is then the id of the operation: the request's id, or -(n + 1) for
    a write that a timer caused, where n is the number of events that the coordinator handled before that ``TimerFired``
    (its index in the trace).
    """

    kind: TimerKind
    group_id: str = ""
    member_id: str = ""
    operation: int = 0


@quick
@dataclass(frozen=True, slots=True)
class Request:
    """A request. ``id``: the caller's id, unique among open requests; the reply contains it.

    ``denied``: group ids for which the host's authorizer denies the right that the API needs (C-JOIN-02, C-SYNC-02,
    C-HB-01, C-LEAVE-01, C-ADM-01, C-ADM-09). ``client_host``: the text of the socket's address, with a leading slash in
    Kafka (G-WIRE-29). ``denied_topics``: names of topics that the caller may not describe (M-VAL-02, M-DESC-01,
    M-RX-06), read, or, with OffsetFetch, describe (O-COMMIT-02, O-FETCH-01). ``denied_transactional_ids``:
    transactional ids that the caller may not write (O-TXN-01).
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
    """A timer fired that is set and due."""

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
    """The records of the previous step were not appended (F-RT-08)."""

    at_ms: int
    error: ErrorCode


class TaskKind(Enum):
    """Kind of work that the coordinator has done outside its own thread."""

    REGEX = "regex"  #: match the regular expressions of a group with the topics (M-RX-03, M-RX-04)


@quick
@dataclass(frozen=True, slots=True)
class TaskKey:
    """Key of a task. At most one task with the same key is in progress."""

    kind: TaskKind
    group_id: str


@quick
@dataclass(frozen=True, slots=True)
class TaskDone:
    """A task that an outcome started has run; the coordinator takes its result. ``failed``: it has no result.

    The subject of a task is fixed when it starts, but it uses the topics of the time when it ends (M-RX-04). So the
    coordinator computes the result itself.
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
    """The group's new dynamic configuration (M-CFG-01); ``config`` None: it was removed."""

    at_ms: int
    group_id: str
    config: GroupConfig | None


@quick
@dataclass(frozen=True, slots=True)
class Topic:
    """A topic in the metadata image: partition count, and for each partition the racks of its replicas."""

    name: str
    topic_id: bytes
    partitions: int
    racks: tuple[frozenset[str], ...] = ()


@quick
@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """The new image of all topics; ``version`` increases with every image (M-RX-03)."""

    at_ms: int
    topics: tuple[Topic, ...]
    _: KW_ONLY
    version: int = 0


@quick
@dataclass(frozen=True, slots=True)
class LoadStarted:
    """The broker became leader of the partition at ``leader_epoch``; requests are rejected until ``Load`` (F-RT-01,
    F-RT-02)."""

    at_ms: int
    _: KW_ONLY
    leader_epoch: int


@quick
@dataclass(frozen=True, slots=True)
class Load:
    """Loading ends with these records, in log order, up to the log's end (F-LOAD-01). The next record gets offset
    ``len(records)``.

    A host that reads them from bytes should pass the codec's ``Logged``: a load then takes a tenth of the time.

    ``committed``: the number of replicated records; None: all. Reads see the others once ``Appended`` says that all of
    them are replicated; they are replicated together."""

    at_ms: int
    _: KW_ONLY
    leader_epoch: int
    records: tuple[Record, ...] | Logged
    committed: int | None = None


@quick
@dataclass(frozen=True, slots=True)
class LoadFailed:
    """The log could not be read; the partition is not served until the broker becomes its leader again."""

    at_ms: int
    _: KW_ONLY
    leader_epoch: int


@quick
@dataclass(frozen=True, slots=True)
class Unload:
    """The broker lost the partition (F-UNLOAD-01); ``leader_epoch`` None unloads in any case (F-LOAD-03)."""

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
    """The reply to the request ``request_id``; each request gets at most one."""

    request_id: int
    body: ResponseBody


@quick
@dataclass(frozen=True, slots=True)
class SetTimer:
    """Set a timer that fires ``delay_ms`` after the event's time; it replaces the timer with that key."""

    key: TimerKey
    delay_ms: int


@quick
@dataclass(frozen=True, slots=True)
class CancelTimer:
    """Cancel the timer with this key."""

    key: TimerKey


TimerCommand: TypeAlias = SetTimer | CancelTimer


@quick
@dataclass(frozen=True, slots=True)
class Outcome:
    """Work for the driver, each kind in order: append records, send replies, set or cancel timers, run tasks.

    For each of ``tasks`` the driver delivers one ``TaskDone`` later, unless it loses the partition first.
    ``rebalances``: the groups that rebalance, and why; a driver may log them."""

    records: tuple[Record, ...] = ()
    replies: tuple[Reply, ...] = ()
    timers: tuple[TimerCommand, ...] = ()
    tasks: tuple[TaskKey, ...] = ()
    rebalances: tuple[RebalanceReport, ...] = ()

    @property
    def written(self) -> Sequence[Record]:
        """The records in the form for a store, which may read their bytes instead."""
        return self.records

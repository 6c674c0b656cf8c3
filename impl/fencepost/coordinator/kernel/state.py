"""The state of one coordinator: immutable, shared between steps, replaced field by field.

A coordinator is one partition of the offsets topic; it hosts many groups and one log. State that the log restores is
*hard*. Parked requests, timers, pending ids and open operations are *soft*: a fail-over loses them (F-SURV-02).

Mappings in here are never changed once a state holds them; those that grow are of ``persistent``. Values that every
step creates are named tuples, which cost a third of a frozen dataclass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeAlias
from typing import Protocol as TypingProtocol

from fencepost.functions import StandardFunctions
from fencepost.protocol.choices import Functions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import GroupConfig, Request, TimerKey
from fencepost.protocol.messages import ResponseBody
from fencepost.protocol.misuse import expect, expect_methods
from fencepost.protocol.profile import Profile
from fencepost.protocol.server_assignor import Assignor
from fencepost.protocol.settings import Settings
from fencepost.quirks import Quirks

from .rules import Rules, rules_of
from .stored_offsets import NO_OFFSETS, OffsetChange, OffsetStore
from .timers import NO_TIMERS, Armed, TimerTable, slot_of
from .topics import TopicImage

#: The epoch of a partition whose epoch is not known (F-LOAD-08).
NO_EPOCH: Final = -1
#: In place of a parked request that the operation layer has answered already (C-ST-23, C-JOIN-70).
ANSWERED: Final = -1


class Group(TypingProtocol):
    """The interface of a group of any kind for the kernel. A group is never changed; a step replaces it."""

    @property
    def group_id(self) -> str: ...

    @property
    def incarnation(self) -> int:
        """A number that tells apart two groups of the same name (C-ST-24)."""

    @property
    def current_epoch(self) -> int:
        """The group epoch, or the generation of a classic group."""

    def parked(self) -> Iterable[int]:
        """The ids of the requests that wait in the group for an answer."""

    def with_answered(self, number: int) -> Group:
        """The group without this request, which was answered elsewhere."""

    def entries(self) -> Mapping[str, object]:
        """By member id, the entries that a read sees as of the high watermark (F-RT-11), beside the group itself."""

    @property
    def gives_way(self) -> bool:
        """Whether records of another kind of group may take its place."""


class Callback:
    """The actions of an operation when its wait for the log ends; see ``operations.AppendCallback``."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """A write operation that waits until all records below ``offset`` are replicated (F-RT-04, F-RT-07).

    ``request`` is None for the operation of a timer. ``reply`` is sent when the operation is done; it is None for
    JoinGroup and SyncGroup, which the group answers. ``answered``: the request has its answer, or needs none.
    """

    request: Request | None
    offset: int
    reply: ResponseBody | None
    callback: Callback | None
    answered: bool


class Status(Enum):
    """Of the partition (F-RT-01). CLOSED also stands for a partition that was never loaded."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


class GroupChange(NamedTuple):
    """A change of a group by records from ``base`` to below ``offset``, which may not be replicated yet.

    For a classic group only its creation and removal is such a change, as reads see its content as it is in memory
    (C-ADM-08); for a consumer group every record is. ``before`` is the whole group before the change. Undoing the
    changes from the last to the first gives every earlier version: the one after a failed append (F-RT-08), and the one
    that reads see (F-RT-11).
    """

    base: int
    offset: int
    group_id: str
    before: Group | None


class RegexTask(NamedTuple):
    """A resolution that was started (M-RX-04): the regexes, and the topics to leave out because the member that started
    it may not describe them (M-RX-06). The result is of the topics that exist when the task runs."""

    regexes: tuple[str, ...]
    denied: frozenset[str]


_STANDARD: Final = StandardFunctions()
NOBODY: Final[Mapping[int, str]] = {}

#: An entry of a map that reads iterate over: of a group (member id "") or of a member of a consumer group.
Entry: TypeAlias = tuple[str, str]


class Remains(NamedTuple):
    """State that a release of Kafka keeps although it should be removed. Only quirks read or write it."""

    relisted: tuple[tuple[int, Entry], ...] = ()  #: log offsets at which a failed append restored entries (C-ADM-05)
    lingering: Mapping[str, frozenset[str]] = {}  #: topics whose changes no longer matter, by group (X-DOWN-30)


NO_REMAINS: Final = Remains()


class CoordinatorState(NamedTuple):
    """One coordinator. Create it with ``initial_state``."""

    settings: Settings
    profile: Profile
    rules: Rules
    running: bool = True  #: the coordinator component of the broker is running (C-JOIN-03)
    status: Status = Status.CLOSED
    leader_epoch: int = NO_EPOCH
    handled: int = 0  #: number of events so far; numbers the operations of timers
    now: int = 0  #: the time of the last event
    groups: Mapping[str, Group] = {}
    end: int = 0  #: offset of the next record
    committed: int = 0  #: high watermark: every record below is replicated
    base: int = 0  #: ``end`` before the last step; a failed append goes back to it (F-RT-08)
    changes: tuple[GroupChange, ...] = ()  #: not yet replicated, in log order (C-ADM-08)
    operations: Mapping[int, Operation] = {}  #: open, in log order
    timers: TimerTable = NO_TIMERS
    parked: Mapping[int, str] = NOBODY  #: JoinGroups and SyncGroups that wait in a group, with the group's name
    ends: tuple[int, ...] = ()  #: end offsets of outcomes whose records are not replicated
    incarnations: int = 0
    functions: Functions = _STANDARD
    topics: TopicImage = TopicImage()
    configs: Mapping[str, GroupConfig] = {}  #: by group (G-CFG-28)
    tasks: Mapping[str, RegexTask] = {}  #: running, by group (M-RX-03)
    remains: Remains = NO_REMAINS
    remains_base: Remains = NO_REMAINS  #: before the last step
    offsets: OffsetStore = NO_OFFSETS
    offset_changes: tuple[OffsetChange, ...] = ()  #: not yet replicated, in log order (F-RT-11)
    assignors: Mapping[str, Assignor] = {}  #: server assignors of the host, by name

    @property
    def quirks(self) -> Quirks | None:
        """How the profile differs."""
        return self.rules.quirks

    def armed(self, key: TimerKey) -> Armed | None:
        """The timer of this key, None if it is not set."""
        found: Armed | None = self.timers.get(slot_of(self, key))
        return found if found is not None and found.key == key else None


def initial_state(
    settings: Settings,
    profile: Profile,
    *,
    running: bool = True,
    functions: Functions | None = None,
    assignors: Mapping[str, Assignor] | None = None,
) -> CoordinatorState:
    """A coordinator that does not own its partition yet (F-RT-02). With ``running=False`` it refuses every request
    (C-JOIN-03). ``assignors``: server assignors beside Kafka's, by name; ``Settings.group_consumer_assignors`` says
    which a group may use, and the first is the default (M-TGT-02).

    Raises ``WrongType`` if settings, profile or functions have a wrong type, and ``BadSettings`` for an assignor that
    does not exist.
    """
    expect(Settings, settings, "settings", "Settings() has Kafka's defaults")
    expect(Profile, profile, "profile", "use INTENDED, or PROFILES[name] for the behaviour of a release of Kafka")
    if functions is not None:
        expect_methods(Functions, functions, "functions", "use StandardFunctions() or KafkaFunctions()")
    settings.require_assignors(assignors or {})
    rules = rules_of(profile)
    return CoordinatorState(
        settings,
        profile,
        rules,
        running,
        functions=functions or _STANDARD,
        topics=TopicImage(version=rules.first_image_version, created=rules.first_image_version),
        assignors=dict(assignors or {}),
    )


def not_serving(state: CoordinatorState) -> ErrorCode | None:
    """Why the partition is not served, None if it is: another broker leads it, or its log is still being loaded
    (C-JOIN-06, C-JOIN-07, C-SYNC-04, C-HB-04)."""
    if state.status is Status.ACTIVE:
        return None
    loading = state.status is Status.LOADING
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NOT_COORDINATOR


def next_epoch(number: int) -> int:
    """The generation or epoch after this one, a number of 32 bits, which wraps around as in Java (G-VOC-04, G-VOC-07).

    No group reaches the limit by itself: it would need two thousand million rebalances. But a log may contain such a
    number. The records and answers must still fit their fields, and the coordinator must continue as Kafka's does.
    """
    return _signed(number + 1, 32)


def time_after(at_ms: int, span_ms: int) -> int:
    """The time ``span_ms`` after ``at_ms``, a number of 64 bits (O-COMMIT-14): a request may ask for any retention time
    (G-VOC-04)."""
    return _signed(at_ms + span_ms, 64)


def _signed(number: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half

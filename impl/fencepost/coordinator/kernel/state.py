"""The state of one coordinator: immutable, shared between steps, replaced field by field.

A coordinator is one partition of the offsets topic; it hosts many groups and one log. What the log restores is *hard*
state; parked requests, timers, pending ids and open operations are *soft* and are what a fail-over loses (F-SURV-02).

Mappings in here are never changed once a state holds them; those that grow are of ``persistent``. What every step
makes anew is a named tuple, which costs a third of a frozen dataclass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeAlias
from typing import Protocol as TypingProtocol

from fencepost.functions import StandardFunctions
from fencepost.protocol.choices import Functions
from fencepost.protocol.events import GroupConfig, Request, TimerKey
from fencepost.protocol.messages import ResponseBody
from fencepost.protocol.misuse import expect, expect_methods
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings
from fencepost.quirks import Quirks, quirks_of

from .stored_offsets import NO_OFFSETS, OffsetChange, OffsetStore
from .timer_table import NO_TIMERS, Armed, TimerTable, slot_of
from .topics import TopicImage, no_topics

#: The epoch of a partition that is not known (F-LOAD-08).
NO_EPOCH: Final = -1
#: Stands for a stored request that the operation layer has answered already (C-ST-23, C-JOIN-70).
ANSWERED: Final = -1


class Group(TypingProtocol):
    """What the kernel knows of a group, of whatever kind. A group is never changed; a step exchanges it."""

    @property
    def group_id(self) -> str: ...

    @property
    def incarnation(self) -> int:
        """Tells two groups of one name apart (C-ST-24)."""

    def parked(self) -> Iterable[int]:
        """Ids of the requests that wait in the group for an answer."""

    def with_answered(self, number: int) -> Group:
        """The group, in which this request waits no more: it was answered by somebody else."""

    def entries(self) -> Mapping[str, object]:
        """By member id what a read finds as it was at the high watermark (F-RT-11), beside the group itself."""

    @property
    def gives_way(self) -> bool:
        """Whether records of another kind of group may take its place."""


class Callback:
    """What waits for the log with an operation; ``completion.AppendCallback`` says what it does then."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """A write operation that waits until all records below ``offset`` are replicated (F-RT-04, F-RT-07).

    ``request`` is None if a timer caused it. ``reply`` is given when it is done; it is None for JoinGroup and
    SyncGroup, which the group answers. ``answered``: nobody waits for an answer any more.
    """

    request: Request | None
    offset: int
    reply: ResponseBody | None
    callback: Callback | None
    answered: bool


class Status(Enum):
    """Of the partition (F-RT-01); CLOSED also stands for one that was never loaded."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


class GroupChange(NamedTuple):
    """A group that records from ``base`` to below ``offset`` changed, which may not be replicated yet.

    Of a classic group only its coming and going is such a change, its content follows memory (C-ADM-08); of a consumer
    group each record is. ``before`` is the whole group of before, so that these changes, undone from the last to the
    first, give every earlier version: the one that a failed append goes back to (F-RT-08), and the one that reads see
    (F-RT-11).
    """

    base: int
    offset: int
    group_id: str
    before: Group | None


class RegexTask(NamedTuple):
    """A resolution that was started (M-RX-04): of these regexes, without the topics that its starter may not describe
    (M-RX-06). The topics are those of the moment when it has run."""

    regexes: tuple[str, ...]
    denied: frozenset[str]


_STANDARD: Final = StandardFunctions()
NOBODY: Final[Mapping[int, str]] = {}

#: An entry of a map that reads go through: a group's (member id "") or a member's of a consumer group.
Entry: TypeAlias = tuple[str, str]


class Remains(NamedTuple):
    """What a release of Kafka keeps although it should be gone; nothing but quirks reads or writes it."""

    relisted: tuple[tuple[int, Entry], ...] = ()  #: where in the log entries came back by a failed append (C-ADM-05)
    lingering: Mapping[str, frozenset[str]] = {}  #: topics that a group hears of in vain, by group (X-DOWN-30)


NO_REMAINS: Final = Remains()


class CoordinatorState(NamedTuple):
    """One coordinator. Start from ``initial_state``."""

    settings: Settings
    profile: Profile
    quirks: Quirks | None  #: what the profile does otherwise
    running: bool = True  #: the coordinator component of the broker is up (C-JOIN-03)
    status: Status = Status.CLOSED
    leader_epoch: int = NO_EPOCH
    handled: int = 0  #: events so far; names what a timer caused
    now: int = 0  #: the time of the last event
    groups: Mapping[str, Group] = {}
    end: int = 0  #: offset of the next record
    committed: int = 0  #: high watermark: every record below is replicated
    base: int = 0  #: ``end`` before the last step; what a failed append goes back to (F-RT-08)
    changes: tuple[GroupChange, ...] = ()  #: not yet replicated, in log order (C-ADM-08)
    operations: Mapping[int, Operation] = {}  #: open, in log order
    timers: TimerTable = NO_TIMERS
    parked: Mapping[int, str] = NOBODY  #: JoinGroups and SyncGroups that wait in a group, and in which
    ends: tuple[int, ...] = ()  #: of outcomes whose records are not replicated
    incarnations: int = 0
    functions: Functions = _STANDARD
    topics: TopicImage = TopicImage()
    configs: Mapping[str, GroupConfig] = {}  #: by group (G-CFG-28)
    tasks: Mapping[str, RegexTask] = {}  #: under way, by group (M-RX-03)
    remains: Remains = NO_REMAINS
    remains_base: Remains = NO_REMAINS  #: before the last step
    offsets: OffsetStore = NO_OFFSETS
    offset_changes: tuple[OffsetChange, ...] = ()  #: not yet replicated, in log order (F-RT-11)

    def armed(self, key: TimerKey) -> Armed | None:
        """The timer of this key, None if it is not set."""
        found: Armed | None = self.timers.get(slot_of(self, key))
        return found if found is not None and found.key == key else None


def initial_state(
    settings: Settings, profile: Profile, *, running: bool = True, functions: Functions | None = None
) -> CoordinatorState:
    """A coordinator that does not own its partition yet (F-RT-02). ``running`` False refuses everything (C-JOIN-03).

    Raises ``WrongType`` for settings, a profile or functions that are none."""
    expect(Settings, settings, "settings", "Settings() has Kafka's defaults")
    expect(Profile, profile, "profile", "take INTENDED, or PROFILES[name] for what a release of Kafka does")
    if functions is not None:
        expect_methods(Functions, functions, "functions", "StandardFunctions() and KafkaFunctions() are some")
    state = CoordinatorState(settings, profile, quirks_of(profile), running, functions=functions or _STANDARD)
    return state._replace(topics=no_topics(state))

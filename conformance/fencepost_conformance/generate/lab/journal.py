"""The journal of a session: messages, steps of the coordinator, changes of clients, and the user's actions, in
order."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from fencepost.protocol.events import Event
from fencepost.protocol.messages import RequestBody, ResponseBody

from ...traces.observation import Observation

COORDINATOR = "coordinator"


class Fate(StrEnum):
    """The present state of a message."""

    FLYING = "flying"
    ARRIVED = "arrived"
    LOST = "lost"
    IGNORED = "ignored"  #: its receiver has stopped, or has restarted


@dataclass(slots=True)
class Message:
    """A message between a client and the coordinator.

    ``step``: the coordinator's step that handled the request, also for its answer. ``copy``: a repeated request, whose
    answer is dropped. ``process``: of the client, counted from 1. ``asked``: the request that an answer is for, by
    number. ``moved``: the user has changed when it arrives."""

    number: int
    sender: str
    receiver: str
    body: RequestBody | ResponseBody
    sent_ms: int
    due_ms: int
    fate: Fate = Fate.FLYING
    step: int | None = None
    copy: bool = False
    process: int = 0
    asked: int | None = None
    moved: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the coordinator. ``rules``: those by which the model explains it."""

    event: Event
    seen: Observation
    rules: tuple[str, ...]


class Kind(StrEnum):
    """Kind of a row of the journal."""

    MESSAGE = "message"  #: a message arrives or is lost
    COORDINATOR = "coordinator"  #: a step without a request
    CLIENT = "client"  #: a client changes its state, or calls its listener
    ACT = "act"  #: the user acts
    ALERT = "alert"  #: a property does not hold, or the model disagrees


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the journal. ``lane``: a client or the coordinator. ``message``, ``step``: numbers of what the row is
    about. ``quiet``: routine, such as a heartbeat that changes nothing."""

    at_ms: int
    kind: Kind
    lane: str
    text: str = ""
    message: int | None = None
    step: int | None = None
    rules: tuple[str, ...] = ()
    quiet: bool = False


@dataclass(slots=True)
class Journal:
    """``rows`` in the order in which they happened; ``messages`` by number from 1; ``steps`` by number from 0.

    ``wire``: the messages as a proxy beside the clients sees them: time and number of each request that is sent and of
    each answer that arrives."""

    rows: list[Row] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    wire: list[tuple[int, int]] = field(default_factory=list)

    def message(self, number: int) -> Message:
        return self.messages[number - 1]

    @property
    def flying(self) -> list[Message]:
        """The messages on their way, the one that arrives first in front."""
        return sorted(
            (each for each in self.messages if each.fate is Fate.FLYING), key=lambda each: (each.due_ms, each.number)
        )

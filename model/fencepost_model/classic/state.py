"""The state of a classic group as flat, hashable tuples (G-DATA-01…11).

Derived data is not stored: the map of instance ids (G-DATA-05), the support counts and the number of parked joins
(G-DATA-08) follow from the members. Members are sorted by id, so that two groups that differ only in the order of a
hash map are one state.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerCommand
from fencepost.protocol.messages import Protocol, RequestBody, ResponseBody
from fencepost.protocol.records import Record

from ..machines import DEAD, EMPTY
from ..offsets.rows import Early, Fetched

#: A future that is still stored although the operation layer has answered it (C-ST-23, C-JOIN-70).
ANSWERED: Final = -(1 << 62)


class Member(NamedTuple):
    """One member (G-DATA-11). ``join`` and ``sync`` hold the id of the parked request, ``ANSWERED``, or None."""

    member_id: str
    instance: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int
    session_timeout: int
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    is_new: bool = False
    join: int | None = None
    sync: int | None = None


class Group(NamedTuple):
    """One group object.

    ``timestamp`` is the time of the last transition (G-DATA-01), or -1 if the group comes from a record without one.
    ``skew`` maps names to the error of their support counts, which only C-STATIC-18 causes.
    """

    state: str = EMPTY
    previous: str = DEAD
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    members: tuple[Member, ...] = ()
    pending_join: frozenset[str] = frozenset()
    pending_sync: frozenset[str] = frozenset()
    new_member_added: bool = False
    timestamp: int = 0
    skew: tuple[tuple[str, int], ...] = ()


class Arrive(NamedTuple):
    """A request arrives. ``new_id`` is the member id to use if the coordinator has to make one (G-WIRE-28)."""

    id: int
    version: int
    client_id: str
    client_host: str
    body: RequestBody
    new_id: str = ""
    denied: frozenset[str] = frozenset()  #: groups that the caller may not touch; only DeleteGroups reads it


class Created(NamedTuple):
    """Callback of the record that creates a group (C-JOIN-16)."""


class Emptied(NamedTuple):
    """Callback of the record of a group without members: a failure is only logged (C-JOIN-47)."""


class Assigned(NamedTuple):
    """Callback of the leader's SyncGroup (C-SYNC-21…23)."""

    generation: int
    assignments: tuple[tuple[str, bytes], ...]


class Replaced(NamedTuple):
    """Callback of a static replacement without rebalance: what is needed to finish or to undo it (C-STATIC-03…06)."""

    instance: str
    old_id: str
    new_id: str
    old_leader: str | None
    old_protocols: tuple[Protocol, ...]
    new_protocols: tuple[Protocol, ...]
    old_rebalance_timeout: int
    old_session_timeout: int
    skips_assignment: bool  #: the request's version is 9 or later (C-STATIC-04)
    detached: bool = False  #: an undo has put the id back since, as another member object (C-STATIC-18)


class Deleting(NamedTuple):
    """Callback of the write that precedes a deletion and writes nothing (C-ADM-09). It starts the deletion itself."""

    request: Arrive


class Timed(NamedTuple):
    """Callback of a classic request to a consumer group: timers to set or cancel with the answer (X-JOIN-20)."""

    timers: tuple[tuple[Timer, int | None], ...]
    #: partitions and metadata of a SyncGroup, whose answer is encoded when it is sent (X-SYNC-06)
    assignment: tuple[tuple[tuple[bytes, int], ...], bytes] | None = None


Callback: TypeAlias = Timed | Created | Emptied | Assigned | Replaced | Deleting | Early | Fetched


class Timer(NamedTuple):
    """A timer of one group: ``kind`` is ``join``, ``sync`` or ``session``; ``member_id`` only for ``session``.

    Timers of consumer groups have other kinds (``consumer.state.KINDS``). Setting a timer replaces the earlier one of
    the same name; a pending id and a member share one (C-TMR-11).
    """

    kind: str
    member_id: str = ""


#: A timer with its group: its length in ms, None if it is cancelled.
ArmedTimer: TypeAlias = tuple[str, Timer, int | None]


class Operation(NamedTuple):
    """A write operation that is not finished (F-RT-04, F-RT-07).

    - ``behind``: how many records must still become durable before it is finished.
    - ``body``: the answer to send then. None if the answer is a separate future (JoinGroup, SyncGroup) or there is none
      (a timer's write).
    - ``answered``: whether that future is complete.
    - ``timer``: set again if the write fails (F-RT-17).
    - ``superseded_by``: the write that has replaced the group that the callback acts on (X-UP-16).
    - ``rebalance_epoch``: the member's epoch that belongs to ``timer``, if any (M-TMR-02).
    """

    id: int
    group_id: str
    request: RequestBody | None
    behind: int
    body: ResponseBody | None = None
    answered: bool = False
    callback: Callback | None = None
    timer: Timer | None = None
    superseded_by: int | None = None
    rebalance_epoch: int | None = None


#: The kind of the timer of the next expiry run, which belongs to no group (O-EXP-26).
EXPIRY_KIND: Final = "expiry"
JOIN_TIMER: Final = Timer("join")
SYNC_TIMER: Final = Timer("sync")


class Fire(NamedTuple):
    """A timer of the group expires."""

    timer: Timer


class Durable(NamedTuple):
    """The next ``records`` records of the log are replicated."""

    records: int


class AppendError(NamedTuple):
    """The records of the last step were not appended. Only directly after that step (F-RT-08)."""

    error: ErrorCode


class TimeOut(NamedTuple):
    """An open operation times out (F-RT-09)."""

    operation: int


class Lose(NamedTuple):
    """The partition moves to another broker (F-UNLOAD-01)."""


Input: TypeAlias = Arrive | Fire | Durable | AppendError | TimeOut | Lose


class Output(NamedTuple):
    """The output of a step, in order. ``timers`` is empty where armed timers are part of the state."""

    records: tuple[Record, ...] = ()
    replies: tuple[tuple[int, ResponseBody], ...] = ()
    timers: tuple[TimerCommand, ...] = ()


def by_id(members: Iterable[Member]) -> tuple[Member, ...]:
    return tuple(sorted(members))

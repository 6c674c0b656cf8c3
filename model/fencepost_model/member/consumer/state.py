"""A KIP-848 member between two inputs (rule book, 8.9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED

from ...machines import UNSUBSCRIBED
from ..inputs import CloseOption, Partition
from .inputs import Topics


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """A member's configuration. ``listens``: the application has a rebalance listener. ``version``: of
    ConsumerGroupHeartbeat."""

    group_id: str = "g"
    member_id: str = "m"
    instance_id: str | None = None
    rack_id: str | None = None
    server_assignor: str | None = None
    rebalance_timeout_ms: int = 300_000
    auto_commit: bool = False
    listens: bool = True
    version: int = 1
    profile: Profile = INTENDED


class Local(NamedTuple):
    """An assignment with the local epoch that the client gave it (N-TR-02)."""

    epoch: int
    partitions: frozenset[tuple[bytes, int]]


class SentFields(NamedTuple):
    """The values last sent to the coordinator; None: nothing that counts (N-HB-02, N-HB-04)."""

    timeout: bool = False
    topics: frozenset[str] | None = None
    regex: str | None = None
    assignor: bool = False
    owned: Local | None = None
    owned_sent: bool = False


class Work(NamedTuple):
    """A reconciliation. ``local`` is the part of the target that can be resolved, ``names`` the same by topic name.

    ``stage``: ``commit``, ``retry``, ``revoke`` or ``assign``. ``stale``: the member has joined again (N-REC-05).
    """

    local: Local
    names: frozenset[Partition]
    gone: frozenset[Partition]
    stage: str = ""
    commit: int = -1
    stale: bool = False


class Task(NamedTuple):
    """A request of the background to the application's thread: to call a listener for a reason, or to throw.

    ``reason``: ``revoke``, ``assign``, ``fenced``, ``stale``, ``fatal``, ``leave`` or ``close``.
    """

    call: str
    partitions: frozenset[Partition] = frozenset()
    reason: str = ""
    error: str = ""


class ClientState(NamedTuple):
    """One member.

    - ``known``: topics as the client has them; ``cache``: those of the last target (N-REC-02).
    - ``target``, ``current``: the assignment received last, and the one reconciled last.
    - ``owned``, by ids ``had`` (N-HB-05): the application's partitions. Of these ``blocked`` are about to be given up
      (N-REC-04), and ``fresh`` not yet reported to it (N-REC-07).
    - ``in_flight``: the heartbeat that holds back the next; ``leave_request``: it is the leave.
    - ``late``: heartbeats from before a leave (N-HB-11); ``ignored``: those whose answers are ignored (N-TR-09).
    - ``known_member``: it has had an epoch other than 0, or has failed for ever, and commits in its name (N-CMT-01).
    - ``due``: no interval or back-off holds back a heartbeat; ``failing``: a back-off after a failure does.
    - ``call``: the application's call that has not returned; ``batch``: its remaining tasks from ``queue``;
      ``drained``: it has taken from the queue before.
    - ``leaving``: an unsubscribe or close waits for the end of the leave.
    - ``app_owned``: what the application's thread of Kafka's client believes to be owned.
    - ``in_since``: there was an epoch since the last unsubscribe (N-CLOSE-01).
    """

    state: str = UNSUBSCRIBED
    epoch: int = 0
    known_member: bool = False
    coordinator: bool = False
    subscribed: bool = False
    changed: bool = False
    topics: frozenset[str] = frozenset()
    regex: str | None = None
    known: Topics = frozenset()
    cache: Topics = frozenset()
    target: Local | None = None
    current: Local | None = None
    had: frozenset[tuple[bytes, int]] = frozenset()
    owned: frozenset[Partition] = frozenset()
    blocked: frozenset[Partition] = frozenset()
    fresh: frozenset[Partition] = frozenset()
    work: Work | None = None
    in_flight: int | None = None
    late: frozenset[int] = frozenset()
    ignored: frozenset[int] = frozenset()
    leave_request: int | None = None
    failing: bool = False
    due: bool = True
    sent_fields: SentFields = SentFields()
    queue: tuple[Task, ...] = ()
    running: Task | None = None
    batch: tuple[Task, ...] = ()
    call: str = ""
    drained: bool = False
    app_owned: frozenset[Partition] = frozenset()
    in_since: bool = False
    thrown: str = ""
    leaving: bool = False
    close_commit: int | None = None
    back: bool = False
    expired: bool = False
    option: CloseOption = CloseOption.DEFAULT
    closed: bool = False
    next_request: int = 1

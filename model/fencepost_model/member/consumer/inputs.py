"""What happens to a KIP-848 member, beside the inputs that it shares with a classic one."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse

from ..inputs import (
    Close,
    CoordinatorFound,
    EnforceRebalance,
    HeartbeatDue,
    Poll,
    PollExpired,
    Subscribe,
    Unsubscribe,
)

#: Topic ids with their names.
Topics: TypeAlias = frozenset[tuple[bytes, str]]


class SubscribeRegex(NamedTuple):
    """The application subscribes to what a regular expression matches, in the coordinator's eyes."""

    regex: str


class ListenerReturned(NamedTuple):
    """The listener call under way is over."""

    threw: bool = False


class CommitEnded(NamedTuple):
    """The commit is over; ``again``: it failed, may be repeated, and the time for that is not over (N-REC-04)."""

    request: int
    again: bool = False


class Heard(NamedTuple):
    """A heartbeat is answered; ``body`` None: the connection broke or the request timed out."""

    request: int
    body: ConsumerGroupHeartbeatResponse | None


class CommitDue(NamedTuple):
    """The back-off before the commit is tried again is over."""


class Disconnected(NamedTuple):
    """The connection to the coordinator broke."""


class TopicsKnown(NamedTuple):
    """The client learns which topics there are."""

    topics: Topics


ClientInput: TypeAlias = (
    Poll
    | ListenerReturned
    | CoordinatorFound
    | Heard
    | HeartbeatDue
    | CommitDue
    | Disconnected
    | PollExpired
    | Subscribe
    | SubscribeRegex
    | Unsubscribe
    | Close
    | EnforceRebalance
    | CommitEnded
    | TopicsKnown
)

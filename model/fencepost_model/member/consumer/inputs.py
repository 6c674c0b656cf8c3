"""Inputs of a KIP-848 member, besides those that it shares with a classic one."""

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
    """The application subscribes to the topics that match a regular expression; the coordinator matches."""

    regex: str


class ListenerReturned(NamedTuple):
    """The running listener call is over."""

    threw: bool = False


class CommitEnded(NamedTuple):
    """The commit is over. ``again``: it failed, may be retried, and its time is not over (N-REC-04)."""

    request: int
    again: bool = False


class HeartbeatAnswered(NamedTuple):
    """A heartbeat is answered; ``body`` None: the connection broke or the request timed out."""

    request: int
    body: ConsumerGroupHeartbeatResponse | None


class CommitDue(NamedTuple):
    """The back-off before the commit is retried is over."""


class Disconnected(NamedTuple):
    """The connection to the coordinator broke."""


class TopicsKnown(NamedTuple):
    """The client learns which topics there are."""

    topics: Topics


ClientInput: TypeAlias = (
    Poll
    | ListenerReturned
    | CoordinatorFound
    | HeartbeatAnswered
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

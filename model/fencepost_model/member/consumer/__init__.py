"""The client's side of KIP-848: one member as a pure function (rule book, 8.9–8.12).

Kafka's client has two threads. Here the *background* works in every input until it has nothing more to do. The
*application* moves only in its own inputs: a call, and the return of a listener.
"""

from .inputs import (
    CommitDue,
    CommitEnded,
    Disconnected,
    HeartbeatAnswered,
    ListenerReturned,
    SubscribeRegex,
    TopicsKnown,
)
from .model import ClientModel
from .state import ClientConfig, ClientState

__all__ = [
    "ClientConfig",
    "ClientModel",
    "ClientState",
    "CommitDue",
    "CommitEnded",
    "Disconnected",
    "HeartbeatAnswered",
    "ListenerReturned",
    "SubscribeRegex",
    "TopicsKnown",
]

"""The client's side of the classic protocol: one member as a pure function (rule book, 8.1–8.5)."""

from .inputs import (
    Answer,
    Close,
    CloseOption,
    CoordinatorFound,
    EnforceRebalance,
    HeartbeatDue,
    MetadataChanged,
    Poll,
    PollExpired,
    SessionExpired,
    Subscribe,
    Unsubscribe,
)
from .model import MemberModel, MemberSuccessor
from .outputs import AskMetadata, Callback, Commit, FindCoordinator, Raise, Send
from .state import MemberConfig, MemberState

__all__ = [
    "Answer",
    "AskMetadata",
    "Callback",
    "Close",
    "CloseOption",
    "Commit",
    "CoordinatorFound",
    "EnforceRebalance",
    "FindCoordinator",
    "HeartbeatDue",
    "MemberConfig",
    "MemberModel",
    "MemberState",
    "MemberSuccessor",
    "MetadataChanged",
    "Poll",
    "PollExpired",
    "Raise",
    "Send",
    "SessionExpired",
    "Subscribe",
    "Unsubscribe",
]

"""Promises of the protocol: each with its id, its words, and a predicate over views of group and member.

The closed systems, product exploration, simulation, Hypothesis machines and the model's own walks ask these predicates.
Each of them makes views of what it has: of a state (``GroupView``, ``ClassicGroupView``), of a step (``GroupStep``,
``ClassicGroupStep``), or of an answer (``JoinAnswerView``, ``SyncAnswerView``, ``HeartbeatView``). A check that sees
only a part of the state, such as the checker of recorded traces, keeps its own form and cites the id.
"""

from .catalogue import PROMISES, broken_promises
from .promise import Promise
from .views import (
    ClassicGroupStep,
    ClassicGroupView,
    ClassicMemberView,
    GroupStep,
    GroupView,
    HeartbeatView,
    JoinAnswerView,
    MemberView,
    SyncAnswerView,
)

__all__ = [
    "PROMISES",
    "ClassicGroupStep",
    "ClassicGroupView",
    "ClassicMemberView",
    "GroupStep",
    "GroupView",
    "HeartbeatView",
    "JoinAnswerView",
    "MemberView",
    "Promise",
    "SyncAnswerView",
    "broken_promises",
]

"""Promises of the protocol: each with its id, its words, and a predicate over views of group and member.

The closed systems, product exploration, simulation, Hypothesis machines and the model's own walks ask these predicates.
Each of them makes a ``GroupView`` of what it has. A check that sees only a part of the state, such as the checker of
recorded traces, keeps its own form and cites the id.
"""

from .catalogue import PROMISES, Promise, broken_promises
from .views import GroupView, MemberView

__all__ = ["PROMISES", "GroupView", "MemberView", "Promise", "broken_promises"]

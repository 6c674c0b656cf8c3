"""The fairness under which liveness is checked: that of ``FairSpec`` in the specification."""

from __future__ import annotations

from ..explore.interface import Fairness


def of_system(actions: frozenset[str]) -> tuple[Fairness, ...]:
    """Return ``WF_vars(System)``: while the system can move, it moves. The environment is not fair.

    ``actions``: the actions of the disjunction ``System``. Fairness applies to the whole disjunction. Fairness of each
    action would be a stronger assumption than the specification makes.
    """
    return (Fairness("System", lambda label: label[0] in actions),)

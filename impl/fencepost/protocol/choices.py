"""What the protocol leaves open and the host decides: fresh member ids, the next leader, ties of a vote.

The coordinator asks; it never draws. Handing in the answers keeps a step a function of its arguments, and lets a
comparison with another coordinator follow that coordinator's choices instead of calling them differences (NOT-10).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Choices(Protocol):
    def member_id(self, prefix: str) -> str:
        """A new member id; ``prefix`` is the instance id or client id (G-WIRE-28)."""

    def leader(self, group_id: str, candidates: Sequence[str]) -> str:
        """One of the candidates (C-JOIN-45, C-JOIN-76); they come in the order in which they were added."""

    def protocol(self, group_id: str, tied: Sequence[str]) -> str:
        """One of the protocol names with equally many votes (C-JOIN-63), in the order of their first vote."""

"""What the protocol leaves open and the host decides: fresh member ids, the next leader, ties of a vote, orders.

The coordinator asks; it never draws. Handing in the answers keeps a step a function of its arguments, and lets a
comparison with another coordinator follow that coordinator's choices instead of calling them differences (NOT-10).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol


class Choices(Protocol):
    """Answers to what the coordinator asks; each may be any of what it is offered."""

    def member_id(self, prefix: str) -> str:
        """A new member id; ``prefix`` is the instance id or client id (G-WIRE-28)."""

    def leader(self, group_id: str, candidates: Sequence[str]) -> str:
        """One of the candidates (C-JOIN-45, C-JOIN-76); they come in the order in which they were added."""

    def protocol(self, group_id: str, tied: Sequence[str]) -> str:
        """One of the protocol names with equally many votes (C-JOIN-63), in the order of their first vote."""

    def uuid(self) -> str:
        """A new member id that consists of a random UUID alone (G-WIRE-28)."""

    def assignor(self, group_id: str, tied: Sequence[str]) -> str:
        """One of the server assignors with equally many votes (M-TGT-02), sorted by name."""

    def standing(self, group_id: str, tied: Sequence[str]) -> str:
        """The one of them that Kafka takes for elected before a request, by another map (M-HB-15)."""

    def shown(self, group_id: str, *, least: int, most: int) -> int:
        """How often a read shows a group, or a member of one, of which there are entries in earlier versions of its
        table (C-ADM-05): all ``most``, or fewer where an earlier version has grown larger than the table of now."""

    def order(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        """The members in the order in which an assignor goes through them (A-UHOM-01), or in which subscriptions of a
        classic group are read that cannot be, each in its own way (G-DATA-10, X-UP-06); they come sorted by id."""

    def topics(self, group_id: str, topic_ids: Sequence[bytes]) -> Sequence[bytes]:
        """These topics in the order in which a hash table took them in (A-UHOM-07). Asked only where it decides: two of
        them share a bucket, and what a member gives up or gets may go by it."""

    def table(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        """These keys as a table of them shows them; they come in the order in which they were put in. Asked only where
        it decides: all groups, with an empty ``group_id``, where a load arms timers that have one name (C-TMR-11); the
        resolved regexes of a group where the time of the first one counts, and they have several (M-RX-03)."""


class Functions(Protocol):
    """What the standard library does not have; pure functions that the host hands in."""

    def hash64(self, data: bytes) -> int:
        """XXH3, 64 bits, signed (M-META-07)."""

    def matcher(self, regex: str) -> Callable[[str], bool] | None:
        """Whether the whole of a topic name matches (M-RX-01, RE2 syntax); None if the regex does not compile."""

    def regex_fault(self, regex: str) -> str:
        """What is wrong with a regex that does not compile, for the client that sent it (M-VAL-08)."""

"""Nondeterministic choices, which the host makes: fresh member ids, the next leader, ties of a vote, orders.

The coordinator asks for each choice and never draws. So a step is a function of its arguments, and a comparison with
another coordinator can follow that coordinator's choices instead of reporting them as differences (NOT-10).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol


class Choices(Protocol):
    """The host's choices. Each method may return any of the values it is offered."""

    def member_id(self, prefix: str) -> str:
        """Return a new member id; ``prefix`` is the instance id or client id (G-WIRE-28)."""

    def leader(self, group_id: str, candidates: Sequence[str]) -> str:
        """Return one of the candidates (C-JOIN-45, C-JOIN-76), which are in the order in which they were added."""

    def protocol(self, group_id: str, tied: Sequence[str]) -> str:
        """Return one of the protocol names with equally many votes (C-JOIN-63), in the order of their first vote."""

    def uuid(self) -> str:
        """Return a new member id that is a random UUID (G-WIRE-28)."""

    def assignor(self, group_id: str, tied: Sequence[str]) -> str:
        """Return one of the server assignors with equally many votes (M-TGT-02), sorted by name."""

    def standing(self, group_id: str, tied: Sequence[str]) -> str:
        """Return the one that Kafka treats as elected before a request, according to another map (M-HB-15)."""

    def shown(self, group_id: str, *, least: int, most: int) -> int:
        """Return how often a read lists a group, or a group's member, that has entries in earlier versions of its table
        (C-ADM-05): ``most`` times, or fewer if an earlier version has grown larger than the current table."""

    def order(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        """Return the members in the order in which an assignor visits them (A-UHOM-01), or in which unreadable
        subscriptions of a classic group are read (G-DATA-10, X-UP-06). ``keys``: sorted by id."""

    def topics(self, group_id: str, topic_ids: Sequence[bytes]) -> Sequence[bytes]:
        """Return the topics in the order in which a hash table got them (A-UHOM-07). Called only if it matters: two of
        them share a bucket, and the partitions that a member gives up or gets may depend on it."""

    def table(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        """Return the keys in the order of a hash table; ``keys``: in the order of insertion. Called only if it matters:
        for all groups, with an empty ``group_id``, when a load sets timers with equal names (C-TMR-11); for a group's
        resolved regexes, when the time of the first one counts and they differ (M-RX-03)."""


class Functions(Protocol):
    """Pure functions that the standard library lacks; the host passes them in."""

    def hash64(self, data: bytes) -> int:
        """Return the signed 64-bit XXH3 hash (M-META-07)."""

    def matcher(self, regex: str) -> Callable[[str], bool] | None:
        """Return a predicate for whole topic names (M-RX-01, RE2 syntax); None if the regex does not compile."""

    def regex_fault(self, regex: str) -> str:
        """Return what is wrong with a regex that does not compile, for the client that sent it (M-VAL-08)."""

"""Two ways to make the nondeterministic choices of ``fencepost.protocol.choices.Choices``: random, or always alike."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random


class RandomChoices:
    """Hands out member ids in order and draws every other choice."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._count = 0

    def member_id(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}-{self._count}"

    def leader(self, group_id: str, candidates: Sequence[str]) -> str:
        return self._rng.choice(list(candidates))

    def protocol(self, group_id: str, tied: Sequence[str]) -> str:
        return self._rng.choice(list(tied))

    def uuid(self) -> str:
        self._count += 1
        return f"uuid{self._count}"

    def assignor(self, group_id: str, tied: Sequence[str]) -> str:
        return self._rng.choice(tied)

    def standing(self, group_id: str, tied: Sequence[str]) -> str:
        return self._rng.choice(tied)

    def shown(self, group_id: str, *, least: int, most: int) -> int:
        return most

    def order(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return self._rng.sample(keys, len(keys))

    def topics(self, group_id: str, topic_ids: Sequence[bytes]) -> Sequence[bytes]:
        return topic_ids

    def table(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return keys


class Smallest:
    """Hands out numbered member ids (``made`` so far) and takes the smallest option in every other choice."""

    def __init__(self, made: int = 0) -> None:
        self.made = made

    def member_id(self, prefix: str) -> str:
        self.made += 1
        return f"m{self.made}"

    def leader(self, group_id: str, candidates: Sequence[str]) -> str:
        return min(candidates)

    def protocol(self, group_id: str, tied: Sequence[str]) -> str:
        return min(tied)

    def uuid(self) -> str:
        return self.member_id("")

    def assignor(self, group_id: str, tied: Sequence[str]) -> str:
        return min(tied)

    def standing(self, group_id: str, tied: Sequence[str]) -> str:
        return min(tied)

    def shown(self, group_id: str, *, least: int, most: int) -> int:
        return most

    def order(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return keys

    def topics(self, group_id: str, topic_ids: Sequence[bytes]) -> Sequence[bytes]:
        return topic_ids

    def table(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return keys

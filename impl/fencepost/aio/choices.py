"""Choices for a program that need not reproduce those of a Kafka broker."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from uuid import UUID, uuid4


class RandomChoices:
    """Random ids; the first candidate leads, which is the member that has waited longest; the first of equal protocols
    wins. With a ``seed`` the ids are the same in each run."""

    def __init__(self, seed: int | str | None = None) -> None:
        self._random = None if seed is None else Random(seed)

    def member_id(self, prefix: str) -> str:
        return f"{prefix}-{self.uuid()}"

    def leader(self, group_id: str, candidates: Sequence[str]) -> str:
        return candidates[0]

    def protocol(self, group_id: str, tied: Sequence[str]) -> str:
        return tied[0]

    def uuid(self) -> str:
        return str(uuid4() if self._random is None else UUID(int=self._random.getrandbits(128), version=4))

    def assignor(self, group_id: str, tied: Sequence[str]) -> str:
        return tied[0]

    def shown(self, group_id: str, *, least: int, most: int) -> int:
        return most

    def standing(self, group_id: str, tied: Sequence[str]) -> str:
        return tied[0]

    def order(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return keys

    def topics(self, group_id: str, topic_ids: Sequence[bytes]) -> Sequence[bytes]:
        return topic_ids

    def table(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return keys

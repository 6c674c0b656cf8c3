"""The bytes that members exchange through the coordinator, as far as the model must write or read them.

The coordinator does not look inside, so the model may use any encoding. A caller that follows real clients passes their
codec (rule book, 10). ``PlainCodec`` is a readable one.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Sequence
from typing import Protocol

from fencepost.protocol.messages import JoinGroupMember

from .inputs import Metadata, Partition


class Codec(Protocol):
    def subscription(
        self, protocol: str, topics: frozenset[str], owned: frozenset[Partition], generation: int
    ) -> bytes:
        """Return a member's metadata for one of its protocols (K-JOIN-12)."""

    def topics(self, metadata: bytes) -> frozenset[str]:
        """Return the topics of a subscription."""

    def assign(
        self, protocol: str, members: Sequence[JoinGroupMember], metadata: Metadata
    ) -> tuple[tuple[str, bytes], ...]:
        """Return the leader's assignment. May raise the exceptions of the assignor (K-JOIN-20)."""

    def assignment(self, data: bytes) -> frozenset[Partition]:
        """Return the partitions of an assignment. Raises ValueError if the bytes are not one (K-JOIN-14)."""


class PlainCodec:
    """A codec of Python literals. It deals out partitions in turn over the members in order of id."""

    def subscription(
        self, protocol: str, topics: frozenset[str], owned: frozenset[Partition], generation: int
    ) -> bytes:
        return repr((sorted(topics), sorted(owned), generation)).encode()

    def topics(self, metadata: bytes) -> frozenset[str]:
        return frozenset(literal_eval(metadata.decode())[0])

    def assign(
        self, protocol: str, members: Sequence[JoinGroupMember], metadata: Metadata
    ) -> tuple[tuple[str, bytes], ...]:
        given: dict[str, list[Partition]] = {row.member_id: [] for row in members}
        for topic, count in metadata:
            takers = sorted(row.member_id for row in members if topic in self.topics(row.metadata))
            for partition in range(count if takers else 0):
                given[takers[partition % len(takers)]].append((topic, partition))
        return tuple((member_id, repr(partitions).encode()) for member_id, partitions in sorted(given.items()))

    def assignment(self, data: bytes) -> frozenset[Partition]:
        if len(data) < 2:
            raise ValueError("an assignment has at least two bytes")
        return frozenset(literal_eval(data.decode()))

"""A client plug-in with a fixed result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from fencepost.member.assignors.base import Assigned, RebalanceProtocol
from fencepost.member.consumer_protocol import Assignment
from fencepost.member.partitions import TopicPartition


@dataclass(frozen=True, slots=True)
class Fixed:
    """Return the given assignment; ``raises`` is the error of ``assign``, ``deaf`` that of ``on_assignment``."""

    assignments: tuple[tuple[str, tuple[TopicPartition, ...]], ...] = ()
    raises: str | None = None
    name: str = "fixed"
    version: int = 0
    protocols: frozenset[RebalanceProtocol] = frozenset({RebalanceProtocol.EAGER})
    seen: tuple[TopicPartition, ...] | None = None
    deaf: str | None = None

    COOPERATIVE: ClassVar = frozenset(RebalanceProtocol)

    def user_data(self, topics):
        return b"data"

    def assign(self, topics, members):
        if self.raises is not None:
            raise RuntimeError(self.raises)
        return Assigned({member: Assignment(partitions) for member, partitions in self.assignments}, self)

    def on_assignment(self, assignment, generation_id):
        if self.deaf is not None:
            raise RuntimeError(self.deaf)
        return replace(self, seen=assignment.partitions)

"""The requests that a member of a consumer group (KIP-848) may send. ``classic`` says when an answer binds a client."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode

from ..checker.offsets.places import Names, Place
from ..checker.positions.clients import places
from .classic import Since, listed

_JOINS: Final = 0
_NO_EPOCH: Final = -1
#: answers after which the member must join again (N-TR-06)
FENCED: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
#: an answer after which it must stop (N-ERR-04)
FATAL: Final = frozenset({ErrorCode.FENCED_INSTANCE_ID})


@dataclass(slots=True)
class ConsumerMember:
    """A member by its id. ``usable``: the partitions that it may use; None if they are not known. ``epochs``: those
    that it got, with the time of each."""

    group: str
    member_id: str
    epoch: int = 0
    renewed: Since | None = None
    removed: Since | None = None
    left: Since | None = None
    target: set[Place] = field(default_factory=set)
    usable: set[Place] | None = field(default_factory=set)
    gave_up: Since | None = None
    interval_ms: int = 0
    waiting: dict[int, int] = field(default_factory=dict)

    def beats(
        self, asked: ConsumerGroupHeartbeatRequest, names: Names, at_ms: int, connection: int
    ) -> list[tuple[str, str, str]]:
        """Note a heartbeat; return the promises that it breaks, each with what was sent and what is allowed."""
        epoch = asked.member_epoch
        found = [] if epoch < 0 else self._wrong_epoch(epoch, at_ms, connection)
        claimed = None if asked.topic_partitions is None else places(asked.topic_partitions, names)
        if epoch == _JOINS:
            self.removed = self.left = None
            self.epoch, self.target, self.usable = _JOINS, set(), set()
            self.renewed = None
        if claimed is not None and epoch >= 0 and self.usable is not None:
            if wrong := claimed - self.usable:
                owns = "nothing, since it joins" if epoch == _JOINS else f"at most {listed(self.usable)}"
                found.append(("owned partitions", f"that it owns {listed(wrong)}", owns))
            if self.usable - claimed - self.target:
                self.gave_up = Since(at_ms, connection, "ConsumerGroupHeartbeat")
            self.usable = claimed & self.usable | self.target
        if epoch < 0:
            self.left = Since(at_ms, connection, f"epoch {epoch}")
            self.usable, self.target = set(), set()
        return found

    def _wrong_epoch(self, epoch: int, at_ms: int, connection: int) -> list[tuple[str, str, str]]:
        wrong = None if epoch == _JOINS else self.wrong_identity(epoch, at_ms, connection)
        if epoch == _JOINS and self.removed is not None and self.removed.what in {each.name for each in FATAL}:
            wrong = ("removed", f"nothing: {self.removed.what} at {self.removed.at_ms} ms is final")
        return [] if wrong is None else [(wrong[0], f"epoch {epoch}", wrong[1])]

    def wrong_identity(self, epoch: int, at_ms: int, connection: int) -> tuple[str, str] | None:
        """Return the promise that a request with this epoch breaks, and what is allowed; None if it is right."""
        if epoch == _NO_EPOCH:
            return None
        if self.left is not None and self.left.binds(at_ms, connection, own=True):
            return "left", f"a join with epoch 0: the member left at {self.left.at_ms} ms"
        if self.removed is not None and self.removed.binds(at_ms, connection):
            return "removed", f"a join with epoch 0, or nothing: {self.removed.what} at {self.removed.at_ms} ms"
        if epoch != self.epoch and self.renewed is not None and self.renewed.binds(at_ms, connection):
            return "identity", f"epoch {self.epoch}, which it got at {self.renewed.at_ms} ms"
        return None

    def hears(
        self,
        asked: ConsumerGroupHeartbeatRequest,
        answer: ConsumerGroupHeartbeatResponse,
        names: Names,
        at_ms: int,
        connection: int,
    ) -> None:
        """Note the answer to a heartbeat."""
        code = answer.error_code
        if code in FENCED | FATAL and asked.member_epoch in (self.epoch, _JOINS) and self.left is None:
            self.removed = self.removed or Since(at_ms, connection, code.name)
        if code is not ErrorCode.NONE or answer.member_epoch < 0 or asked.member_epoch < 0 or self.left is not None:
            return
        if answer.member_epoch != self.epoch:
            self.epoch, self.renewed = answer.member_epoch, Since(at_ms, connection, f"epoch {answer.member_epoch}")
        self.interval_ms = answer.heartbeat_interval_ms or self.interval_ms
        if answer.assignment is not None and self.usable is not None:
            self.target = places(answer.assignment, names)
            self.usable |= self.target

    def not_owned(self, committed: set[Place], at_ms: int, connection: int) -> set[Place]:
        """Return which of these partitions the member may not commit."""
        if self.usable is None:
            return set()
        wrong = committed - self.usable
        if wrong and self.gave_up is not None and not self.gave_up.binds(at_ms, connection, own=True):
            return set()
        return wrong

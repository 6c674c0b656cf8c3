"""A client program of the consumer protocol as the generator plays it (K-*): one heartbeat loop, and its partitions.

It reacts to answers as a real client does: it adopts the epoch, gives up partitions that left its assignment, reports
that, and joins again with epoch 0 when it is fenced. It knows nothing about the coordinator but the answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from random import Random

from fencepost.protocol import consumer_messages as c
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import RequestBody, ResponseBody

from .consumer_plan import REGEXES, TOPICS
from .plan import ConsumerPlan

_REJOIN = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND)
_RETRY = (
    ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)  # fmt: skip

Owned = dict[bytes, tuple[int, ...]]


class ConsumerPhase(Enum):
    OUT = "out"  #: must join
    JOINING = "joining"  #: waits for the answer to its join
    IN = "in"
    GONE = "gone"  #: a static member that has left for a while


def rows(owned: Owned) -> tuple[c.TopicPartitions, ...]:
    return tuple(c.TopicPartitions(topic, owned[topic]) for topic in sorted(owned) if owned[topic])


@dataclass(slots=True)
class ConsumerClient:
    """``waiting_for``: the request whose answer counts. ``assigned``: its last assignment, None once it has reported
    it; ``owned``: the partitions that it owns."""

    plan: ConsumerPlan
    member_id: str = ""
    epoch: int = 0
    phase: ConsumerPhase = ConsumerPhase.OUT
    names: tuple[str, ...] | None = None
    regex: str | None = None
    owned: Owned = field(default_factory=dict)
    assigned: Owned | None = None
    silent: bool = False
    waiting_for: int | None = None
    last: tuple[int, RequestBody] | None = None
    born: int = 0

    def __post_init__(self) -> None:
        self.names, self.regex = self.plan.names, self.plan.regex

    def next_request(self, rng: Random, restart: float) -> tuple[int, RequestBody] | None:
        """Return the version and body of its next request, None if it only waits (or has crashed)."""
        if self.silent:
            return None
        if self.waiting_for is not None and rng.random() >= 0.06:
            return None  # one heartbeat at a time; sometimes it times out and is sent again
        if self.phase is not ConsumerPhase.IN:
            return self.join(rng)
        draw = rng.random()
        if draw < restart:
            self.restart(rng)
            return None
        if draw < restart + 0.04:
            return self.leave(rng)
        if draw < restart + 0.04 + self.plan.fickle:
            self._change(rng)
            return self.plan.version, self.heartbeat(full=rng.random() < 0.5)
        if self.assigned is not None and rng.random() < 0.7:
            return self.plan.version, self._report(rng)
        return self.plan.version, self.heartbeat(full=rng.random() < 0.12)

    def restart(self, rng: Random) -> None:
        """End the program abruptly; it may start again and knows nothing (but perhaps its member id)."""
        if rng.random() < 0.8:
            self.member_id = ""
        self._forget()
        self.silent = rng.random() < 0.3

    def _forget(self) -> None:
        self.epoch, self.phase, self.waiting_for = 0, ConsumerPhase.OUT, None
        self.owned, self.assigned = {}, None

    def join(self, rng: Random) -> tuple[int, RequestBody]:
        """Return a join with everything about itself and epoch 0 (M-VAL-10…12)."""
        plan = self.plan
        if not self.member_id and plan.version >= 1:
            self.born += 1
            made = f"{rng.randrange(16**6):06x}-{plan.client_host[-1]}-{self.born}"
            self.member_id = rng.choice(plan.ids) if plan.ids else made
        self.owned, self.assigned = {}, None
        names = () if self.names is None and self.regex is None else self.names
        return plan.version, c.ConsumerGroupHeartbeatRequest(
            plan.group_id,
            member_id=self.member_id,
            member_epoch=c.JOIN_EPOCH,
            instance_id=plan.instance_id,
            rack_id=plan.rack_id,
            rebalance_timeout_ms=plan.rebalance_timeout_ms,
            subscribed_topic_names=names,
            subscribed_topic_regex=self.regex if plan.version >= 1 else None,
            server_assignor=plan.assignor,
            topic_partitions=(),
        )

    def heartbeat(self, *, full: bool) -> c.ConsumerGroupHeartbeatRequest:
        """Return a heartbeat with its epoch only, or a full one (M-RSP-01)."""
        plan = self.plan
        if not full:
            return c.ConsumerGroupHeartbeatRequest(
                plan.group_id, member_id=self.member_id, member_epoch=self.epoch, instance_id=plan.instance_id
            )
        return c.ConsumerGroupHeartbeatRequest(
            plan.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=plan.instance_id,
            rack_id=plan.rack_id,
            rebalance_timeout_ms=plan.rebalance_timeout_ms,
            subscribed_topic_names=() if self.names is None and self.regex is None else self.names,
            subscribed_topic_regex=self.regex if plan.version >= 1 else None,
            server_assignor=plan.assignor,
            topic_partitions=rows(self.owned),
        )

    def _change(self, rng: Random) -> None:
        """Change the subscription: other names, another regex, or from one kind to the other."""
        if self.plan.version >= 1 and rng.random() < 0.35:
            self.regex = rng.choice(("", *(self.plan.regexes or REGEXES)))
            if rng.random() < 0.5:
                self.names = ()
        else:
            self.names = tuple(topic for topic in TOPICS[:4] if rng.random() < 0.5)
            if self.regex and rng.random() < 0.5:
                self.regex = ""

    def _report(self, rng: Random) -> c.ConsumerGroupHeartbeatRequest:
        """Give up revoked partitions and report what it owns now (M-REC-18), at once or in parts."""
        assert self.assigned is not None
        if rng.random() < self.plan.honest:
            self.owned, self.assigned = self.assigned, None
        elif rng.random() < 0.5:  # revoked, but the new ones are not added yet
            self.owned = {t: tuple(p for p in ps if p in self.assigned.get(t, ())) for t, ps in self.owned.items()}
        body = self.heartbeat(full=False)
        return c.ConsumerGroupHeartbeatRequest(
            body.group_id,
            member_id=body.member_id,
            member_epoch=body.member_epoch,
            instance_id=body.instance_id,
            topic_partitions=rows(self.owned),
        )

    def leave(self, rng: Random) -> tuple[int, RequestBody]:
        """Leave permanently, or temporarily as a static member (M-LEAVE-01…05)."""
        plan = self.plan
        epoch = c.STATIC_LEAVE_EPOCH if plan.instance_id is not None and rng.random() < 0.8 else c.LEAVE_EPOCH
        return plan.version, c.ConsumerGroupHeartbeatRequest(
            plan.group_id, member_id=self.member_id, member_epoch=epoch, instance_id=plan.instance_id
        )

    def sent(self, request_id: int, version: int, body: RequestBody) -> None:
        """Note that one of its requests was sent."""
        self.waiting_for, self.last = request_id, (version, body)
        if not isinstance(body, c.ConsumerGroupHeartbeatRequest):
            return
        if body.member_epoch == c.JOIN_EPOCH:
            self.phase = ConsumerPhase.JOINING
        elif body.member_epoch < 0:
            self._forget()
            self.member_id = ""
            self.phase = ConsumerPhase.GONE if body.member_epoch == c.STATIC_LEAVE_EPOCH else ConsumerPhase.OUT

    def answered(self, request_id: int, body: ResponseBody) -> None:
        """Handle an answer; ignore one that it no longer waits for."""
        if request_id != self.waiting_for:
            return
        self.waiting_for = None
        if not isinstance(body, c.ConsumerGroupHeartbeatResponse):
            return
        if body.error_code is ErrorCode.NONE:
            self._take_assignment(body)
        elif body.error_code in _REJOIN:
            self._forget()
        elif body.error_code not in _RETRY:
            self._forget()
            self.member_id = ""
            self.silent = True  # it gives up, or backs off

    def _take_assignment(self, body: c.ConsumerGroupHeartbeatResponse) -> None:
        if body.member_epoch < 0:
            return
        self.member_id, self.epoch, self.phase = body.member_id or self.member_id, body.member_epoch, ConsumerPhase.IN
        if body.assignment is not None:
            self.assigned = {row.topic_id: row.partitions for row in body.assignment}

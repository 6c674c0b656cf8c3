"""Drive one KIP-848 member in tests: feed events, keep commands, with shortcuts for the common exchanges."""

from __future__ import annotations

from typing import Any, TypeVar

from fencepost.member import events as ev
from fencepost.member.consumer import ConsumerMember, ConsumerSettings, consumer_step
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.consumer_messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic

Kind = TypeVar("Kind")

T, U = b"\1" * 16, b"\2" * 16
T0, T1, T2, U0 = (*(TopicPartition("t", number) for number in range(3)), TopicPartition("u", 0))
CLUSTER = (Topic("t", T, 3), Topic("u", U, 1))
INTERVAL = 5_000


def rows(*partitions: TopicPartition) -> tuple[TopicPartitions, ...]:
    """Return the rows by topic id, as on the wire."""
    ids = {"t": T, "u": U}
    return tuple(
        TopicPartitions(ids[name], tuple(sorted(each.partition for each in partitions if each.topic == name)))
        for name in sorted({each.topic for each in partitions})
    )


class ConsumerDriver:
    """A member under test: ``commands`` are those of the last event or exchange, ``calls`` all listener calls since
    they were last read."""

    def __init__(self, **settings: Any) -> None:
        self.member = ConsumerMember(ConsumerSettings("g", **settings), "me")
        self.now = 1_000
        self.commands: tuple[ev.Command, ...] = ()
        self.timers: dict[ev.MemberTimer, int] = {}
        self._calls: list[tuple[str, tuple[TopicPartition, ...]]] = []

    def do(self, event: ev.MemberEvent, jitter: float = 1.0) -> tuple[ev.Command, ...]:
        self.member, self.commands = consumer_step(self.member, event, jitter)
        for command in self.commands:
            match command:
                case ev.Listener(call, partitions):
                    self._calls.append((call.value, partitions))
                case ev.SetMemberTimer(timer, delay):
                    self.timers[timer] = self.now + delay
                case ev.CancelMemberTimer(timer):
                    self.timers.pop(timer, None)
        return self.commands

    def all(self, kind: type[Kind]) -> list[Kind]:
        return [command for command in self.commands if isinstance(command, kind)]

    @property
    def beats(self) -> list[ConsumerGroupHeartbeatRequest]:
        return [sent.body for sent in self.all(ev.Send)]

    @property
    def beat(self) -> ConsumerGroupHeartbeatRequest:
        """Return the only heartbeat among the last commands."""
        (sent,) = self.beats
        return sent

    @property
    def state(self) -> str:
        return self.member.state.name

    def calls(self) -> list[tuple[str, tuple[TopicPartition, ...]]]:
        calls, self._calls = self._calls, []
        return calls

    # --- application ---

    def poll(self, error: str | None = None) -> ev.Failure | None:
        """Run one poll; listeners return immediately, or throw. Return the error that the poll throws."""
        kept = self.do(ev.Poll(self.now))
        return self._through(kept, error)

    def _through(self, kept: tuple[ev.Command, ...], error: str | None = None) -> ev.Failure | None:
        while self.all(ev.Listener):
            kept += self.do(ev.ListenerDone(self.now, error))
        self.commands = kept
        (returned,) = self.all(ev.Returned)
        return returned.failure

    def done(self, error: str | None = None) -> tuple[ev.Command, ...]:
        return self.do(ev.ListenerDone(self.now, error))

    # --- network and clock ---

    def wait(self, delay_ms: int, jitter: float = 1.0) -> None:
        """Let time pass; timers fire when they are due."""
        end = self.now + delay_ms
        kept: tuple[ev.Command, ...] = ()
        while self.timers and min(self.timers.values()) <= end:
            timer = min(self.timers, key=self.timers.__getitem__)
            self.now = max(self.now, self.timers.pop(timer))
            kept += self.do(ev.MemberTimerFired(self.now, timer), jitter)
        self.now = end
        self.commands = kept

    def answer(
        self,
        *partitions: TopicPartition,
        epoch: int = 1,
        error: ErrorCode = ErrorCode.NONE,
        assigns: bool = True,
        request: int = -1,
        jitter: float = 1.0,
        topics: tuple[TopicPartitions, ...] | None = None,
    ) -> tuple[ev.Command, ...]:
        """Answer the last heartbeat, or number ``request`` of the unanswered ones."""
        number = self.member.sent[request].request_id
        assignment = (topics or rows(*partitions)) if assigns else None
        body = ConsumerGroupHeartbeatResponse(
            error, member_id="other", member_epoch=epoch, heartbeat_interval_ms=INTERVAL, assignment=assignment
        )
        return self.do(ev.Answered(self.now, request_id=number, body=body), jitter)

    def refuse(self, error: ErrorCode, jitter: float = 1.0) -> tuple[ev.Command, ...]:
        return self.answer(error=error, assigns=False, epoch=0, jitter=jitter)

    def found(self) -> tuple[ev.Command, ...]:
        return self.do(ev.CoordinatorFound(self.now, node=1))

    def start(self, *topics: str) -> None:
        """Subscribe; coordinator and metadata are known, and the first heartbeat is sent."""
        self.do(ev.MetadataChanged(self.now, CLUSTER))
        self.found()
        self.do(ev.Subscribe(self.now, frozenset(topics or ("t",))))
        self.poll()

    def settle(self, *partitions: TopicPartition, epoch: int = 1) -> None:
        """Bring the member to STABLE at ``epoch``, owning ``partitions``, with no request in flight."""
        if self.state == "UNSUBSCRIBED":
            self.start()
        self.answer(*partitions, epoch=epoch)
        self.poll()
        self.answer(assigns=False, epoch=epoch)
        assert self.state == "STABLE"
        self.calls()

    def target(self, *partitions: TopicPartition, epoch: int = 2) -> None:
        """Answer the next periodic heartbeat with another assignment."""
        self.wait(INTERVAL)
        self.answer(*partitions, epoch=epoch)

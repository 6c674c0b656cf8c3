"""The values of the closed mixed group that are not the coordinator's: a client's two halves, and the counters."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ..consumer.state import Client as ConsumerClient
from ..consumer.state import Heartbeat
from ..consumer.state import Reply as ConsumerReply
from ..values import Client as ClassicClient
from ..values import JoinReply, JoinRequest, LeaveRequest, Partitions, SyncReply, SyncRequest

Request: TypeAlias = JoinRequest | SyncRequest | LeaveRequest | Heartbeat
Reply: TypeAlias = JoinReply | SyncReply | ConsumerReply


class Process(NamedTuple):
    """A client's process: it speaks one protocol, and the half of the other one is down."""

    classic: ClassicClient
    consumer: ConsumerClient

    @property
    def runs_classic(self) -> bool:
        return self.classic.state not in ("down", "stopped")

    @property
    def runs_consumer(self) -> bool:
        return self.consumer.state not in ("down", "stopped")

    @property
    def runs(self) -> bool:
        return self.runs_classic or self.runs_consumer

    @property
    def member_id(self) -> str:
        return self.consumer.member_id if self.runs_consumer else self.classic.member_id

    @property
    def owned(self) -> Partitions:
        """The partitions that its application believes to own."""
        return self.classic.owned | self.consumer.owned


class Endpoint(NamedTuple):
    """A client's two halves, with its messages in flight."""

    classic: ClassicClient = ClassicClient()
    consumer: ConsumerClient = ConsumerClient()
    requests: frozenset[Request] = frozenset()
    replies: frozenset[Reply] = frozenset()

    @property
    def process(self) -> Process:
        return Process(self.classic, self.consumer)

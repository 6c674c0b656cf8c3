"""Traces of KIP-848 groups, written line by line: requests and answers that a test chooses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from fencepost.member.consumer_protocol import Subscription, encode_subscription
from fencepost.protocol.consumer_messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.messages import JoinGroupRequest, Protocol, RequestBody, ResponseBody
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost.protocol.settings import Settings
from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.judge.checker.verdict import Refusal, Verdict
from fencepost_conformance.traces.convert import wire_body
from fencepost_conformance.traces.files import WireTrace
from fencepost_conformance.traces.lines import ConnectedLine, ReceivedLine, SentLine

TOPIC = UUID(int=7)
SETTINGS = Settings(
    group_consumer_session_timeout_ms=6_000,
    group_consumer_min_session_timeout_ms=6_000,
    group_consumer_heartbeat_interval_ms=500,
    group_consumer_min_heartbeat_interval_ms=500,
)


def parts(*numbers: int) -> tuple[TopicPartitions, ...]:
    return (TopicPartitions(TOPIC.bytes, numbers),) if numbers else ()


@dataclass
class Wire:
    """Write a trace: a topic with four partitions, then the requests and answers of the test."""

    lines: list[Any] = field(default_factory=list)
    asked: int = 0
    settings: Settings = SETTINGS
    profile: Profile = KAFKA_4_3

    def __post_init__(self) -> None:
        self.lines.append(ConnectedLine(at_ms=0, connection=1))
        row = {"name": "t", "num_partitions": 4}
        self._line(SentLine, 0, 1, 19, 7, {"topics": [row]})
        self._line(ReceivedLine, 0, 1, 19, 7, {"topics": [{"name": "t", "topic_id": str(TOPIC), "error_code": 0}]})

    def _line(  # noqa: PLR0917
        self, kind: Any, at: int, connection: int, key: int, version: int, body: Any
    ) -> None:
        self.lines.append(
            kind(
                at_ms=at, connection=connection, correlation_id=self.asked, api_key=key, api_version=version, body=body
            )
        )

    def ask(self, at: int, member: str, epoch: int, **fields: Any) -> tuple[int, int, str]:
        """Send a request; its answer comes with ``respond``."""
        self.asked += 1
        if epoch == 0:
            fields = {
                "rebalance_timeout_ms": 5_000, "subscribed_topic_names": ("t",), "topic_partitions": (), **fields
            }  # fmt: skip
        body = ConsumerGroupHeartbeatRequest("g", member_id=member, member_epoch=epoch, **fields)
        connection = ord(member[-1])
        self._line(SentLine, at, connection, 68, 1, wire_body(body))
        return self.asked, connection, member

    def respond(self, at: int, request: tuple[int, int, str], epoch: int, held: Any = None, error: E = E.NONE) -> None:
        number, connection, member = request
        if error is E.NONE:
            interval = 500 if epoch >= 0 else 0
            answer = ConsumerGroupHeartbeatResponse(
                E.NONE, member_id=member, member_epoch=epoch, heartbeat_interval_ms=interval, assignment=held
            )
        else:
            answer = ConsumerGroupHeartbeatResponse(error)
        self.answer(at, connection, 68, 1, number, answer)

    def beat(  # noqa: PLR0917
        self, at: int, member: str, asked: int, epoch: int, held: Any = None, error: E = E.NONE, **fields: Any
    ) -> None:
        """Send a request, and answer it 5 ms later."""
        self.respond(at + 5, self.ask(at, member, asked, **fields), epoch, held, error)

    def exchange(  # noqa: PLR0917
        self, at: int, connection: int, key: int, version: int, asked: RequestBody, answer: ResponseBody
    ) -> None:
        """Send any request with its answer, 5 ms later."""
        self.asked += 1
        self.send(at, connection, key, version, asked)
        self.answer(at + 5, connection, key, version, self.asked, answer)

    def send(self, at: int, connection: int, key: int, version: int, asked: RequestBody) -> None:
        """Answer the request with the number ``asked``."""
        self._line(SentLine, at, connection, key, version, wire_body(asked))

    def answer(  # noqa: PLR0917
        self, at: int, connection: int, key: int, version: int, number: int, response: ResponseBody
    ) -> None:
        last, self.asked = self.asked, number
        self._line(ReceivedLine, at, connection, key, version, wire_body(response))
        self.asked = last

    def parks(self, at: int, instance: str) -> int:
        """Send a JoinGroup without an id on connection 5, which is answered later; return its number."""
        self.asked += 1
        join = JoinGroupRequest(
            "g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=5_000,
            member_id="",
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=(Protocol("range", encode_subscription(Subscription(("t",)), 3)),),
        )
        self.send(at, 5, 11, 9, join)
        return self.asked

    def verdict(self) -> Verdict:
        return check_trace(WireTrace(self.settings, self.profile, tuple(self.lines)))

    def refusal(self) -> Refusal:
        verdict = self.verdict()
        assert verdict.outcome == "refused", verdict.reason
        assert len(self.lines) == verdict.refusals[0].line  # tests may end with impossible answers
        return verdict.refusals[0]

    def accepted(self) -> bool:
        verdict = self.verdict()
        assert verdict.outcome == "accepted", verdict.refusals
        return True

"""ConsumerGroupHeartbeat and ConsumerGroupDescribe, from frames to the bodies that traces hold."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from kio.schema.consumer_group_heartbeat.v0 import request as first_request
from kio.schema.consumer_group_heartbeat.v1 import request, response
from kio.schema.errors import ErrorCode as KioError
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i32Timedelta

from fencepost.protocol.consumer_messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.wire.convert import to_request, to_response
from fencepost.wire.frames import RequestHeader, read_request, read_response, write_request, write_response

TOPIC = UUID(int=7)


def _span(milliseconds: int) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(milliseconds=milliseconds))


def test_a_request() -> None:
    entity = request.ConsumerGroupHeartbeatRequest(
        group_id=GroupId("g"),
        member_id="m",
        member_epoch=i32(3),
        rebalance_timeout=_span(-1),
        subscribed_topic_names=(TopicName("t"),),
        topic_partitions=(request.TopicPartitions(topic_id=TOPIC, partitions=(i32(1), i32(2))),),
    )
    header = RequestHeader(68, 1, 1, "c")
    made = to_request("consumer_group_heartbeat", read_request(header, write_request(header, entity)))
    owned = (TopicPartitions(TOPIC.bytes, (1, 2)),)
    wanted = ConsumerGroupHeartbeatRequest(
        "g", member_id="m", member_epoch=3, subscribed_topic_names=("t",), topic_partitions=owned
    )
    assert made == wanted


def test_the_first_version_has_no_regex() -> None:
    entity = first_request.ConsumerGroupHeartbeatRequest(
        group_id=GroupId("g"),
        member_id="m",
        member_epoch=i32(0),
        rebalance_timeout=_span(-1),
        subscribed_topic_names=None,
        topic_partitions=(),
    )
    wanted = ConsumerGroupHeartbeatRequest("g", member_id="m", member_epoch=0, topic_partitions=())
    assert to_request("consumer_group_heartbeat", entity) == wanted


def _answered(assignment: response.Assignment | None) -> ConsumerGroupHeartbeatResponse:
    entity = response.ConsumerGroupHeartbeatResponse(
        throttle_time=_span(0),
        error_code=KioError.none,
        member_id="m",
        member_epoch=i32(4),
        heartbeat_interval=_span(500),
        assignment=assignment,
    )
    back = read_response("consumer_group_heartbeat", 1, write_response(1, entity))
    body = to_response("consumer_group_heartbeat", back)
    assert isinstance(body, ConsumerGroupHeartbeatResponse)
    return body


def test_an_answer() -> None:
    rows = (response.TopicPartitions(topic_id=TOPIC, partitions=(i32(0),)),)
    given = (TopicPartitions(TOPIC.bytes, (0,)),)
    answer = _answered(response.Assignment(topic_partitions=rows))
    assert answer == ConsumerGroupHeartbeatResponse(
        ErrorCode.NONE, member_id="m", member_epoch=4, heartbeat_interval_ms=500, assignment=given
    )


def test_no_assignment_is_not_an_empty_one() -> None:
    assert _answered(None).assignment is None
    assert _answered(response.Assignment(topic_partitions=())).assignment == ()

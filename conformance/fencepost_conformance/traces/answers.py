"""The error codes of every kind of answer, wherever each API has them."""

from __future__ import annotations

from collections.abc import Iterator

from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as om
from fencepost.protocol.consumer_messages import ConsumerGroupDescribeResponse
from fencepost.protocol.errors import ErrorCode


def errors_of(body: m.ResponseBody) -> Iterator[ErrorCode]:
    """Yield every error code in an answer, also NONE, in the order of the answer."""
    if isinstance(body, m.DescribeGroupsResponse | ConsumerGroupDescribeResponse):
        yield from (group.error_code for group in body.groups)
    elif isinstance(body, m.DeleteGroupsResponse):
        yield from (row.error_code for row in body.results)
    elif isinstance(body, om.OffsetFetchResponse):
        for group in body.groups:
            yield group.error_code
            yield from (row.error_code for topic in group.topics for row in topic.partitions)
    elif isinstance(body, om.OffsetCommitResponse | om.TxnOffsetCommitResponse):
        yield from _of_partitions(body.topics)
    elif isinstance(body, om.OffsetDeleteResponse):
        yield body.error_code
        yield from _of_partitions(body.topics)
    else:
        yield body.error_code
        if isinstance(body, m.LeaveGroupResponse):
            yield from (row.error_code for row in body.members)


def _of_partitions(topics: tuple[om.OffsetCommitResponseTopic, ...]) -> Iterator[ErrorCode]:
    for topic in topics:
        yield from (row.error_code for row in topic.partitions)

"""What the server assignors share (section 10.6)."""

from __future__ import annotations

from fencepost.protocol.server_assignor import AssignorError, GroupSpec


def partitions_of(spec: GroupSpec, topic_id: bytes) -> int:
    """The number of partitions of the topic. Raises ``AssignorError`` if it has no metadata."""
    try:
        return spec.topics[topic_id]
    except KeyError:
        raise AssignorError("a member is subscribed to a topic that does not exist") from None

"""What a server assignor is given and what it returns (section 10.6, M-TGT-03)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from fencepost.protocol.consumer_view import SubscriptionType

#: Partitions by topic id, ascending, each once.
Share = Mapping[bytes, tuple[int, ...]]
#: The new target: the share of each member, by member id. A topic of which a member gets nothing is absent.
Target = Mapping[str, Share]


class AssignorError(Exception):
    """The assignor cannot assign: the computing request fails with UNKNOWN_SERVER_ERROR (M-TGT-03)."""


class MemberSpec(NamedTuple):
    """One member as an assignor sees it. ``topic_ids``: what it subscribes to, as far as the names resolve;
    ``assigned``: its previous target, as an assignor returns it (numbers ascend, each once)."""

    instance_id: str | None
    rack_id: str | None
    topic_ids: frozenset[bytes]
    assigned: Share


class GroupSpec(NamedTuple):
    """The group. ``members`` in the order in which the host goes through them (``Choices.order``, A-UHOM-01);
    ``subscription_type`` as the group remembers it, which may be stale (M-TGT-06); ``topics``: the number of
    partitions of each existing topic, by topic id. The order of ``topics``, and of the topics in ``assigned``, counts
    only where Java's hash tables put two topic ids into one bucket: Kafka then goes by the order of the subscribed
    names and of the rows in the record. ``withheld``: what Kafka takes for owned though no member's ``assigned`` has it
    (A-UHOM-08)."""

    members: Mapping[str, MemberSpec]
    subscription_type: SubscriptionType
    topics: Mapping[bytes, int]
    withheld: Mapping[bytes, tuple[int, ...]] = MappingProxyType({})


#: Raises ``AssignorError``.
Assignor = Callable[[GroupSpec], Target]


def partitions_of(spec: GroupSpec, topic_id: bytes) -> int:
    """How many partitions the topic has. Raises ``AssignorError`` if it has no metadata."""
    try:
        return spec.topics[topic_id]
    except KeyError:
        raise AssignorError("a member is subscribed to a topic that does not exist") from None

"""Input and output of a server assignor (section 10.6, M-TGT-03)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from .consumer_view import SubscriptionType

#: Partitions by topic id, ascending, each once.
Share = Mapping[bytes, tuple[int, ...]]
#: The new target: the share of each member, by member id. Topics of which a member gets no partition are absent.
Target = Mapping[str, Share]


class AssignorError(Exception):
    """The assignor cannot assign: the computing request fails with UNKNOWN_SERVER_ERROR (M-TGT-03)."""


class MemberSpec(NamedTuple):
    """One member as an assignor sees it. ``topic_ids``: its subscription, as far as the names resolve. ``assigned``:
    its previous target, in the form that an assignor returns (numbers ascend, each once)."""

    instance_id: str | None
    rack_id: str | None
    topic_ids: frozenset[bytes]
    assigned: Share


class GroupSpec(NamedTuple):
    """The group. ``members`` in the order in which the host iterates over them (``Choices.order``, A-UHOM-01).
    ``subscription_type`` as the group remembers it, which may be out of date (M-TGT-06). ``topics``: the number of
    partitions of each existing topic, by topic id. The order of ``topics``, and of the topics in ``assigned``, matters
    only where Java's hash tables put two topic ids into one bucket: Kafka then uses the order of the subscribed names
    and of the rows in the record. ``withheld``: partitions that Kafka takes for owned though no member's ``assigned``
    has them (A-UHOM-08)."""

    members: Mapping[str, MemberSpec]
    subscription_type: SubscriptionType
    topics: Mapping[bytes, int]
    withheld: Mapping[bytes, tuple[int, ...]] = MappingProxyType({})


#: Raises ``AssignorError``.
Assignor = Callable[[GroupSpec], Target]

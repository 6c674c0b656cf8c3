"""The state of a case's group, classic or consumer, as an administrator sees it."""

from __future__ import annotations

from .answers import Answer
from .peer import Peer


async def described(peer: Peer) -> Answer:
    """Describe the case's classic group: the row of DescribeGroups."""
    client = await peer.client()
    return (await client.ask("describe_groups", groups=[peer.group])).at("groups.0")


async def expect_state(peer: Peer, state: str) -> Answer:
    """Describe the group and expect this state (``Empty``, ``Stable``, ``PreparingRebalance`` …; ``Dead`` for a group
    that does not exist). Return the row of DescribeGroups."""
    return (await described(peer)).expect(group_state=state)


async def described_consumer(peer: Peer) -> Answer:
    """Describe the case's consumer group: the row of ConsumerGroupDescribe."""
    client = await peer.client()
    return (await client.ask("consumer_group_describe", group_ids=[peer.group])).at("groups.0")


async def expect_members(peer: Peer, *, number: int) -> list[Answer]:
    """Describe the group, and expect this many members; return their rows."""
    return (await described_consumer(peer)).expect(error_code="NONE").rows("members", number=number)

"""The state of a case's group, classic or consumer, as an administrator sees it."""

from __future__ import annotations

from typing import Final

from .answers import Answer
from .peer import Peer

#: the state of a group that does not exist
_NO_GROUP: Final = "Dead"


async def described(peer: Peer) -> Answer:
    """Describe the case's classic group: the row of DescribeGroups."""
    client = await peer.client()
    return (await client.ask("describe_groups", groups=[peer.group])).at("groups.0")


async def expect_state(peer: Peer, state: str) -> Answer:
    """Describe the group and expect this state (``Empty``, ``Stable``, ``PreparingRebalance`` …; ``Dead`` for a group
    that does not exist). Return the row of DescribeGroups.

    The answer to a request may come before its records are committed, and a broker describes what is committed: a group
    that does not exist yet is described again, for 20 s at most."""
    row = await described(peer)

    async def exists() -> bool:
        nonlocal row
        row = await described(peer)
        return bool(row.value["group_state"] != _NO_GROUP)

    if state != _NO_GROUP and row.value.get("group_state") == _NO_GROUP:
        await peer.until(exists)
    return row.expect(group_state=state)


async def described_consumer(peer: Peer) -> Answer:
    """Describe the case's consumer group: the row of ConsumerGroupDescribe."""
    client = await peer.client()
    return (await client.ask("consumer_group_describe", group_ids=[peer.group])).at("groups.0")


async def expect_members(peer: Peer, *, number: int) -> list[Answer]:
    """Describe the group, and expect this many members; return their rows."""
    return (await described_consumer(peer)).expect(error_code="NONE").rows("members", number=number)

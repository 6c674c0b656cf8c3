"""Clean-up after a trace: members leave and groups are deleted, so that a long run does not fill the broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fencepost.protocol.consumer_messages import LEAVE_EPOCH

from .asking import Offer
from .cast import AskPlain

_LEAVE_GROUP, _DESCRIBE_GROUPS, _DELETE_GROUPS, _HEARTBEAT, _CONSUMER_DESCRIBE = 13, 15, 42, 68, 69
#: first version of LeaveGroup that removes several members
_SEVERAL: Final = 3


async def leave_and_delete(ask: AskPlain, offer: Offer, groups: Sequence[str]) -> None:
    """Let members leave and delete groups, as far as the broker offers it.

    Members of a group in a rebalance leave too, so that their requests end."""
    newest = {key: high for key, (_, high) in offer.ranges.items()}
    if _DESCRIBE_GROUPS in newest and newest.get(_LEAVE_GROUP, 0) >= _SEVERAL:
        described = await ask("describe_groups", newest[_DESCRIBE_GROUPS], {"groups": groups})
        for group in described.groups:
            if group.members:
                members = [{"member_id": row.member_id} for row in group.members]
                await ask("leave_group", newest[_LEAVE_GROUP], {"group_id": group.group_id, "members": members})
    if _CONSUMER_DESCRIBE in newest and _HEARTBEAT in newest:
        reply = await ask("consumer_group_describe", newest[_CONSUMER_DESCRIBE], {"group_ids": groups})
        for group in reply.groups:
            for row in group.members:
                leave = {"group_id": group.group_id, "member_id": row.member_id, "member_epoch": LEAVE_EPOCH}
                await ask("consumer_group_heartbeat", newest[_HEARTBEAT], leave)
    if _DELETE_GROUPS in newest:
        await ask("delete_groups", newest[_DELETE_GROUPS], {"groups_names": groups})

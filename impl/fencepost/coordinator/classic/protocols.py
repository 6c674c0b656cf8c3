"""The protocol that the members agree on (C-JOIN-60…63, C-JOIN-72)."""

from __future__ import annotations

from fencepost.protocol.messages import Protocol
from fencepost.protocol.view import GroupState
from fencepost.quirks import varies

from ..kernel.errors import InternalError
from ..kernel.step import Step
from .draft import GroupDraft


def supported(step: Step, group: GroupDraft, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
    """Whether a member with this list may be in the group: all members must share one of its protocols (C-JOIN-60)."""
    if not can_be_counted(step, protocols):
        return False
    if group.state is GroupState.EMPTY:
        return protocol_type != "" and bool(protocols)
    if group.protocol_type is None or group.protocol_type != protocol_type:
        return False
    size = len(group.members)
    return any(group.support.get(protocol.name, 0) == size for protocol in protocols)


@varies
def can_be_counted(step: Step, protocols: tuple[Protocol, ...]) -> bool:
    """Whether each name is listed once, so that counting names is counting members (C-JOIN-72)."""
    return len({each.name for each in protocols}) == len(protocols)


@varies
def adopt(step: Step, group: GroupDraft) -> None:
    """Elect the protocol of the members; its metadata is not checked (C-JOIN-63)."""
    group.protocol_name = select(step, group)
    group.learn_subscriptions()


def select(step: Step, group: GroupDraft) -> str:
    """Each member votes for the first protocol of its list that every member supports; most votes win (C-JOIN-63)."""
    size = len(group.members)
    candidates = {name for name, count in group.support.items() if count == size}
    votes: dict[str, int] = {}
    for member in group.members.values():
        for protocol in member.protocols:
            if protocol.name in candidates:
                votes[protocol.name] = votes.get(protocol.name, 0) + 1
                break
        else:
            raise InternalError  # C-JOIN-72
    most = max(votes.values())
    tied = [name for name, count in votes.items() if count == most]
    return tied[0] if len(tied) == 1 else step.choices.protocol(group.group_id, tied)

"""Deviations of Kafka in classic groups.

Classic groups do not need the topics in the metadata of consumers, but Kafka reads them whenever a generation begins
and whenever a group is loaded: as version 0 of the subscription, with a reader that reports *some* broken bytes as an
internal error (G-DATA-10, A-EMB-06).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from fencepost.protocol.choices import Choices
from fencepost.protocol.embedded import PROTOCOL_TYPE
from fencepost.protocol.errors import ErrorCode
from fencepost.quirks import Next, quirk

from ..classic import membership, static
from ..classic.group import GroupDraft
from ..kernel import operations
from ..kernel.errors import InternalError
from ..kernel.state import Operation
from ..kernel.step import Step


class _Read(Enum):
    TOPICS = "topics"
    TOO_SHORT = "too short"  #: detected: the topics count as unknown
    BROKEN = "broken"  #: not expected by Kafka


def read_topics(choices: Choices, group_id: str, metadata: Mapping[str, bytes | None], *, lengths_throw: bool) -> None:
    """Read as Kafka does, member by member up to the first one without topics; the order is drawn where it matters.
    ``metadata``: by member id, None for a member without the protocol, which raises (C-JOIN-72). ``lengths_throw``:
    an impossible length raises too (G-DATA-10); otherwise it counts as an end that comes too early (V-124). Raises
    where Kafka fails."""
    broken = _Read.BROKEN if lengths_throw else _Read.TOO_SHORT
    reads: dict[str, _Read] = {}
    for member_id, each in metadata.items():
        read = _Read.BROKEN if each is None else _read(each)
        reads[member_id] = broken if read is _Read.BROKEN and each is not None else read
    unread = {member_id: read for member_id, read in reads.items() if read is not _Read.TOPICS}
    ends = set(unread.values())
    if len(ends) > 1:
        first = next(member_id for member_id in choices.order(group_id, sorted(reads)) if member_id in unread)
        ends = {unread[first]}
    if _Read.BROKEN in ends:
        raise InternalError


def _read(metadata: bytes) -> _Read:
    """version int16, topics [int16-counted string], user data (nullable bytes)."""
    size = len(metadata)
    if size < 6:
        return _Read.TOO_SHORT
    topics = int.from_bytes(metadata[2:6], signed=True)
    position = 6
    if not 0 <= topics <= size - position:
        return _Read.BROKEN
    for _ in range(topics):
        if size - position < 2:
            return _Read.TOO_SHORT
        length = int.from_bytes(metadata[position : position + 2], signed=True)
        position += 2
        if not 0 <= length <= size - position:
            return _Read.BROKEN
        position += length
    if size - position < 4:
        return _Read.TOO_SHORT
    length = int.from_bytes(metadata[position : position + 4], signed=True)
    return _Read.BROKEN if length > size - position - 4 else _Read.TOPICS


# Capacity and the join phase


@quirk("fault_bad_subscription_is_thrown", "fault_duplicate_protocol_accepted", of=membership.adopt)
def reads_subscriptions(call_next: Next[None], step: Step, group: GroupDraft) -> None:
    """Kafka reads the topics that the members of a new generation subscribe to. Impossible lengths raise an exception
    that is not caught: the generation is used up, and its members are never answered (C-ST-27, G-DATA-10). The same
    happens if a member does not have the protocol, which others list often enough to make up for it (C-JOIN-72)."""
    before = group.subscriptions
    call_next(step, group)
    name = group.protocol_name
    if group.protocol_type == PROTOCOL_TYPE:
        offered = {member.member_id: member.metadata(name) for member in group.members.values()}
        try:
            read_topics(step.choices, group.group_id, offered, lengths_throw=step.rules.bad_lengths_are_thrown)
        except InternalError:
            group.subscriptions = before  # keep nothing of the new subscriptions
            raise


# SyncGroup, and requests that wait for one


# Groups and replacements that a failed append undoes


@quirk("fault_timeout_undoes_memory", of=static.end_with_group)
def puts_old_id_back(
    _: Next[None], step: Step, done: static.MemberReplaced, number: int, operation: Operation, error: ErrorCode
) -> None:
    """Kafka restores the old id before the partition is lost (C-STATIC-06). If the member is in a later round by then,
    its SyncGroup is answered FENCED_INSTANCE_ID, which stops a client that no other has replaced (F-UNLOAD-01)."""
    operations.fail(step, number, operation, error)


@quirk("fault_second_replacement_mixes_undo", of=static.restore_protocols)
def counts_off_another(call_next: Next[None], step: Step, group: GroupDraft, done: static.MemberReplaced) -> None:
    """The protocols of a member that is gone, or was restored before, are subtracted once more and the old ones added:
    from then on the counts are wrong (C-STATIC-18)."""
    member = group.members.get(done.new_id)
    if member is None or member.restored:
        group.count(done.new_protocols, -1)
        group.count(done.old_protocols, 1)
    call_next(step, group, done)

"""SyncGroup to a classic group: how members receive what the leader assigned."""

from __future__ import annotations

import asyncio

from fencepost.protocol.embedded import Assignment, encode_assignment
from fencepost.protocol.partitions import TopicPartition

from ..case import case
from ..classic_member import TOPIC, ClassicMember, classic_member, stable_group, until_rebalance
from ..group_state import expect_state
from ..peer import Peer

_FIRST = TopicPartition(TOPIC, 0)
_SECOND = TopicPartition(TOPIC, 1)


def _bytes(partition: TopicPartition) -> bytes:
    return encode_assignment(Assignment((partition,)))


async def _between_join_and_sync(peer: Peer) -> tuple[ClassicMember, ClassicMember]:
    """Return leader and follower of a generation that waits for the leader's SyncGroup."""
    (leader,) = await stable_group(peer, 1)
    follower = await classic_member(peer)
    waiting = peer.start(follower.enter())
    await until_rebalance(leader)
    await asyncio.gather(leader.join(), waiting)
    return leader, follower


@case("classic.sync.1", "C-SYNC-17", "C-SYNC-21", waits_s=3)
async def members_receive_what_the_leader_assigned(peer: Peer) -> None:
    """Leader and follower send SyncGroup. Each receives the bytes that the leader assigned to it, and the group is
    stable."""
    leader, follower = await _between_join_and_sync(peer)
    assignment = {leader.member_id: (_FIRST,), follower.member_id: (_SECOND,)}
    led, followed = await asyncio.gather(leader.sync(assignment), follower.sync())
    led.expect(error_code="NONE", assignment=_bytes(_FIRST))
    followed.expect(error_code="NONE", assignment=_bytes(_SECOND))
    await expect_state(peer, "Stable")


@case("classic.sync.2", "C-SYNC-16", waits_s=3)
async def a_follower_waits_for_the_leader(peer: Peer) -> None:
    """The follower sends SyncGroup before the leader. It is not answered until the leader has sent its own; then it
    receives its assignment."""
    leader, follower = await _between_join_and_sync(peer)
    waiting = peer.start(follower.sync())
    await asyncio.sleep(0.5)
    peer.require(
        holds=not waiting.done(),
        expected="the SyncGroup of a follower to wait for that of the leader",
        received="it was answered first",
    )
    (await leader.sync({follower.member_id: (_FIRST,)})).expect(error_code="NONE", assignment=b"")
    (await waiting).expect(error_code="NONE", assignment=_bytes(_FIRST))


@case("classic.sync.3", "C-SYNC-18", waits_s=3)
async def a_stable_group_answers_again(peer: Peer) -> None:
    """A member of a stable group sends SyncGroup once more. It receives the same assignment at once."""
    leader, follower = await _between_join_and_sync(peer)
    assignment = {leader.member_id: (_FIRST,), follower.member_id: (_SECOND,)}
    await asyncio.gather(leader.sync(assignment), follower.sync())
    (await follower.sync()).expect(error_code="NONE", assignment=_bytes(_SECOND))
    (await leader.sync({leader.member_id: (_SECOND,)})).expect(error_code="NONE", assignment=_bytes(_FIRST))


@case("classic.sync.4", "C-SYNC-25", waits_s=3)
async def a_follower_cannot_assign(peer: Peer) -> None:
    """The follower sends SyncGroup with assignments. They are ignored: it receives what the leader assigned."""
    leader, follower = await _between_join_and_sync(peer)
    waiting = peer.start(follower.sync({follower.member_id: (_FIRST, _SECOND)}))
    await asyncio.sleep(0.2)
    await leader.sync({leader.member_id: (_FIRST,), follower.member_id: (_SECOND,)})
    (await waiting).expect(error_code="NONE", assignment=_bytes(_SECOND))


@case("classic.sync.5", "C-SYNC-09", waits_s=3)
async def an_old_generation_is_refused(peer: Peer) -> None:
    """A member sends SyncGroup with the generation before the present one, and with the one after it. The broker
    answers ILLEGAL_GENERATION to both."""
    (member,) = await stable_group(peer, 1)
    for generation in (member.generation_id - 1, member.generation_id + 1):
        (await member.sync(generation_id=generation)).expect(error_code="ILLEGAL_GENERATION")


@case("classic.sync.6", "C-SYNC-08", waits_s=3)
async def an_unknown_member_is_refused(peer: Peer) -> None:
    """A stranger sends SyncGroup with the present generation. The broker answers UNKNOWN_MEMBER_ID."""
    (member,) = await stable_group(peer, 1)
    (await member.sync(member_id="nobody")).expect(error_code="UNKNOWN_MEMBER_ID")


@case("classic.sync.7", "C-SYNC-05")
async def a_missing_group_has_no_member(peer: Peer) -> None:
    """A member sends SyncGroup to a group that does not exist. The broker answers UNKNOWN_MEMBER_ID."""
    member = await classic_member(peer, member_id="nobody", generation_id=1, protocol_name="range")
    (await member.sync()).expect(error_code="UNKNOWN_MEMBER_ID")


@case("classic.sync.8", "C-SYNC-12")
async def an_id_that_has_not_joined_is_refused(peer: Peer) -> None:
    """A member was given an id by MEMBER_ID_REQUIRED, and sends SyncGroup instead of joining. The broker answers
    UNKNOWN_MEMBER_ID."""
    member = await classic_member(peer, protocol_name="range")
    (await member.join(version=4)).expect(error_code="MEMBER_ID_REQUIRED")
    (await member.sync(generation_id=0)).expect(error_code="UNKNOWN_MEMBER_ID")


@case("classic.sync.9", "C-SYNC-15", waits_s=3)
async def a_rebalance_refuses_sync(peer: Peer) -> None:
    """A rebalance has begun, and a member sends SyncGroup instead of joining again. The broker answers
    REBALANCE_IN_PROGRESS."""
    (leader,) = await stable_group(peer, 1)
    newcomer = await classic_member(peer)
    waiting = peer.start(newcomer.enter())
    await until_rebalance(leader)
    (await leader.sync()).expect(error_code="REBALANCE_IN_PROGRESS")
    await asyncio.gather(leader.join(), waiting)


@case("classic.sync.10", "C-SYNC-01", needs={"sync_group": 5})
async def a_missing_protocol_name_is_refused(peer: Peer) -> None:
    """A member sends SyncGroup in version 5 without a protocol type and name. The broker answers
    INCONSISTENT_GROUP_PROTOCOL before it looks for the group."""
    member = await classic_member(peer, member_id="nobody", generation_id=1)
    answer = await member.sync(version=5, protocol_type=None, protocol_name=None)
    answer.expect(error_code="INCONSISTENT_GROUP_PROTOCOL")


@case("classic.sync.11", "C-SYNC-10", waits_s=3, needs={"sync_group": 5})
async def another_protocol_is_refused(peer: Peer) -> None:
    """A member of a stable group sends SyncGroup with another protocol type, then with another protocol name. The
    broker answers INCONSISTENT_GROUP_PROTOCOL to both."""
    (member,) = await stable_group(peer, 1)
    (await member.sync(protocol_type="connect")).expect(error_code="INCONSISTENT_GROUP_PROTOCOL")
    (await member.sync(protocol_name="sticky")).expect(error_code="INCONSISTENT_GROUP_PROTOCOL")


@case("classic.sync.12", "C-JOIN-42", waits_s=3)
async def a_join_ends_the_wait_for_the_leader(peer: Peer) -> None:
    """A follower waits in SyncGroup when another member joins. The follower's SyncGroup is answered
    REBALANCE_IN_PROGRESS."""
    leader, follower = await _between_join_and_sync(peer)
    waiting = peer.start(follower.sync())
    await asyncio.sleep(0.2)
    third = await classic_member(peer)
    joining = peer.start(third.enter())
    (await waiting).expect(error_code="REBALANCE_IN_PROGRESS")
    await asyncio.gather(leader.join(), follower.join(), joining)


@case("classic.sync.13", "C-SYNC-21", "C-SYNC-32", waits_s=3)
async def an_assignment_for_a_stranger_is_dropped(peer: Peer) -> None:
    """The leader assigns partitions to an id that is not a member. The group becomes stable; describing it shows the
    members only."""
    (leader,) = await stable_group(peer, 1)
    await leader.join()
    (await leader.sync({leader.member_id: (_FIRST,), "nobody": (_SECOND,)})).expect(error_code="NONE")
    (row,) = (await expect_state(peer, "Stable")).rows("members", number=1)
    row.expect(member_id=leader.member_id, member_assignment=_bytes(_FIRST))


@case("classic.sync.14", "C-SYNC-20", waits_s=8)
async def a_leader_that_never_syncs_is_removed(peer: Peer) -> None:
    """A follower waits in SyncGroup, and the leader sends none. After the rebalance timeout the leader is removed: the
    follower is answered REBALANCE_IN_PROGRESS, joins again, and leads."""
    (leader,) = await stable_group(peer, 1, rebalance_timeout_ms=6_000, session_timeout_ms=30_000)
    follower = await classic_member(peer, rebalance_timeout_ms=6_000, session_timeout_ms=30_000)
    waiting = peer.start(follower.enter())
    await until_rebalance(leader)
    await asyncio.gather(leader.join(), waiting)
    (await follower.sync()).expect(error_code="REBALANCE_IN_PROGRESS")
    (await follower.join()).expect(error_code="NONE", leader=follower.member_id).rows("members", number=1)
    (await leader.heartbeat()).expect(error_code="UNKNOWN_MEMBER_ID")

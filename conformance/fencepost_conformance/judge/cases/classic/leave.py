"""LeaveGroup to a classic group, by members and by administrators."""

from __future__ import annotations

from ..case import case
from ..classic_member import classic_member, stable_group, until_rebalance
from ..group_state import expect_state
from ..peer import Peer


@case("classic.leave.1", "C-LEAVE-14", "C-JOIN-47", waits_s=3)
async def the_last_member_leaves_the_group_empty(peer: Peer) -> None:
    """The only member leaves. The broker answers NONE, and the group is empty."""
    (member,) = await stable_group(peer, 1)
    (await member.leave()).expect(error_code="NONE")
    (await expect_state(peer, "Empty")).rows("members", number=0)


@case("classic.leave.2", "C-LEAVE-14", waits_s=3, needs={"leave_group": 3})
async def each_entry_has_its_own_answer(peer: Peer) -> None:
    """A request names a member and a stranger. The entry of the member is answered NONE, that of the stranger
    UNKNOWN_MEMBER_ID, the request NONE."""
    (member,) = await stable_group(peer, 1)
    entries = [{"member_id": member.member_id}, {"member_id": "nobody"}]
    answer = (await member.leave(members=entries)).expect(error_code="NONE")
    left, unknown = answer.rows("members", number=2)
    left.expect(error_code="NONE", member_id=member.member_id)
    unknown.expect(error_code="UNKNOWN_MEMBER_ID", member_id="nobody")


@case("classic.leave.3", "C-LEAVE-13", waits_s=3)
async def an_unknown_member_cannot_leave(peer: Peer) -> None:
    """A stranger leaves in version 2, which names one member. The broker answers UNKNOWN_MEMBER_ID, and the group stays
    stable."""
    (member,) = await stable_group(peer, 1)
    (await member.leave(version=2, member_id="nobody")).expect(error_code="UNKNOWN_MEMBER_ID")
    await expect_state(peer, "Stable")


@case("classic.leave.4", "C-LEAVE-03", needs={"leave_group": 3})
async def a_missing_group_has_no_member(peer: Peer) -> None:
    """A member leaves a group that does not exist. The request is answered NONE, its entry UNKNOWN_MEMBER_ID."""
    member = await classic_member(peer, member_id="nobody")
    answer = (await member.leave()).expect(error_code="NONE")
    answer.at("members.0").expect(error_code="UNKNOWN_MEMBER_ID")


@case("classic.leave.5", "C-LEAVE-02")
async def an_empty_group_id_is_refused(peer: Peer) -> None:
    """A member leaves the group with the empty id. The broker answers INVALID_GROUP_ID."""
    member = await classic_member(peer, member_id="nobody")
    (await member.leave(group_id="")).expect(error_code="INVALID_GROUP_ID")


@case("classic.leave.6", "C-LEAVE-21", waits_s=3)
async def the_others_rebalance(peer: Peer) -> None:
    """The follower of a stable group leaves. The leader's heartbeat reports a rebalance; it joins again and is
    alone."""
    leader, follower = await stable_group(peer, 2)
    (await follower.leave()).expect(error_code="NONE")
    await until_rebalance(leader)
    (await leader.join()).expect(error_code="NONE", leader=leader.member_id).rows("members", number=1)


@case("classic.leave.7", "C-LEAVE-21", "C-JOIN-76", waits_s=3)
async def another_member_leads_when_the_leader_leaves(peer: Peer) -> None:
    """The leader of a stable group leaves. The follower joins again, and leads the next generation."""
    leader, follower = await stable_group(peer, 2)
    generation = follower.generation_id
    (await leader.leave()).expect(error_code="NONE")
    await until_rebalance(follower)
    answer = await follower.join()
    answer.expect(error_code="NONE", generation_id=generation + 1, leader=follower.member_id)


@case("classic.leave.8", "C-LEAVE-10", waits_s=3, needs={"leave_group": 3})
async def an_administrator_removes_a_static_member(peer: Peer) -> None:
    """A request names an instance id and no member id. The static member is removed, and its heartbeat is answered
    UNKNOWN_MEMBER_ID."""
    (member,) = await stable_group(peer, 1, instance_id="one")
    entries = [{"member_id": "", "group_instance_id": "one"}]
    answer = (await member.leave(members=entries)).expect(error_code="NONE")
    answer.at("members.0").expect(error_code="NONE", member_id="", group_instance_id="one")
    (await member.heartbeat()).expect(error_code="UNKNOWN_MEMBER_ID")


@case("classic.leave.9", "C-LEAVE-11", waits_s=3, needs={"leave_group": 3})
async def an_unknown_instance_id_removes_nobody(peer: Peer) -> None:
    """A request names an instance id that no member has, and no member id. Its entry is answered UNKNOWN_MEMBER_ID, and
    the group stays stable."""
    (member,) = await stable_group(peer, 1)
    answer = await member.leave(members=[{"member_id": "", "group_instance_id": "nobody"}])
    answer.at("members.0").expect(error_code="UNKNOWN_MEMBER_ID")
    await expect_state(peer, "Stable")


@case("classic.leave.10", "C-LEAVE-13", waits_s=3, needs={"leave_group": 3})
async def another_member_id_is_fenced(peer: Peer) -> None:
    """A request names the instance id of a static member with another member id. Its entry is answered
    FENCED_INSTANCE_ID, and the member stays."""
    (member,) = await stable_group(peer, 1, instance_id="one")
    answer = await member.leave(members=[{"member_id": "nobody", "group_instance_id": "one"}])
    answer.at("members.0").expect(error_code="FENCED_INSTANCE_ID")
    (await member.heartbeat()).expect(error_code="NONE")


@case("classic.leave.11", "C-LEAVE-27", needs={"leave_group": 3})
async def a_pending_member_can_leave(peer: Peer) -> None:
    """A member was given an id by MEMBER_ID_REQUIRED, and leaves before it joins. Its entry is answered NONE; the id is
    unknown afterwards."""
    member = await classic_member(peer)
    (await member.join()).expect(error_code="MEMBER_ID_REQUIRED")
    (await member.leave()).at("members.0").expect(error_code="NONE")
    (await member.join()).expect(error_code="UNKNOWN_MEMBER_ID")


@case("classic.leave.12", "C-LEAVE-27", waits_s=3, needs={"leave_group": 3})
async def a_member_leaves_once(peer: Peer) -> None:
    """A request names the same member twice. The first entry is answered NONE, the second UNKNOWN_MEMBER_ID."""
    (member,) = await stable_group(peer, 1)
    entry = {"member_id": member.member_id}
    first, second = (await member.leave(members=[entry, entry])).rows("members", number=2)
    first.expect(error_code="NONE")
    second.expect(error_code="UNKNOWN_MEMBER_ID")


@case("classic.leave.13", "C-LEAVE-27", waits_s=3, needs={"leave_group": 3})
async def nobody_leaves_with_an_empty_list(peer: Peer) -> None:
    """A request names no member. The broker answers NONE with an empty list, and the group stays stable."""
    (member,) = await stable_group(peer, 1)
    (await member.leave(members=[])).expect(error_code="NONE").rows("members", number=0)
    await expect_state(peer, "Stable")


@case("classic.leave.14", "C-LEAVE-22", "C-LEAVE-14", waits_s=6)
async def leaving_ends_a_wait_for_the_member(peer: Peer) -> None:
    """A rebalance waits for a member that has not joined again, and this member leaves. The rebalance ends at once: the
    others receive the next generation without it."""
    leader, follower = await stable_group(peer, 2, rebalance_timeout_ms=60_000, session_timeout_ms=30_000)
    waiting = peer.start(leader.join())
    await until_rebalance(follower)
    (await follower.leave()).expect(error_code="NONE")
    (await waiting).expect(error_code="NONE").rows("members", number=1)

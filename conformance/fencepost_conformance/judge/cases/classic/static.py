"""Static members of classic groups (KIP-345): they keep their place when their process starts again."""

from __future__ import annotations

import asyncio

from fencepost.protocol.embedded import Assignment, encode_assignment
from fencepost.protocol.partitions import TopicPartition

from ..answers import SOMETHING
from ..case import case
from ..classic_member import TOPIC, ClassicMember, classic_member, settle, stable_group, until_rebalance
from ..group_state import expect_state
from ..peer import NotReached, Peer


async def _restarted(peer: Peer, member: ClassicMember) -> ClassicMember:
    """Return a new process with the instance id of a member; it has no member id yet."""
    return await classic_member(
        peer,
        instance_id=member.instance_id,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
    )


@case("classic.static.1", "C-STATIC-01", waits_s=3, needs={"join_group": 5})
async def a_static_member_needs_no_second_request(peer: Peer) -> None:
    """A member with an instance id joins without a member id. It is admitted in this request, without
    MEMBER_ID_REQUIRED."""
    member = await classic_member(peer, instance_id="one")
    (await member.join()).expect(error_code="NONE", generation_id=1, member_id=SOMETHING, leader=member.member_id)


@case("classic.static.2", "C-STATIC-02", "C-STATIC-03", waits_s=3, needs={"join_group": 5})
async def a_restart_causes_no_rebalance(peer: Peer) -> None:
    """The process of a static member starts again and joins without a member id. It receives a new member id and the
    present generation, the group stays stable, and SyncGroup returns the previous assignment."""
    (first,) = await stable_group(peer, 1, instance_id="one")
    again = await _restarted(peer, first)
    answer = await again.join()
    answer.expect(error_code="NONE", generation_id=first.generation_id, member_id=SOMETHING)
    peer.require(holds=again.member_id != first.member_id, expected="a new member id", received=again.member_id)
    await expect_state(peer, "Stable")
    mine = encode_assignment(Assignment((TopicPartition(TOPIC, 0),)))
    (await again.sync()).expect(error_code="NONE", assignment=mine)


@case("classic.static.3", "C-STATIC-13", "C-STATIC-02", waits_s=3, needs={"join_group": 5})
async def the_old_process_is_fenced(peer: Peer) -> None:
    """The process of a static member starts again while the old one still runs. Heartbeat, SyncGroup and JoinGroup of
    the old one are answered FENCED_INSTANCE_ID."""
    (old,) = await stable_group(peer, 1, instance_id="one")
    new = await _restarted(peer, old)
    if (await new.join())["error_code"] != "NONE":
        raise NotReached("the new process was not admitted")
    (await old.heartbeat()).expect(error_code="FENCED_INSTANCE_ID")
    (await old.sync()).expect(error_code="FENCED_INSTANCE_ID")
    (await old.join()).expect(error_code="FENCED_INSTANCE_ID")


@case("classic.static.4", "C-STATIC-04", waits_s=3, needs={"join_group": 9})
async def a_leader_that_restarts_skips_the_assignment(peer: Peer) -> None:
    """The process of a static leader starts again and joins in version 9. It leads, receives all subscriptions, and the
    answer says to skip the assignment."""
    (old,) = await stable_group(peer, 1, instance_id="one")
    new = await _restarted(peer, old)
    answer = await new.join()
    answer.expect(error_code="NONE", leader=new.member_id, skip_assignment=True).rows("members", number=1)


@case("classic.static.5", "C-STATIC-05", waits_s=3, needs={"join_group": 5})
async def an_old_client_learns_the_former_leader(peer: Peer) -> None:
    """The process of a static leader starts again and joins in version 5, which cannot skip an assignment. The answer
    names the previous leader, so that the member acts as a follower, and contains no subscriptions."""
    (old,) = await stable_group(peer, 1, instance_id="one")
    new = await _restarted(peer, old)
    (await new.join(version=5)).expect(error_code="NONE", leader=old.member_id).rows("members", number=0)


@case("classic.static.6", "C-STATIC-12", "C-JOIN-53", waits_s=3, needs={"join_group": 5})
async def a_leader_that_keeps_its_id_starts_a_rebalance(peer: Peer) -> None:
    """A static leader joins again with its own member id. It receives the next generation."""
    (member,) = await stable_group(peer, 1, instance_id="one")
    generation = member.generation_id
    (await member.join()).expect(error_code="NONE", generation_id=generation + 1, leader=member.member_id)


@case("classic.static.7", "C-STATIC-08", waits_s=3, needs={"join_group": 5})
async def a_restart_with_other_assignors_starts_a_rebalance(peer: Peer) -> None:
    """The process of a static member starts again with assignors from which another one is chosen. It receives the next
    generation, with that assignor."""
    (old,) = await stable_group(peer, 1, instance_id="one", assignors=("range", "roundrobin"))
    new = await _restarted(peer, old)
    new.assignors = ("roundrobin", "range")
    (await new.join()).expect(error_code="NONE", generation_id=old.generation_id + 1, protocol_name="roundrobin")


@case("classic.static.8", "C-JOIN-38e", waits_s=3, needs={"join_group": 5})
async def an_instance_id_that_nobody_has_is_refused(peer: Peer) -> None:
    """A dynamic member of a stable group joins again with an instance id that no member has. The broker answers
    UNKNOWN_MEMBER_ID."""
    (member,) = await stable_group(peer, 1)
    member.instance_id = "nobody"
    (await member.join()).expect(error_code="UNKNOWN_MEMBER_ID")


@case("classic.static.9", "C-STATIC-14", waits_s=14, needs={"join_group": 5})
async def an_absent_static_member_keeps_its_place(peer: Peer) -> None:
    """The leader starts a rebalance, and a static member does not join again. After the rebalance timeout the next
    generation still lists the absent member, with its instance id."""
    (leader,) = await stable_group(peer, 1, rebalance_timeout_ms=6_000, session_timeout_ms=45_000)
    absent = await classic_member(peer, instance_id="away", rebalance_timeout_ms=6_000, session_timeout_ms=45_000)
    waiting = peer.start(absent.enter())
    await until_rebalance(leader)
    await settle([leader, absent], await asyncio.gather(leader.join(), waiting))
    answer = await leader.join()
    listed = {row["group_instance_id"] for row in answer.expect(error_code="NONE")["members"]}
    peer.require(holds="away" in listed, expected="the absent static member to be listed", received=f"{listed}")


@case("classic.static.10", "C-TMR-07", "C-STATIC-15", waits_s=12, needs={"join_group": 5})
async def an_absent_static_member_expires(peer: Peer) -> None:
    """A static member sends nothing for longer than its session timeout. It is removed, and its instance id joins anew
    in the next generation."""
    (old,) = await stable_group(peer, 1, instance_id="one", session_timeout_ms=6_000)
    await asyncio.sleep(1.25 * old.session_s)
    (await old.heartbeat()).expect(error_code="UNKNOWN_MEMBER_ID")
    new = await _restarted(peer, old)
    (await new.join()).expect(error_code="NONE", generation_id=old.generation_id + 2, leader=new.member_id)


@case("classic.static.11", "C-STATIC-09", waits_s=3, needs={"join_group": 5})
async def a_restart_before_sync_starts_a_rebalance(peer: Peer) -> None:
    """A static member has joined but not sent SyncGroup when its process starts again. The new process receives the
    next generation."""
    old = await classic_member(peer, instance_id="one")
    first = await old.enter()
    new = await _restarted(peer, old)
    (await new.join()).expect(error_code="NONE", generation_id=first["generation_id"] + 1, leader=new.member_id)


@case("classic.static.12", "C-STATIC-02", waits_s=3, needs={"join_group": 5})
async def a_waiting_join_of_the_old_process_is_fenced(peer: Peer) -> None:
    """A static member waits for the answer to its JoinGroup when its process starts again. The old request is answered
    FENCED_INSTANCE_ID, with the old member id."""
    leader, other = await stable_group(peer, 2, rebalance_timeout_ms=30_000, session_timeout_ms=30_000)
    old = await classic_member(peer, instance_id="one", rebalance_timeout_ms=30_000, session_timeout_ms=30_000)
    waiting = peer.start(old.join())
    await until_rebalance(leader)
    new = await _restarted(peer, old)
    joining = peer.start(new.join())
    (await waiting).expect(error_code="FENCED_INSTANCE_ID", member_id=SOMETHING)
    await asyncio.gather(leader.join(), other.join(), joining)

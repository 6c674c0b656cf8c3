"""Heartbeat to a classic group."""

from __future__ import annotations

import asyncio

from ..case import case
from ..classic_member import classic_member, stable_group, until_rebalance, until_refused
from ..peer import Peer


@case("classic.heartbeat.1", "C-HB-12", waits_s=3)
async def a_member_of_a_stable_group_is_confirmed(peer: Peer) -> None:
    """A member of a stable group sends a heartbeat. The broker answers NONE."""
    (member,) = await stable_group(peer, 1)
    (await member.heartbeat()).expect(error_code="NONE")


@case("classic.heartbeat.2", "C-HB-12", waits_s=3)
async def a_member_may_beat_before_it_syncs(peer: Peer) -> None:
    """A member that has joined sends a heartbeat before SyncGroup. The broker answers NONE."""
    member = await classic_member(peer)
    await member.enter()
    (await member.heartbeat()).expect(error_code="NONE")


@case("classic.heartbeat.3", "C-HB-11", "C-HB-13", waits_s=3)
async def a_rebalance_is_reported(peer: Peer) -> None:
    """Another member joins. The heartbeat of the first, with the old generation, is answered REBALANCE_IN_PROGRESS."""
    (member,) = await stable_group(peer, 1)
    newcomer = await classic_member(peer)
    waiting = peer.start(newcomer.enter())
    (await until_refused(member)).expect(error_code="REBALANCE_IN_PROGRESS")
    (await member.heartbeat()).expect(error_code="REBALANCE_IN_PROGRESS")
    await asyncio.gather(member.join(), waiting)


@case("classic.heartbeat.4", "C-HB-09", waits_s=3)
async def another_generation_is_refused(peer: Peer) -> None:
    """A member sends heartbeats with the generation before the present one, and with the one after it. The broker
    answers ILLEGAL_GENERATION to both."""
    (member,) = await stable_group(peer, 1)
    for generation in (member.generation_id - 1, member.generation_id + 1):
        (await member.heartbeat(generation_id=generation)).expect(error_code="ILLEGAL_GENERATION")


@case("classic.heartbeat.5", "C-HB-08", waits_s=3)
async def an_unknown_member_is_refused(peer: Peer) -> None:
    """A stranger sends a heartbeat with the present generation. The broker answers UNKNOWN_MEMBER_ID."""
    (member,) = await stable_group(peer, 1)
    (await member.heartbeat(member_id="nobody")).expect(error_code="UNKNOWN_MEMBER_ID")


@case("classic.heartbeat.6", "C-HB-05")
async def a_missing_group_has_no_member(peer: Peer) -> None:
    """A member sends a heartbeat to a group that does not exist. The broker answers UNKNOWN_MEMBER_ID."""
    member = await classic_member(peer, member_id="nobody", generation_id=1)
    (await member.heartbeat()).expect(error_code="UNKNOWN_MEMBER_ID")


@case("classic.heartbeat.7", "C-HB-02")
async def an_empty_group_id_is_refused(peer: Peer) -> None:
    """A member sends a heartbeat to the group with the empty id. The broker answers INVALID_GROUP_ID."""
    member = await classic_member(peer, member_id="nobody", generation_id=1)
    (await member.heartbeat(group_id="")).expect(error_code="INVALID_GROUP_ID")


@case("classic.heartbeat.8", "C-HB-08", "C-STATIC-13", waits_s=3, needs={"heartbeat": 3})
async def another_holder_of_the_instance_id_is_fenced(peer: Peer) -> None:
    """A static member is in the group, and a request with its instance id and another member id arrives. The broker
    answers FENCED_INSTANCE_ID."""
    (member,) = await stable_group(peer, 1, instance_id="one")
    (await member.heartbeat(member_id="nobody")).expect(error_code="FENCED_INSTANCE_ID")


@case("classic.heartbeat.9", "C-HB-08", waits_s=3, needs={"heartbeat": 3})
async def an_unknown_instance_id_is_refused(peer: Peer) -> None:
    """A dynamic member sends a heartbeat with an instance id that no member has. The broker answers
    UNKNOWN_MEMBER_ID."""
    (member,) = await stable_group(peer, 1)
    (await member.heartbeat(group_instance_id="nobody")).expect(error_code="UNKNOWN_MEMBER_ID")


@case("classic.heartbeat.10", "C-STATIC-19", waits_s=3, needs={"heartbeat": 3})
async def the_instance_id_may_be_left_out(peer: Peer) -> None:
    """A static member sends a heartbeat with its member id and without its instance id. The broker answers NONE."""
    (member,) = await stable_group(peer, 1, instance_id="one")
    (await member.heartbeat(group_instance_id=None)).expect(error_code="NONE")


@case("classic.heartbeat.11", "C-TMR-04", "C-TMR-07", waits_s=10)
async def a_silent_member_is_removed(peer: Peer) -> None:
    """A member sends nothing for longer than its session timeout. Its next heartbeat is answered UNKNOWN_MEMBER_ID."""
    (member,) = await stable_group(peer, 1, session_timeout_ms=6_000)
    await asyncio.sleep(1.25 * member.session_s)
    (await member.heartbeat()).expect(error_code="UNKNOWN_MEMBER_ID")


@case("classic.heartbeat.12", "C-TMR-04", "C-HB-12", waits_s=13)
async def heartbeats_extend_the_session(peer: Peer) -> None:
    """A member sends a heartbeat three times, each after half of its session timeout. It is still a member then."""
    (member,) = await stable_group(peer, 1, session_timeout_ms=6_000)
    for _ in range(3):
        await asyncio.sleep(member.session_s / 2)
        (await member.heartbeat()).expect(error_code="NONE")


@case("classic.heartbeat.13", "C-TMR-07", "C-TMR-10", waits_s=12)
async def the_others_rebalance_when_a_member_is_silent(peer: Peer) -> None:
    """The leader of two members sends nothing for longer than its session timeout. The follower's heartbeat reports a
    rebalance; it joins again and leads alone."""
    leader, follower = await stable_group(peer, 2, session_timeout_ms=6_000)
    await until_rebalance(follower, within_s=1.5 * follower.session_s)
    (await follower.join()).expect(error_code="NONE", leader=follower.member_id).rows("members", number=1)
    (await leader.heartbeat()).expect(error_code="UNKNOWN_MEMBER_ID")

"""JoinGroup to a classic group: who is admitted, who leads, and when the group rebalances."""

from __future__ import annotations

import asyncio

from ..answers import SOMETHING, NotSupported
from ..case import case
from ..classic_member import classic_member, stable_group, until_rebalance
from ..group_state import expect_state
from ..peer import Peer


@case("classic.join.1", "C-JOIN-34", needs={"join_group": 4})
async def a_new_member_is_given_an_id_first(peer: Peer) -> None:
    """A dynamic member joins without a member id. The broker answers MEMBER_ID_REQUIRED with a new member id, and the
    group has no member."""
    member = await classic_member(peer)
    (await member.join()).expect(error_code="MEMBER_ID_REQUIRED", member_id=SOMETHING, generation_id=-1, leader="")
    (await expect_state(peer, "Empty")).rows("members", number=0)


@case("classic.join.2", "C-JOIN-35", "C-JOIN-43", waits_s=3)
async def an_old_client_is_admitted_at_once(peer: Peer) -> None:
    """A member joins without a member id in version 3, before KIP-394. It is admitted in this request, as the leader of
    generation 1."""
    member = await classic_member(peer)
    answer = await member.join(version=3)
    answer.expect(error_code="NONE", generation_id=1, member_id=SOMETHING, leader=member.member_id)


@case("classic.join.3", "C-JOIN-38d", "C-JOIN-48", "C-JOIN-49", waits_s=3)
async def a_member_alone_leads(peer: Peer) -> None:
    """A member joins an empty group with the id that it was given. It becomes the leader of generation 1, and receives
    its own subscription."""
    member = await classic_member(peer)
    answer = await member.enter()
    answer.expect(generation_id=1, leader=member.member_id, protocol_name="range", member_id=member.member_id)
    (row,) = answer.rows("members", number=1)
    row.expect(member_id=member.member_id, metadata=SOMETHING)


@case("classic.join.4", "C-JOIN-49", "C-JOIN-57", waits_s=3)
async def only_the_leader_receives_subscriptions(peer: Peer) -> None:
    """A second member joins a stable group, and the first joins again. Both are answered with the next generation and
    the same leader. The leader receives both subscriptions, the follower none."""
    (leader,) = await stable_group(peer, 1)
    follower = await classic_member(peer)
    waiting = peer.start(follower.enter())
    await until_rebalance(leader)
    led, followed = await asyncio.gather(leader.join(), waiting)
    led.expect(error_code="NONE", generation_id=2, leader=leader.member_id).rows("members", number=2)
    followed.expect(error_code="NONE", generation_id=2, leader=leader.member_id).rows("members", number=0)


@case("classic.join.5", "C-JOIN-11")
async def a_missing_group_knows_no_member(peer: Peer) -> None:
    """A member joins a group that does not exist, with a member id. The broker answers UNKNOWN_MEMBER_ID and creates no
    group."""
    member = await classic_member(peer, member_id="nobody")
    (await member.join()).expect(error_code="UNKNOWN_MEMBER_ID")
    await expect_state(peer, "Dead")


@case("classic.join.6", "C-JOIN-38g", waits_s=3)
async def an_unknown_member_is_refused(peer: Peer) -> None:
    """A member joins a stable group with an id that the group never gave. The broker answers UNKNOWN_MEMBER_ID, and the
    group stays stable."""
    await stable_group(peer, 1)
    member = await classic_member(peer, member_id="nobody")
    (await member.join()).expect(error_code="UNKNOWN_MEMBER_ID")
    await expect_state(peer, "Stable")


@case("classic.join.7", "C-JOIN-05")
async def a_short_session_timeout_is_refused(peer: Peer) -> None:
    """A member joins with a session timeout of 1 ms, which is below the least that a broker allows. The broker answers
    INVALID_SESSION_TIMEOUT."""
    member = await classic_member(peer, session_timeout_ms=1)
    (await member.join()).expect(error_code="INVALID_SESSION_TIMEOUT")


@case("classic.join.8", "C-JOIN-05")
async def a_long_session_timeout_is_refused(peer: Peer) -> None:
    """A member joins with a session timeout of 24 days, which is above the most that a broker allows. The broker
    answers INVALID_SESSION_TIMEOUT."""
    member = await classic_member(peer, session_timeout_ms=2**31 - 1)
    (await member.join()).expect(error_code="INVALID_SESSION_TIMEOUT")


@case("classic.join.9", "C-JOIN-04")
async def an_empty_group_id_is_refused(peer: Peer) -> None:
    """A member joins the group with the empty id. The broker answers INVALID_GROUP_ID."""
    member = await classic_member(peer)
    (await member.join(group_id="")).expect(error_code="INVALID_GROUP_ID")


@case("classic.join.10", "C-JOIN-31", "C-JOIN-60")
async def a_member_without_a_protocol_type_is_refused(peer: Peer) -> None:
    """A member joins an empty group with the empty protocol type. The broker answers INCONSISTENT_GROUP_PROTOCOL."""
    member = await classic_member(peer, protocol_type="")
    (await member.join()).expect(error_code="INCONSISTENT_GROUP_PROTOCOL")


@case("classic.join.11", "C-JOIN-31", "C-JOIN-60")
async def a_member_without_assignors_is_refused(peer: Peer) -> None:
    """A member joins an empty group and lists no assignor. The broker answers INCONSISTENT_GROUP_PROTOCOL."""
    member = await classic_member(peer, assignors=())
    (await member.join()).expect(error_code="INCONSISTENT_GROUP_PROTOCOL")


@case("classic.join.12", "C-JOIN-60", waits_s=3)
async def another_protocol_type_is_refused(peer: Peer) -> None:
    """A member of protocol type ``connect`` joins a group of type ``consumer``. The broker answers
    INCONSISTENT_GROUP_PROTOCOL, and the group stays stable."""
    await stable_group(peer, 1)
    member = await classic_member(peer, protocol_type="connect")
    (await member.join()).expect(error_code="INCONSISTENT_GROUP_PROTOCOL")
    await expect_state(peer, "Stable")


@case("classic.join.13", "C-JOIN-60", waits_s=3)
async def an_assignor_that_not_all_support_is_refused(peer: Peer) -> None:
    """A member that supports only ``roundrobin`` joins a group whose member supports only ``range``. The broker answers
    INCONSISTENT_GROUP_PROTOCOL."""
    await stable_group(peer, 1)
    member = await classic_member(peer, assignors=("roundrobin",))
    (await member.join()).expect(error_code="INCONSISTENT_GROUP_PROTOCOL")


@case("classic.join.14", "C-JOIN-63", waits_s=3)
async def the_common_assignor_is_chosen(peer: Peer) -> None:
    """Members join that prefer different assignors and have one in common. The generation uses that one."""
    (leader,) = await stable_group(peer, 1, assignors=("range", "roundrobin"))
    other = await classic_member(peer, assignors=("sticky", "roundrobin"))
    waiting = peer.start(other.enter())
    await until_rebalance(leader)
    for answer in await asyncio.gather(leader.join(), waiting):
        answer.expect(error_code="NONE", protocol_name="roundrobin")


@case("classic.join.15", "C-JOIN-53", waits_s=3)
async def a_leader_that_rejoins_starts_a_rebalance(peer: Peer) -> None:
    """The leader of a stable group joins again with the same subscription. A rebalance starts: the follower's heartbeat
    is answered REBALANCE_IN_PROGRESS, and both receive the next generation."""
    leader, follower = await stable_group(peer, 2)
    before = leader.generation_id
    waiting = peer.start(leader.join())
    await until_rebalance(follower)
    for answer in await asyncio.gather(waiting, follower.join()):
        answer.expect(error_code="NONE", generation_id=before + 1)


@case("classic.join.16", "C-JOIN-55", waits_s=3)
async def a_follower_that_rejoins_unchanged_starts_none(peer: Peer) -> None:
    """A follower of a stable group joins again with the same subscription. It is answered at once with the present
    generation and no subscriptions, and the group stays stable."""
    _, follower = await stable_group(peer, 2)
    generation = follower.generation_id
    answer = await follower.join()
    answer.expect(error_code="NONE", generation_id=generation).rows("members", number=0)
    await expect_state(peer, "Stable")


@case("classic.join.17", "C-JOIN-54", waits_s=3)
async def a_follower_with_another_subscription_starts_a_rebalance(peer: Peer) -> None:
    """A follower of a stable group joins again with another subscription. The leader's heartbeat is answered
    REBALANCE_IN_PROGRESS, and both receive the next generation."""
    leader, follower = await stable_group(peer, 2)
    generation = follower.generation_id
    follower.topics = ("events", "more")
    waiting = peer.start(follower.join())
    await until_rebalance(leader)
    for answer in await asyncio.gather(leader.join(), waiting):
        answer.expect(error_code="NONE", generation_id=generation + 1)


@case("classic.join.18", "C-JOIN-51", waits_s=3)
async def a_lost_answer_can_be_repeated(peer: Peer) -> None:
    """A member joins, and before SyncGroup joins again with the same subscription, as after a lost answer. It is
    answered at once with the same generation."""
    member = await classic_member(peer)
    first = await member.enter()
    (await member.join()).expect(error_code="NONE", generation_id=first["generation_id"], leader=member.member_id)


@case("classic.join.19", "C-JOIN-52", waits_s=3)
async def another_subscription_before_sync_starts_a_rebalance(peer: Peer) -> None:
    """A member joins, and before SyncGroup joins again with another subscription. It receives the next generation."""
    member = await classic_member(peer)
    first = await member.enter()
    member.topics = ("events", "more")
    (await member.join()).expect(error_code="NONE", generation_id=first["generation_id"] + 1)


@case("classic.join.20", "C-JOIN-44", "C-JOIN-42", waits_s=12)
async def a_member_that_does_not_rejoin_is_removed(peer: Peer) -> None:
    """A member joins a stable group whose follower never joins again. After the rebalance timeout the rebalance ends
    without it: the leader receives two subscriptions, and the third member is unknown."""
    leader, absent = await stable_group(peer, 2, rebalance_timeout_ms=6_000, session_timeout_ms=30_000)
    newcomer = await classic_member(peer, rebalance_timeout_ms=6_000, session_timeout_ms=30_000)
    waiting = peer.start(newcomer.enter())
    await until_rebalance(leader)
    led, _ = await asyncio.gather(leader.join(), waiting)
    led.expect(error_code="NONE").rows("members", number=2)
    (await absent.heartbeat()).expect(error_code="UNKNOWN_MEMBER_ID")


@case("classic.join.21", "C-JOIN-43", "C-JOIN-65", waits_s=6)
async def members_that_come_together_share_the_first_generation(peer: Peer) -> None:
    """Two members join an empty group at the same time, and the broker waits for further members (its initial rebalance
    delay). Both receive generation 1 with the same leader. A broker without a delay does not support this case."""
    first, second = await classic_member(peer), await classic_member(peer)
    one, two = await asyncio.gather(first.enter(), second.enter())
    if one["generation_id"] == two["generation_id"]:
        one.expect(generation_id=1, leader=two["leader"])
    else:
        raise NotSupported("the broker does not wait for further members of a new group")

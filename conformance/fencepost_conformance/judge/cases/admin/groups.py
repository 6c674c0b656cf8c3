"""ListGroups, DescribeGroups, ConsumerGroupDescribe, DeleteGroups and FindCoordinator."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from ..answers import SOMETHING, Answer
from ..case import case
from ..classic_member import classic_member, stable_group
from ..consumer_member import joined
from ..group_state import described, described_consumer, expect_state
from ..offset_requests import commit, expect_offset, fetch
from ..peer import Client, Peer

_KIP_848 = {"consumer_group_heartbeat": 1, "consumer_group_describe": 0}


async def _listed(
    client: Client, group: str, states_filter: Sequence[str] = (), types_filter: Sequence[str] = ()
) -> list[dict[str, str]]:
    """Return the rows of ListGroups for a group: one or none."""
    answer = await client.ask("list_groups", states_filter=states_filter, types_filter=types_filter)
    answer.expect(error_code="NONE")
    return [row for row in answer["groups"] if row["group_id"] == group]


async def _delete(client: Client, group: str) -> Answer:
    return (await client.ask("delete_groups", groups_names=[group])).at("results.0")


@case("admin.list.1", "C-ADM-05", waits_s=3, needs={"list_groups": 0})
async def a_group_is_listed(peer: Peer) -> None:
    """A classic group has a member. ListGroups shows it once, with protocol type ``consumer``."""
    (member,) = await stable_group(peer, 1)
    rows = await _listed(member.client, peer.group)
    types = [row["protocol_type"] for row in rows]
    peer.require(holds=types == ["consumer"], expected="['consumer']", received=str(types))


@case("admin.list.2", "C-ADM-05", waits_s=3, needs={"list_groups": 4})
async def groups_are_listed_by_state(peer: Peer) -> None:
    """A classic group is stable. ListGroups with the filter ``Stable`` shows it in this state; with the filter
    ``Empty`` it does not."""
    (member,) = await stable_group(peer, 1)
    states = [row["group_state"] for row in await _listed(member.client, peer.group, states_filter=["Stable"])]
    peer.require(holds=states == ["Stable"], expected="['Stable']", received=str(states))
    others = await _listed(member.client, peer.group, states_filter=["Empty"])
    peer.require(holds=not others, expected="no row", received=str(others))


@case("admin.list.3", "C-ADM-05", needs=_KIP_848 | {"list_groups": 5})
async def groups_are_listed_by_type(peer: Peer) -> None:
    """A consumer group has a member. ListGroups with the filter ``consumer`` shows it with this type; with the filter
    ``classic`` it does not."""
    member = await joined(peer, await peer.topic())
    types = [row["group_type"] for row in await _listed(member.client, peer.group, types_filter=["consumer"])]
    peer.require(holds=types == ["consumer"], expected="['consumer']", received=str(types))
    others = await _listed(member.client, peer.group, types_filter=["classic"])
    peer.require(holds=not others, expected="no row", received=str(others))


@case("admin.describe.1", "C-ADM-03", "C-ADM-04", waits_s=3)
async def a_stable_group_is_described(peer: Peer) -> None:
    """A classic group is stable. DescribeGroups shows its state, its assignor, and its member with subscription and
    assignment."""
    (member,) = await stable_group(peer, 1)
    row = await described(peer)
    row.expect(error_code="NONE", group_state="Stable", protocol_type="consumer", protocol_data="range")
    (shown,) = row.rows("members", number=1)
    shown.expect(member_id=member.member_id, member_metadata=SOMETHING, member_assignment=SOMETHING)


@case("admin.describe.2", "C-ADM-02")
async def a_missing_group_is_dead(peer: Peer) -> None:
    """DescribeGroups asks for a group that does not exist. Its state is ``Dead``; from version 6 on the error is
    GROUP_ID_NOT_FOUND, before it is NONE."""
    client = await peer.client()
    newest = client.newest("describe_groups")
    row = (await client.ask("describe_groups", groups=[peer.group])).at("groups.0")
    row.expect(group_state="Dead", error_code="GROUP_ID_NOT_FOUND" if newest >= 6 else "NONE")


@case("admin.describe.3", "M-DESC-01", needs=_KIP_848)
async def a_consumer_group_is_described(peer: Peer) -> None:
    """A consumer group has a member. ConsumerGroupDescribe shows state, epochs, the member's epoch, its subscription,
    and its partitions as assignment and target."""
    topic = await peer.topic(partitions=2)
    member = await joined(peer, topic)
    row = await described_consumer(peer)
    row.expect(error_code="NONE", group_state="Stable", group_epoch=member.epoch, assignment_epoch=member.epoch)
    (shown,) = row.rows("members", number=1)
    shown.expect(member_id=member.member_id, member_epoch=member.epoch, subscribed_topic_names=[topic.name])
    for name in ("assignment", "target_assignment"):
        (partitions,) = shown.rows(f"{name}.topic_partitions", number=1)
        partitions.expect(topic_id=topic.topic_id, topic_name=topic.name, partitions=[0, 1])


@case("admin.describe.4", "C-ADM-06", needs=_KIP_848)
async def a_missing_consumer_group_is_not_found(peer: Peer) -> None:
    """ConsumerGroupDescribe asks for a group that does not exist. The broker answers GROUP_ID_NOT_FOUND."""
    (await described_consumer(peer)).expect(error_code="GROUP_ID_NOT_FOUND")


@case("admin.describe.5", "C-ADM-06", waits_s=3, needs=_KIP_848)
async def a_classic_group_is_no_consumer_group(peer: Peer) -> None:
    """ConsumerGroupDescribe asks for a classic group. The broker answers GROUP_ID_NOT_FOUND."""
    await stable_group(peer, 1)
    (await described_consumer(peer)).expect(error_code="GROUP_ID_NOT_FOUND")


@case("admin.delete.1", "C-ADM-09", needs={"delete_groups": 0})
async def a_simple_group_is_deleted(peer: Peer) -> None:
    """A group has an offset and no members. DeleteGroups deletes it: it is no longer listed, and when a client commits
    an offset of another partition, the group does not have the first one."""
    topic = await peer.topic(partitions=2)
    client = await peer.client()
    await commit(client, peer.group, topic, {0: 5})
    (await _delete(client, peer.group)).expect(error_code="NONE", group_id=peer.group)
    rows = await _listed(client, peer.group)
    peer.require(holds=not rows, expected="no row in ListGroups", received=str(rows))
    await commit(client, peer.group, topic, {1: 3})
    await expect_offset(client, peer.group, topic, -1)


@case("admin.delete.2", "C-ADM-09", waits_s=3, needs={"delete_groups": 0})
async def a_group_with_members_is_not_deleted(peer: Peer) -> None:
    """A classic group has a member. DeleteGroups is answered NON_EMPTY_GROUP, and the group stays stable."""
    (member,) = await stable_group(peer, 1)
    (await _delete(member.client, peer.group)).expect(error_code="NON_EMPTY_GROUP")
    await expect_state(peer, "Stable")


@case("admin.delete.3", "C-ADM-09", needs=_KIP_848 | {"delete_groups": 0})
async def a_consumer_group_with_members_is_not_deleted(peer: Peer) -> None:
    """A consumer group has a member. DeleteGroups is answered NON_EMPTY_GROUP, and the member stays."""
    member = await joined(peer, await peer.topic())
    (await _delete(member.client, peer.group)).expect(error_code="NON_EMPTY_GROUP")
    (await member.beat()).expect(error_code="NONE")


@case("admin.delete.4", "C-ADM-09", needs={"delete_groups": 0})
async def a_missing_group_is_not_found(peer: Peer) -> None:
    """DeleteGroups names a group that does not exist. The broker answers GROUP_ID_NOT_FOUND."""
    (await _delete(await peer.client(), peer.group)).expect(error_code="GROUP_ID_NOT_FOUND")


@case("admin.delete.5", "C-ADM-09", waits_s=3, needs={"delete_groups": 0})
async def an_empty_classic_group_is_deleted(peer: Peer) -> None:
    """The only member of a classic group leaves. DeleteGroups deletes the group; a later member begins with generation
    1."""
    (member,) = await stable_group(peer, 1)
    await member.leave()
    (await _delete(member.client, peer.group)).expect(error_code="NONE")
    again = await classic_member(peer)
    (await again.enter()).expect(error_code="NONE", generation_id=1)


@case("admin.delete.6", "C-ADM-09", needs=_KIP_848 | {"delete_groups": 0})
async def an_empty_consumer_group_is_deleted(peer: Peer) -> None:
    """The only member of a consumer group leaves. DeleteGroups deletes the group, and describing it finds none."""
    member = await joined(peer, await peer.topic())
    await member.gone()
    (await _delete(member.client, peer.group)).expect(error_code="NONE")
    (await described_consumer(peer)).expect(error_code="GROUP_ID_NOT_FOUND")


@case("admin.delete.7", "C-ADM-09", needs={"delete_groups": 0})
async def each_group_has_its_own_answer(peer: Peer) -> None:
    """DeleteGroups names a group with offsets and one that does not exist. The first is deleted, the second answered
    GROUP_ID_NOT_FOUND."""
    topic = await peer.topic()
    client = await peer.client()
    await commit(client, peer.group, topic, {0: 5})
    missing = f"missing-{uuid4()}"
    answer = await client.ask("delete_groups", groups_names=[peer.group, missing])
    codes = {row["group_id"]: row["error_code"] for row in answer["results"]}
    expected = {peer.group: "NONE", missing: "GROUP_ID_NOT_FOUND"}
    peer.require(holds=codes == expected, expected=str(expected), received=str(codes))
    (await fetch(client, peer.group, None)).rows("topics", number=0)


@case("admin.find.1", "F-LOC-01", needs={"find_coordinator": 0})
async def the_coordinator_of_a_group_is_found(peer: Peer) -> None:
    """A client looks up the coordinator of the group. The answer has the address of a broker."""
    (await (await peer.client()).find_coordinator(peer.group)).expect(error_code="NONE", host=SOMETHING, port=SOMETHING)


@case("admin.find.2", "F-LOC-01", needs={"find_coordinator": 4})
async def several_groups_are_looked_up_at_once(peer: Peer) -> None:
    """A client looks up the coordinators of two groups in one request. The answer has a row for each."""
    client = await peer.client()
    keys = [peer.group, f"{peer.group}-2"]
    answer = await client.ask("find_coordinator", key_type=0, coordinator_keys=keys)
    rows = answer.rows("coordinators", number=2)
    received = sorted(row["key"] for row in rows)
    peer.require(holds=received == sorted(keys), expected=str(sorted(keys)), received=str(received))
    for row in rows:
        row.expect(error_code="NONE")


@case("admin.find.3", "F-LOC-01", needs={"find_coordinator": 1})
async def an_unknown_kind_of_coordinator_is_refused(peer: Peer) -> None:
    """A client looks up a coordinator of the kind 99. The broker answers INVALID_REQUEST."""
    client = await peer.client()
    version = client.newest("find_coordinator", most=3)
    (await client.ask("find_coordinator", version, key_type=99, key=peer.group)).expect(error_code="INVALID_REQUEST")

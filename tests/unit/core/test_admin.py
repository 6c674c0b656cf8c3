"""Describe, list and delete."""

from __future__ import annotations

import asyncio

from fencepost import GroupBroker, MemoryStore, coordinator
from fencepost.protocol import consumer_messages as c
from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as o
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import LoadStarted, TimerKey, TimerKind, Topic, Unload
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3

from .scene import GROUP, Scene


def describe(scene: Scene, *names: str, version: int | None = None, **more: object) -> tuple[m.DescribedGroup, ...]:
    answer = scene.answers[scene.ask(m.DescribeGroupsRequest(names), version, **more)]
    assert isinstance(answer, m.DescribeGroupsResponse)
    return answer.groups


def listed(scene: Scene, states: tuple[str, ...] = (), types: tuple[str, ...] = (), **more: object) -> list[str]:
    answer = scene.answers[scene.ask(m.ListGroupsRequest(states_filter=states, types_filter=types), **more)]
    assert isinstance(answer, m.ListGroupsResponse)
    assert answer.error_code is ErrorCode.NONE
    return [row.group_id for row in answer.groups]


def deleted(scene: Scene, *names: str, **more: object) -> dict[str, ErrorCode] | None:
    answer = scene.answers.get(scene.ask(m.DeleteGroupsRequest(names), **more))
    assert answer is None or isinstance(answer, m.DeleteGroupsResponse)
    return None if answer is None else {row.group_id: row.error_code for row in answer.results}


def test_describe_shows_metadata_only_in_stable() -> None:
    scene = Scene()
    (name,) = scene.stable(1)
    (row,) = describe(scene, GROUP)
    assert (row.group_state, row.protocol_type, row.protocol_data) == ("Stable", "consumer", "range")
    assert row.members == (
        m.DescribedMember(
            name,
            group_instance_id=None,
            client_id="c",
            client_host="/127.0.0.1",
            member_metadata=b"range",
            member_assignment=name.encode(),
        ),
    )
    scene.newcomer()
    (row,) = describe(scene, GROUP)
    assert (row.group_state, row.protocol_data) == ("PreparingRebalance", "")  # C-ADM-12
    assert row.members[0].member_metadata == b""
    assert row.members[0].member_assignment == name.encode()


def test_an_unknown_group_is_an_error_from_version_6_on() -> None:
    scene = Scene()
    (row,) = describe(scene, "none")
    assert (row.error_code, row.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert row.error_message is not None
    (row,) = describe(scene, "none", version=5)
    assert (row.error_code, row.group_state, row.error_message) == (ErrorCode.NONE, "Dead", None)  # C-ADM-02


def test_reads_see_the_map_as_replicated_and_groups_as_they_are() -> None:
    scene = Scene(log="later")
    scene.join()
    assert listed(scene) == []
    assert describe(scene, GROUP)[0].error_code is ErrorCode.GROUP_ID_NOT_FOUND
    scene.replicate()
    assert listed(scene) == [GROUP]
    scene.newcomer()
    assert describe(scene, GROUP)[0].group_state == "PreparingRebalance"  # C-ADM-08


def test_filters() -> None:
    scene = Scene()
    scene.stable(1)
    scene.join(group="other")
    assert listed(scene) == [GROUP, "other"]
    assert listed(scene, ("EMPTY ", "nonsense")) == ["other"]
    assert listed(scene, (), ("Classic",)) == [GROUP, "other"]
    assert listed(scene, (), ("consumer",)) == []
    assert listed(scene, denied=frozenset({GROUP})) == ["other"]


def test_only_empty_groups_are_deleted() -> None:
    scene = Scene()
    scene.stable(1)
    pending = scene.joined(scene.join(group="other")).member_id
    errors = deleted(scene, GROUP, "other", "none", "other", "secret", denied=frozenset({"secret"}))
    assert errors == {
        GROUP: ErrorCode.NON_EMPTY_GROUP,
        "other": ErrorCode.NONE,
        "none": ErrorCode.GROUP_ID_NOT_FOUND,
        "secret": ErrorCode.GROUP_AUTHORIZATION_FAILED,
    }
    assert scene.records[-1].value is None
    assert coordinator.view(scene.state, "other") is None
    assert TimerKey(TimerKind.SESSION, "other", pending) in scene.timers
    scene.pass_time(9_000)  # it fires without effect
    assert scene.joined(scene.join(pending, group="other")).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_deletion_decides_when_the_log_has_caught_up_in_kafka() -> None:
    for profile in (KAFKA_4_3, INTENDED):
        scene = Scene(profile)
        scene.join(group="other")
        scene.log = "later"
        scene.join()
        assert deleted(scene, "other") is None
        asked = scene.ids
        assert ("other" in coordinator.views(scene.state)) is (profile is KAFKA_4_3)
        scene.join("", group="other", version=3)
        scene.replicate()
        if profile is KAFKA_4_3:
            answer = scene.answers[asked]
            assert isinstance(answer, m.DeleteGroupsResponse)
            assert answer.results[0].error_code is ErrorCode.NON_EMPTY_GROUP  # C-ADM-09
        assert asked in scene.answers


def test_a_deletion_that_failed_changes_nothing_but_kafkas_list() -> None:
    for profile, names in ((KAFKA_4_3, [GROUP, GROUP]), (INTENDED, [GROUP])):
        scene = Scene(profile)
        scene.join()
        scene.log = "never"
        assert deleted(scene, GROUP) is None
        asked = scene.ids
        assert listed(scene) == [GROUP]
        scene.ask(m.DeleteGroupsRequest(("none",)))
        scene.state = scene.state._replace(base=len(scene.records) - 1)
        scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
        answer = scene.answers[asked]
        assert isinstance(answer, m.DeleteGroupsResponse)
        assert answer.results[0].error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert listed(scene) == names  # C-ADM-05


def test_while_loading_or_elsewhere() -> None:
    scene = Scene()
    scene.feed(Unload(0, leader_epoch=None))
    assert listed(scene) == []  # a partition just lost is skipped
    rows = describe(scene, GROUP, "secret", denied=frozenset({"secret"}))
    assert {row.group_id: row.error_code for row in rows} == {
        GROUP: ErrorCode.NOT_COORDINATOR,
        "secret": ErrorCode.GROUP_AUTHORIZATION_FAILED,
    }
    scene.feed(LoadStarted(0, leader_epoch=5))
    asked = scene.ask(m.ListGroupsRequest())
    assert scene.answers[asked] == m.ListGroupsResponse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)  # C-ADM-05
    assert deleted(scene, GROUP) == {GROUP: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


def test_an_error_of_describe_gives_the_reason() -> None:
    """Error messages are Kafka's: a tool for one kind of groups learns that the group exists and has the other kind."""

    async def story() -> None:
        async with GroupBroker(MemoryStore(2), topics=[Topic("t", bytes(15) + b"\1", 1)]) as groups:
            beat = c.ConsumerGroupHeartbeatRequest(
                "new", member_id="m", member_epoch=0, rebalance_timeout_ms=1_000, subscribed_topic_names=("t",),
                topic_partitions=(),
            )  # fmt: skip
            assert (await groups.consumer_heartbeat(beat)).error_code is ErrorCode.NONE
            offset = o.OffsetCommitRequestPartition(0, committed_offset=1)
            topics = (o.OffsetCommitRequestTopic(name="t", partitions=(offset,)),)
            await groups.commit_offsets(o.OffsetCommitRequest("old", topics=topics))
            classic = await groups.describe(m.DescribeGroupsRequest(("new", "none")))
            consumer = await groups.consumer_describe(c.ConsumerGroupDescribeRequest(("old", "none")))
        assert [row.error_message for row in classic.groups] == [
            "Group new is not a classic group.", "Group none not found."
        ]  # fmt: skip
        assert [row.error_message for row in consumer.groups] == [
            "Group old is not a consumer group.", "Group none not found."
        ]  # fmt: skip

    asyncio.run(story())

"""Kafka's own coordinator in a JVM: its inputs and outputs, and that only the trace drives it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from jvm_traces import (
    LOADED,
    RANGE,
    RELEASE,
    KafkaOf,
    armed,
    groups,
    heartbeat,
    join,
    leave,
    only,
    request,
    run,
    sync,
)

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import (
    Appended,
    AppendFailed,
    Event,
    Load,
    LoadFailed,
    LoadStarted,
    Request,
    TimerFired,
    TimerKey,
    TimerKind,
    Unload,
)
from fencepost.protocol.messages import (
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    Protocol,
    SyncGroupResponse,
)
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue, Record
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupState
from fencepost_conformance.targets.ids import member_id
from fencepost_conformance.targets.kafka_jvm import KafkaJvm

pytestmark = pytest.mark.jvm

M0 = member_id("client", 0)
M1 = member_id("client", 1)
JOIN = TimerKey(TimerKind.JOIN, "g")
STABLE: list[Event] = [
    LOADED,
    join(10, 1),
    Appended(11, offset=1),
    join(12, 2, M0),
    TimerFired(3_012, JOIN),
    sync(3_013, 3, M0, given=b"\x01\xfe"),
    Appended(3_014, offset=2),
]


def session(member: str, group: str = "g") -> TimerKey:
    return TimerKey(TimerKind.SESSION, group, member)


def operation(number: int) -> TimerKey:
    return TimerKey(TimerKind.OPERATION, operation=number)


@pytest.fixture
def kafka(kafka_of: KafkaOf) -> KafkaJvm:
    return kafka_of(RELEASE)


def test_join_sync_heartbeat_come_back_with_every_field(kafka: KafkaJvm) -> None:
    seen = run(kafka, *STABLE, heartbeat(4_000, 4, M0))
    assert only(seen[1]).body == JoinGroupResponse(
        ErrorCode.MEMBER_ID_REQUIRED, protocol_name=None, member_id=M0
    )  # C-JOIN-34
    assert seen[1].records == (
        Record(
            GroupMetadataKey("g"),
            GroupMetadataValue("", generation=0, protocol=None, leader=None, current_state_timestamp=10),
        ),
    )  # C-JOIN-16
    assert seen[1].timers == {session(M0): 10_010, operation(1): 5_010}
    assert seen[2].timers == {operation(1): None}
    assert seen[3].timers == {session(M0): 300_012, JOIN: 3_012}  # C-JOIN-40, C-JOIN-43
    assert seen[3].replies == ()
    joined = only(seen[4])
    assert joined.request_id == 2
    assert isinstance(joined.body, JoinGroupResponse)
    assert joined.body.members[0].metadata == RANGE[0].metadata
    stored = GroupMetadataMember(
        M0,
        group_instance_id=None,
        client_id="client",
        client_host="/127.0.0.1",
        rebalance_timeout=60_000,
        session_timeout=10_000,
        subscription=RANGE[0].metadata,
        assignment=b"\x01\xfe",
    )
    value = GroupMetadataValue(
        "consumer", generation=1, protocol="range", leader=M0, current_state_timestamp=3_012, members=(stored,)
    )
    assert seen[5].records == (Record(GroupMetadataKey("g"), value),)
    assert seen[5].replies == ()  # F-RT-21
    assert only(seen[6]).body == SyncGroupResponse(
        ErrorCode.NONE, protocol_type="consumer", protocol_name="range", assignment=b"\x01\xfe"
    )
    view = groups(seen)["g"]
    assert view.state is GroupState.STABLE
    assert view.members[0].assignment == b"\x01\xfe"
    assert only(seen[7]).body == HeartbeatResponse(ErrorCode.NONE)
    assert seen[7].groups == {}
    assert armed(seen) == {session(M0): 14_000}
    assert all(observation.error is None for observation in seen)


def test_member_ids_are_the_same_in_every_trace(kafka: KafkaJvm) -> None:
    events = [LOADED, join(1, 1), join(2, 2), join(3, 3, instance="static")]
    for _ in range(2):
        seen = run(kafka, *events)
        assert [only(seen[i]).body.member_id for i in (1, 2)] == [M0, M1]  # type: ignore[union-attr]
        assert groups(seen)["g"].static_members == (("static", member_id("static", 2)),)


def test_nothing_of_a_trace_is_left_for_the_next(kafka: KafkaJvm) -> None:
    dirty = (Settings(), [*STABLE, join(4_000, 9, instance="i")])
    clean = (Settings(), [LOADED, heartbeat(1, 1, M0)])
    (_, first), (_, second) = kafka.run_many([dirty, clean]), kafka.run_many([dirty, clean])
    assert first == second
    assert only(first[1]).body == HeartbeatResponse(ErrorCode.UNKNOWN_MEMBER_ID)
    assert armed(first) == {}


@pytest.mark.parametrize(("late_ms", "fires"), [(-1, False), (0, True), (1, True)])
def test_a_timer_fires_at_its_deadline_and_not_before(kafka: KafkaJvm, late_ms: int, fires: bool) -> None:
    seen = run(kafka, *STABLE, TimerFired(13_014 + late_ms, session(M0)))
    assert armed(seen[:-1]) == {session(M0): 13_014}
    assert seen[-1].error == (None if fires else "NoSuchTimer")
    assert groups(seen)["g"].state is (GroupState.EMPTY if fires else GroupState.STABLE)


def test_a_due_timer_waits_for_its_own_event(kafka: KafkaJvm) -> None:
    seen = run(kafka, *STABLE, heartbeat(50_000, 4, M0))
    assert only(seen[-1]).body == HeartbeatResponse(ErrorCode.NONE)


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
    ],
)
def test_a_failed_append_is_seen_in_its_own_event(kafka: KafkaJvm, error: ErrorCode, answer: ErrorCode) -> None:
    seen = run(kafka, LOADED, join(1, 1, instance="i"), AppendFailed(1, error), heartbeat(2, 2, M0))
    assert len(seen[1].records) == 1
    assert seen[1].replies == ()
    assert seen[1].timers[operation(1)] == 5_001
    assert only(seen[2]).body == JoinGroupResponse(answer, protocol_name=None)  # C-JOIN-16(i), C-SYNC-30
    assert seen[2].timers == {operation(1): None}
    assert groups(seen) == {}
    assert JOIN in armed(seen)  # C-TMR-12


def test_a_failed_append_frees_its_offset(kafka: KafkaJvm) -> None:
    failed = AppendFailed(1, ErrorCode.KAFKA_STORAGE_ERROR)
    seen = run(kafka, LOADED, join(1, 1), failed, join(2, 2), Appended(3, offset=1), Appended(4, offset=2))
    assert seen[4].timers == {operation(2): None}
    assert seen[5].error == "OffsetBeyondLog"


def test_an_append_that_is_not_replicated_in_time(kafka: KafkaJvm) -> None:
    seen = run(kafka, *STABLE[:-1], TimerFired(8_012, operation(3)), TimerFired(8_013, operation(3)))
    assert seen[-2].error == "NoSuchTimer"
    assert only(seen[-1]).body == SyncGroupResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE)  # C-SYNC-33
    assert groups(seen)["g"].state is GroupState.PREPARING_REBALANCE


def test_a_write_of_a_timer_is_named_after_its_event(kafka: KafkaJvm) -> None:
    seen = run(kafka, *STABLE, TimerFired(13_014, session(M0)), Appended(13_015, offset=3))
    assert len(seen[7].records) == 1
    assert seen[7].timers == {session(M0): None, operation(-8): 18_014}
    assert seen[8].timers == {operation(-8): None}


def test_a_parked_request_fails_with_earlier_writes(kafka: KafkaJvm) -> None:
    events = [LOADED, join(1, 1), join(2, 2, M0, version=9), TimerFired(5_002, operation(2))]
    seen = run(kafka, *events)
    assert only(seen[3]).body == JoinGroupResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE, protocol_name=None)  # C-JOIN-70
    assert groups(seen)["g"].members[0].awaiting_join


def loaded_group() -> Record:
    member = GroupMetadataMember(
        "m",
        group_instance_id="i",
        client_id="client",
        client_host="/10.0.0.1",
        rebalance_timeout=60_000,
        session_timeout=20_000,
        subscription=b"s",
        assignment=b"assigned",
    )
    return Record(
        GroupMetadataKey("g"),
        GroupMetadataValue(
            "consumer", generation=7, protocol="range", leader="m", current_state_timestamp=5, members=(member,)
        ),
    )


def test_load_restores_the_state_in_the_log(kafka: KafkaJvm) -> None:
    gone = Record(GroupMetadataKey("other"), None)
    seen = run(
        kafka,
        LoadStarted(0, leader_epoch=3),
        Load(10, leader_epoch=3, records=(loaded_group(), gone)),
        sync(11, 1, "m", 7),
    )
    assert seen[0].groups == {}
    view = groups(seen)["g"]
    assert (view.state, view.generation_id, view.leader) == (GroupState.STABLE, 7, "m")
    assert view.members[0].client_host == "/10.0.0.1"
    assert armed(seen[:2]) == {session("m"): 20_010}  # C-TMR-13
    assert only(seen[2]).body == SyncGroupResponse(
        ErrorCode.NONE, protocol_type="consumer", protocol_name="range", assignment=b"assigned"
    )


def test_requests_while_loading_and_without_the_partition(kafka: KafkaJvm) -> None:
    events = [
        heartbeat(0, 1, "m"),
        LoadStarted(1, leader_epoch=1),
        heartbeat(2, 2, "m"),
        join(3, 3),
        LoadFailed(4, leader_epoch=1),
        join(5, 4),
    ]
    seen = run(kafka, *events)
    codes = [observation.replies[0].body.error_code if observation.replies else None for observation in seen]  # type: ignore[union-attr]
    assert codes == [
        ErrorCode.NOT_COORDINATOR,  # F-RT-02
        None,
        ErrorCode.NONE,  # C-HB-03
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        None,
        ErrorCode.NOT_COORDINATOR,
    ]


def test_unload_answers_parked_requests_and_forgets_the_groups(kafka: KafkaJvm) -> None:
    seen = run(
        kafka,
        *STABLE[:4],
        Unload(20, leader_epoch=1),
        Unload(21, leader_epoch=2),
        join(22, 3),
        Load(23, leader_epoch=2, records=()),
        join(24, 4),
    )
    assert seen[4].replies == ()  # F-LOAD-03
    assert only(seen[5]).body == JoinGroupResponse(ErrorCode.NOT_COORDINATOR, protocol_name=None, member_id=M0)
    assert groups(seen[:6]) == {}
    assert armed(seen[:6]) == {}
    assert only(seen[6]).body.error_code is ErrorCode.NOT_COORDINATOR  # type: ignore[union-attr]
    assert only(seen[8]).body.error_code is ErrorCode.MEMBER_ID_REQUIRED  # type: ignore[union-attr]
    assert seen[8].timers[operation(4)] == 5_024


def test_a_request_of_two_operations_keeps_its_name(kafka: KafkaJvm) -> None:
    """DeleteGroups first looks for share groups, which waits for earlier writes, and then deletes (C-ADM-09)."""
    delete = request(2, 2, 2, DeleteGroupsRequest(("g", "none")))
    seen = run(kafka, LOADED, join(1, 1), delete, Appended(3, offset=1), Appended(4, offset=2))
    assert seen[2].timers == {operation(2): 5_002}
    assert seen[3].records == (Record(GroupMetadataKey("g"), None),)
    assert seen[3].timers == {operation(1): None, operation(2): 5_003}
    results = only(seen[4]).body
    assert isinstance(results, DeleteGroupsResponse)
    assert set(results.results) == {
        DeletedGroup("g", ErrorCode.NONE),
        DeletedGroup("none", ErrorCode.GROUP_ID_NOT_FOUND),
    }


def test_answers_hold_only_the_fields_of_their_version(kafka: KafkaJvm) -> None:
    seen = run(kafka, LOADED, join(1, 1, version=0, rebalance=-1), TimerFired(3_001, JOIN))
    assert groups(seen)["g"].members[0].rebalance_timeout_ms == 10_000  # v0: the session timeout
    joined = only(seen[2]).body
    assert isinstance(joined, JoinGroupResponse)
    assert (joined.protocol_type, joined.protocol_name) == (None, "range")
    left = run(kafka, *STABLE, leave(4_000, 4, M0, version=2), Appended(4_001, offset=3))
    assert only(left[-1]).body == LeaveGroupResponse(ErrorCode.NONE)


def test_refused_rights(kafka: KafkaJvm) -> None:
    denied = frozenset({"g"})
    body = JoinGroupRequest(
        "g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="consumer",
        protocols=RANGE,
    )
    asked = [
        request(1, 1, 9, body, denied),
        request(2, 2, 6, DescribeGroupsRequest(("g", "h")), denied),
        request(3, 3, 2, DeleteGroupsRequest(("g", "h")), denied),
    ]
    seen = run(kafka, LOADED, *asked)
    assert only(seen[1]).body.error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED  # type: ignore[union-attr]
    described = only(seen[2]).body
    assert isinstance(described, DescribeGroupsResponse)
    assert [(row.group_id, row.error_code) for row in described.groups] == [
        ("g", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ("h", ErrorCode.GROUP_ID_NOT_FOUND),  # C-ADM-02
    ]
    deleted = only(seen[3]).body
    assert isinstance(deleted, DeleteGroupsResponse)
    assert DeletedGroup("g", ErrorCode.GROUP_AUTHORIZATION_FAILED) in deleted.results


def test_list_shows_groups_by_their_committed_state(kafka: KafkaJvm) -> None:
    listing = request(20, 20, 5, ListGroupsRequest(states_filter=("stable",)))
    seen = run(kafka, *STABLE, replace(listing, at_ms=4_000))
    assert only(seen[-1]).body == ListGroupsResponse(
        ErrorCode.NONE, (ListedGroup("g", protocol_type="consumer", group_state="Stable", group_type="classic"),)
    )


def test_timers_of_groups_and_members_with_hyphens(kafka: KafkaJvm) -> None:
    events = [LOADED, join(1, 1, group="a", instance="b-c"), join(2, 2, group="a-b", instance="c")]
    long, short = member_id("c", 1), member_id("b-c", 0)
    seen = run(kafka, *events, TimerFired(300_001, session(short, "a")))
    assert armed(seen[:3]).keys() >= {session(short, "a"), session(long, "a-b")}
    assert armed(seen).keys() >= {session(long, "a-b")}
    assert groups(seen)["a-b"].members[0].member_id == long


def test_hosts_keep_their_names(kafka: KafkaJvm) -> None:
    odd = Request(
        1,
        id=1,
        version=3,
        client_id="client",
        client_host="a host",
        body=JoinGroupRequest(
            "g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            member_id="",
            protocol_type="consumer",
            protocols=RANGE,
        ),
    )
    seen = run(kafka, LOADED, odd)
    assert groups(seen)["g"].members[0].client_host == "a host"


def test_an_operation_that_fails_inside_reports_it(kafka: KafkaJvm) -> None:
    twice = (Protocol("range", b""), Protocol("range", b""))
    seen = run(kafka, LOADED, join(1, 1, protocols=twice, version=3), TimerFired(3_001, JOIN))
    assert seen[2].error is not None  # C-JOIN-72
    assert groups(seen)["g"].generation_id == 1  # C-ST-27


def test_settings_reach_the_coordinator(kafka: KafkaJvm) -> None:
    settings = Settings(
        group_min_session_timeout_ms=100,
        group_max_session_timeout_ms=200,
        group_initial_rebalance_delay_ms=50,
        group_max_size=1,
        offsets_commit_timeout_ms=77,
    )
    events = [LOADED, join(1, 1, session=99), join(2, 2, session=150, version=3), join(3, 3, session=150, version=3)]
    seen = run(kafka, *events, settings=settings)
    assert only(seen[1]).body.error_code is ErrorCode.INVALID_SESSION_TIMEOUT  # type: ignore[union-attr]
    assert seen[2].timers[JOIN] == 52
    assert seen[2].timers[operation(2)] == 79
    assert only(seen[3]).body.error_code is ErrorCode.GROUP_MAX_SIZE_REACHED  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="G-CFG-26"):
        run(kafka, LOADED, settings=Settings(new_member_join_timeout_ms=1))


@pytest.mark.parametrize("version", ["4.0.2", "4.1.2", "4.2.1", "4.2.2", "4.4.0"])
def test_earlier_releases(kafka_of: KafkaOf, version: str) -> None:
    assert run(kafka_of(version), *STABLE) == run(kafka_of(RELEASE), *STABLE)

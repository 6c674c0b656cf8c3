"""Kafka's faults of groups with consumers that only the whole coordinator shows: a search in the model finds each.

They show in its log, its timers, its answers to other clients, or its conversions. The method is that of
``test_consumer_group_faults``.
"""

from __future__ import annotations

import pytest
from shortest import TOPICS, Ask, Fire, Play, Search, Whole, join, read_events

from fencepost.protocol import embedded
from fencepost.protocol.consumer_messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from fencepost.protocol.consumer_records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKind
from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    Protocol,
    SyncGroupAssignment,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.records import GroupMetadataValue, Record
from fencepost.protocol.settings import Settings
from fencepost_conformance.generate.cleaner import while_read
from fencepost_conformance.targets.ids import member_id
from fencepost_model.classic.load import load_groups
from fencepost_model.machines import C_STABLE, STABLE


def _subscribes(*names: str) -> bytes:
    return embedded.encode_subscription(embedded.Subscription(names, None, ()), 1)


def _classic(member_id: str, *protocols: Protocol, instance: str | None = None) -> Ask:
    offers = protocols or (Protocol("range", _subscribes("t")),)
    return Ask(
        JoinGroupRequest(
            "g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=offers,
        )
    )


def _leave(member_id: str, *, fails: bool = False) -> Ask:
    return Ask(ConsumerGroupHeartbeatRequest("g", member_id=member_id, member_epoch=-1), fails=fails)


def _sync(member_id: str, generation: int, name: str = "range", gives: embedded.Assignment | None = None) -> Ask:
    rows = () if gives is None else (SyncGroupAssignment(member_id, embedded.encode_assignment(gives)),)
    return Ask(
        SyncGroupRequest(
            "g",
            generation_id=generation,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name=name,
            assignments=rows,
        )
    )


DELETE = Ask(DeleteGroupsRequest(("g",)))
DESCRIBE = Ask(ConsumerGroupDescribeRequest(("g",)))
ROUND = Fire(TimerKind.JOIN)


def group_epoch_never_decreases(search: Search, play: Play) -> bool:
    """The epoch of a group is not below one that the log holds for it (INV-KIP-04)."""
    group = play.state.consumer_group("g")
    highest = 0
    for record in play.log:
        if isinstance(record.key, ConsumerGroupMetadataKey):
            value = record.value
            highest = max(highest, value.epoch) if isinstance(value, ConsumerGroupMetadataValue) else 0
    return group is None or group.epoch >= highest


def generations_and_epochs_never_restart(search: Search, play: Play) -> bool:
    """Generations and group epochs are one count, also of groups without members (INV-CONV-01)."""
    values = [record.value for record in play.log]
    counts = [each.epoch for each in values if isinstance(each, ConsumerGroupMetadataValue)]
    counts += [each.generation for each in values if isinstance(each, GroupMetadataValue)]
    classic, consumer = play.state.group("g"), play.state.consumer_group("g")
    now = consumer.epoch if consumer is not None else 0 if classic is None else classic.generation
    return now >= max(counts, default=0)


def every_reading_loads(search: Search, play: Play) -> bool:
    """The log can be loaded, even if it is compacted during the load (INV-REPLAY-02)."""
    return all(
        load_groups(search.model.variant, while_read(play.log, place, head)) is not None
        for head in play.ends
        for place in play.ends
        if place <= head
    )


def members_are_watched(search: Search, play: Play) -> bool:
    """Every member of a consumer group has a session timer, and every such timer belongs to a member (M-TMR-01)."""
    group = play.state.consumer_group("g")
    members = set() if group is None else {member.member_id for member in group.members}
    watched = {key.member_id for key, _ in play.armed if key.kind is TimerKind.CONSUMER_SESSION}
    return members == watched


def no_answer_is_unknown_server_error(search: Search, play: Play) -> bool:
    """No answer is UNKNOWN_SERVER_ERROR."""
    return all(getattr(body, "error_code", None) is not ErrorCode.UNKNOWN_SERVER_ERROR for _, body in play.answers)


def joining_member_learns_its_error(search: Search, play: Play) -> bool:
    """No JoinGroup is answered UNKNOWN_SERVER_ERROR, which tells its sender nothing (X-JOIN-09, X-DOWN-20)."""
    answer = play.answer()
    return not isinstance(answer, JoinGroupResponse) or answer.error_code is not ErrorCode.UNKNOWN_SERVER_ERROR


def a_refusal_changes_nothing(search: Search, play: Play) -> bool:
    """A ConsumerGroupHeartbeat that a full group refuses causes no other answer (X-UP-09)."""
    answer = play.answer()
    if not isinstance(answer, ConsumerGroupHeartbeatResponse):
        return True
    return answer.error_code is not ErrorCode.GROUP_MAX_SIZE_REACHED or len(play.answers) == 1


def reconciled_group_owns_all_partitions(search: Search, play: Play) -> bool:
    """When no member has anything left to do, each partition of topic t has an owner (LIV-16)."""
    group = play.state.consumer_group("g")
    if group is None or not group.members or group.epoch > group.assignment_epoch:
        return True
    if any(member.state != C_STABLE or member.epoch != group.epoch for member in group.members):
        return True
    owned = {(topic, number) for member in group.members for topic, number, _ in member.assigned}
    wanted = {name for member in group.members for name in member.names}
    return owned >= {(each.topic_id, n) for each in TOPICS if each.name in wanted for n in range(each.partitions)}


def a_member_is_asked_to_rejoin(search: Search, play: Play) -> bool:
    """A group with only classic members and no target for its epoch tells some member to rejoin (LIV-14)."""
    group = play.state.consumer_group("g")
    if group is None or not group.members or group.epoch == group.assignment_epoch:
        return True
    if any(member.classic is None for member in group.members):
        return True
    open_requests = [
        search.take(
            play,
            Ask(
                HeartbeatRequest(
                    "g", generation_id=member.epoch, member_id=member.member_id, group_instance_id=member.instance
                ),
                later=5_000,
            ),
        )
        for member in group.members
    ]
    return any(
        isinstance(answer, HeartbeatResponse) and answer.error_code is not ErrorCode.NONE
        for answer in _answers(open_requests)
    )


def _answers(plays: list[Play | None]) -> list[object]:
    return [None if play is None else play.answer() for play in plays]


def leaving_member_is_removed(search: Search, play: Play) -> bool:
    """A member that leaves is no longer in the group (X-DOWN-09)."""
    answer, last = play.answer(), play.last
    leaves = isinstance(last, Request) and getattr(last.body, "member_epoch", 0) == -1
    if not leaves or not isinstance(answer, ConsumerGroupHeartbeatResponse):
        return True
    assert isinstance(last, Request)
    group = play.state.consumer_group("g")
    return group is None or group.member(getattr(last.body, "member_id", "")) is None


def member_with_a_generation_is_in_it(search: Search, play: Play) -> bool:
    """A member may use the generation that its JoinGroup answer named (X-DOWN-23)."""
    answer = play.answer()
    if not isinstance(answer, JoinGroupResponse) or answer.error_code is not ErrorCode.NONE:
        return True
    instance = getattr(getattr(play.last, "body", None), "group_instance_id", None)
    body = HeartbeatRequest(
        "g", generation_id=answer.generation_id, member_id=answer.member_id, group_instance_id=instance
    )
    beat = _answers([search.take(play, Ask(body))])[0]
    return isinstance(beat, HeartbeatResponse) and beat.error_code is not ErrorCode.ILLEGAL_GENERATION


def no_member_is_assigned_more_than_its_sync_returned(search: Search, play: Play) -> bool:
    """A downgraded group that is Stable assigns no member more than its last SyncGroup answer contained (X-DOWN-22)."""
    group = play.state.group("g")
    if group is None or group.state != STABLE or not isinstance(play.moves[-1], Ask):
        return True
    assignments: dict[str, bytes] = {}
    for number, move in enumerate(play.moves, 1):
        if isinstance(move, Ask) and isinstance(move.body, SyncGroupRequest):
            answer = search.again(play.moves[:number]).answer()
            if isinstance(answer, SyncGroupResponse) and answer.error_code is ErrorCode.NONE:
                assignments[move.body.member_id] = answer.assignment
    return all(
        embedded.decode_assignment(assignments[member.member_id]).partitions
        == embedded.decode_assignment(member.assignment).partitions
        for member in group.members
        if member.member_id in assignments
    )


def members_are_described_once(search: Search, play: Play) -> bool:
    """ConsumerGroupDescribe lists each member once (M-DESC-01)."""
    answer = play.answer()
    if not isinstance(answer, ConsumerGroupDescribeResponse):
        return True
    ids = [member.member_id for group in answer.groups for member in group.members]
    return len(ids) == len(set(ids))


def a_sync_is_answered(search: Search, play: Play) -> bool:
    """A consumer group answers a SyncGroup once all records are replicated (X-SYNC-07)."""
    last = play.last
    asked = isinstance(last, Request) and isinstance(last.body, SyncGroupRequest)
    return not asked or play.state.consumer_group("g") is None or play.answer() is not None


_UNREADABLE = Protocol("own", b"")
_OTHER = (Protocol("range", _subscribes("u")),)
_ROOM_FOR_TWO = Settings(group_consumer_assignment_interval_ms=0, group_consumer_max_size=2)
_VOTES_FOR_RANGE = (
    Record(
        ConsumerGroupMemberMetadataKey("g", "m1"),
        ConsumerGroupMemberMetadataValue(
            instance_id=None,
            rack_id=None,
            client_id="client",
            client_host="/127.0.0.1",
            subscribed_topic_names=("t",),
            subscribed_topic_regex="",
            rebalance_timeout_ms=5_000,
            server_assignor="range",
        ),
    ),
    Record(ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(2)),
)

WHOLE = (
    Whole(  # C-JOIN-15
        "fault_empty_group_dropped_from_memory",
        "dropped-group",
        (Ask(join("m1")), _leave("m1"), _classic("nobody")),
        group_epoch_never_decreases,
        4,
    ),
    Whole(  # C-JOIN-16, M-VAL-22
        "fault_empty_group_counts_anew",
        "generations-restart",
        (Ask(join("m1")), _leave("m1"), _classic("")),
        generations_and_epochs_never_restart,
        3,
    ),
    Whole(  # F-REPLAY-18
        "fault_superseded_records_loaded",
        "",
        (Ask(join("m1")), Ask(join("m1", ())), _leave("m1"), DELETE),
        every_reading_loads,
        4,
    ),
    Whole(  # M-HB-13
        "fault_failed_append_loses_timers",
        "",
        (Ask(join("m1")), _leave("m1"), _leave("m1", fails=True)),
        members_are_watched,
        2,
    ),
    Whole(  # X-JOIN-20
        "fault_timeout_undoes_memory",
        "member-without-join-timer",
        (Ask(join("m1")), _classic("c1"), _classic("c1")._replace(late=True)),
        members_are_watched,
        2,
    ),
    Whole(  # M-TGT-02
        "fault_absent_assignor_elected",
        "",
        (
            Ask(
                ConsumerGroupHeartbeatRequest(
                    "g",
                    member_id="m1",
                    member_epoch=0,
                    rebalance_timeout_ms=5_000,
                    subscribed_topic_names=("t",),
                    topic_partitions=(),
                )
            ),
        ),
        no_answer_is_unknown_server_error,
        1,
        Settings(group_consumer_assignors=("uniform",)),
        first=_VOTES_FOR_RANGE,
    ),
    Whole(  # A-UHET-06
        "fault_absent_partition_fails",
        "nonexistent-partition",
        (
            _classic("", instance="i1"),
            ROUND,
            _sync(member_id("i1", 0), 1, gives=embedded.Assignment((TopicPartition("t", 5),), None)),
            Ask(join("m1", ("u",))),
        ),
        no_answer_is_unknown_server_error,
        4,
    ),
    Whole(  # X-UP-07
        "fault_upgrade_without_protocol",
        "upgrade-too-early",
        (_classic("", instance="i1"), ROUND, Ask(join("m1"))),
        no_answer_is_unknown_server_error,
        2,
    ),
    Whole(  # X-UP-09
        "fault_upgrade_answers_before_checks",
        "upgrade-rejected",
        (_classic("", instance="i1"), _classic("", instance="i2"), ROUND, Ask(join("m1"))),
        a_refusal_changes_nothing,
        4,
        _ROOM_FOR_TWO,
    ),
    Whole(  # X-UP-15
        "fault_upgrade_without_bump",
        "upgrade-leaves-partitions-unowned",
        (_classic("", instance="i1"), ROUND, Ask(join("m1", instance="i1"))),
        reconciled_group_owns_all_partitions,
        3,
    ),
    Whole(  # LIV-14
        "fault_classic_members_starve",
        "target-never-computed",
        (Ask(join("m1", ("t", "u"))), _classic("m1")),
        a_member_is_asked_to_rejoin,
        2,
        Settings(),
        (Ask(HeartbeatRequest("g", generation_id=2, member_id="m1"), later=5_000),),
    ),
    Whole(  # X-DOWN-09
        "fault_downgrade_reads_unread_metadata",
        "leave-rejected",
        (
            Ask(join("m1")),
            _classic("c1", Protocol("range", _subscribes("t")), _UNREADABLE),
            _classic("c2", Protocol("own", _subscribes("t"))),
            _leave("m1"),
        ),
        leaving_member_is_removed,
        4,
    ),
    Whole(  # X-SYNC-07
        "fault_downgrade_reads_unread_metadata",
        "sync-without-answer",
        (
            _classic("", _UNREADABLE, Protocol("range", _subscribes("t")), instance="i1"),
            _classic("", instance="i2"),
            ROUND,
            Ask(join("m1", ())),
            _sync(member_id("i1", 0), 1, "own"),
        ),
        a_sync_is_answered,
        6,
        also="fault_upgrade_without_bump",
    ),
    Whole(  # X-DOWN-22
        "fault_downgrade_owes",
        "downgrade-leaves-member-waiting",
        (Ask(join("m1", instance="i1")), _classic("c2"), _sync("c2", 3), _classic("", instance="i1")),
        no_member_is_assigned_more_than_its_sync_returned,
        4,
        shown=tuple(Ask(HeartbeatRequest("g", generation_id=3, member_id="c2"), later=each) for each in (2_000, 6_000)),
        also="fault_downgrade_assigns_target",  # else the share has no owner, and no member is assigned it
    ),
    Whole(  # X-DOWN-23
        "fault_downgrade_loses_bump",
        "generation-without-members",
        (Ask(join("m1", instance="i1")), _classic("", *_OTHER, instance="i1")),
        member_with_a_generation_is_in_it,
        2,
    ),
    Whole(  # X-DOWN-33
        "fault_downgrade_leaves_timers",
        "timers-after-downgrade",
        (Ask(join("m1")), _classic("c1"), _leave("m1")),
        members_are_watched,
        3,
    ),
    Whole(  # M-DESC-01, C-ADM-05
        "fault_failed_deletion_lists_twice",
        "described-twice",
        (Ask(join("m1")), _leave("m1", fails=True), DESCRIBE),
        members_are_described_once,
        3,
    ),
    Whole(  # X-JOIN-09, V-125: 4.4 differs from 4.3
        "old_malformed_join_is_internal",
        "",
        (Ask(join("m1")), _classic("", Protocol("range", b""), instance="i1")),
        joining_member_learns_its_error,
        2,
    ),
)


@pytest.mark.parametrize("fault", WHOLE, ids=lambda fault: fault.trace or fault.switch)
def test_fault_of_the_whole_is_found(fault: Whole) -> None:
    fault.is_found()


@pytest.mark.parametrize("fault", [each for each in WHOLE if each.trace], ids=lambda fault: fault.trace)
def test_the_trace_of_the_whole_is_in_the_findings(fault: Whole) -> None:
    """The trace in the findings has these events; other tests compare it with what Kafka did."""
    assert read_events(fault.trace) == (fault.settings, fault.events())

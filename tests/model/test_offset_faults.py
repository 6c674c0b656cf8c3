"""Kafka's faults with offsets: a search in the model finds each of them, as in ``test_coordinator_faults``.

The searches at the end find surprising consequences of the rules, in every release and with all faults fixed.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from shortest import TOPICS, Ask, Fire, Lose, Play, Search, Win, join

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.consumer_records import ConsumerGroupMetadataKey
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKind
from fencepost.protocol.messages import JoinGroupRequest, Protocol
from fencepost.protocol.offset_messages import (
    ZERO_ID,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    TxnOffsetCommitRequest,
    WriteTxnMarkerRequest,
)
from fencepost.protocol.offset_records import OffsetCommitKey
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_3, KAFKA_4_4
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataValue, Record
from fencepost.protocol.settings import Settings
from fencepost_model.classic.load import load_groups
from fencepost_model.machines import EMPTY
from fencepost_model.offsets.state import Place

SETTINGS = Settings(group_consumer_assignment_interval_ms=0)


def _topics(topic: int = 0, metadata: str | None = None) -> tuple[OffsetCommitRequestTopic, ...]:
    partition = OffsetCommitRequestPartition(0, committed_offset=5, committed_metadata=metadata)
    return (OffsetCommitRequestTopic(topic_id=TOPICS[topic].topic_id, partitions=(partition,)),)


def _commit(
    *, epoch: int = -1, member_id: str = "", topic: int = 0, metadata: str | None = None, retention: int = -1
) -> Ask:
    body = OffsetCommitRequest(
        "g",
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        retention_time_ms=retention,
        topics=_topics(topic, metadata),
    )
    return Ask(body)


def _fetch(member_id: str | None, epoch: int) -> Ask:
    return Ask(OffsetFetchRequest((OffsetFetchRequestGroup("g", member_id=member_id, member_epoch=epoch),)))


TRANSACTION = Ask(TxnOffsetCommitRequest("g", transactional_id="x", producer_id=7, producer_epoch=0, topics=_topics()))
ENDS = [
    Ask(WriteTxnMarkerRequest(producer_id=7, producer_epoch=0, coordinator_epoch=0, committed=committed))
    for committed in (True, False)
]
CLASSIC = Ask(
    JoinGroupRequest(
        "g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=(Protocol("range", b"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff"),),
    )
)
LEAVE = Ask(ConsumerGroupHeartbeatRequest("g", member_id="m1", member_epoch=-1))
EXPIRE = Fire(TimerKind.EXPIRY)


# ---- faults -------------------------------------------------------------------------------------------------------


def every_group_comes_back(search: Search, play: Play) -> bool:
    """A group in memory of which no record was deleted exists after a load (INV-REPLAY-01)."""
    if play.open or any(record.value is None for record in play.log):
        return True
    loaded = load_groups(search.model.variant, play.log) or {}
    live = {slot.group_id for slot in play.state.slots if slot.group is not None}
    return live <= {name for name, group in loaded.items() if group is not None}


def nobody_hears_of_a_fault(search: Search, play: Play) -> bool:
    """No OffsetFetch is answered UNKNOWN_SERVER_ERROR while the log works (F-RT-10)."""
    body = play.answer()
    if not isinstance(body, OffsetFetchResponse):
        return True
    return all(group.error_code is not ErrorCode.UNKNOWN_SERVER_ERROR for group in body.groups)


def memory_has_what_a_record_can_hold(search: Search, play: Play) -> bool:
    """A record with an expiry time has no field for a topic id (INV-REPLAY-01, F-REC-20)."""
    return all(entry.topic_id == ZERO_ID for _, entry in play.state.offsets.committed if entry.expire_timestamp != -1)


def load_creates_no_group_without_records(search: Search, play: Play) -> bool:
    """A loaded group without a group record has an offset or an open transaction (F-REPLAY-04)."""
    if play.moves[-2:] != (Lose(), Win()):
        return True
    offsets = play.state.offsets
    held = {place.group for place, _ in offsets.committed} | {place.group for place, _, _ in offsets.pending}
    own = {r.key.group for r in play.log if not isinstance(r.key, OffsetCommitKey) and r.key.group}
    return all(slot.group is None or slot.group_id in held | own for slot in play.state.slots)


FAULTS = [
    ("fault_refused_commit_leaves_group", (_commit(), _commit(metadata="m" * 5_000)), every_group_comes_back, 1),
    (
        "fault_fetch_without_member_fails",
        (Ask(join("m1")), _fetch(None, 2), _fetch("m1", 2)),
        nobody_hears_of_a_fault,
        2,
    ),
    ("fault_expiring_offset_keeps_topic_id", (_commit(), _commit(retention=9)), memory_has_what_a_record_can_hold, 1),
]


@pytest.mark.parametrize("at", range(len(FAULTS)), ids=[row[0] for row in FAULTS])
def test_the_model_finds_the_fault(at: int) -> None:
    switch, moves, holds, length = FAULTS[at]
    alone: Profile = replace(INTENDED, **{switch: True})  # type: ignore[arg-type]
    assert Search(SETTINGS, alone, moves).shortest(holds, length) is not None
    assert Search(SETTINGS, alone, moves).shortest(holds, length - 1) is None
    for kafka in (KAFKA_4_0, KAFKA_4_3, KAFKA_4_4):
        found = Search(SETTINGS, kafka, moves).shortest(holds, length)
        assert (found is not None) is getattr(kafka, switch)
    assert Search(SETTINGS, INTENDED, moves).shortest(holds, length + 1) is None


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_0, KAFKA_4_3, KAFKA_4_4], ids=lambda each: each.name)
def test_a_load_makes_a_group_of_an_aborted_transaction(profile: Profile) -> None:
    """Run fixed moves: a load depends on the log, and a search does not distinguish states by their log."""
    moves = (TRANSACTION, ENDS[1], Lose(), Win())
    search = Search(SETTINGS, profile, moves)
    assert (
        load_creates_no_group_without_records(search, search.again(moves))
        is not profile.fault_loaded_offset_makes_group
    )


# ---- consequences of the rules ------------------------------------------------------------------------------------


def who_commits_owns(search: Search, play: Play) -> bool:
    """Not promised: a member owns the partitions that it commits (O-COMMIT-13, NOT-05)."""
    group = play.state.consumer_group("g")
    if group is None or not group.members:
        return True
    owned = {(topic, number) for m in group.members for topic, number, _ in (*m.assigned, *m.revoking)}
    ids = {topic.name: topic.topic_id for topic in TOPICS}
    return all((ids[place.topic], place.partition) in owned for place, _ in play.state.offsets.committed)


def a_fresh_offset_stays(search: Search, play: Play) -> bool:
    """Not promised: an offset stays for as long as offsets are retained (O-EXP-15)."""
    committed = {
        Place(r.key.group, r.key.topic, r.key.partition): r.value.commit_timestamp
        for r in play.log
        if isinstance(r.key, OffsetCommitKey) and r.value is not None and hasattr(r.value, "commit_timestamp")
    }
    stays = {place for place, at in committed.items() if play.now - at < search.model.settings.offsets_retention_ms}
    return stays <= {place for place, _ in play.state.offsets.committed}


def who_was_given_an_id_may_join(search: Search, play: Play) -> bool:
    """Not promised: a member id is valid until its session timeout (O-EXP-21)."""
    given = any(key.kind is TimerKind.SESSION for key, _ in play.armed)
    group = play.state.group("g")
    return not given or (group is not None and bool(group.pending_join or group.members))


def an_empty_group_stays_a_while(search: Search, play: Play) -> bool:
    """Not promised: a group outlives its last member for as long as offsets are retained (O-EXP-25)."""
    gone = any(record.value is None and isinstance(record.key, ConsumerGroupMetadataKey) for record in play.log)
    return not gone or play.now - play.events[0].at_ms >= search.model.settings.offsets_retention_ms


_LONG_EMPTY = (
    Record(
        GroupMetadataKey("g"),
        GroupMetadataValue(
            protocol_type="consumer", generation=3, protocol=None, leader=None, current_state_timestamp=0
        ),
    ),
)
CONSEQUENCES = [
    ("O-COMMIT-13", (Ask(join("m1")), _commit(epoch=2, member_id="m1", topic=1)), who_commits_owns, 2, ()),
    ("O-EXP-15", (_commit(), EXPIRE), a_fresh_offset_stays, 2, _LONG_EMPTY),
    ("O-EXP-21", (CLASSIC, EXPIRE), who_was_given_an_id_may_join, 2, ()),
    ("O-EXP-25", (Ask(join("m1")), LEAVE, EXPIRE), an_empty_group_stays_a_while, 3, ()),
]


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_3, KAFKA_4_4], ids=lambda each: each.name)
@pytest.mark.parametrize("at", range(len(CONSEQUENCES)), ids=[row[0] for row in CONSEQUENCES])
def test_nothing_of_the_kind_is_promised(at: int, profile: Profile) -> None:
    _, moves, holds, length, first = CONSEQUENCES[at]
    settings = replace(SETTINGS, offsets_retention_ms=600_500) if first else SETTINGS
    assert Search(settings, profile, moves, first).shortest(holds, length) is not None
    assert Search(settings, profile, moves, first).shortest(holds, length - 1) is None


def test_an_empty_group_is_empty() -> None:
    play = Search(SETTINGS, INTENDED, (), _LONG_EMPTY).start
    group = play.state.group("g")
    assert group is not None
    assert group.state == EMPTY

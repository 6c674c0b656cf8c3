"""Offsets as a pure transition system, in any order of commits, transactions, deletions and expiry."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fencepost.protocol.consumer_view import SubscriptionType
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    TxnOffsetCommitRequest,
)
from fencepost.protocol.offset_records import Producer
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_2, KAFKA_4_4
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost_model.classic.state import Group
from fencepost_model.classic.state import Member as ClassicMember
from fencepost_model.consumer.state import ConsumerGroup, Image, Member
from fencepost_model.machines import COMPLETING, PREPARING, STABLE
from fencepost_model.offsets.checks import AnyGroup, Committer, may_commit
from fencepost_model.offsets.plain import Done, Ledger, OffsetsModel
from fencepost_model.offsets.promises import compacted, pending, worth
from fencepost_model.offsets.state import Offsets, Place, replay
from fencepost_model.switches import variant_of
from fencepost_model.table import OFFSET_TABLE

T = Topic("t", b"1" * 16, 2)
MODEL = OffsetsModel(Image((T,), 1), Settings(offsets_retention_ms=1_000))
SIMPLE = Group()
PLACES = [Place("g", "t", number) for number in range(2)]


def _topics(number: int, offset: int) -> tuple[OffsetCommitRequestTopic, ...]:
    partition = OffsetCommitRequestPartition(number, committed_offset=offset)
    return (OffsetCommitRequestTopic(name="t", partitions=(partition,)),)


# ---- who may commit (6.2, 6.3) ------------------------------------------------------------------------------------

_CLASSIC = Group(
    STABLE,
    generation=3,
    protocol_type="consumer",
    members=(ClassicMember("m", "i", "c", "/h", 1, 1, ()), ClassicMember("n", None, "c", "/h", 1, 1, ())),
)
_CONSUMER = ConsumerGroup(
    5,
    5,
    members=(
        Member("a", epoch=5, previous=4, assigned=((b"1" * 16, 0, 3),), revoking=((b"1" * 16, 1, 4),)),
        Member("gone", instance="s", epoch=-2),
    ),
    type=SubscriptionType.HOMOGENEOUS,
)
_OK, _T = None, ErrorCode
ROWS: list[tuple[AnyGroup | None, str, str | None, int, int, bool, ErrorCode | None, str]] = [
    (None, "", None, -1, 9, False, _OK, "O-COMMIT-20"),
    (None, "m", None, 0, 9, False, _T.GROUP_ID_NOT_FOUND, "O-COMMIT-21"),
    (None, "m", None, 0, 8, False, _T.ILLEGAL_GENERATION, "O-COMMIT-22"),
    (None, "m", None, 0, 5, True, _T.ILLEGAL_GENERATION, "O-TXN-03"),
    (None, "m", None, 0, 6, True, _T.GROUP_ID_NOT_FOUND, "V-129"),
    (SIMPLE, "anybody", "x", -1, 9, False, _OK, "O-COMMIT-24"),
    (SIMPLE, "anybody", None, 0, 9, False, _T.UNKNOWN_MEMBER_ID, "O-COMMIT-25"),
    (_CLASSIC, "m", "i", 3, 9, False, _OK, "O-COMMIT-28"),
    (_CLASSIC, "n", "i", 3, 9, False, _T.FENCED_INSTANCE_ID, "O-COMMIT-25"),
    (_CLASSIC, "m", "j", 3, 9, False, _T.UNKNOWN_MEMBER_ID, "O-COMMIT-25"),
    (_CLASSIC, "m", None, 2, 9, False, _T.ILLEGAL_GENERATION, "O-COMMIT-25"),
    (_CLASSIC, "m", None, -1, 9, False, _T.ILLEGAL_GENERATION, "O-COMMIT-38"),
    (_CLASSIC, "", None, -1, 9, False, _T.UNKNOWN_MEMBER_ID, "O-COMMIT-26"),
    (_CLASSIC, "", None, -1, 5, True, _OK, "O-TXN-04"),
    (_CLASSIC, "", "i", -1, 5, True, _T.FENCED_INSTANCE_ID, "O-TXN-04"),
    (_CLASSIC, "m", None, -1, 5, True, _T.ILLEGAL_GENERATION, "O-TXN-04"),
    (_CLASSIC._replace(state=COMPLETING), "m", None, 3, 9, False, _T.REBALANCE_IN_PROGRESS, "O-COMMIT-27"),
    (_CLASSIC._replace(state=COMPLETING), "m", None, 3, 5, True, _OK, "O-TXN-04"),
    (_CLASSIC._replace(state=PREPARING), "m", None, 3, 9, False, _OK, "O-COMMIT-28"),
    (ConsumerGroup(5, 5), "", None, -1, 9, False, _OK, "O-COMMIT-29"),
    (_CONSUMER, "", None, -1, 9, False, _T.UNKNOWN_MEMBER_ID, "O-COMMIT-30"),
    (_CONSUMER, "", None, -1, 5, True, _OK, "O-TXN-05"),
    (_CONSUMER, "", "s", -1, 5, True, _T.UNKNOWN_MEMBER_ID, "O-TXN-05"),
    (_CONSUMER, "a", None, 5, 8, False, _T.UNSUPPORTED_VERSION, "O-COMMIT-31"),
    (_CONSUMER, "a", None, 5, 9, False, _OK, "O-COMMIT-33"),
    (_CONSUMER, "a", None, 4, 9, False, _OK, "O-COMMIT-36"),
    (_CONSUMER, "a", None, 3, 9, False, _T.STALE_MEMBER_EPOCH, "O-COMMIT-32"),
    (_CONSUMER, "a", None, 6, 9, False, _T.STALE_MEMBER_EPOCH, "O-COMMIT-32"),
    (_CONSUMER, "a", None, 3, 5, True, _T.ILLEGAL_GENERATION, "O-TXN-05"),
    (_CONSUMER, "a", None, 3, 6, True, _T.STALE_MEMBER_EPOCH, "V-129"),
    (_CONSUMER, "gone", None, -2, 9, False, _OK, "O-COMMIT-33"),
    (_CONSUMER, "gone", None, -1, 9, False, _T.STALE_MEMBER_EPOCH, "O-COMMIT-33"),
]


@pytest.mark.parametrize("row", ROWS, ids=[f"{at}-{row[-1]}" for at, row in enumerate(ROWS)])
def test_permission_to_commit(
    row: tuple[AnyGroup | None, str, str | None, int, int, bool, ErrorCode | None, str],
) -> None:
    group, member_id, instance, epoch, version, transactional, error, _ = row
    by = Committer(member_id, instance, epoch, version, transactional, ((T.topic_id, 0), (T.topic_id, 1)))
    assert may_commit(variant_of(KAFKA_4_4), group, by).error is error


def test_each_partition_of_a_commit_is_checked_with_its_assignment_epoch() -> None:
    """Each partition is checked with its own assignment epoch, also while it is being revoked (O-COMMIT-32, 42).

    Before 4.3 an older epoch is always refused (V-56).
    """

    def error(profile: Profile, epoch: int, *numbers: int) -> ErrorCode | None:
        by = Committer("a", None, epoch, 9, False, tuple((T.topic_id, number) for number in numbers))
        return may_commit(variant_of(profile), _CONSUMER, by).error

    assert error(KAFKA_4_4, 3, 0) is None
    assert error(KAFKA_4_4, 4, 0, 1) is None
    assert error(KAFKA_4_4, 3, 0, 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert error(KAFKA_4_4, 2, 0) is ErrorCode.STALE_MEMBER_EPOCH
    assert error(KAFKA_4_2, 4, 0) is ErrorCode.STALE_MEMBER_EPOCH


# ---- any order ----------------------------------------------------------------------------------------------------


class AnyOrder(RuleBasedStateMachine):
    """The ledger matches the log, a fetch shows it, and each offset follows the life of its machine."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.log: list[Record] = []
        self.now = 0
        self.expired: list[Place] = []

    def _took(self, done: Done) -> None:
        self.ledger = done.ledger
        self.log.extend(done.records)

    @rule(number=st.integers(0, 2), offset=st.integers(0, 9))
    def commit(self, number: int, offset: int) -> None:
        before = self._lives()
        done = MODEL.commit(
            self.ledger, SIMPLE, OffsetCommitRequest("g", topics=_topics(number, offset)), version=9, now=self.now
        )
        assert [row.error for row in done.rows] == [
            ErrorCode.NONE if number < 2 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ]
        self._took(done)
        if number < 2:
            self._lived(before, number, "commit")

    @rule(number=st.integers(0, 1), offset=st.integers(10, 19), producer=st.integers(1, 2))
    def commit_in_transaction(self, number: int, offset: int, producer: int) -> None:
        before = self._lives()
        body = TxnOffsetCommitRequest(
            "g", transactional_id="x", producer_id=producer, producer_epoch=0, topics=_topics(number, offset)
        )
        self._took(MODEL.commit(self.ledger, SIMPLE, body, version=3, now=self.now))
        self._lived(before, number, "commit_in_transaction")

    @rule(producer=st.integers(1, 2), committed=st.booleans())
    def end(self, producer: int, committed: bool) -> None:
        before = self._lives()
        held = [place for place, owner, _ in self.ledger.offsets.pending if owner == producer]
        others = {place for place, owner, _ in self.ledger.offsets.pending if owner != producer}
        self._took(MODEL.end(self.ledger, Producer(producer, 0), committed=committed))
        for place in held:
            how = "committed" if committed else "aborted"
            trigger = f"one_of_several_{how}" if place in others else f"transaction_{how}"
            if trigger == "one_of_several_committed" or place not in others or not committed:
                self._lived(before, place.partition, trigger)

    @rule(numbers=st.lists(st.integers(0, 1), unique=True))
    def delete(self, numbers: list[int]) -> None:
        before = self._lives()
        topics = (OffsetDeleteRequestTopic(name="t", partition_indexes=tuple(numbers)),)
        self._took(MODEL.delete(self.ledger, SIMPLE, OffsetDeleteRequest("g", topics)))
        for number in numbers:
            self._lived(before, number, "removed")

    @rule(later=st.sampled_from((0, 400, 1_000)))
    def expire(self, later: int) -> None:
        self.now += later
        before = self._lives()
        kept = dict(self.ledger.offsets.committed)
        held = {place for place, _, _ in self.ledger.offsets.pending}
        done = MODEL.expire(self.ledger, "g", SIMPLE, now=self.now)
        self._took(done)
        for place in PLACES:
            entry = kept.get(place)
            old = entry is not None and self.now - entry.commit_timestamp >= 1_000 and place not in held
            assert (self.ledger.offsets.get(place) is None) is (entry is None or old)
            if old:
                self._lived(before, place.partition, "expired")
        assert done.deletes_group is (not self.ledger.offsets.committed and not held)

    def _lives(self) -> list[str]:
        return [self.ledger.offsets.life(place) for place in PLACES]

    def _lived(self, before: list[str], number: int, trigger: str) -> None:
        assert self._lives()[number] == OFFSET_TABLE[trigger][before[number]]

    @invariant()
    def the_log_says_so(self) -> None:
        for place in PLACES:
            entry = self.ledger.offsets.get(place)
            assert (None if entry is None else entry.at) == worth(self.log, place)
        assert {(place, owner) for place, owner, _ in self.ledger.offsets.pending} == pending(self.log)

    @invariant()
    def a_compacted_log_says_it_too(self) -> None:
        short = Offsets()
        for at, record in compacted(self.log):
            short = replay(short, record, at)
        assert short == self.ledger.offsets

    @invariant()
    def a_read_shows_it(self) -> None:
        asked = OffsetFetchRequestGroup("g", topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(0, 1)),))
        for stable in (False, True):
            (topic,) = MODEL.fetch(self.ledger, SIMPLE, asked, version=9, stable=stable).topics
            for row, place in zip(topic.partitions, PLACES, strict=True):
                entry = self.ledger.offsets.get(place)
                if stable and self.ledger.offsets.is_pending(place):
                    assert (row.error_code, row.committed_offset) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
                else:
                    assert row.committed_offset == (-1 if entry is None else entry.offset)


AnyOrder.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestAnyOrder = AnyOrder.TestCase


@settings(max_examples=25, deadline=None)
@given(metadata=st.text(max_size=6), limit=st.integers(0, 6))
def test_metadata_is_measured_in_utf_16(metadata: str, limit: int) -> None:
    """The limit for metadata counts UTF-16 code units (O-COMMIT-08)."""
    model = OffsetsModel(Image((T,), 1), Settings(offset_metadata_max_bytes=limit), INTENDED)
    partition = OffsetCommitRequestPartition(0, committed_offset=1, committed_metadata=metadata)
    body = OffsetCommitRequest("g", topics=(OffsetCommitRequestTopic(name="t", partitions=(partition,)),))
    done = model.commit(Ledger(), None, body, version=9)
    units = sum(2 if ord(letter) > 0xFFFF else 1 for letter in metadata)
    assert (done.rows[0].error is ErrorCode.OFFSET_METADATA_TOO_LARGE) is (units > limit)
    assert done.creates_group is (units <= limit)

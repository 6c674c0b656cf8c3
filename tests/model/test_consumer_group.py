"""One consumer group, rule by rule (rule book, 7). Sequences are short and written by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from fencepost.protocol.consumer_messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from fencepost.protocol.consumer_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupRegularExpressionKey,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_1, KAFKA_4_2, KAFKA_4_3
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost_model.consumer import (
    CanonicalOracle,
    ConsumerGroup,
    ConsumerGroupModel,
    ConsumerHeartbeat,
    Environment,
    Expire,
    Image,
    Member,
    Resolve,
    Successor,
)
from fencepost_model.consumer.derive import group_state
from fencepost_model.consumer.replay import replay
from fencepost_model.consumer.state import REBALANCE, SESSION, Timer
from fencepost_model.machines import C_STABLE, C_UNRELEASED, C_UNREVOKED
from fencepost_model.switches import variant_of

T1, T2 = b"1" * 16, b"2" * 16
IMAGE = Image((Topic("t1", T1, 4), Topic("t2", T2, 2)), 1)
AT_ONCE = Settings(group_consumer_assignment_interval_ms=0)


def _matcher(regex: str) -> Callable[[str], bool] | None:
    try:
        compiled = re.compile(regex)
    except re.error:
        return None
    return lambda name: compiled.fullmatch(name) is not None


class Run:
    """A group and the steps applied to it, one after the other."""

    def __init__(self, profile: Profile = INTENDED, settings: Settings = AT_ONCE, image: Image = IMAGE) -> None:
        self.model = ConsumerGroupModel(settings, profile)
        self.group: ConsumerGroup | None = None
        self.image = image
        self.now = 1_000
        self.last: Successor

    def _do(self, step: ConsumerHeartbeat | Expire | Resolve) -> Successor:
        environment = Environment(self.now, self.image, oracle=CanonicalOracle(_matcher))
        (self.last,) = self.model.successors(self.group, step, environment)
        self.group = self.last.group
        return self.last

    def beat(self, member_id: str, epoch: int, *, owned: str | None = None, **fields: object) -> Member:
        """Send a heartbeat that must succeed. ``owned``: digits of partitions of t1, and of t2 after a slash."""
        body = self.ask(member_id, epoch, owned=owned, **fields)
        assert body.error_code is ErrorCode.NONE
        return self.member(member_id) if epoch >= 0 else Member(member_id)

    def ask(
        self, member_id: str, epoch: int, *, owned: str | None = None, **fields: object
    ) -> ConsumerGroupHeartbeatResponse:
        if epoch == 0:
            fields = {"rebalance_timeout_ms": 5_000, **fields}
            fields.setdefault("subscribed_topic_names", None if "subscribed_topic_regex" in fields else ("t1",))
            owned = owned or ""
        if owned is not None:
            first, _, second = owned.partition("/")
            rows = ((T1, first), (T2, second))
            fields["topic_partitions"] = tuple(TopicPartitions(t, tuple(map(int, p))) for t, p in rows if p)
        body = ConsumerGroupHeartbeatRequest("g", member_id=member_id, member_epoch=epoch, **fields)  # type: ignore[arg-type]
        reply = self._do(ConsumerHeartbeat(body, 1, "client", "/host")).reply
        assert reply is not None
        return reply

    def member(self, member_id: str) -> Member:
        found = self.now_group.member(member_id)
        assert found is not None
        return found

    @property
    def now_group(self) -> ConsumerGroup:
        assert self.group is not None
        return self.group

    def expire(self, kind: str, member_id: str, epoch: int = 0) -> None:
        self._do(Expire(kind, member_id, epoch))

    def resolve(self) -> None:
        assert self.last.task is not None
        self._do(Resolve(self.last.task))


def _digits(member: Member) -> str:
    return "".join(str(number) for topic, number, _ in member.assigned if topic == T1)


# ---- joining and epochs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("profile", "first"), [(KAFKA_4_3, 2), (INTENDED, 2), (KAFKA_4_2, 1), (KAFKA_4_0, 1)])
def test_first_member(profile: Profile, first: int) -> None:
    """The first member of a group gets this epoch (M-VAL-21, V-30)."""
    run = Run(profile)
    member = run.beat("m1", 0)
    assert (member.epoch, run.now_group.epoch, run.now_group.assignment_epoch) == (first, first, first)
    assert _digits(member) == "0123"
    assert run.last.reply is not None
    assert run.last.reply.assignment == (TopicPartitions(T1, (0, 1, 2, 3)),)


@pytest.mark.parametrize(("profile", "writes"), [(KAFKA_4_3, False), (KAFKA_4_2, True)])
def test_first_member_without_topics(profile: Profile, *, writes: bool) -> None:
    """A first member that subscribes to nothing causes no bump and no GroupEpoch record (M-VAL-21, V-31)."""
    run = Run(profile)
    assert run.beat("m1", 0, subscribed_topic_names=()).epoch == 1
    assert any(isinstance(record.key, ConsumerGroupMetadataKey) for record in run.last.records) is writes


def test_unknown_group() -> None:
    """A request for an unknown group gets GROUP_ID_NOT_FOUND (M-VAL-20, M-LEAVE-01)."""
    assert Run().ask("m1", 3).error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert Run().ask("m1", -1).error_code is ErrorCode.GROUP_ID_NOT_FOUND


def test_full_group() -> None:
    """A full group admits no new member, only known ones and a returning static member (M-VAL-25, 28, 30, V-120)."""
    for profile, answer in ((KAFKA_4_3, ErrorCode.GROUP_MAX_SIZE_REACHED), (INTENDED, ErrorCode.NONE)):
        run = Run(profile, settings=replace(AT_ONCE, group_consumer_max_size=1))
        run.beat("m1", 0, instance_id="i1")
        run.beat("m1", -2, instance_id="i1")
        assert run.ask("m2", 7).error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert run.ask("m2", 0, instance_id="i2").error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert run.ask("m2", 0, instance_id="i1").error_code is answer
        if answer is not ErrorCode.NONE:
            run.beat("m1", 0, instance_id="i1")


def test_epochs_are_checked() -> None:
    """Unknown members and wrong epochs are refused, and nothing changes (M-FENCE-01, 03, 05, 06, 08)."""
    run = Run()
    run.beat("m1", 0)
    before = run.group
    assert run.ask("m2", 2).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert run.ask("m1", 3).error_code is ErrorCode.FENCED_MEMBER_EPOCH
    assert run.ask("m1", 1).error_code is ErrorCode.FENCED_MEMBER_EPOCH
    assert run.group == before
    run.beat("m1", 2)


def test_a_previous_epoch_passes_with_owned_partitions() -> None:
    """A lost answer may have carried a bump: the old epoch passes with an owned list that fits (M-FENCE-04)."""
    run = Run()
    run.beat("m1", 0)
    run.beat("m1", 2, owned="0123", subscribed_topic_names=("t1", "t2"))
    assert run.member("m1").epoch == 3
    assert run.ask("m1", 2).error_code is ErrorCode.FENCED_MEMBER_EPOCH
    assert run.ask("m1", 2, owned="0123").error_code is ErrorCode.NONE


@pytest.mark.parametrize(
    ("profile", "error"), [(KAFKA_4_1, ErrorCode.FENCED_MEMBER_EPOCH), (KAFKA_4_2, ErrorCode.NONE)]
)
def test_known_member_at_zero(profile: Profile, error: ErrorCode) -> None:
    """A known member may send epoch 0 in any state since 4.2 (M-FENCE-07, V-32)."""
    run = Run(profile)
    run.beat("m1", 0)
    run.beat("m2", 0)
    run.beat("m1", 1)
    assert run.member("m1").state == C_UNREVOKED
    assert run.ask("m1", 0).error_code is error


# ---- reconciliation ---------------------------------------------------------------------------------------------


def test_two_members_share() -> None:
    """The first gives partitions up before the second gets them (M-REC-02, 04, 05, 10, 12, 13, 14, 16, 17)."""
    run = Run(KAFKA_4_3)
    run.beat("m1", 0)
    second = run.beat("m2", 0)
    assert (second.state, second.epoch, second.assigned) == (C_UNRELEASED, 3, ())
    first = run.beat("m1", 2, owned="0123")
    assert (first.state, first.epoch, first.previous) == (C_UNREVOKED, 2, 2)  # M-REC-15
    assert dict(run.last.armed)[Timer(REBALANCE, "m1")] == 5_000  # M-TMR-02
    run.beat("m1", 2)  # M-REC-18: nothing is confirmed
    assert run.member("m1").state == C_UNREVOKED
    assert Timer(REBALANCE, "m1") not in dict(run.last.armed)  # M-TMR-04
    first = run.beat("m1", 2, owned=_digits(first))
    assert (first.state, first.epoch, first.revoking) == (C_STABLE, 3, ())
    assert dict(run.last.armed)[Timer(REBALANCE, "m1")] is None
    assert run.member("m2").assigned == ()  # M-REC-16
    second = run.beat("m2", 3)
    assert (second.state, len(second.assigned)) == (C_STABLE, 2)
    assert {epoch for _, _, epoch in second.assigned} == {3}  # M-PE-06
    assert {epoch for _, _, epoch in run.member("m1").assigned} == {2}
    assert group_state(run.now_group) == "Stable"


def test_revocation_before_4_2() -> None:
    """In 4.0 and 4.1 a member that confirms a revocation advances by one epoch (M-REC-19, V-52)."""
    for profile, epoch in ((KAFKA_4_1, 3), (KAFKA_4_2, 2)):
        run = Run(profile)
        run.beat("m1", 0)
        run.beat("m2", 0)
        run.beat("m1", 1, owned="0123")
        run.beat("m3", 0)
        run.beat("m4", 0)
        confirmed = run.beat("m1", 1, owned=_digits(run.member("m1")))
        assert (confirmed.state, confirmed.epoch) == (C_UNREVOKED, epoch - 1)


def test_narrower_subscription_is_pruned() -> None:
    """Topics are given up at once, even while no target may be computed (M-REC-25, M-TGT-09, INV-KIP-06)."""
    run = Run(KAFKA_4_3, Settings())
    run.beat("m1", 0)
    member = run.beat("m1", 2, owned="", subscribed_topic_names=())
    assert (member.state, member.epoch, member.assigned) == (C_STABLE, 2, ())
    assert (run.now_group.epoch, run.now_group.assignment_epoch) == (3, 2)
    assert group_state(run.now_group) == "Assigning"


def test_assignment_interval() -> None:
    """Within the interval a new member gets no partition, and the target later (M-TGT-08, 09, M-REC-22)."""
    run = Run(settings=Settings())
    run.beat("m1", 0)
    joiner = run.beat("m2", 0)
    assert (joiner.epoch, joiner.assigned, joiner.state) == (2, (), C_STABLE)
    run.now += 999
    assert run.beat("m2", 2).epoch == 2
    run.now += 1
    assert run.beat("m2", 2).epoch == 3


def test_metadata_change_bumps() -> None:
    """A change of metadata bumps at the next heartbeat, if the deadline is over (M-EPOCH-03, M-META-01, 04, 06)."""
    run = Run()
    run.beat("m1", 0)
    run.beat("m1", 2)  # the group object of a first join has no deadline yet
    assert run.now_group.epoch == 2
    run.image = Image((Topic("t1", T1, 5),), 2)
    run.beat("m1", 2)
    assert run.now_group.epoch == 2
    run.group = run.now_group._replace(refresh=None)
    run.beat("m1", 2)
    assert run.now_group.epoch == 3


# ---- leaving ----------------------------------------------------------------------------------------------------


def test_leave_and_expiry() -> None:
    """A leave deletes the member's own target and no other, also by timer (M-LEAVE-03, 04, 07, M-TGT-07)."""
    run = Run()
    run.beat("m1", 0)
    run.beat("m2", 0)
    target = run.now_group.target_of("m1")
    run.beat("m2", -1)
    assert (run.now_group.epoch, run.now_group.target_of("m2"), run.now_group.target_of("m1")) == (4, None, target)
    run.expire(SESSION, "m1")
    assert (run.now_group.members, run.now_group.epoch, run.now_group.hash) == ((), 5, 0)
    assert group_state(run.now_group) == "Empty"


def test_rebalance_timer_is_of_one_epoch() -> None:
    """The rebalance timer fences a member only at the epoch at which it was armed (M-TMR-02)."""
    run = Run()
    run.beat("m1", 0)
    run.beat("m2", 0)
    run.beat("m1", 2)
    run.expire(REBALANCE, "m1", 3)
    assert run.now_group.member("m1") is not None
    run.expire(REBALANCE, "m1", 2)
    assert run.now_group.member("m1") is None


def test_static_member_comes_back() -> None:
    """A static member that returns has its partitions (M-LEAVE-05, M-STATIC-03, 10, 11, M-PE-04, 07)."""
    run = Run(KAFKA_4_3)
    run.beat("m1", 0, instance_id="i1")
    gone = run.ask("m1", -2, instance_id="i1")
    assert (gone.member_epoch, run.member("m1").epoch, _digits(run.member("m1"))) == (-2, -2, "0123")
    assert group_state(run.now_group) == "Reconciling"  # M-ST-08
    assert run.ask("m1", 2, instance_id="i1").error_code is ErrorCode.FENCED_MEMBER_EPOCH  # M-STATIC-06
    back = run.beat("m2", 0, instance_id="i1")
    assert (back.epoch, back.state, _digits(back), run.now_group.epoch) == (2, C_STABLE, "0123", 2)
    assert {epoch for _, _, epoch in back.assigned} == {0}
    assert run.ask("m1", 2, instance_id="i1").error_code is ErrorCode.FENCED_INSTANCE_ID  # M-STATIC-05


def test_held_instance() -> None:
    """Another member that uses a held or unknown instance id is refused (M-STATIC-02, 04, M-LEAVE-02)."""
    run = Run()
    run.beat("m1", 0, instance_id="i1")
    assert run.ask("m2", 0, instance_id="i1").error_code is ErrorCode.UNRELEASED_INSTANCE_ID
    assert run.ask("m1", 2, instance_id="i2").error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert run.ask("m2", -1, instance_id="i1").error_code is ErrorCode.FENCED_INSTANCE_ID


# ---- regular expressions ----------------------------------------------------------------------------------------


def test_regex() -> None:
    """A regular expression causes no bump until it resolves to some topic (M-RX-02, 03, 05)."""
    run = Run()
    member = run.beat("m1", 0, subscribed_topic_regex="t.*")
    assert (member.epoch, run.now_group.epoch) == (1, 1)
    run.resolve()
    assert run.now_group.epoch == 2
    assert len(run.beat("m1", 1).assigned) == 6


def test_regex_that_does_not_compile() -> None:
    """A regular expression that does not compile changes nothing (M-VAL-08)."""
    run = Run()
    run.beat("m1", 0)
    before = run.now_group
    assert run.ask("m1", 2, subscribed_topic_regex="(").error_code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert run.now_group == before


def test_last_user_of_a_regex() -> None:
    """A regular expression goes when its last user leaves (M-LEAVE-03, INV-KIP-18)."""
    run = Run()
    run.beat("m1", 0, subscribed_topic_regex="t.*")
    run.resolve()
    run.beat("m1", -1)
    assert any(isinstance(record.key, ConsumerGroupRegularExpressionKey) for record in run.last.records)
    assert run.now_group.regexes == ()


# ---- what replay makes of it ------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", [KAFKA_4_0, KAFKA_4_3, INTENDED], ids=lambda profile: profile.name)
def test_replay_gives_the_live_group(profile: Profile) -> None:
    """Replay of the log gives the live group, without an internal error (INV-REPLAY-01, 02)."""
    run = Run(profile)
    log = []
    first = run.beat("m1", 0, instance_id="i1").epoch
    log += run.last.records
    for member_id, epoch in (("m2", 0), ("m1", first), ("m1", first), ("m2", -1), ("m1", -2)):
        run.beat(member_id, epoch, owned="01", **({"instance_id": "i1"} if member_id == "m1" else {}))
        log += run.last.records
    group = None
    for record in log:
        group = replay(variant_of(profile), group, record)
    assert group == run.now_group._replace(refresh=None)


STABLE_AT_0 = ConsumerGroupCurrentMemberAssignmentValue(
    0, previous_member_epoch=-1, state=0, assigned_partitions=(), partitions_pending_revocation=()
)


@pytest.mark.parametrize("value", [None, STABLE_AT_0], ids=["tombstone", "value"])
def test_any_record_of_a_member_maps_its_instance_id(value: ConsumerGroupCurrentMemberAssignmentValue | None) -> None:
    """F-REPLAY-08: of two members with one instance id, the one that was written last holds it."""
    static = ConsumerGroupMemberMetadataValue(
        instance_id="i",
        rack_id=None,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=(),
        subscribed_topic_regex="",
        rebalance_timeout_ms=1,
        server_assignor=None,
    )
    records = [Record(ConsumerGroupMemberMetadataKey("g", name), static) for name in "ab"]
    group = None
    for record in (*records, Record(ConsumerGroupCurrentMemberAssignmentKey("g", "a"), value)):
        group = replay(variant_of(INTENDED), group, record)
    assert group is not None
    assert group.statics == (("i", "a"),)

"""Classic members of consumer groups in the model, rule by rule (rule book, 9.1, 9.3, 9.4)."""

from __future__ import annotations

import pytest
from mixed_scene import Scene, kinds, subscription

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKind
from fencepost.protocol.messages import Protocol
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import KAFKA_4_0, KAFKA_4_2, KAFKA_4_3
from fencepost.protocol.settings import MigrationPolicy


@pytest.mark.parametrize(
    ("profile", "refusal"),
    [(KAFKA_4_3, ErrorCode.INCONSISTENT_GROUP_PROTOCOL), (KAFKA_4_2, ErrorCode.GROUP_MAX_SIZE_REACHED)],
)
def test_a_disabled_policy_refuses_every_join_first(profile: Profile, refusal: ErrorCode) -> None:
    """``disabled`` refuses a join or rejoin before the size check; 4.2 and earlier accept it (X-POL-04, X-JOIN-03)."""
    scene = Scene(profile)
    scene.beats("m")
    scene.joins("x")
    group = scene.group
    disabled = Scene(
        profile, scene.log, group_consumer_migration_policy=MigrationPolicy.DISABLED, group_consumer_max_size=2
    )
    assert disabled.group == group._replace(refresh=None)
    again, new = disabled.joins("x"), disabled.joins("y")
    assert (again.error_code, again.member_id) == ((refusal, "") if profile is KAFKA_4_3 else (ErrorCode.NONE, "x"))
    assert (new.error_code, new.member_id) == (refusal, "")
    disabled.leave("m")
    assert disabled.state.group("g") is None  # and the group is not downgraded


def test_a_join_to_a_full_group_is_refused() -> None:
    """A full group refuses a join at once, without a member id in the answer (X-JOIN-03, 26)."""
    scene = Scene(group_consumer_max_size=1)
    scene.beats("m")
    answer = scene.joins("y")
    assert (answer.error_code, answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")


def test_a_protocol_that_a_member_lists_twice_counts_for_no_member() -> None:
    """A name that a classic member lists twice counts as supported by no member (X-JOIN-04, C-JOIN-72)."""
    scene = Scene()
    scene.beats("m")
    twice = (Protocol("range", subscription("t")), Protocol("range", subscription("t")))
    assert scene.joins("x", protocols=twice).error_code is ErrorCode.NONE
    assert scene.joins("y").error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_member_that_does_not_sync_is_fenced() -> None:
    """A member must sync within its rebalance timeout after its join is replicated (X-TMR-03, X-JOIN-20)."""
    scene = Scene()
    scene.beats("m")
    scene.send(scene.join("x"))
    assert scene.due(TimerKind.CONSUMER_SYNC, "x") is None
    scene.now += 100
    scene.replicate()
    assert scene.due(TimerKind.CONSUMER_SYNC, "x") == 20_000
    epoch = scene.group.epoch
    assert scene.heartbeat("x", epoch) is ErrorCode.NONE
    assert scene.due(TimerKind.CONSUMER_SYNC, "x") == 20_000  # a heartbeat does not count
    scene.fire(TimerKind.CONSUMER_SYNC, "x")
    assert scene.group.member("x") is None
    assert scene.group.epoch == epoch + 1
    assert scene.due(TimerKind.CONSUMER_SESSION, "x") is None


def test_a_sync_that_is_accepted_ends_the_wait_for_it() -> None:
    """An accepted SyncGroup cancels the sync timer; a refused one does not (X-TMR-03, X-SYNC-03, 06)."""
    scene = Scene()
    scene.beats("m")
    epoch = scene.joins("x").generation_id
    assert scene.syncs("x", epoch + 1).error_code is ErrorCode.ILLEGAL_GENERATION
    assert scene.due(TimerKind.CONSUMER_SYNC, "x") == 20_000
    scene.now += 100
    assert scene.syncs("x", epoch).error_code is ErrorCode.NONE
    assert scene.due(TimerKind.CONSUMER_SYNC, "x") is None
    assert scene.due(TimerKind.CONSUMER_SESSION, "x") == 10_000
    scene.joins("x")
    assert scene.due(TimerKind.CONSUMER_SYNC, "x") == 20_000  # every join restarts it


def test_a_member_that_takes_over_a_used_id_counts_twice() -> None:
    """Only the replaced member's topics are subtracted from the counts; 4.0 shows it (M-HB-04, G-DATA-22)."""
    scene = Scene(KAFKA_4_0)
    scene.beats("a", names=("t",))
    scene.beats("b", instance="i1", names=("u",))
    assert [row.topic_name for row in scene.group.metadata] == ["t", "u"]
    scene.beats("b", -2, "i1")
    scene.beats("a", instance="i1", names=("u",))
    assert scene.group.member("b") is None
    assert not [kind for kind in kinds(scene.written) if kind == "Partitions"]
    assert [row.topic_name for row in scene.group.metadata] == ["t", "u"]

"""A JoinGroup to a consumer group must match the generation that its sender knows (X-JOIN-12, with the fix)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pytest
from mixed_scene import Scene, T, subscription

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import Protocol
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3

ALL = (("t", 0), ("t", 1), ("t", 2))
IGNORED = replace(INTENDED, fault_join_generation_ignored=True)


def _shared(profile: Profile = INTENDED) -> Scene:
    """Return a group: the classic x has all of t at epoch 3, y has joined at epoch 4 for a part of t, and m reads u."""
    scene = Scene(profile)
    scene.beats("m", names=("u",))
    assert scene.joins("x").generation_id == 3
    scene.beats("y")
    assert [scene.member("x").epoch, scene.group.assignment_epoch] == [3, 4]
    return scene


def _revoking(profile: Profile = INTENDED) -> Scene:
    """Return the same group after x has learned that it must give a part up."""
    scene = _shared(profile)
    assert scene.joins("x", data=subscription("t", owned=ALL, generation=3)).generation_id == 3
    assert (scene.member("x").state, scene.member("x").previous) == ("UNREVOKED_PARTITIONS", 3)
    return scene


def _rows(held: tuple[tuple[bytes, int, int], ...]) -> tuple[tuple[str, int], ...]:
    assert {topic for topic, _, _ in held} <= {T}
    return tuple(("t", number) for _, number, _ in held)


def _shrunk(profile: Profile = INTENDED) -> tuple[Scene, tuple[tuple[str, int], ...]]:
    """Return the same group after x has given that part up and is at epoch 4, and the partitions that x kept."""
    scene = _revoking(profile)
    kept = _rows(scene.member("x").assigned)
    assert scene.joins("x", data=subscription("t", owned=kept, generation=3)).generation_id == 4
    assert (scene.member("x").epoch, scene.member("x").previous) == (4, 3)
    return scene, kept


class Reported(NamedTuple):
    """A subscription: its generation, the partitions that it claims, and its version."""

    generation: int
    claims: tuple[tuple[str, int], ...]
    version: int = 3


def _refused(scene: Scene, member: str, data: bytes, instance: str | None = None) -> bool:
    """Whether the answer is UNKNOWN_MEMBER_ID, with nothing changed. The only other answer here is NONE."""
    group, deadlines = scene.group, scene.deadlines
    answer = scene.joins(member, instance, data=data)
    if answer.error_code is ErrorCode.NONE:
        return False
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")
    assert (scene.written, scene.group, scene.deadlines) == ((), group, deadlines)
    return True


@pytest.mark.parametrize(
    ("case", "refused"),
    [
        (Reported(3, ALL), False),
        (Reported(3, ()), False),
        (Reported(2, ()), True),
        (Reported(4, ()), True),  # the assignment epoch, which x does not know yet
        (Reported(-1, ALL), False),  # assigned partitions, or partitions to give up
        (Reported(-1, ()), False),
        (Reported(-1, (("u", 0),)), True),
        (Reported(-1, (("gone", 0),)), False),  # a topic that does not exist (X-JOIN-10)
        (Reported(7, ALL, 1), False),  # version 1 has no generation
        (Reported(7, (("u", 0),), 1), True),
        (Reported(7, (("u", 0),), 0), False),  # version 0 has no claims either
    ],
)
def test_a_member_at_its_epoch_passes(case: Reported, refused: bool) -> None:
    """With the fix of X-JOIN-12 the generation decides, or the claims of a subscription that has no generation."""
    data = subscription("t", owned=case.claims, generation=case.generation, version=case.version)
    assert _refused(_revoking(), "x", data) is refused
    assert not _refused(_revoking(IGNORED), "x", data)


@pytest.mark.parametrize(
    ("generation", "gives_up", "refused"), [(4, True, False), (4, False, False), (3, True, False), (3, False, True)]
)
def test_a_member_whose_answer_was_lost_passes_unless_it_claims_more(
    generation: int, gives_up: bool, refused: bool
) -> None:
    """At the previous epoch a JoinGroup passes if it claims no more than the member still has (as M-FENCE-04)."""
    for profile, expected in ((INTENDED, refused), (IGNORED, False)):
        scene, kept = _shrunk(profile)
        owned = kept if gives_up else ALL
        assert _refused(scene, "x", subscription("t", owned=owned, generation=generation)) is expected


@pytest.mark.parametrize(
    ("profile", "generation", "confirmed"), [(INTENDED, 3, False), (INTENDED, 4, True), (IGNORED, 3, True)]
)
def test_a_member_whose_answer_was_lost_confirms_nothing(profile: Profile, generation: int, confirmed: bool) -> None:
    """A list from before the answer does not confirm that partitions of that answer are given up (M-REC-18)."""
    scene, kept = _shrunk(profile)
    assert len(kept) == 2
    scene.beats("z")  # so that x must give up one more
    assert not _refused(scene, "x", subscription("t", owned=(), generation=generation))
    member = scene.member("x")
    assert (member.state == "UNREVOKED_PARTITIONS", member.epoch) == (not confirmed, 5 if confirmed else 4)
    assert bool(member.revoking) is not confirmed


@pytest.mark.parametrize(
    ("case", "refused"),
    [
        (Reported(-1, ()), False),
        (Reported(-1, (("t", 0),)), True),
        (Reported(0, ()), True),
        (Reported(3, ()), True),
        (Reported(3, (), 1), False),
        (Reported(3, (("t", 0),), 1), True),
    ],
)
def test_a_newcomer_owns_nothing(case: Reported, refused: bool) -> None:
    """With the fix of X-JOIN-06 an unknown member has no epoch, so its claims are refused."""
    data = subscription("t", owned=case.claims, generation=case.generation, version=case.version)
    assert _refused(_shared(), "w", data) is refused
    assert not _refused(_shared(IGNORED), "w", data)


def test_an_empty_id_is_not_looked_at() -> None:
    """A JoinGroup without a member id comes from a new process, and is not checked (X-JOIN-02, 07).

    It is static, or dynamic before version 4.
    """
    scene = _shared()
    data = subscription("t", owned=ALL, generation=9)
    assert scene.joins("", "i1", new_id="n", data=data).error_code is ErrorCode.NONE
    scene.send(scene.join("", data=data), new_id="o", version=3)
    assert scene.member("o").classic is not None


def test_a_static_member_is_looked_at_like_any_other() -> None:
    """A static member is checked for its instance id first (X-JOIN-08), and then for its generation."""
    for profile in (INTENDED, IGNORED):
        scene = _shared(profile)
        epoch = scene.joins("", "i1", new_id="n", data=subscription("u")).generation_id
        late = subscription("u", generation=epoch + 1)
        assert _refused(scene, "n", late, "i1") is (profile is INTENDED)
        assert scene.joins("o", "i1", data=late).error_code is ErrorCode.FENCED_INSTANCE_ID
        assert not _refused(scene, "n", subscription("u", generation=epoch), "i1")


def test_unreadable_bytes_are_rejected_before_the_generation_is_checked() -> None:
    """Unreadable bytes are refused before the generation is checked (X-JOIN-09, X-JOIN-12)."""
    late = Protocol("range", subscription("t", generation=1)), Protocol("sticky", b"\x00")
    assert _shared().joins("x", protocols=late).error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert _shared().joins("x", protocols=late[:1]).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_first_protocol_tells() -> None:
    """Only the subscription of the first protocol counts (X-JOIN-10)."""
    now, late = subscription("t", generation=3), subscription("t", generation=1)
    for first, second, error in ((now, late, ErrorCode.NONE), (late, now, ErrorCode.UNKNOWN_MEMBER_ID)):
        offers = (Protocol("range", first), Protocol("sticky", second))
        assert _shared().joins("x", protocols=offers).error_code is error


def test_kafka_looks_at_nothing() -> None:
    """Kafka accepts a fenced member with its old claims, and tells it only later that it has nothing (X-JOIN-12)."""
    scene = _shared(KAFKA_4_3)
    scene.leave("x")
    answer = scene.joins("x", data=subscription("t", owned=ALL, generation=3))
    assert answer.error_code is ErrorCode.NONE

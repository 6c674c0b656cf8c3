"""A conversion keeps the partitions that members hold: X-DOWN-04 and X-UP-05 with their fixes, in the model."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mixed_scene import Scene, T, U, assignment, kinds, subscription

from fencepost.protocol import embedded
from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import Protocol
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3

ALL = (("t", 0), ("t", 1), ("t", 2))
TARGET = replace(INTENDED, fault_downgrade_assigns_target=True)
OVERLOOKED = replace(INTENDED, fault_upgrade_overlooks_owned=True)

Rows = list[tuple[str, int]]


def _given(scene: Scene) -> dict[str, Rows]:
    """Return the assignments of the classic group, by member."""
    decoded = {m.member_id: embedded.decode_assignment(m.assignment) for m in scene.classic.members}
    return {name: [(p.topic, p.partition) for p in each.partitions] for name, each in decoded.items()}


def _names(partitions: tuple[tuple[bytes, int], ...]) -> Rows:
    return [({T: "t", U: "u"}[topic], number) for topic, number in partitions]


# ---- downgrade -------------------------------------------------------------------------------------------------------


def _sharing(profile: Profile) -> Scene:
    """Return a consumer group, which stays one because of m, who reads u.

    The classic x has all of t, and must give a part up to the classic y.
    """
    scene = Scene(profile)
    scene.beats("m", names=("u",))
    epoch = scene.joins("x").generation_id
    scene.joins("y")
    scene.joins("x", data=subscription("t", owned=ALL, generation=epoch))
    assert [len(scene.member("x").assigned), len(scene.member("x").revoking)] == [2, 1]
    assert (scene.member("y").state, scene.member("y").assigned) == ("UNRELEASED_PARTITIONS", ())
    return scene


@pytest.mark.parametrize("profile", [INTENDED, TARGET, KAFKA_4_3])
def test_with_the_fix_a_downgrade_assigns_the_partitions_that_a_member_holds(profile: Profile) -> None:
    """With the fix x keeps the part that it must give up, and y gets nothing yet (X-DOWN-04)."""
    scene = _sharing(profile)
    target = {name: _names(scene.group.target_of(name) or ()) for name in ("x", "y")}
    assert (len(target["x"]), len(target["y"])) == (2, 1)
    scene.leave("m")
    assert _given(scene) == ({"x": [*ALL], "y": []} if profile is INTENDED else target)


@pytest.mark.parametrize(("profile", "shared"), [(INTENDED, False), (TARGET, True)])
def test_held_partitions_outlive_a_downgrade_and_an_upgrade(profile: Profile, shared: bool) -> None:
    """Without the fix y is assigned a part that x, which has not rejoined, still uses (X-DOWN-04, X-UP-05)."""
    scene = _sharing(profile)
    scene.leave("m")
    scene.beats("z", names=("u",))
    assert bool(scene.member("y").assigned) is shared
    assert len(scene.member("x").assigned) == (2 if shared else 3)


@pytest.mark.parametrize("profile", [INTENDED, TARGET])
@pytest.mark.parametrize("names", [("t",), ("t", "u")])
def test_the_joiner_of_a_downgrade_keeps_the_partitions_of_its_predecessor(
    profile: Profile, names: tuple[str, ...]
) -> None:
    """The joiner n replaces m, which has all of t, and must give two parts up to x and y (X-DOWN-04, 22)."""
    scene = Scene(profile)
    scene.beats("m", instance="i1")
    for other in ("x", "y"):
        scene.syncs(other, scene.joins(other).generation_id)
    target = _names(scene.group.target_of("m") or ())
    scene.send(scene.join("", "i1", data=subscription(*names, owned=ALL)), new_id="n")
    assert (scene.classic.state, len(target)) == ("PreparingRebalance", 1)
    assert _given(scene)["n"] == ([*ALL] if profile is INTENDED else target)


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_3])
def test_the_joiner_of_a_stable_downgrade_gets_the_free_partitions_too(profile: Profile) -> None:
    """The joiner also gets the part of x, which has left; no other member waits for a share (X-DOWN-22)."""
    scene = Scene(profile)
    scene.beats("m", instance="i1")
    scene.joins("x")
    held = scene.group.target_of("m") or ()
    owned = (TopicPartitions(T, tuple(number for _, number in held)),)
    assert scene.beats("m", 2, "i1", topic_partitions=owned).member_epoch == 3
    scene.leave("x")
    scene.joins("y", data=subscription("u"))
    scene.joins("", "i1", new_id="n")
    assert (scene.classic.state, len(held)) == ("Stable", 2)
    assert _given(scene)["n"] == [*ALL]


# ---- upgrade ---------------------------------------------------------------------------------------------------------


def _claims(*owned: tuple[str, int], generation: int = 1, names: tuple[str, ...] = ("t",)) -> bytes:
    return subscription(*names, owned=owned, generation=generation)


def _brought(scene: Scene, **names: str) -> dict[str, Rows]:
    """Return the partitions that each member of the classic group brings into the consumer group, which c creates.

    The members' targets are the same, until the join of c computes a new target. The records of that join are ignored.
    """
    scene.beats("c", names=("u",))
    written = scene.written[: kinds(scene.written).index("Member c")]
    brought: dict[str, dict[str, Rows]] = {"Target": {}, "Current": {}}
    for kind, record in zip(kinds(written), written, strict=True):
        what, _, member = kind.partition(" ")
        if what in brought:
            value = record.value
            rows = value.topic_partitions if what == "Target" else value.assigned_partitions  # type: ignore[union-attr]
            brought[what][member] = _names(tuple((row.topic_id, n) for row in rows for n in row.partitions))
    assert brought["Target"] == brought["Current"]
    return brought["Target"]


@pytest.mark.parametrize(("profile", "kept"), [(INTENDED, 3), (OVERLOOKED, 2), (KAFKA_4_3, 2)])
def test_an_upgrade_takes_over_partitions_that_are_about_to_be_revoked(profile: Profile, kept: int) -> None:
    """The first round of a cooperative rebalance has taken a part of t from a, which does not know it yet (X-UP-05)."""
    scene = Scene(profile)
    scene.stable({"a": assignment(("t", [0, 1])), "b": b""}, data={"a": _claims(*ALL)})
    assert _brought(scene) == {"a": [*ALL[:kept]], "b": []}


@pytest.mark.parametrize(("profile", "kept"), [(INTENDED, 3), (OVERLOOKED, 0)])
def test_an_upgrade_takes_over_partitions_that_a_new_join_phase_cleared(profile: Profile, kept: int) -> None:
    """A rebalance starts again before the assignment of the previous one has come (X-UP-05, C-JOIN-42)."""
    scene = Scene(profile)
    scene.stable({"a": assignment(("t", [0, 1, 2])), "b": b""})
    for member in ("a", "b"):
        scene.send(scene.join(member, data=_claims(*(ALL if member == "a" else ()))))
    assert scene.classic.state == "CompletingRebalance"
    scene.send(scene.join("b", data=_claims(names=("t", "u"))))
    assert (scene.classic.state, _given_to_nobody(scene)) == ("PreparingRebalance", True)
    assert _brought(scene) == {"a": [*ALL[:kept]], "b": []}


def _given_to_nobody(scene: Scene) -> bool:
    return not any(member.assignment for member in scene.classic.members)


def test_an_assigned_partition_belongs_to_its_member() -> None:
    """With the fix of X-UP-05 a claim counts only for unassigned partitions, and adds to the member's assignment."""
    scene = Scene(INTENDED)
    data = {"a": _claims(("t", 1), generation=9), "b": _claims(("t", 2))}
    scene.stable({"a": assignment(("t", [0])), "b": assignment(("t", [1]))}, data=data)
    assert _brought(scene) == {"a": [("t", 0)], "b": [("t", 1), ("t", 2)]}


@pytest.mark.parametrize(
    ("of_a", "of_b", "owner"),
    [(2, 1, "a"), (1, 2, "b"), (2, 2, "a"), (-1, 0, "b"), (-1, -1, "a")],
)
def test_the_highest_generation_wins_a_disputed_partition(of_a: int, of_b: int, owner: str) -> None:
    """With the fix of X-UP-05 the highest generation wins a disputed partition, then the smallest member id."""
    scene = Scene(INTENDED)
    both = ("t", 1)
    data = {"a": _claims(both, ("t", 0), generation=of_a), "b": _claims(both, ("t", 2), generation=of_b)}
    scene.stable({"a": b"", "b": b""}, data=data)
    brought = {"a": [("t", 0)], "b": [("t", 2)]}
    brought[owner] = sorted([*brought[owner], both])
    assert _brought(scene) == brought


def test_a_claim_of_a_topic_that_is_gone_is_dropped() -> None:
    """With the fix of X-UP-05 claims of a deleted topic are dropped; claims of an unsubscribed topic are kept."""
    scene = Scene(INTENDED)
    scene.stable({"a": b""}, data={"a": _claims(("gone", 0), ("u", 1))})
    assert _brought(scene) == {"a": [("u", 1)]}


def test_the_claims_of_the_selected_protocol_count() -> None:
    """With the fix of X-UP-05 the claims in the subscription of the selected protocol count."""
    scene = Scene(INTENDED)
    offers = (Protocol("range", _claims(("t", 0))), Protocol("sticky", _claims(("t", 1))))
    scene.stable({"a": b""})
    scene.send(scene.join("a", protocols=offers))
    assert scene.classic.protocol_name == "range"
    assert _brought(scene) == {"a": [("t", 0)]}


def test_one_partition_assigned_to_two_members_makes_the_upgrade_fail() -> None:
    """One partition assigned to two members makes the upgrade fail, with the fix as without it (X-UP-06)."""
    scene = Scene(INTENDED)
    scene.stable({"a": assignment(("t", [0])), "b": assignment(("t", [0]))})
    assert scene.beats("c").error_code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_claimed_partition_is_released_when_the_member_rejoins_without_it() -> None:
    """With the fix b gets its share only after a has rejoined without it (X-UP-05, X-UP-15)."""
    scene = Scene(INTENDED)
    scene.stable({"a": assignment(("t", [0, 1])), "b": b""}, data={"a": _claims(*ALL)})
    scene.beats("c", names=("u",))
    assert scene.heartbeat("a", 1) is ErrorCode.REBALANCE_IN_PROGRESS
    share = _names(scene.group.target_of("b") or ())
    assert len(share) == 1
    generation = scene.joins("b", data=_claims(generation=1)).generation_id
    assert scene.syncs("b", generation).assignment == assignment()
    kept = _names(scene.group.target_of("a") or ())
    assert scene.joins("a", data=_claims(*kept)).error_code is ErrorCode.NONE
    assert scene.heartbeat("b", generation) is ErrorCode.REBALANCE_IN_PROGRESS
    scene.joins("b", data=_claims(generation=generation))
    assert _names(tuple((topic, number) for topic, number, _ in scene.member("b").assigned)) == share

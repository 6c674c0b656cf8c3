"""Each switch alone differs from the intended protocol only under its own rules; switches of one function compose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import SystemRandom
from typing import Final

import pytest

from fencepost.coordinator.kernel.rules import rules_of
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.events import Load, TaskDone, TaskKey, TaskKind, Topic, Unload
from fencepost.protocol.offset_messages import ZERO_ID
from fencepost.protocol.offset_records import Producer
from fencepost.protocol.profile import Profile
from fencepost.quirk_order import COMMUTING, ORDER
from fencepost.quirks import Quirks, composed, registered
from fencepost_conformance.generate.plan import GroupProtocol

from .consumer_scene import LATER, TOPICS, A, ConsumerScene
from .mixed_scene import MixedScene, gets, wants
from .offset_scene import OffsetScene
from .scene import GROUP, Scene
from .switches import (
    OURS,
    Played,
    Script,
    declared,
    drawn,
    first_difference,
    reached,
    rules_of_model,
    rules_of_step,
    seams_of,
    written,
)

#: A script that shows each switch; found among the seeds from 1000 on.
SEEDS: Final = {
    "fault_parked_fail_early": (GroupProtocol.CLASSIC, 1004),
    "fault_timeout_undoes_memory": (GroupProtocol.MIXED, 1000),
    "fault_failed_append_loses_timers": (GroupProtocol.CONSUMER, 1001),
    "fault_failed_deletion_lists_twice": (GroupProtocol.CONSUMER, 1095),
    "fault_deletion_waits_twice": (GroupProtocol.MIXED, 1002),
    "fault_superseded_records_loaded": (GroupProtocol.CLASSIC, 1075),
    "fault_timer_keys_collide": (GroupProtocol.CONSUMER, 1128),
    "old_checks_after_load": (GroupProtocol.CONSUMER, 1004),
    "fault_new_member_added_survives": (GroupProtocol.CLASSIC, 1000),
    "fault_refusal_leaves_join_phase": (GroupProtocol.CLASSIC, 1022),
    "fault_static_return_counts_as_new": (GroupProtocol.CLASSIC, 1000),
    "fault_duplicate_protocol_accepted": (GroupProtocol.CLASSIC, 1059),
    "fault_replacement_keeps_pending_sync": (GroupProtocol.CLASSIC, 1041),
    "fault_leave_forgets_parked_sync": (GroupProtocol.CLASSIC, 1120),
    "fault_every_leader_sync_appends": (GroupProtocol.CLASSIC, 1006),
    "fault_timers_outlive_reverted_group": (GroupProtocol.CLASSIC, 1002),
    "fault_bad_subscription_is_thrown": (GroupProtocol.CLASSIC, 1094),
    "fault_empty_group_dropped_from_memory": (GroupProtocol.MIXED, 1001),
    "fault_static_rejoin_unreleased": (GroupProtocol.MIXED, 1002),
    "fault_relabelled_instance_stays": (GroupProtocol.CONSUMER, 1027),
    "fault_stale_subscription_type": (GroupProtocol.CONSUMER, 1002),
    "fault_resolved_regex_change_no_bump": (GroupProtocol.CONSUMER, 1041),
    "fault_rejoin_confirms_revocation": (GroupProtocol.MIXED, 1017),
    "fault_absent_assignor_elected": (GroupProtocol.CONSUMER, 1076),
    "fault_tied_vote_bumps": (GroupProtocol.MIXED, 1002),
    "old_full_group_refuses_statics": (GroupProtocol.CONSUMER, 1004),
    "old_vote_keeps_epoch": (GroupProtocol.CONSUMER, 1001),
    "old_emptied_group_keeps_target_epoch": (GroupProtocol.MIXED, 1001),
    "old_replacement_rewrites_target": (GroupProtocol.MIXED, 1018),
    "old_epochs_start_at_zero": (GroupProtocol.CONSUMER, 1001),
    "old_known_member_at_zero_fenced": (GroupProtocol.CONSUMER, 1003),
    "old_regex_removal_keeps_epoch": (GroupProtocol.CONSUMER, 1033),
    "old_partition_metadata": (GroupProtocol.MIXED, 1000),
    "old_no_periodic_regex_refresh": (GroupProtocol.CONSUMER, 1003),
    "old_no_assignment_interval": (GroupProtocol.CONSUMER, 1001),
    "old_group_config_unclamped": (GroupProtocol.MIXED, 1010),
    "old_whole_target": (GroupProtocol.CONSUMER, 1011),
    "old_prune_keeps_previous_epoch": (GroupProtocol.CONSUMER, 1011),
    "old_revocation_advances_epoch": (GroupProtocol.CONSUMER, 1117),
    "old_no_assignment_epochs": (GroupProtocol.MIXED, 1000),
    "old_describe_without_pending": (GroupProtocol.CONSUMER, 1085),
    "fault_upgrade_without_protocol": (GroupProtocol.MIXED, 1014),
    "fault_upgrade_answers_before_checks": (GroupProtocol.MIXED, 1102),
    "fault_upgrade_without_bump": (GroupProtocol.MIXED, 1050),
    "fault_classic_members_starve": (GroupProtocol.MIXED, 1005),
    "fault_downgrade_reads_unread_metadata": (GroupProtocol.MIXED, 1026),
    "fault_downgrade_loses_bump": (GroupProtocol.MIXED, 1018),
    "fault_downgrade_leaves_timers": (GroupProtocol.MIXED, 1014),
    "fault_downgrade_leaves_topics": (GroupProtocol.MIXED, 1026),
    "fault_join_generation_ignored": (GroupProtocol.MIXED, 1010),
    "fault_downgrade_assigns_target": (GroupProtocol.MIXED, 1011),
    "fault_empty_group_counts_anew": (GroupProtocol.MIXED, 1001),
    "fault_upgrade_overlooks_owned": (GroupProtocol.MIXED, 1050),
    "old_malformed_join_is_internal": (GroupProtocol.MIXED, 1026),
    "old_disabled_policy_accepts_joins": (GroupProtocol.MIXED, 1019),
    "old_classic_members_follow_group_epoch": (GroupProtocol.MIXED, 1005),
    "fault_refused_commit_leaves_group": (GroupProtocol.CLASSIC, 1000),
    "fault_fetch_without_member_fails": (GroupProtocol.CONSUMER, 1020),
    "fault_expiring_offset_keeps_topic_id": (GroupProtocol.CLASSIC, 1012),
    "fault_loaded_offset_makes_group": (GroupProtocol.MIXED, 1078),
    "old_no_topic_ids": (GroupProtocol.CLASSIC, 1001),
    "old_transactions_without_topic_ids": (GroupProtocol.CONSUMER, 1000),
}


def before_the_first_image() -> Scene:
    """A regex is resolved before the first image of topics."""
    scene = Scene()
    body = ConsumerGroupHeartbeatRequest(
        GROUP,
        member_id="m1",
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_regex="a",
        topic_partitions=(),
    )
    scene.ask(body, 1)
    scene.feed(TaskDone(scene.now, TaskKey(TaskKind.REGEX, GROUP)))
    return scene


def two_replacements_that_time_out() -> Scene:
    """A static member is replaced twice, and both writes time out. A failed append is reported directly after its step,
    so only beside ``fault_timeout_undoes_memory`` two replacements are undone."""
    scene = Scene(Profile(name="base", fault_timeout_undoes_memory=True))
    leads = scene.join(instance="i")
    follower, _ = scene.newcomer()
    scene.pass_time(6_000)
    leader = scene.joined(leads).member_id
    scene.sync(follower, 1)
    scene.sync(leader, 1, {leader: b"L", follower: b"F"})
    scene.log = "never"
    for other in ("one", "another"):
        scene.join("", "range", other, instance="i")
    scene.pass_time(5_000)
    return scene


def a_new_instance_id() -> Scene:
    """A known member joins again with an instance id that is not in use."""
    scene = ConsumerScene()
    scene.come("m1", "a")
    scene.pass_time(LATER)
    scene.come("m2", "a")
    scene.come("m1", "a", instance="i")
    return scene


def an_absent_partition() -> Scene:
    """A classic group with an assignment of a partition that its topic does not have becomes a consumer group."""
    scene = MixedScene()
    asked = scene.join("", instance="i1", data=wants("a"))
    scene.pass_time(6_000)
    first = scene.joined(asked).member_id
    scene.sync(first, 1, {first: gets({"a": [0, 7]})})
    scene.come("m1", "b")
    return scene


def a_second_place() -> Scene:
    """A member takes the place of a static member that has left for a while."""
    scene = ConsumerScene()
    scene.come("m1", "a")
    scene.pass_time(LATER)
    scene.come("m2", "a", instance="i")
    scene.ok("m2", -2, instance="i")
    scene.beat("m1", 0, ("a",), {}, timeout=30_000, instance="i")
    return scene


def a_downgrade_while_one_waits() -> Scene:
    """The last consumer is replaced by a classic member while another one waits for its part."""
    scene = MixedScene()
    scene.come("m1", "a", instance="i1")
    scene.pass_time(LATER)
    scene.rejoin("c1", "a", session=300_000, rebalance=300_000)
    scene.join("", instance="i1", data=wants("a"))
    return scene


def a_downgrade_without_a_target() -> Scene:
    """The last consumer is replaced by a classic member before the interval until the next target is over."""
    scene = MixedScene()
    scene.pass_time(LATER)
    scene.come("m1", "a", instance="i1")
    scene.rejoin("c1", "b", session=300_000, rebalance=300_000)
    scene.pass_time(LATER)
    epoch = scene.ok("m1", scene.who("m1").member_epoch, None, {}).member_epoch
    scene.rejoin("c1", "b", session=300_000, rebalance=300_000)
    scene.fetched("c1", epoch)
    scene.come("m9", "a")
    scene.ok("m9", -1)
    scene.join("", instance="i1", data=wants("a"))
    return scene


def a_topic_with_another_id() -> Scene:
    """A topic is deleted while an offset is of another topic of that name."""
    scene = OffsetScene()
    others = [topic for topic in TOPICS if topic.name != "a"]
    scene.topics(*others, Topic("a", bytes(15) + b"\x0a", 4))
    scene.commit({("a", 0): 5})
    scene.feed(Unload(0, leader_epoch=None))
    scene.topics(*TOPICS)
    scene.feed(Load(0, leader_epoch=2, records=tuple(scene.records)))
    scene.topics(*others)
    return scene


#: For the switches that no random script shows.
BY_HAND: Final[dict[str, Callable[[], Scene]]] = {
    "old_no_image_is_minus_one": before_the_first_image,
    "fault_second_replacement_mixes_undo": two_replacements_that_time_out,
    "fault_new_instance_has_no_target": a_new_instance_id,
    "fault_absent_partition_fails": an_absent_partition,
    "fault_replacement_merges_members": a_second_place,
    "fault_downgrade_owes": a_downgrade_while_one_waits,
    "old_downgrade_rebalances_by_subscription": a_downgrade_without_a_target,
    "old_partitions_deleted": a_topic_with_another_id,
}


ID_TO_STORE: Final = ORDER["coordinator.offsets.commit.id_to_store"]


def script_of(switch: str) -> Script:
    return written(BY_HAND[switch]()) if switch in BY_HAND else drawn(*SEEDS[switch])


def wrong_rules(script: Script, switch: str, place: int) -> tuple[list[str], list[str]] | None:
    """Return the rules of a switch, and those that decide the step, if these have none in common."""
    own = declared(OURS[switch])
    found = rules_of_step(script, place, script.base) | rules_of_step(script, place, script.with_switch(switch))
    return None if own & found else (sorted(own), sorted(found))


def test_each_switch_has_a_script() -> None:
    assert {*SEEDS, *BY_HAND} == set(OURS)
    assert not SEEDS.keys() & BY_HAND.keys()


@pytest.mark.parametrize("switch", OURS)
def test_a_switch_differs_under_its_own_rules(switch: str) -> None:
    """The rules of the code that handles the first event that differs include one of the switch. The model with the
    same switch allows what the coordinator does."""
    script = script_of(switch)
    place = first_difference(script, script.with_switch(switch))
    assert place is not None, f"the script no longer shows {switch}: take a seed for which first_difference finds one"
    for profile in (script.base, script.with_switch(switch)):
        rules_of_model(script, place, profile)
    assert wrong_rules(script, switch, place) is None


@pytest.mark.parametrize("count", [1, pytest.param(60, marks=pytest.mark.all)])
@pytest.mark.parametrize("protocol", GroupProtocol)
def test_random_scripts_differ_under_the_rules_of_the_switch(protocol: GroupProtocol, count: int) -> None:
    first = SystemRandom().randrange(10**9)
    for seed in range(first, first + count):
        script = drawn(protocol, seed)
        seams = reached(script)
        for switch in OURS:
            if not seams.isdisjoint(seams_of(switch)):
                place = first_difference(script, script.with_switch(switch))
                assert place is None or wrong_rules(script, switch, place) is None, f"seed {seed}, {switch}"


@pytest.mark.parametrize("switch", ID_TO_STORE)
def test_a_switch_keeps_to_its_rules_in_scripts_of_the_others_of_its_function(switch: str) -> None:
    """Each of these switches changes which topic id is stored with an offset. The model follows to the end."""
    for other in ID_TO_STORE:
        script = script_of(other)
        place = first_difference(script, script.with_switch(switch))
        rules_of_model(script, len(script.events) - 1, script.with_switch(switch))
        assert place is None or wrong_rules(script, switch, place) is None, other


@pytest.mark.parametrize("pair", COMMUTING, ids=lambda pair: " and ".join(sorted(pair)))
def test_the_order_of_switches_that_commute_makes_no_difference(pair: frozenset[str]) -> None:
    """The quirks of every function that both change are called in both orders, on scripts that show either switch."""
    both = Profile(name="both", **dict.fromkeys(pair, True))
    instead = {}
    for function in {each.intended for each in registered()}:
        quirks = [each.function for each in registered() if each.intended is function and each.is_on(both)]
        instead[function] = composed(function, quirks[::-1])
    turned = Quirks(both)
    turned.instead.update(instead)  # type: ignore[attr-defined]
    for script in map(script_of, pair):
        plain, other = (Played(script.settings, both, script.choices()) for _ in range(2))
        other.follow(replace(rules_of(both), quirks=turned))
        for event in script.events:
            assert plain.feed(event) == other.feed(event)
            assert plain.state == other.state


def test_the_order_of_other_switches_makes_a_difference() -> None:
    """The second switch of a pair with a declared order has its effect only without the first one, or beside it."""
    id_to_store = next(each.intended for each in registered() if each.intended.__name__ == "id_to_store")
    old, transactions, kept = (each.function for each in registered() if each.intended is id_to_store)
    for first, then, producer in ((old, kept, None), (transactions, kept, Producer(1, 0))):
        one, other = composed(id_to_store, [first, then]), composed(id_to_store, [then, first])
        assert one(None, A, 100, producer) == ZERO_ID
        assert other(None, A, 100, producer) == A

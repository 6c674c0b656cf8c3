"""Kafka's faults of one consumer group: a search in the model of the group finds each of them.

The search finds a shortest trace to a property that the fault breaks. It finds one of that length with the fault's
switch alone, and under the profile of each release that has the fault; with all faults fixed it finds none. The traces
are those of ``docs/findings``, and Kafka's own coordinator does the same (``tests/unit/core/test_findings.py``). The
improvements of Kafka 4.4 over 4.3 are found in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest
from shortest import NOW, TOPICS, Ask, Move, Resolve, Search, join, read_events

from fencepost.protocol.consumer_messages import (
    ConsumerGroupHeartbeatRequest,
)
from fencepost.protocol.events import Event, Topic
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3, KAFKA_4_4
from fencepost.protocol.settings import Settings
from fencepost_model.consumer import CanonicalOracle, ConsumerGroupModel, ConsumerHeartbeat, Environment, Image
from fencepost_model.consumer.open import (
    OpenGroup,
    Point,
    elected_assignor_is_used,
    empty_group_is_assigned,
    every_partition_is_owned,
    free_instances_can_be_used,
    group_fits_max_size,
    group_stays_at_rest,
    member_can_restart,
    static_member_can_return,
)

TOPIC = TOPICS[0]


def _matcher(regex: str) -> Callable[[str], bool] | None:
    return lambda name: re.fullmatch(regex, name) is not None


def _system(
    profile: Profile, joins: tuple[ConsumerGroupHeartbeatRequest, ...], settings: Settings, topics: tuple[Topic, ...]
) -> OpenGroup:
    environment = Environment(100_000, Image(topics, 1), oracle=CanonicalOracle(_matcher))
    return OpenGroup(ConsumerGroupModel(settings, profile), environment, joins)


class Fault:
    """A fault of one consumer group.

    - ``switch``: the switch of the profile.
    - ``trace``: the name in ``docs/findings/consumer``, or "" if the shortest trace is not kept.
    - ``joins``, ``holds``: the clients that can meet the fault, and the property.
    - ``length``: the number of steps that break it.
    - ``shown``: the requests that make the fault visible afterwards.
    """

    def __init__(
        self,
        switch: str,
        trace: str,
        joins: tuple[ConsumerGroupHeartbeatRequest, ...],
        holds: Callable[[OpenGroup, Point], bool],
        length: int,
        *shown: ConsumerGroupHeartbeatRequest,
        settings: Settings = NOW,
        topics: tuple[Topic, ...] = (TOPIC,),
    ) -> None:
        self.switch, self.trace, self.joins, self.holds, self.length = switch, trace, joins, holds, length
        self.shown, self.settings, self.topics = shown, settings, topics

    def system(self, profile: Profile) -> OpenGroup:
        return _system(profile, self.joins, self.settings, self.topics)

    def alone(self) -> OpenGroup:
        return self.system(replace(INTENDED, **{self.switch: True}))  # type: ignore[arg-type]


FAULTS = (
    Fault(  # LIV-13, M-TGT-06
        "fault_stale_subscription_type",
        "stale-subscription-type",
        (join("m1"), join("m2"), join("m0", ())),
        every_partition_is_owned,
        4,
    ),
    Fault(  # LIV-15
        "fault_resolved_regex_change_no_bump",
        "unresolved-regex-without-owner",
        (join("m1", None, regex="t"), join("m2", None, regex="t"), join("m2", None, regex="z")),
        every_partition_is_owned,
        4,
    ),
    Fault(  # LIV-16, M-HB-07
        "fault_new_instance_has_no_target",
        "changed-instance-id",
        (join("m1"), join("m1", instance="i1"), join("m2")),
        every_partition_is_owned,
        3,
    ),
    Fault(  # M-STATIC-15, A-UHOM-08
        "fault_replacement_merges_members",
        "merged-members-lose-partitions",
        (join("m1"), join("m2", (), instance="i1"), join("m1", instance="i1")),
        every_partition_is_owned,
        4,
    ),
    Fault(  # M-STATIC-02
        "fault_static_rejoin_unreleased",
        "own-instance-rejected",
        (join("m1", instance="i1"), join("m2", instance="i2")),
        member_can_restart,
        1,
        join("m1", instance="i1"),
    ),
    Fault(  # M-STATIC-13
        "fault_relabelled_instance_stays",
        "former-instance-id-stays-taken",
        (join("m1", instance="i1"), join("m1", instance="i2")),
        free_instances_can_be_used,
        2,
        join("new", instance="i1"),
    ),
    Fault(  # M-HB-15, LIV-17; a heartbeat of either member shows it
        "fault_tied_vote_bumps",
        "",
        (join("m1", vote="range"), join("m2", vote="uniform")),
        group_stays_at_rest,
        2,
    ),
)

_ONE_EACH: Final = (Topic("t", b"1" * 16, 1), Topic("u", b"2" * 16, 1))
_BOTH: Final = ("t", "u")

#: Differences of 4.4 from 4.3 that a property can show.
CHANGES = (
    Fault(  # V-120, M-VAL-28
        "old_full_group_refuses_statics",
        "",
        (join("m1", instance="i1"), join("m2"), join("m3", instance="i1"), join("m2", instance="i1")),
        static_member_can_return,
        3,
        settings=replace(NOW, group_consumer_max_size=2),
    ),
    Fault(  # V-121, M-HB-14: of two topics range gives everything to one member, uniform to each one
        "old_vote_keeps_epoch",
        "",
        (join("m1", _BOTH), join("m1", _BOTH, vote="range"), join("m2", _BOTH)),
        elected_assignor_is_used,
        3,
        topics=_ONE_EACH,
    ),
    Fault(  # V-122, M-LEAVE-08
        "old_emptied_group_keeps_target_epoch",
        "",
        (join("m1"), join("m2")),
        empty_group_is_assigned,
        2,
    ),
)


@pytest.mark.parametrize("fault", [*FAULTS, *CHANGES], ids=lambda fault: fault.switch)
def test_fault_is_found(fault: Fault) -> None:
    """The search finds a trace of this length with the switch alone and under each release that has the fault.

    No trace is shorter, and without the fault there is none.
    """
    trace = fault.alone().shortest_counterexample(fault.holds, fault.length)
    assert trace is not None
    assert len(trace) == fault.length
    for kafka in (KAFKA_4_3, KAFKA_4_4):
        found = fault.system(kafka).shortest_counterexample(fault.holds, fault.length)
        assert (found is not None) is getattr(kafka, fault.switch), kafka.name
    assert fault.system(INTENDED).shortest_counterexample(fault.holds, fault.length + 1) is None


@pytest.mark.parametrize("profile", [KAFKA_4_4, INTENDED], ids=lambda profile: profile.name)
@pytest.mark.parametrize(
    "holds", [elected_assignor_is_used, every_partition_is_owned, group_fits_max_size], ids=lambda each: each.__name__
)
def test_votes_come_and_go(holds: Callable[[OpenGroup, Point], bool], profile: Profile) -> None:
    """Members of a full group leave with their votes and return with others (V-120, V-121).

    Once nothing changes, the elected assignor has assigned every partition.
    """
    joins = (
        join("m1", _BOTH, instance="i1", vote="range"),
        join("m2", _BOTH, instance="i2"),
        join("m3", _BOTH, instance="i1", vote="uniform"),
        join("m4", _BOTH, vote="range"),
    )
    full = replace(NOW, group_consumer_max_size=2)
    assert _system(profile, joins, full, _ONE_EACH).shortest_counterexample(holds, 5) is None


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.trace], ids=lambda fault: fault.trace)
def test_the_trace_is_in_the_findings(fault: Fault) -> None:
    assert read_events(fault.trace) == (NOW, _as_events(fault))


def _as_events(fault: Fault) -> tuple[Event, ...]:
    """Return the shortest trace as events for the whole coordinator of a release."""
    steps = fault.alone().shortest_counterexample(fault.holds, fault.length)
    assert steps is not None
    moves: list[Move] = [Ask(step.body) if isinstance(step, ConsumerHeartbeat) else Resolve() for step in steps]
    return Search(NOW, KAFKA_4_3, ()).again([*moves, *map(Ask, fault.shown)]).events

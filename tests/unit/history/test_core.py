"""The history of what the core writes in random traces tells what the core itself reports and has at the end.

The core's reports of rebalances and its views come from its memory, the history from the bytes of its records.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import pytest

from fencepost import coordinator
from fencepost.protocol.rebalances import GenerationBegan, GroupType, RebalanceEnded, RebalanceStarted
from fencepost.protocol.view import GroupState
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.history.consumer import topic_text
from fencepost_conformance.judge.history.events import GroupHistory, History, Kind
from fencepost_conformance.judge.history.one_pass import history_of
from fencepost_conformance.run.seeds import seed_line, seed_of_run

from .logs import Played, play

#: traces of each protocol in a part; the first part has fixed seeds, the others seeds of this run
TRACES = 12
PARTS = [0, *(pytest.param(part, marks=pytest.mark.all) for part in range(1, 20))]


def seeds_of(part: int, seed: int = 0) -> range:
    first = (seed if part else 0) + part * TRACES
    return range(first, first + TRACES)


@cache
def histories_of(seed: int, protocol: GroupProtocol) -> list[tuple[Played, History]]:
    return [(played, history_of(played.rows, keep_events=True)) for played in play(seed, protocol)]


def starts(played: Played, name: str) -> list[tuple[int, int]]:
    """Return time and epoch of each rebalance of a consumer group."""
    return [
        (at_ms, report.generation)
        for at_ms, _, report in played.reports
        if report.group_id == name and isinstance(report, RebalanceStarted) and report.group_type is GroupType.CONSUMER
    ]


def ends(played: Played, name: str) -> list[tuple[int, int, str]]:
    """Return time, epoch and state of the end of each rebalance. The core may report an end twice."""
    found, under_way = [], None
    for at_ms, _, report in played.reports:
        if report.group_id != name:
            continue
        if isinstance(report, RebalanceStarted):
            under_way = report
        elif isinstance(report, RebalanceEnded) and report.state is not None and under_way is not None:
            found.append((at_ms, report.generation, report.state.value))
            under_way = None
    return found


def ended(group: GroupHistory, loaded: int) -> list[tuple[int, int | None, str]]:
    """Return time, epoch and state of the end of each rebalance that began after the load. A coordinator does not
    report the end of a rebalance whose begin it only loaded."""
    found, reported = [], False
    for each in group.events:
        if each.kind is Kind.BEGAN:
            reported = each.offset >= loaded
        elif each.kind is Kind.ENDED and reported:
            found.append((each.at_ms, each.epoch, each.details))
    return found


def types_of(played: Played, name: str) -> set[GroupType]:
    return {
        each.group_type for _, _, each in played.reports if each.group_id == name and isinstance(each, RebalanceStarted)
    }


def differs_as_consumer(played: Played, name: str, group: GroupHistory) -> list[object]:
    """Return what the core and the history say about a consumer group, where they differ."""
    view = coordinator.consumer_view(played.state, name)
    if view is None:
        return []
    owners = [(topic_text(topic_id), partition) for topic_id, partition, _ in view.partition_epochs]
    members = sorted(each.member_id for each in view.members)
    events = [each for each in group.events if each.offset >= played.loaded]
    # of a rebalance that turns the group into a classic one in the same step, the core reports either kind
    converted = {(each.at_ms, each.epoch) for each in events if each.details == "converted" and each.duration_ms == 0}
    began = [at for each in events if each.kind is Kind.BEGAN and (at := (each.at_ms, each.epoch)) not in converted]
    started = [at for at in starts(played, name) if at not in converted]
    theirs: tuple[object, ...] = (view.group_epoch, members, view.state.value, sorted(owners), started)
    ids = [each.member_id for each in group.members]
    ours: tuple[object, ...] = (group.epoch, ids, group.state, [tuple(place) for place, _ in group.owners], began)
    if types_of(played, name) == {GroupType.CONSUMER}:
        theirs += (ends(played, name),)
        ours += (ended(group, played.loaded),)
    return [] if theirs == ours else [name, theirs, ours]


def differs_as_classic(played: Played, name: str, group: GroupHistory | None) -> list[object]:
    """Return what the core and the history say about the generations of a classic group, where they differ.

    The log has each generation that the core reports as completed. It may have others that began, since a group can
    be in the next rebalance, or the coordinator unloaded, before the core learns that the record is durable.
    """
    view = coordinator.view(played.state, name)
    if view is None or types_of(played, name) - {GroupType.CLASSIC}:
        return []
    completed = {(epoch, state) for _, epoch, state in ends(played, name)}
    reports = [each for _, _, each in played.reports if each.group_id == name]
    began = {each.generation for each in reports if isinstance(each, GenerationBegan | RebalanceEnded)}
    kinds = {Kind.GENERATION: "Stable", Kind.EMPTY: "Empty"}
    events = [each for each in (group.events if group else ()) if each.offset >= played.loaded and each.kind in kinds]
    ours = {(each.epoch, kinds[each.kind]) for each in events}
    extra = {epoch for epoch, _ in ours - completed} - began
    if any(each.kind in (Kind.CONVERTED, Kind.DELETED) for each in (group.events if group else ())):
        extra.clear()  # a consumer group that becomes a classic one has a record of its generation too
    wrong: list[object] = [] if completed <= ours and not extra else [name, completed, ours, began]
    if group is not None and view.state is GroupState.STABLE and group.epoch == view.generation_id:
        members = sorted(each.member_id for each in view.members)
        if members != [each.member_id for each in group.members]:
            wrong += [name, members, group.members]
    return wrong


def differs_in_offsets(played: Played, history: History) -> list[object]:
    """Return the committed offsets that the core has, and those that the history tells, if they differ."""
    theirs = {
        (each.group_id, each.topic, each.partition): each.offset
        for each in coordinator.offsets_view(played.state).committed
    }
    ours = {
        (group.group, row.place.topic, row.place.partition): row.offset
        for group in history.groups
        for row in group.offsets
        if row.offset is not None
    }
    return [] if theirs == ours else [theirs, ours]


def differs(seeds: Iterable[int], protocol: GroupProtocol) -> list[object]:
    """Return where the core and the histories of these traces differ."""
    wrong: list[object] = []
    for seed in seeds:
        for played, history in histories_of(seed, protocol):
            groups = {each.group: each for each in history.groups}
            for name in played.state.groups:
                group = groups.get(name)
                if group is not None:
                    wrong += differs_as_consumer(played, name, group)
                wrong += differs_as_classic(played, name, group)
            wrong += differs_in_offsets(played, history)
    return wrong


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("protocol", list(GroupProtocol))
def test_history_tells_what_the_core_did(protocol: GroupProtocol, part: int) -> None:
    drawn = seed_of_run()
    assert differs(seeds_of(part, drawn), protocol) == [], seed_line(drawn)


def test_a_conversion_begins_no_rebalance() -> None:
    """A group in its first rebalance, which has no record yet, and two empty ones become consumer groups."""
    assert differs((5_000_114, 5_000_265, 1_812_722_550), GroupProtocol.MIXED) == []


@pytest.mark.parametrize(
    ("protocol", "seeds"),
    [
        # a deleted group begins again with epochs that a rebalance from before the load had
        (GroupProtocol.CONSUMER, (771_000_138, 771_000_305, 771_000_782)),
        # the coordinator ignores a load, since it has loaded already; then it writes a generation that began before
        (GroupProtocol.CLASSIC, (880_000_325,)),
        (GroupProtocol.MIXED, (880_001_664,)),
    ],
)
def test_rebalances_that_began_before_a_load_are_distinguished(protocol: GroupProtocol, seeds: tuple[int, ...]) -> None:
    assert differs(seeds, protocol) == []


@pytest.mark.parametrize("protocol", list(GroupProtocol))
def test_core_breaks_no_rule_in_its_log(protocol: GroupProtocol) -> None:
    """Rules about what the broker does; a leader may give a partition to two members (INV-OWN-01)."""
    broken = [
        (seed, each)
        for seed in seeds_of(0)
        for _, history in histories_of(seed, protocol)
        for group in history.groups
        for each in group.events
        if each.kind is Kind.BREACH and each.rule != "INV-OWN-01"
    ]
    assert broken == []

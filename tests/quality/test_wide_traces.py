"""Random traces reach states that plans alone would hardly reach; each kind of state occurs often enough to count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random

import pytest

from fencepost.coordinator.quirks.kernel import may_meet
from fencepost.protocol import events as ev
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.messages import JoinGroupRequest, LeaveGroupRequest
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost.protocol.settings import Settings
from fencepost_conformance.generate.consumer_plan import draw_consumer_plan
from fencepost_conformance.generate.generator import Generated, generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.generate.wide import widened

SEEDS = range(150)
DAY_MS = 86_400_000
_LEADERSHIP = ev.LoadStarted | ev.Load | ev.LoadFailed | ev.Unload


def _steps(trace: Generated) -> Iterator[tuple[ev.Event, bool, bool, int]]:
    """Return each event with the state of the coordinator: whether it is active, whether it loads, and its epoch (-1:
    none)."""
    leads, loads, known = False, False, -1
    for event in trace.events:
        yield event, leads, loads, known
        if isinstance(event, ev.LoadStarted | ev.Load) and event.leader_epoch > known:
            known, loads = event.leader_epoch, not leads
        if isinstance(event, ev.Load) and loads:
            leads, loads = True, False
        elif isinstance(event, ev.LoadFailed):
            loads = False
        elif isinstance(event, ev.Unload) and (event.leader_epoch is None or event.leader_epoch > known):
            leads, loads, known = False, False, -1


def _any_step(holds: Callable[[ev.Event, bool, bool, int], bool]) -> Callable[[Generated], bool]:
    return lambda trace: any(holds(*step) for step in _steps(trace))


def _epoch(event: ev.Event) -> int:
    return getattr(event, "leader_epoch", None) or 0


def _lost_with_tasks(trace: Generated) -> bool:
    under_way: set[ev.TaskKey] = set()
    for event, seen in zip(trace.events, trace.observations, strict=False):
        if isinstance(event, ev.Unload) and under_way:
            return True
        if isinstance(event, ev.TaskDone):
            under_way.discard(event.key)
        under_way |= set(seen.tasks)
    return False


def _lost_at_once(trace: Generated) -> bool:
    """The event follows directly after a step that wrote, so that its operation is pending."""
    return any(
        isinstance(event, ev.Unload) and seen.records
        for seen, event in zip(trace.observations, trace.events[1:], strict=False)
    )


def _failures_in_a_row(trace: Generated) -> bool:
    wrote = [
        isinstance(after, ev.AppendFailed)
        for (_, after), seen in zip(pairwise(trace.events), trace.observations, strict=False)
        if seen.records
    ]
    return any(one and other for one, other in pairwise(wrote))


def _half_cleaned(trace: Generated) -> bool:
    """Return a log in which some keys have several records, and others lack records that the previous coordinator had
    written."""
    written: list[object] = []
    for event, seen in zip(trace.events, trace.observations, strict=False):
        if isinstance(event, ev.Load) and written:
            keys = [record.key for record in event.records]
            kept = {id(record) for record in event.records}
            gone = any(id(record) not in kept for record in written[: len(written) // 2])
            if len(set(keys)) < len(keys) and gone:
                return True
        written += seen.records
    return False


def _texts(trace: Generated) -> Iterator[str]:
    for event in trace.events:
        if isinstance(event, ev.Request):
            yield event.client_id
            yield from (
                value
                for name in ("group_id", "member_id", "group_instance_id", "instance_id", "rack_id")
                if isinstance(value := getattr(event.body, name, None), str)
            )


def _reasons(trace: Generated) -> Iterator[str]:
    for event in trace.events:
        if isinstance(event, ev.Request) and isinstance(event.body, JoinGroupRequest):
            yield event.body.reason or ""
        elif isinstance(event, ev.Request) and isinstance(event.body, LeaveGroupRequest):
            yield from (member.reason or "" for member in event.body.members)


def _one_member_of_two_groups(trace: Generated) -> bool:
    groups: dict[str, set[str]] = {}
    for event in trace.events:
        if isinstance(event, ev.Request) and isinstance(event.body, ConsumerGroupHeartbeatRequest):
            groups.setdefault(event.body.member_id, set()).add(event.body.group_id)
    return any(len(names) > 1 and member for member, names in groups.items())


PLACES: dict[str, tuple[Callable[[Generated], bool], str]] = {
    "an unload at an epoch that is known": (
        _any_step(lambda e, leads, _, known: isinstance(e, ev.Unload) and leads and e.leader_epoch == known), "any"),
    "an unload at an older epoch": (
        _any_step(lambda e, leads, _, known: isinstance(e, ev.Unload) and leads and 0 <= _epoch(e) < known
                  and e.leader_epoch is not None), "any"),
    "an election at an epoch that is known or older": (
        _any_step(lambda e, _, __, known: isinstance(e, ev.LoadStarted | ev.Load) and _epoch(e) <= known), "any"),
    "an election of one who leads": (
        _any_step(lambda e, leads, _, known: isinstance(e, ev.LoadStarted) and leads and _epoch(e) > known), "any"),
    "a load for one who leads": (_any_step(lambda e, leads, *_: isinstance(e, ev.Load) and leads), "any"),
    "an unload while loading": (_any_step(lambda e, _, loads, __: isinstance(e, ev.Unload) and loads), "any"),
    "topics that change while loading": (
        _any_step(lambda e, _, loads, __: isinstance(e, ev.TopicsChanged) and loads), "consumer"),
    "an unload with an open operation": (_lost_at_once, "any"),
    "an unload with work under way": (_lost_with_tasks, "consumer"),
    "work that ends after an unload": (
        _any_step(lambda e, leads, *_: isinstance(e, ev.TaskDone) and not leads), "consumer"),
    "failures in a row": (_failures_in_a_row, "any"),
    "a loss directly after a failure": (
        lambda t: any(isinstance(a, ev.AppendFailed) and isinstance(b, ev.Unload) for a, b in pairwise(t.events)),
        "any"),
    "a log that a cleaner is at work on": (_half_cleaned, "any"),
    "text outside ASCII": (lambda t: not all(text.isascii() for text in _texts(t)), "any"),
    "text beyond the first plane": (lambda t: any(ord(max(text or " ")) > 0xFFFF for text in _texts(t)), "any"),
    "combining marks": (lambda t: any("\u0301" in text for text in _texts(t)), "any"),
    "text that looks empty": (lambda t: any(text and not text.strip("\u200b\ufeff \t\0") for text in _texts(t)), "any"),
    "long ids": (lambda t: any(len(text) > 250 for text in _texts(t)), "any"),
    "long reasons": (lambda t: any(len(reason) > 255 for reason in _reasons(t)), "classic"),
    "Kafka's own settings": (lambda t: t.settings == Settings(), "any"),
    "settings at their ends": (
        lambda t: t.settings.offsets_commit_timeout_ms in (1, 2_147_483_647)
        or t.settings.group_consumer_session_timeout_ms in (2, 2_147_483_647), "any"),
    "a day that passes at once": (
        lambda t: any(b.at_ms - a.at_ms >= DAY_MS for a, b in pairwise(t.events)), "any"),
    "one member id in two groups": (_one_member_of_two_groups, "consumer"),
    "groups whose timers can have one name": (
        lambda t: may_meet({name for seen in t.observations for name in (*seen.groups, *seen.consumer_groups)}), "any"),
}  # fmt: skip


@pytest.fixture(scope="module", params=[*GroupProtocol])
def seen_places(request: pytest.FixtureRequest) -> tuple[GroupProtocol, Counter[str]]:
    found: Counter[str] = Counter()
    for seed in SEEDS:
        trace = generate(seed, KAFKA_4_3, 60, request.param)
        assert trace.failure is None, seed
        found.update(name for name, (holds, _) in PLACES.items() if holds(trace))
    return request.param, found


def test_every_place_is_met(seen_places: tuple[GroupProtocol, Counter[str]]) -> None:
    protocol, found = seen_places
    without = {GroupProtocol.CLASSIC: "consumer", GroupProtocol.CONSUMER: "classic"}.get(protocol)
    wanted = {name for name, (_, whose) in PLACES.items() if whose != without}
    assert {name for name in wanted if found[name] < 2} == set()


def test_a_third_of_the_plans_is_unchanged() -> None:
    plans = [draw_consumer_plan(Random(seed), mixed=True) for seed in range(300)]
    kept = sum(widened(plan, Random(f"x {n}")) == plan for n, plan in enumerate(plans))
    assert 80 < kept < 140

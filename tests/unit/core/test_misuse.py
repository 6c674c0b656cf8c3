"""Mistakes of an embedder: each has a named error, whose sentence says what to do instead."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

import fencepost as f
import fencepost.coordinator

CHOICES: Any = f.RandomChoices()
NEW = f.initial_state(f.Settings(), f.INTENDED)
LOAD = f.Load(0, leader_epoch=1, records=())
LOADED, _ = f.step(NEW, LOAD, CHOICES)
MEMBER = f.member.Member(f.member.MemberSettings("g"))
BEAT = f.messages.HeartbeatRequest("g", generation_id=1, member_id="m")


def request(body: Any) -> f.Request:
    return f.Request(1, id=1, version=4, client_id="c", client_host="/h", body=body)


def beat(**wrong: Any) -> f.Request:
    return request(f.messages.HeartbeatRequest("g", **{"generation_id": 1, "member_id": "m", **wrong}))


def within(ask: Callable[[f.GroupBroker], Awaitable[object] | None]) -> Callable[[], None]:
    """Send a request to an active coordinator."""

    async def run() -> None:
        async with f.GroupBroker(f.MemoryStore()) as groups:
            answer = ask(groups)
            if answer is not None:
                await answer

    return lambda: asyncio.run(run())


async def _after() -> None:
    async with f.GroupBroker(f.MemoryStore()) as groups:
        pass
    await groups.heartbeat(BEAT)


WRONG: dict[str, tuple[Callable[[], object], type[f.MisuseError], str]] = {
    "state-none": (
        lambda: f.step(None, LOAD, CHOICES),
        f.errors.WrongType,
        "state must be a CoordinatorState.*initial_state",
    ),  # type: ignore[arg-type]
    "state-and-event-swapped": (lambda: f.step(LOAD, NEW, CHOICES), f.errors.WrongType, "state must be .* not Load"),  # type: ignore[arg-type]
    "state-and-outcome": (lambda: f.step(f.step(NEW, LOAD, CHOICES), LOAD, CHOICES), f.errors.WrongType, "not tuple"),  # type: ignore[arg-type]
    "choices-none": (
        lambda: f.step(NEW, LOAD, None),
        f.errors.WrongType,
        r"choices has no methods .*RandomChoices\(\)",
    ),  # type: ignore[arg-type]
    "choices-class": (
        lambda: f.step(NEW, LOAD, f.RandomChoices),
        f.errors.WrongType,
        "not the class RandomChoices itself",
    ),  # type: ignore[arg-type]
    "event-text": (lambda: f.step(NEW, "load", CHOICES), f.errors.IllegalEvent, "str is not an event type"),  # type: ignore[arg-type]
    "event-class": (lambda: f.step(NEW, f.Load, CHOICES), f.errors.IllegalEvent, "is not an event type"),  # type: ignore[arg-type]
    "event-body-alone": (lambda: f.step(LOADED, BEAT, CHOICES), f.errors.IllegalEvent, "Request is not an event type"),  # type: ignore[arg-type]
    "body-text": (
        lambda: f.step(LOADED, request("beat"), CHOICES),
        f.errors.IllegalEvent,
        "Request.body must be JoinGroup",
    ),
    "bytes-as-text": (
        lambda: f.step(LOADED, beat(member_id=b"m"), CHOICES),
        f.errors.IllegalEvent,
        "member_id must be str",
    ),
    "number-as-text": (
        lambda: f.step(LOADED, beat(generation_id="1"), CHOICES),
        f.errors.IllegalEvent,
        "must be int, not str",
    ),
    "list-of-records": (
        lambda: f.step(NEW, f.Load(0, leader_epoch=1, records=[]), CHOICES),  # type: ignore[arg-type]
        f.errors.IllegalEvent,
        "Load.records must be tuple or Logged, not list",
    ),
    "profile-name": (
        lambda: f.PROFILES["kafka-3.9"],
        f.errors.NoSuchProfile,
        "no profile 'kafka-3.9'; use one of kafka-4.0,",
    ),
    "profile-text": (
        lambda: f.initial_state(f.Settings(), "intended"),
        f.errors.WrongType,
        "profile must be .*INTENDED",
    ),  # type: ignore[arg-type]
    "settings-table": (
        lambda: f.initial_state({}, f.INTENDED),
        f.errors.WrongType,
        r"settings must be a Settings.*dict",
    ),  # type: ignore[arg-type]
    "functions": (
        lambda: f.initial_state(f.Settings(), f.INTENDED, functions=3),
        f.errors.WrongType,
        "no methods hash64",
    ),  # type: ignore[arg-type]
    "settings": (lambda: f.Settings(group_max_size=0), f.errors.BadSettings, "group_max_size must be >= 1"),
    "view": (lambda: f.coordinator.view("g", NEW), f.errors.WrongType, "state must be .*pass what initial_state"),  # type: ignore[arg-type]
    "views": (lambda: f.coordinator.consumer_views("g"), f.errors.WrongType, "state must be"),  # type: ignore[arg-type]
    "replay-state": (lambda: f.replay([], NEW), f.errors.WrongType, "state must be"),  # type: ignore[arg-type]
    "replay-record": (lambda: f.replay(NEW, [LOAD]), f.errors.WrongType, "a record must be a Record, not Load"),  # type: ignore[list-item]
    "replay-onto-one-that-serves": (lambda: f.replay(LOADED, []), f.errors.WrongState, "does not serve.*initial_state"),
    "field-of-another-version": (
        lambda: f.step(
            LOADED,
            f.Request(1, id=1, version=2, client_id="c", client_host="/h", body=replace(BEAT, group_instance_id="i")),
            CHOICES,
        ),
        f.errors.IllegalEvent,
        r"group_instance_id must be None in version 2, which does not carry it \(got 'i'\)",
    ),
    "number-too-wide": (
        lambda: f.step(LOADED, beat(generation_id=2**31), CHOICES),
        f.errors.IllegalEvent,
        r"generation_id must be an integer of 32 bits, from -2147483648 to 2147483647 \(got 2147483648\)",
    ),
    "store": (
        lambda: f.GroupBroker("log.db"),
        f.errors.WrongType,
        r"store has no methods open, close.*MemoryStore\(\)",
    ),  # type: ignore[arg-type]
    "store-class": (lambda: f.GroupBroker(f.MemoryStore), f.errors.WrongType, "not the class MemoryStore itself"),  # type: ignore[arg-type]
    "member-none": (
        lambda: f.member.step(None, f.member.Poll(0)),
        f.errors.WrongType,
        "member must be a Member.*start with Member",
    ),  # type: ignore[arg-type]
    "member-of-the-other-kind": (
        lambda: f.member.consumer_step(MEMBER, f.member.Poll(0)),
        f.errors.WrongType,
        "be a ConsumerMember",
    ),  # type: ignore[arg-type]
    "member-event-text": (lambda: f.member.step(MEMBER, "poll"), f.errors.IllegalEvent, "str is not a member event"),  # type: ignore[arg-type]
    "member-event-of-a-coordinator": (
        lambda: f.member.step(MEMBER, LOAD),
        f.errors.IllegalEvent,
        "Load is not a member event",
    ),  # type: ignore[arg-type]
    "member-list-of-topics": (
        lambda: f.member.step(MEMBER, f.member.Subscribe(0, ["orders"])),  # type: ignore[arg-type]
        f.errors.IllegalEvent,
        "Subscribe.topics must be frozenset, not list",
    ),
    "member-settings": (
        lambda: f.member.MemberSettings("g", session_timeout_ms=3_000),
        f.errors.BadSettings,
        r"heartbeat_interval_ms must be less than session_timeout_ms \(got 3000 and 3000\)",
    ),
    "aio-settings": (lambda: f.GroupBroker(f.MemoryStore(), {}), f.errors.WrongType, "settings must be"),  # type: ignore[arg-type]
    "aio-after-stop": (lambda: asyncio.run(_after()), f.Stopped, "async with GroupBroker"),
    "aio-not-started": (
        lambda: asyncio.run(f.GroupBroker(f.MemoryStore()).heartbeat(BEAT)),
        f.Stopped,
        "never started",
    ),
    "aio-twice": (within(lambda groups: groups.start()), f.Started, "running already"),
    "aio-body": (
        within(lambda groups: groups.request("x")),
        f.errors.IllegalEvent,
        r"body must be a request \(got str\)",
    ),  # type: ignore[arg-type]
    "aio-other-call": (
        within(lambda groups: groups.leave(BEAT)),
        f.errors.IllegalEvent,
        "body must be a LeaveGroupRequest",
    ),  # type: ignore[arg-type]
    "aio-version": (
        within(lambda groups: groups.request(BEAT, version=9)),
        f.errors.IllegalEvent,
        "no version 9; use one of 0",
    ),
    "aio-topics": (
        within(lambda groups: groups.set_topics(["orders"])),
        f.errors.IllegalEvent,
        r"topics\[0\] must be Topic",
    ),  # type: ignore[list-item]
    "aio-config": (
        within(lambda groups: groups.configure("g", {})),
        f.errors.IllegalEvent,
        "config must be GroupConfig or",
    ),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_has_a_name_and_a_sentence(case: str) -> None:
    mistake, error, sentence = WRONG[case]
    with pytest.raises(f.MisuseError, match=sentence) as raised:
        mistake()
    assert type(raised.value) is error


def test_errors_are_also_the_usual_ones_of_python() -> None:
    pairs = (
        (f.errors.WrongType, TypeError), (f.errors.IllegalEvent, ValueError), (f.errors.BadSettings, ValueError),
        (f.errors.NoSuchProfile, KeyError), (f.Started, RuntimeError),
    )  # fmt: skip
    assert all(issubclass(error, usual) for error, usual in pairs)
    assert f.PROFILES.get("kafka-3.9") is None


def test_numbers_side_by_side_are_named() -> None:
    with pytest.raises(TypeError, match="positional"):
        f.messages.JoinGroupRequest("g", 10_000, 60_000, "", None, "consumer", ())  # type: ignore[misc,call-arg]

"""Consumer groups through the asyncio driver: topics, settings, tasks, and a log that is read again."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.aio import GroupBroker
from fencepost.protocol import consumer_messages as c
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import GroupConfig
from fencepost.protocol.server_assignor import GroupSpec, Target
from fencepost.protocol.settings import BadSettings, Settings
from fencepost.store import MemoryStore

from .consumer_scene import TOPICS, A, B, plain, rows

AT_ONCE = Settings(group_consumer_assignment_interval_ms=0)


def beat(
    member: str, epoch: int, owned: dict[bytes, tuple[int, ...]] | None = None, *, regex: str | None = None
) -> c.ConsumerGroupHeartbeatRequest:
    joins = epoch == 0
    names = ("a",) if joins and regex is None else None
    held = () if joins else None if owned is None else rows(owned)
    return c.ConsumerGroupHeartbeatRequest(
        "g",
        member_id=member,
        member_epoch=epoch,
        rebalance_timeout_ms=30_000 if joins else -1,
        subscribed_topic_names=names,
        subscribed_topic_regex=regex,
        topic_partitions=held,
    )


def test_two_workers_share_a_topic_and_a_new_coordinator_continues() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with asyncio.timeout(30), GroupBroker(store, AT_ONCE) as groups:
            groups.set_topics(TOPICS)
            groups.configure("g", GroupConfig(consumer_heartbeat_interval_ms=6_000))
            first = await groups.consumer_heartbeat(beat("m1", 0))
            assert (plain(first.assignment or ()), first.heartbeat_interval_ms) == ({A: (0, 1, 2, 3)}, 6_000)
            await groups.consumer_heartbeat(beat("m2", 0))
            second_answer = await groups.consumer_heartbeat(beat("m1", first.member_epoch, {A: (0, 1, 2, 3)}))
            kept = plain(second_answer.assignment or ())
            await groups.consumer_heartbeat(beat("m1", second_answer.member_epoch, kept))
        async with asyncio.timeout(30), GroupBroker(store, AT_ONCE) as groups:
            groups.set_topics(TOPICS)
            view = groups.consumer_view("g")
            assert view is not None
            epoch = view.members[1].member_epoch
            rest = await groups.consumer_heartbeat(beat("m2", epoch, {}))
            assert plain(rest.assignment or ()) == {A: tuple(sorted({0, 1, 2, 3} - set(kept[A])))}
            described = await groups.consumer_describe(c.ConsumerGroupDescribeRequest(("g",)))
            assert (described.groups[0].error_code, described.groups[0].group_state) == (ErrorCode.NONE, "Stable")

    asyncio.run(main())


def test_a_regex_is_resolved_behind_the_requests_that_wait() -> None:
    """M-RX-03, M-RX-05."""

    async def main() -> None:
        async with asyncio.timeout(30), GroupBroker(MemoryStore(), AT_ONCE) as groups:
            groups.set_topics(TOPICS)
            answer = await groups.consumer_heartbeat(beat("m1", 0, regex="[ab]"))
            assert plain(answer.assignment or ()) == {}
            for _ in range(100):
                await asyncio.sleep(0)  # the resolution is a task of the event loop
                answer = await groups.consumer_heartbeat(beat("m1", answer.member_epoch, {}))
                if answer.assignment:
                    break
            assert plain(answer.assignment or ()) == {A: (0, 1, 2, 3), B: (0, 1)}

    asyncio.run(main())


def test_the_example_runs_and_never_has_two_owners() -> None:
    source = Path(__file__).parents[3] / "examples" / "embed_consumer.py"
    assert len(source.read_text().splitlines()) < 65
    ran = subprocess.run([sys.executable, source], capture_output=True, text=True, timeout=60, check=True)
    owned: dict[str, list[int]] = {}
    for line in ran.stdout.splitlines():
        name, share = line.partition(": ")[2].split(" works on ")
        owned[name] = json.loads(share)
        taken = [part for parts in owned.values() for part in parts]
        assert len(taken) == len(set(taken)), line
    assert "ada works on [0, 1, 2, 3, 4, 5]\nepoch -1: ada" in ran.stdout


def first_member_gets_all(spec: GroupSpec) -> Target:
    """A server assignor of the host."""
    first = min(spec.members)
    return {first: {topic_id: tuple(range(spec.topics[topic_id])) for topic_id in spec.members[first].topic_ids}}


def test_a_server_assignor_of_the_host_assigns() -> None:
    async def main() -> None:
        settings = replace(AT_ONCE, group_consumer_assignors=("first", "uniform"))
        async with GroupBroker(MemoryStore(), settings, assignors={"first": first_member_gets_all}) as groups:
            groups.set_topics(TOPICS)
            one = await groups.consumer_heartbeat(beat("m1", 0))
            two = await groups.consumer_heartbeat(beat("m2", 0))
            assert plain(one.assignment or ()) == {A: (0, 1, 2, 3)}
            assert (two.error_code, plain(two.assignment or ())) == (ErrorCode.NONE, {})

    asyncio.run(main())


def test_a_configured_assignor_must_exist() -> None:
    settings = Settings(group_consumer_assignors=("uniform", "mine"))
    with pytest.raises(BadSettings, match=r"must contain only uniform, range \(got 'mine'\)"):
        GroupBroker(MemoryStore(), settings)
    GroupBroker(MemoryStore(), settings, assignors={"mine": first_member_gets_all})

"""Joining and leaving: one, two, many, and more than the group may have."""

from __future__ import annotations

import asyncio

from ..stage import Stage
from .scenario import leader_and_follower, quiet, scenario


@scenario(initial_delay_ms=3_000)
async def alone(stage: Stage) -> None:
    """One member joins, stays a while, and leaves."""
    one = await stage.member("one")
    await stage.settled(one)
    await quiet(3)
    await one.close()


@scenario()
async def join_and_leave(stage: Stage) -> None:
    """A second member joins and leaves again."""
    one, two = await leader_and_follower(stage)
    await quiet()
    await two.close()
    await stage.settled(one)
    await one.close()


@scenario(assignors=("roundrobin",))
async def three_at_once(stage: Stage) -> None:
    """Three members start together and the first of them leaves first."""
    members = [await stage.member(name) for name in ("one", "two", "three")]
    await stage.settled(*members)
    await quiet()
    await members[0].close()
    await stage.settled(*members[1:])
    await members[1].close()
    await stage.settled(members[2])
    await members[2].close()


@scenario(initial_delay_ms=3_000)
async def crowd(stage: Stage) -> None:
    """Six members come at once and all leave at once."""
    members = [await stage.member(f"m{n}", poll_interval_ms=10_000) for n in range(6)]
    await stage.settled(*members)
    await quiet(2)
    await asyncio.gather(*[member.close() for member in members])


@scenario(libraries=("confluent-kafka",), initial_delay_ms=3_000)
async def full(stage: Stage) -> None:
    """One member more than the group may have is rejected until another leaves."""
    members = [await stage.member(f"m{n}", poll_interval_ms=10_000) for n in range(7)]
    await stage.settled(*members)
    last = await stage.member("last", poll_interval_ms=10_000)
    await asyncio.sleep(3)
    await members[0].close()
    await stage.settled(*members[1:], last)
    last.crash()
    await asyncio.gather(*[member.close() for member in members[1:]])

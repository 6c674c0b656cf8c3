"""Members that are killed, at chosen moments of a rebalance."""

from __future__ import annotations

import asyncio

from ..stage import Stage
from .scenario import leader_and_follower, quiet, scenario


@scenario()
async def crash(stage: Stage) -> None:
    """One of two members is killed; its session expires."""
    one, two = await leader_and_follower(stage)
    two.crash()
    await stage.settled(one)
    await quiet()
    await one.close()


@scenario()
async def crash_of_leader(stage: Stage) -> None:
    """The first of two members, the leader, is killed."""
    one, two = await leader_and_follower(stage)
    one.crash()
    await stage.settled(two)
    await two.close()


@scenario()
async def crash_of_last(stage: Stage) -> None:
    """The only member is killed; another comes when the group is empty."""
    one = await stage.member("one")
    await stage.settled(one)
    one.crash()
    await asyncio.sleep(8)
    two = await stage.member("two")
    await stage.settled(two)
    await two.close()


@scenario()
async def crash_before_joining(stage: Stage) -> None:
    """A member is killed when it has got its id; a third one has to wait until that id expires."""
    one = await stage.member("one")
    await stage.settled(one)
    stage.crash_at("two", "received", "join_group", 1)
    two = await stage.member("two")
    await two.ended()
    three = await stage.member("three")
    await stage.settled(one, three)
    await three.close()
    await one.close()


@scenario()
async def crash_while_joining(stage: Stage) -> None:
    """A member is killed while its JoinGroup is parked; it gets into the generation and out again."""
    one = await stage.member("one")
    await stage.settled(one)
    stage.crash_at("two", "sent", "join_group", 2)
    two = await stage.member("two")
    await two.ended()
    await quiet(2)
    await stage.settled(one)
    await quiet(6)
    await stage.settled(one)
    await one.close()


async def _leader_killed(stage: Stage, kind: str, api: str) -> None:
    """Kill the leader while it leads the rebalance by which another member joins."""
    one = await stage.member("one")
    await stage.settled(one)
    stage.crash_at("one", kind, api, 1)
    two = await stage.member("two")
    await one.ended()
    await stage.settled(two)
    await two.close()


@scenario()
async def crash_of_leader_before_sync(stage: Stage) -> None:
    """The leader is killed when it has got the list of members; the others wait for its assignment in vain."""
    await _leader_killed(stage, "received", "join_group")


@scenario()
async def crash_of_leader_after_sync(stage: Stage) -> None:
    """The leader is killed when it has sent the assignment."""
    await _leader_killed(stage, "sent", "sync_group")

"""Static members: restarted, replaced, fenced, removed."""

from __future__ import annotations

import asyncio

from ..stage import Stage
from .scenario import quiet, scenario, static_pair


@scenario()
async def static_restart(stage: Stage) -> None:
    """A static member restarts within its session timeout; no rebalance follows."""
    one, two = await static_pair(stage)
    await two.close()
    again = await stage.member("again", instance_id="s2")
    await stage.settled(one, again)
    await quiet()
    await again.close()
    await one.close()
    await asyncio.sleep(7)


@scenario()
async def static_leader_restart(stage: Stage) -> None:
    """The static leader is killed and restarts within its session timeout."""
    one = await stage.member("one", instance_id="s1")
    await stage.settled(one)
    two = await stage.member("two", instance_id="s2")
    await stage.settled(one, two)
    one.crash()
    await one.ended()
    again = await stage.member("again", instance_id="s1")
    await stage.settled(again, two)
    await quiet()
    await again.close()
    await two.close()


@scenario()
async def static_all_restart(stage: Stage) -> None:
    """Every static member restarts, one after the other, as in a rolling upgrade."""
    members = [await stage.member(name, instance_id=name) for name in ("s1", "s2", "s3")]
    await stage.settled(*members)
    for at, member in enumerate(list(members)):
        member.crash()
        await member.ended()
        assert member.config.instance_id is not None
        members[at] = await stage.member(f"{member.config.name}-again", instance_id=member.config.instance_id)
        await stage.settled(*members)
    for member in members:
        await member.close()


@scenario()
async def static_away_too_long(stage: Stage) -> None:
    """A static member stays away for longer than its session timeout, then comes back."""
    one, two = await static_pair(stage)
    two.crash()
    await stage.settled(one)
    again = await stage.member("again", instance_id="s2")
    await stage.settled(one, again)
    await again.close()
    await one.close()


@scenario()
async def static_fenced(stage: Stage) -> None:
    """A second process takes the instance id of a live one, which finds itself fenced."""
    one, two = await static_pair(stage)
    thief = await stage.member("thief", instance_id="s2")
    await thief.owns()
    await asyncio.sleep(3)
    two.crash()
    await quiet()
    await thief.close()
    await one.close()


@scenario()
async def static_crash_while_joining(stage: Stage) -> None:
    """A static member is killed while its first JoinGroup is parked, and restarts at once."""
    one = await stage.member("one", instance_id="s1")
    await stage.settled(one)
    stage.crash_at("two", "sent", "join_group", 1)
    two = await stage.member("two", instance_id="s2")
    await two.ended()
    again = await stage.member("again", instance_id="s2")
    await stage.settled(one, again)
    await again.close()
    await one.close()


@scenario(libraries=("confluent-kafka", "aiokafka", "java"))
async def admin_removal(stage: Stage) -> None:
    """An administrator removes a static member that is alive; it joins again."""
    one, two = await static_pair(stage)
    await stage.administer("remove", stage.group, "s2")
    await quiet(3)
    await stage.settled(one, two)
    await two.close()
    await one.close()

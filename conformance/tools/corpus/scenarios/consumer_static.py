"""Static members of the consumer protocol: restarted, replaced, refused, removed."""

from __future__ import annotations

import asyncio

from ..stage import Stage
from .scenario import CONSUMER, quiet, scenario, static_pair
from .static import admin_removal


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_static_restart(stage: Stage) -> None:
    """A static member closes and restarts within its session timeout; no other member notices."""
    one, two = await static_pair(stage)
    await two.close()
    again = await stage.member("again", instance_id="s2")
    await stage.settled(one, again)
    await stage.describe()
    await quiet()
    await again.close()
    await one.close()
    await asyncio.sleep(7)


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_static_all_restart(stage: Stage) -> None:
    """Every static member closes and restarts, one after the other, as in a rolling upgrade."""
    members = [await stage.member(name, instance_id=name) for name in ("s1", "s2", "s3")]
    await stage.settled(*members)
    for at, member in enumerate(list(members)):
        await member.close()
        assert member.config.instance_id is not None
        members[at] = await stage.member(f"{member.config.name}-again", instance_id=member.config.instance_id)
        await stage.settled(*members)
    for member in members:
        await member.close()


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_static_away_too_long(stage: Stage) -> None:
    """A static member closes and stays away for longer than its session timeout, then comes back."""
    one, two = await static_pair(stage)
    await two.close()
    await stage.settled(one)
    again = await stage.member("again", instance_id="s2")
    await stage.settled(one, again)
    await again.close()
    await one.close()


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_static_unreleased(stage: Stage) -> None:
    """A static member is killed; its successor is rejected until the session of the dead one ends."""
    one, two = await static_pair(stage)
    two.crash()
    again = await stage.member("again", instance_id="s2")
    await quiet(2)
    if again.process.returncode is not None or again.errors:
        again.crash()
        await stage.settled(one)
        again = await stage.member("third", instance_id="s2")
    await stage.settled(one, again)
    await again.close()
    await one.close()


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_static_thief(stage: Stage) -> None:
    """A second process uses the instance id of a live one, and is rejected."""
    one, two = await static_pair(stage)
    thief = await stage.member("thief", instance_id="s2")
    await quiet(3)
    thief.crash()
    await stage.settled(one, two)
    await two.close()
    await one.close()


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_static_new_topics(stage: Stage) -> None:
    """A static member restarts with another subscription."""
    both = list(stage.topics)[:2]
    one, two = await static_pair(stage)
    await two.close()
    again = await stage.member("again", instance_id="s2", topics=both)
    await stage.settled(one, again, topics=both)
    await quiet()
    await again.close()
    await one.close()


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_admin_removal(stage: Stage) -> None:
    """An administrator removes a static member that is alive; it joins again."""
    await admin_removal(stage)

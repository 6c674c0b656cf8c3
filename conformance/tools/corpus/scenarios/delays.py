"""Members that are stopped, poll too late, or are slow to give up their partitions."""

from __future__ import annotations

from ..stage import Stage
from .scenario import leader_and_follower, scenario


@scenario()
async def freeze(stage: Stage) -> None:
    """One of two members is stopped past its session timeout, continues, and finds itself fenced."""
    one, two = await leader_and_follower(stage)
    two.freeze()
    await stage.settled(one)
    two.thaw()
    await stage.settled(one, two)
    await two.close()
    await one.close()


@scenario()
async def stall(stage: Stage) -> None:
    """One of two members does not poll for longer than its poll interval, then continues."""
    one, two = await leader_and_follower(stage, poll_interval_ms=6_000)
    await two.say("stall 9")
    await stage.settled(one)
    await stage.settled(one, two)
    await two.close()
    await one.close()


@scenario()
async def stall_through_rebalance(stage: Stage) -> None:
    """A member does not poll while another joins; the rebalance continues without it."""
    one = await stage.member("one", poll_interval_ms=6_000)
    await stage.settled(one)
    await one.say("stall 11")
    two = await stage.member("two", poll_interval_ms=6_000)
    await stage.settled(two)
    await stage.settled(one, two)
    await one.close()
    await stage.settled(two)
    await two.close()


@scenario()
async def slow_member(stage: Stage) -> None:
    """One of three members is slow to give up its partitions, and all wait for it."""
    one = await stage.member("one")
    two = await stage.member("two")
    await stage.settled(one, two)
    await two.say("slow 2")
    three = await stage.member("three")
    await stage.settled(one, two, three)
    await two.say("slow 0")
    for member in (three, two, one):
        await member.close()

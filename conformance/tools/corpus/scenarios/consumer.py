"""The consumer protocol (KIP-848): joining, leaving, crashing, stopping, and being slow.

Where the members do the same as in a scenario of the classic protocol, that scenario is played.
"""

from __future__ import annotations

import asyncio

from ..stage import Stage
from .crashes import crash_of_last
from .delays import freeze, stall
from .membership import alone
from .scenario import CONSUMER, leader_and_follower, quiet, scenario


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_alone(stage: Stage) -> None:
    """One member joins, stays a while, and leaves."""
    await alone(stage)


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_join_and_leave(stage: Stage) -> None:
    """A second member joins and leaves again."""
    one, two = await leader_and_follower(stage)
    await stage.describe()
    await quiet()
    await two.close()
    await stage.settled(one)
    await one.close()
    await stage.describe()


@scenario(CONSUMER, ("range",), protocol="consumer")
async def consumer_three_at_once(stage: Stage) -> None:
    """Three members with the broker's range assignor start together; the first of them leaves first."""
    members = [await stage.member(name) for name in ("one", "two", "three")]
    await stage.settled(*members)
    await quiet(2)
    await stage.describe()
    await members[0].close()
    await stage.settled(*members[1:])
    await members[1].close()
    await stage.settled(members[2])
    await members[2].close()


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_crash(stage: Stage) -> None:
    """One of three members is killed; its session expires."""
    members = [await stage.member(name) for name in ("one", "two", "three")]
    await stage.settled(*members)
    members[1].crash()
    await stage.settled(members[0], members[2])
    await quiet()
    await stage.describe()
    await members[2].close()
    await stage.settled(members[0])
    await members[0].close()


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_crash_of_last(stage: Stage) -> None:
    """The only member is killed; another comes when the group is empty."""
    await crash_of_last(stage)


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_crash_while_joining(stage: Stage) -> None:
    """A member is killed while its first heartbeat is on the way; it gets partitions and never knows."""
    one = await stage.member("one")
    await stage.settled(one)
    stage.crash_at("two", "sent", "consumer_group_heartbeat", 1)
    two = await stage.member("two")
    await two.ended()
    await quiet(9)
    await stage.settled(one)
    await one.close()


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_crash_while_revoking(stage: Stage) -> None:
    """A member that must give up partitions is killed before it does; they are freed when its session ends."""
    one = await stage.member("one")
    await stage.settled(one)
    await one.say("slow 4")
    two = await stage.member("two")
    await quiet(2.5)
    one.crash()
    await stage.settled(two)
    await two.close()


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_freeze(stage: Stage) -> None:
    """One of two members is stopped past its session timeout, continues, and finds itself unknown."""
    await freeze(stage)


@scenario(("java",), ("uniform",), protocol="consumer")
async def consumer_stall(stage: Stage) -> None:
    """One of two members does not poll for longer than its poll interval, then continues."""
    await stall(stage)


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_slow_member(stage: Stage) -> None:
    """A member is slow to give up its partitions; the new one waits for them."""
    one, two = await leader_and_follower(stage)
    await one.say("slow 2")
    await two.say("slow 2")
    three = await stage.member("three")
    await stage.settled(one, two, three)
    await one.say("slow 0")
    await two.say("slow 0")
    for member in (three, two, one):
        await member.close()


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_too_slow_member(stage: Stage) -> None:
    """A member takes longer to give up its partitions than its rebalance timeout allows, and is fenced."""
    one = await stage.member("one", poll_interval_ms=6_000)
    await stage.settled(one)
    await one.say("slow 9")
    two = await stage.member("two", poll_interval_ms=6_000)
    await stage.settled(two)
    await one.say("slow 0")
    await stage.settled(one, two)
    await one.close()
    await two.close()


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_crowd(stage: Stage) -> None:
    """Six members come at once, one of them is killed, and all leave at once."""
    members = [await stage.member(f"m{n}") for n in range(6)]
    await stage.settled(*members)
    await quiet(2)
    members[3].crash()
    rest = [member for member in members if member is not members[3]]
    await stage.settled(*rest)
    await asyncio.gather(*[member.close() for member in rest])


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_full(stage: Stage) -> None:
    """One member more than the group may have is rejected."""
    members = [await stage.member(f"m{n}", poll_interval_ms=10_000) for n in range(7)]
    await stage.settled(*members)
    last = await stage.member("last", poll_interval_ms=10_000)
    await asyncio.sleep(3)
    last.crash()
    await asyncio.gather(*[member.close() for member in members])

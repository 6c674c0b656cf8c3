"""Reasons to rejoin, and votes on assignors."""

from __future__ import annotations

import asyncio

from ..stage import Player, Stage
from .scenario import leader_and_follower, quiet, scenario


async def subscribe_in_turn(stage: Stage) -> tuple[Player, Player]:
    """Two members of one topic; the second, then the first, subscribes to another as well."""
    both = list(stage.topics)[:2]
    one, two = await leader_and_follower(stage)
    await two.say(f"subscribe {','.join(both)}")
    await stage.settled(one, two, topics=both)
    await one.say(f"subscribe {','.join(both)}")
    await quiet(4)
    await stage.settled(one, two, topics=both)
    return one, two


@scenario(libraries=("confluent-kafka", "aiokafka", "java"))
async def subscription_change(stage: Stage) -> None:
    """A follower, then the leader, subscribes to more topics."""
    one, two = await subscribe_in_turn(stage)
    await two.close()
    await one.close()


@scenario(libraries=("confluent-kafka", "kafka-python", "java"))
async def unsubscribe(stage: Stage) -> None:
    """A member unsubscribes, stays alive, and subscribes again."""
    one = await stage.member("one")
    two = await stage.member("two")
    await stage.settled(one, two)
    await two.say("unsubscribe")
    await stage.settled(one)
    await quiet()
    await two.say(f"subscribe {stage.topic}")
    await stage.settled(one, two)
    await two.close()
    await one.close()


@scenario(libraries=("confluent-kafka", "aiokafka", "java"))
async def more_partitions(stage: Stage) -> None:
    """The topic gets more partitions; the leader sees it and asks for a rebalance."""
    one = await stage.member("one")
    two = await stage.member("two")
    await stage.settled(one, two)
    await stage.administer("grow", stage.topic, "12")
    await stage.settled(one, two, topics=[stage.topic], partitions=12)
    await two.close()
    await one.close()


@scenario()
async def other_assignors(stage: Stage) -> None:
    """Members with different lists of assignors; the vote selects the common one, then another."""
    one = await stage.member("one", assignors=("range", "roundrobin"))
    await stage.settled(one)
    two = await stage.member("two", assignors=("roundrobin",))
    await stage.settled(one, two)
    await one.close()
    await stage.settled(two)
    three = await stage.member("three", assignors=("roundrobin", "range"))
    await stage.settled(two, three)
    await two.close()
    await three.close()


@scenario()
async def no_common_assignor(stage: Stage) -> None:
    """A member that shares no assignor with the group is rejected."""
    one = await stage.member("one", assignors=("range",))
    await stage.settled(one)
    two = await stage.member("two", assignors=("roundrobin",))
    await asyncio.sleep(4)
    two.crash()
    await quiet()
    await one.close()

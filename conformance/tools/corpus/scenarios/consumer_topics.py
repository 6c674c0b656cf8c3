"""Subscriptions of the consumer protocol: changed, by regular expression, to topics that are created and grow."""

from __future__ import annotations

from ..stage import Stage
from .rejoining import subscribe_in_turn, unsubscribe
from .scenario import CONSUMER, leader_and_follower, quiet, scenario


def _pattern(stage: Stage, letters: str = "a-z") -> str:
    """Return a regular expression that matches this stage's topics only."""
    return f"^{stage.group}-[{letters}]$"


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_subscription_change(stage: Stage) -> None:
    """Members subscribe to more topics one after the other, and one to fewer."""
    both = list(stage.topics)[:2]
    one, two = await subscribe_in_turn(stage)
    await two.say(f"subscribe {both[1]}")
    await quiet(4)
    await stage.settled(one, two, topics=both)
    await two.close()
    await one.close()


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_unsubscribe(stage: Stage) -> None:
    """A member unsubscribes, stays alive, and subscribes again."""
    await unsubscribe(stage)


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_more_partitions(stage: Stage) -> None:
    """The topic gets more partitions while two members consume it."""
    one, two = await leader_and_follower(stage)
    await stage.administer("grow", stage.topic, "12")
    await stage.settled(one, two, topics=[stage.topic], partitions=12)
    await stage.describe()
    await two.close()
    await one.close()


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_topic_to_come(stage: Stage) -> None:
    """Two members subscribe to a topic that is created only later."""
    late = f"{stage.group}-late"
    one = await stage.member("one", topics=[stage.topic, late])
    two = await stage.member("two", topics=[stage.topic, late])
    await stage.settled(one, two)
    await quiet()
    await stage.create_topic(late, 4)
    await stage.settled(one, two, topics=[stage.topic, late])
    await two.close()
    await one.close()


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_regex(stage: Stage) -> None:
    """Two members subscribe to a regular expression; a topic that matches it is created."""
    both = list(stage.topics)[:2]
    one = await stage.member("one", topics=[_pattern(stage)])
    await stage.settled(one, topics=both)
    two = await stage.member("two", topics=[_pattern(stage)])
    await stage.settled(one, two, topics=both)
    await quiet(10)
    await stage.create_topic(f"{stage.group}-c", 4)
    await stage.settled(one, two, topics=[*both, f"{stage.group}-c"])
    await two.close()
    await one.close()


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_regex_change(stage: Stage) -> None:
    """A member changes from one regular expression to another, beside one that subscribes by name."""
    both = list(stage.topics)[:2]
    one = await stage.member("one")
    two = await stage.member("two", topics=[_pattern(stage, "b")])
    await stage.settled(one, two, topics=both)
    await quiet(2)
    await two.say(f"subscribe {_pattern(stage, 'ab')}")
    await quiet(12)
    await stage.settled(one, two, topics=both)
    await two.close()
    await one.close()


@scenario(("confluent-kafka",), ("uniform",), protocol="consumer")
async def consumer_names_to_regex(stage: Stage) -> None:
    """A member changes from names to a regular expression."""
    both = list(stage.topics)[:2]
    one, two = await leader_and_follower(stage)
    await two.say(f"subscribe {_pattern(stage, 'b')}")
    await stage.settled(one, two, topics=both)
    await two.close()
    await one.close()


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def consumer_regex_crash(stage: Stage) -> None:
    """One of two members with a regular expression is killed."""
    both = list(stage.topics)[:2]
    one = await stage.member("one", topics=[_pattern(stage)])
    two = await stage.member("two", topics=[_pattern(stage)])
    await stage.settled(one, two, topics=both)
    two.crash()
    await stage.settled(one, topics=both)
    await one.close()

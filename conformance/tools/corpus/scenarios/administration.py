"""An administrator's tools beside consumers; they use other APIs and topic ids."""

from __future__ import annotations

import asyncio

from ..stage import Stage
from .scenario import CONSUMER, quiet, scenario

#: Records in each of the eight partitions of the first topic.
_EACH = 3


async def _monitored(stage: Stage) -> None:
    await stage.monitor()
    await stage.fill(_EACH)
    one = await stage.member("one", auto_commit=False)
    await stage.settled(one)
    await one.reads(8 * _EACH)
    await one.does("commit")
    await stage.monitor()
    two = await stage.member("two", auto_commit=False)
    await stage.settled(one, two)
    await stage.fill(1)
    await quiet()
    await one.does("commit")
    await two.does("commit")
    await stage.monitor()
    await two.close()
    await stage.settled(one)
    await one.close()
    await stage.monitor()


async def _made_again(stage: Stage) -> None:
    for records in (_EACH, 2):
        await stage.fill(records)
        one = await stage.member("one", auto_commit=False)
        await stage.settled(one)
        await one.reads(8 * records)
        await one.does("commit")
        await stage.monitor()
        await one.close()
        await stage.administer("drop", stage.topic)
        await asyncio.sleep(2)
        await stage.monitor()
        await stage.create_topic(stage.topic, 8)
    await stage.monitor()


@scenario(libraries=("java", "confluent-kafka", "aiokafka"), topics_before=True)
async def monitored(stage: Stage) -> None:
    """A tool asks for the group by both APIs, and for its offsets by name and by id; its topics exist before"""
    await _monitored(stage)


@scenario(libraries=CONSUMER, assignors=("uniform",), protocol="consumer", topics_before=True)
async def consumer_monitored(stage: Stage) -> None:
    """A tool asks for the group by both APIs, and for its offsets by name and by id; its topics exist before"""
    await _monitored(stage)


@scenario(libraries=("java", "aiokafka"))
async def topic_made_again(stage: Stage) -> None:
    """A topic is deleted and created again, twice; a tool reads the offsets committed for each of them"""
    await _made_again(stage)


@scenario(libraries=CONSUMER, assignors=("uniform",), protocol="consumer")
async def consumer_topic_made_again(stage: Stage) -> None:
    """A topic is deleted and created again, twice; a tool reads the offsets committed for each of them"""
    await _made_again(stage)

"""Offsets: commits of a member, the member that resumes from them, and an administrator's changes."""

from __future__ import annotations

import asyncio

from ..stage import Player, Stage
from .scenario import ALL, CONSUMER, COOPERATIVE, leader_and_follower, quiet, scenario

#: Records in each of the eight partitions of the first topic.
_EACH = 5


async def _reader(stage: Stage, name: str, *, auto_commit: bool = False, reset: str = "earliest") -> Player:
    """Start a member that owns all partitions, and commits only on command unless ``auto_commit`` is set."""
    player = await stage.member(name, auto_commit=auto_commit, reset=reset)
    await stage.settled(player)
    return player


async def _commit_and_resume(stage: Stage) -> None:
    await stage.fill(_EACH)
    one = await _reader(stage, "one")
    await one.reads(8 * _EACH)
    await one.does("commit")
    await one.close()
    await stage.fill(1)
    two = await _reader(stage, "two")
    await two.reads(8)
    await two.does("commit")
    await two.close()


async def _crash_before_commit(stage: Stage) -> None:
    await stage.fill(_EACH)
    one = await _reader(stage, "one")
    await one.reads(8 * _EACH)
    await one.does("commit")
    await stage.fill(_EACH)
    await one.reads(16 * _EACH)
    one.crash()
    await one.ended()
    two = await _reader(stage, "two")
    await two.reads(8 * _EACH)  # records that were processed but not committed come again
    await two.does("commit")
    await two.close()


async def _seek_back(stage: Stage) -> None:
    await stage.fill(_EACH)
    one = await _reader(stage, "one")
    await one.reads(8 * _EACH)
    await one.does("commit")
    await one.does("seek 2")
    await one.reads(8 * (2 * _EACH - 2))
    await one.does("seek 1")
    await one.does("commit")  # any position that the library has by now
    await quiet()
    await one.does("commit")
    await one.close()
    two = await _reader(stage, "two")
    await quiet()
    await two.close()


async def _auto_commit(stage: Stage) -> None:
    await stage.fill(_EACH)
    one = await _reader(stage, "one", auto_commit=True)
    await one.reads(8 * _EACH)
    await quiet(2)
    await stage.fill(2)
    two = await stage.member("two")
    await stage.settled(one, two)
    await quiet(2)
    await one.close()
    await stage.settled(two)
    await quiet(2)
    await two.close()


async def _pause(stage: Stage) -> None:
    await stage.fill(_EACH)
    one = await _reader(stage, "one", auto_commit=True)
    await one.reads(8 * _EACH)
    await one.does("pause")
    await stage.fill(3)
    await quiet(2)
    await one.does("resume")
    await one.reads(8 * (_EACH + 3))
    await quiet()
    await one.close()


@scenario()
async def commit_and_resume(stage: Stage) -> None:
    """A member reads, commits and leaves; the next one begins where it ended"""
    await _commit_and_resume(stage)


@scenario(libraries=CONSUMER, assignors=("uniform",), protocol="consumer")
async def consumer_commit_and_resume(stage: Stage) -> None:
    """A member reads, commits and leaves; the next one begins where it ended"""
    await _commit_and_resume(stage)


@scenario()
async def crash_before_commit(stage: Stage) -> None:
    """A member crashes between processing and commit; uncommitted records come again"""
    await _crash_before_commit(stage)


@scenario(libraries=CONSUMER, assignors=("uniform",), protocol="consumer")
async def consumer_crash_before_commit(stage: Stage) -> None:
    """A member crashes between processing and commit; uncommitted records come again"""
    await _crash_before_commit(stage)


@scenario(seeks=True)
async def seek_back(stage: Stage) -> None:
    """A member seeks back and commits less than before"""
    await _seek_back(stage)


@scenario(libraries=CONSUMER, assignors=("uniform",), protocol="consumer", seeks=True)
async def consumer_seek_back(stage: Stage) -> None:
    """A member seeks back and commits less than before"""
    await _seek_back(stage)


@scenario()
async def auto_commit(stage: Stage) -> None:
    """Two members commit automatically, and hand partitions over"""
    await _auto_commit(stage)


@scenario(libraries=CONSUMER, assignors=("uniform",), protocol="consumer")
async def consumer_auto_commit(stage: Stage) -> None:
    """Two members commit automatically, and hand partitions over"""
    await _auto_commit(stage)


@scenario(libraries=COOPERATIVE)
async def pause_and_resume(stage: Stage) -> None:
    """A member pauses all its partitions, and resumes later"""
    await _pause(stage)


@scenario(libraries=CONSUMER, assignors=("uniform",), protocol="consumer")
async def consumer_pause_and_resume(stage: Stage) -> None:
    """A member pauses all its partitions, and resumes later"""
    await _pause(stage)


@scenario()
async def reset_to_latest(stage: Stage) -> None:
    """Without a committed offset a member begins at the end, and commits that"""
    await stage.fill(_EACH)
    one = await _reader(stage, "one", reset="latest")
    await quiet()
    await stage.fill(1)
    await one.reads(1)
    await one.does("commit")
    await one.close()


@scenario(libraries=("kafka-python", "java"))
async def reset_refused(stage: Stage) -> None:
    """Without a committed offset and a reset policy a member gets an error, until an administrator commits an offset"""
    await stage.fill(_EACH)
    one = await stage.member("one", auto_commit=False, reset="none")
    await one.fails()
    await one.close()
    await stage.administer("alter", stage.group, stage.topic, "8", "3")
    two = await stage.member("two", auto_commit=False, reset="none")
    await two.reads(8 * (_EACH - 3))
    await two.does("commit")
    await two.close()


@scenario()
async def altered(stage: Stage) -> None:
    """An administrator moves an empty group back, and tries it while there is a member"""
    await stage.fill(_EACH)
    one = await _reader(stage, "one")
    await one.reads(8 * _EACH)
    await one.does("commit")
    await stage.administer("alter", stage.group, stage.topic, "8", "0")
    await one.close()
    await stage.administer("alter", stage.group, stage.topic, "8", "2")
    two = await _reader(stage, "two")
    await two.reads(8 * (_EACH - 2))
    await two.does("commit")
    await two.close()


@scenario(libraries=("java", "aiokafka"))
async def forgotten(stage: Stage) -> None:
    """An administrator deletes the offsets of an empty group; the next member starts from the beginning"""
    await stage.fill(_EACH)
    one = await _reader(stage, "one")
    await one.reads(8 * _EACH)
    await one.does("commit")
    await stage.administer("forget", stage.group, stage.topic, "8")
    await one.close()
    await stage.administer("forget", stage.group, stage.topic, "8")
    two = await _reader(stage, "two")
    await two.reads(8 * _EACH)
    await two.does("commit")
    await two.close()


@scenario(libraries=("java", "confluent-kafka"))
async def group_deleted(stage: Stage) -> None:
    """An empty group is deleted with its offsets"""
    await stage.fill(_EACH)
    one = await _reader(stage, "one")
    await one.reads(8 * _EACH)
    await one.does("commit")
    await stage.administer("delete", stage.group)
    await one.close()
    await stage.administer("delete", stage.group)
    two = await _reader(stage, "two")
    await two.reads(8 * _EACH)
    await two.close()


@scenario(libraries=("java", "kafka-python"))
async def topic_deleted(stage: Stage) -> None:
    """A topic is deleted while it has committed offsets, and is created again"""
    await stage.fill(_EACH)
    one = await _reader(stage, "one")
    await one.reads(8 * _EACH)
    await one.does("commit")
    await one.close()
    await stage.administer("drop", stage.topic)
    await asyncio.sleep(2)
    await stage.create_topic(stage.topic, 8)
    await stage.fill(2)
    two = await _reader(stage, "two")
    await two.reads(8 * 2)
    await two.does("commit")
    await two.close()


@scenario(libraries=ALL)
async def handed_over(stage: Stage) -> None:
    """A second member takes half of the partitions, with their committed offsets"""
    await stage.fill(_EACH)
    one, two = await leader_and_follower(stage)
    await stage.fill(_EACH)
    await quiet(2)
    await two.close()
    await stage.settled(one)
    await stage.fill(1)
    await quiet()
    await one.close()


async def _broker_restarted(stage: Stage) -> None:
    await stage.fill(_EACH)
    one = await _reader(stage, "one")
    await one.reads(8 * _EACH)
    await one.does("commit")
    await stage.restart_broker()
    await stage.fill(2)
    await one.reads(8 * (_EACH + 2))
    await quiet(2)
    await one.does("commit")
    await one.close()
    two = await _reader(stage, "two")
    await quiet()
    await two.close()


@scenario(libraries=("java", "confluent-kafka"), own_broker=True)
async def broker_restarted(stage: Stage) -> None:
    """The broker is killed and started again while a member reads and commits"""
    await _broker_restarted(stage)


@scenario(libraries=CONSUMER, assignors=("uniform",), protocol="consumer", own_broker=True)
async def consumer_broker_restarted(stage: Stage) -> None:
    """The broker is killed and started again while a member reads and commits"""
    await _broker_restarted(stage)


@scenario(libraries=CONSUMER)
async def offsets_of_a_roll(stage: Stage) -> None:
    """A group is rolled from the classic protocol to the other one and back, and its offsets stay"""
    await stage.fill(_EACH)
    one = await _reader(stage, "one", auto_commit=True)
    await one.reads(8 * _EACH)
    await quiet()
    two = await stage.member("two", protocol="consumer")
    await stage.settled(one, two)
    await one.close()
    await stage.settled(two)
    await stage.fill(2)
    await two.reads(8 * 2)
    await quiet()
    three = await stage.member("three")
    await stage.settled(two, three)
    await two.close()
    await stage.settled(three)
    await stage.fill(1)
    await three.reads(8)
    await quiet()
    await three.close()

"""Consume, transform, produce: offsets that are committed with a transaction, or not."""

from __future__ import annotations

from ..stage import Player, Stage
from .scenario import ALL, CONSUMER, quiet, scenario

_EACH = 3


async def _reader(stage: Stage, name: str, transactional_id: str = "t") -> Player:
    """Start a member that owns all partitions and has read them."""
    player = await stage.member(name, auto_commit=False, transactional_id=f"{stage.group}-{transactional_id}")
    await stage.settled(player)
    return player


async def _committed(stage: Stage) -> None:
    await stage.fill(_EACH)
    one = await _reader(stage, "one")
    await one.reads(8 * _EACH)
    for _ in range(2):
        await one.does("transact begin")
        await one.does("transact commit")
        await stage.fill(1)
        await quiet()
    await one.close()
    two = await _reader(stage, "two")
    await two.reads(8)
    await two.close()


async def _aborted(stage: Stage) -> None:
    await stage.fill(_EACH)
    one = await _reader(stage, "one")
    await one.reads(8 * _EACH)
    await one.does("transact begin")
    await one.does("transact abort")
    await one.close()
    two = await _reader(stage, "two")
    await two.reads(8 * _EACH)  # nothing was committed
    await two.does("transact begin")
    await two.does("transact commit")
    await two.close()


async def _fenced(stage: Stage) -> None:
    await stage.fill(_EACH)
    one = await _reader(stage, "one")
    await one.reads(8 * _EACH)
    await one.does("transact begin")
    two = await stage.member("two", auto_commit=False, transactional_id=f"{stage.group}-t")
    await stage.settled(one, two)
    await one.does("transact commit")  # the other has taken its transactional id
    await quiet()
    one.crash()
    await one.ended()
    await stage.settled(two)
    await two.reads(8 * _EACH)
    await two.does("transact begin")
    await two.does("transact commit")
    await two.close()


async def _left_open(stage: Stage) -> None:
    await stage.fill(_EACH)
    one = await _reader(stage, "one")
    await one.reads(8 * _EACH)
    await one.does("transact begin")
    one.crash()
    await one.ended()
    two = await stage.member("two", auto_commit=False)
    await quiet(8)  # it waits for the transaction's offsets
    three = await stage.member("three", auto_commit=False, transactional_id=f"{stage.group}-t")  # aborts it
    await stage.settled(two, three)
    await quiet()
    await three.close()
    await stage.settled(two)
    await two.close()


@scenario(libraries=ALL)
async def transaction_committed(stage: Stage) -> None:
    """Offsets are committed with two transactions"""
    await _committed(stage)


@scenario(libraries=CONSUMER, assignors=("uniform",), protocol="consumer")
async def consumer_transaction_committed(stage: Stage) -> None:
    """Offsets are committed with two transactions"""
    await _committed(stage)


@scenario(libraries=ALL)
async def transaction_aborted(stage: Stage) -> None:
    """The offsets of an aborted transaction are not committed"""
    await _aborted(stage)


@scenario(libraries=CONSUMER, assignors=("uniform",), protocol="consumer")
async def consumer_transaction_aborted(stage: Stage) -> None:
    """The offsets of an aborted transaction are not committed"""
    await _aborted(stage)


@scenario(libraries=ALL)
async def producer_fenced(stage: Stage) -> None:
    """A producer whose transactional id another took cannot end its transaction"""
    await _fenced(stage)


@scenario(libraries=CONSUMER, assignors=("uniform",), protocol="consumer")
async def consumer_producer_fenced(stage: Stage) -> None:
    """A producer whose transactional id another took cannot end its transaction"""
    await _fenced(stage)


@scenario(libraries=("java", "confluent-kafka"))
async def transaction_left_open(stage: Stage) -> None:
    """A member crashes within its transaction; the next one waits for the offsets until the transaction is aborted"""
    await _left_open(stage)

"""Numbers that a program passes to a worker: each has bounds, and the error names value and bound."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fencepost.aio import GroupBroker
from fencepost.member import MemberSettings
from fencepost.member.consumer import ConsumerSettings
from fencepost.protocol.events import Topic
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.settings import BadSettings
from fencepost.store import MemoryStore, SQLiteStore, Store
from fencepost.work.share import Share

HERE, THERE = TopicPartition("orders", 0), TopicPartition("orders", 1)
OWNED = frozenset((HERE, THERE))
GREATEST = 2**63 - 1


class Kept:
    """A link that accepts every commit."""

    def __init__(self) -> None:
        self.offsets: dict[TopicPartition, int] = {}

    async def commit(self, share: Share, offsets: Mapping[TopicPartition, int], metadata: str) -> None:
        self.offsets.update(offsets)

    async def committed(self, share: Share) -> dict[TopicPartition, int]:
        return self.offsets


@pytest.mark.parametrize("number", [-(2**63) - 1, -(2**63), -5, -1, GREATEST + 1, 2**70])
@pytest.mark.parametrize("place", [0, 1])
def test_an_offset_has_bounds(number: int, place: int) -> None:
    """Any one of several offsets; then nothing is committed."""
    kept = Kept()
    offsets = dict(zip((HERE, THERE), (number, 5) if place == 0 else (5, number), strict=True))
    message = rf"the offset of orders-{place} must be from 0 to {GREATEST} \(got {number}\)"
    with pytest.raises(ValueError, match=message):
        asyncio.run(Share(kept, OWNED, OWNED).commit(offsets))
    assert kept.offsets == {}


@pytest.mark.parametrize("wrong", ["5", 5.0, None, True])
def test_an_offset_is_an_integer(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"the offset of orders-0 must be an int \(got "):
        asyncio.run(Share(Kept(), OWNED, OWNED).commit({HERE: wrong}))


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_the_greatest_and_the_least_offset_are_committed(kind: str, tmp_path: Path) -> None:
    async def main(store: Store) -> None:
        async with GroupBroker(store) as groups:
            groups.set_topics([Topic("orders", bytes(15) + b"\1", 2)])
            async with groups.worker("g", ["orders"]) as worker:
                share = await anext(worker)
                for number in (0, 1, GREATEST):
                    await share.commit({HERE: number, THERE: number - 1} if number else {HERE: 0})
                    assert (await share.committed())[HERE] == number
                with pytest.raises(ValueError, match="got 1180591620717411303424"):
                    await share.commit({HERE: 2**70})
                assert share.held
                assert await share.committed() == {HERE: GREATEST, THERE: GREATEST - 1}

    store = MemoryStore(1) if kind == "memory" else SQLiteStore(tmp_path / "groups.db", 1)
    asyncio.run(main(store))


TIMES = [
    (MemberSettings, name)
    for name in ("max_poll_interval_ms", "request_timeout_ms", "session_timeout_ms", "retry_backoff_ms")
] + [(ConsumerSettings, "max_poll_interval_ms"), (ConsumerSettings, "retry_backoff_max_ms")]


@pytest.mark.parametrize(("kind", "name"), TIMES, ids=lambda each: getattr(each, "__name__", each))
def test_a_time_of_a_member_has_bounds(kind: Any, name: str) -> None:
    for wrong in (-1, 2**31, "5s", 1.5, True, None):
        with pytest.raises(BadSettings, match=rf"{name} must be an integer from \d to 2147483647 \(got "):
            kind("g", **{name: wrong})
    assert getattr(kind("g", **{name: 2**31 - 1}), name) == 2**31 - 1


def test_a_poll_interval_of_no_time_is_refused() -> None:
    """Kafka's consumer allows 1 and more; a member with 0 would leave immediately and permanently."""
    with pytest.raises(BadSettings, match=r"max_poll_interval_ms must be an integer from 1 to 2147483647 \(got 0\)"):
        ConsumerSettings("g", max_poll_interval_ms=0)

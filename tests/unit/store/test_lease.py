"""Leadership among the nodes on one database: one leader at a time, each in a new epoch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from fencepost.store import NodeInUse, Peer, PostgresLease, PostgresStore

from .postgres import Postgres


def play(postgres: Postgres, schema: str, scene: Callable[..., Awaitable[None]], *, seconds: float = 2.0) -> None:
    """Run with two leases, of nodes 1 and 2."""

    async def main() -> None:
        async with PostgresStore(postgres.where, 1, schema=schema):
            leases = [PostgresLease(postgres.where, number, seconds, schema=schema) for number in (1, 2)]
            for each in leases:
                await each.open()
            try:
                await scene(*leases)
            finally:
                for each in leases:
                    await each.close()

    asyncio.run(main())


def test_one_leads_until_its_lease_is_over_and_each_claim_is_a_new_epoch(postgres: Postgres) -> None:
    async def scene(one: PostgresLease, two: PostgresLease) -> None:
        assert (await one.beat()).leader is None
        assert await one.claim() == 1
        assert await two.claim() is None
        assert ((await two.beat()).leader, (await two.beat()).epoch) == (1, 1)
        for _ in range(4):
            await asyncio.sleep(0.6)
            assert await one.renew(1)
            assert await two.claim() is None
        while (await two.beat()).leader is not None:
            await asyncio.sleep(0.05)
        assert await two.claim() == 2
        assert not await one.renew(1)
        assert await one.claim() is None
        await two.release(2)
        assert await one.claim() == 3
        await two.release(2)  # too late: it no longer leads
        assert (await two.beat()).leader == 1

    play(postgres, "lease one", scene)


def test_a_single_concurrent_claim_wins(postgres: Postgres) -> None:
    async def scene(one: PostgresLease, two: PostgresLease) -> None:
        for epoch in range(1, 9):
            found = await asyncio.gather(*[each.claim() for each in (one, two, one, two)])
            assert [each for each in found if each is not None] == [epoch]
            await asyncio.gather(one.release(epoch), two.release(epoch))

    play(postgres, "lease race", scene)


def test_nodes_that_live_are_known_and_a_number_is_of_one(postgres: Postgres) -> None:
    async def scene(one: PostgresLease, two: PostgresLease) -> None:
        await one.join("a", 1)
        await two.join("b", 2)
        assert (await one.beat()).peers == (Peer(1, "a", 1), Peer(2, "b", 2))
        again = PostgresLease(postgres.where, 1, 2.0, schema="lease nodes")
        await again.open()
        with pytest.raises(NodeInUse, match="node 1 is already live at a:1"):
            await again.join("c", 3)
        await again.join("a", 1)  # started again: no other process can listen there
        await asyncio.sleep(2.1)
        await one.beat()  # the previous lease has no effect any longer
        assert (await two.beat()).peers == (Peer(2, "b", 2),)
        await again.beat()
        assert [each.node_id for each in (await two.beat()).peers] == [1, 2]
        await again.close()
        assert len({await each.producer_id() for each in (one, two) for _ in range(5)}) == 10

    play(postgres, "lease nodes", scene)

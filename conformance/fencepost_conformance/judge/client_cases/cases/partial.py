"""Assignments of KIP-848 that come in parts: other members still have the rest."""

from __future__ import annotations

from typing import Any

from ..case import client_case
from ..companion import Companion
from ..stage import ClientRun, Stage


async def _first_part(stage: Stage) -> tuple[Companion, Companion, ClientRun]:
    """Return two members that the suite plays, and a client with the first part of its assignment. The first member has
    given up a partition; the second one keeps its own while ``keeps`` is set."""
    await stage.broker(partitions=6)
    one, other = await stage.companion(), await stage.companion()
    await one.join()
    await one.owns(6)
    await other.join()
    await one.owns(3)
    await other.owns(3)
    other.keeps = True
    client = await stage.start(protocol="consumer")
    await client.assigned(1)
    await client.settled()
    return one, other, client


@client_case("client.partial.1", "N-REC-01", "N-REC-08", "N-HB-05", "M-REC-16")
async def an_assignment_in_two_parts(stage: Stage) -> None:
    """A client joins a consumer group of two members that the suite plays. One gives up a partition at once, the other
    later. The client acknowledges, reads and commits the first while it waits for the second, and then has both."""
    _, other, client = await _first_part(stage)
    await client.until(lambda: _acknowledged(client), "a heartbeat that acknowledges the first part of the assignment")
    other.keeps = False
    await client.assigned(2)
    await client.reads()
    await stage.works(client)


def _acknowledged(client: ClientRun) -> bool:
    reports: list[Any] = [line.body.get("topic_partitions") or [] for line in client.sent("ConsumerGroupHeartbeat")]
    return any(sum(len(row["partitions"]) for row in rows) == 1 for rows in reports)


@client_case("client.partial.2", "N-REC-01", "N-HB-06", "N-TR-04")
async def an_assignment_without_partitions(stage: Stage) -> None:
    """A client joins a consumer group whose only partition belongs to a member that the suite plays. The client is
    assigned nothing, and stays a member. When the other one leaves, the client is assigned the partition."""
    await stage.broker(partitions=1)
    other = await stage.companion()
    await other.join()
    await other.owns(1)
    client = await stage.start(protocol="consumer")
    await client.until(lambda: client.assignment() == set(), "a member that joins, and is assigned nothing")
    await client.stays(1.5 * stage.session_s)
    await other.leave()
    await client.assigned(1)
    await client.reads()
    await stage.works(client)


@client_case("client.partial.3", "N-REC-01", "N-REC-06", "N-REC-07", "N-REC-08")
async def another_assignment_before_the_last_part(stage: Stage) -> None:
    """A client waits for the second part of its assignment, when the member leaves that gave up the first part. The
    client is assigned and reads more, while the other member still keeps its own, and has three in the end."""
    one, other, client = await _first_part(stage)
    await one.leave()
    await client.until(
        lambda: len(client.assignment() or ()) > 1, "a member that acts as one until it is assigned more"
    )
    await client.reads()
    other.keeps = False
    await client.assigned(3)
    await client.reads()
    await stage.works(client)

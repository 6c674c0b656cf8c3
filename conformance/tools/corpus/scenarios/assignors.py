"""Sticky and cooperative assignors, and different libraries in one group."""

from __future__ import annotations

from collections.abc import Sequence

from ..stage import Stage
from .scenario import ALL, COOPERATIVE, STICKY, leader_and_follower, quiet, scenario


@scenario(libraries=STICKY, assignors=("sticky",))
async def sticky(stage: Stage) -> None:
    """Members with the sticky assignor join, leave and come back."""
    one = await stage.member("one")
    two = await stage.member("two")
    await stage.settled(one, two)
    three = await stage.member("three")
    await stage.settled(one, two, three)
    await two.close()
    await stage.settled(one, three)
    await three.close()
    await one.close()


@scenario(libraries=COOPERATIVE, assignors=("cooperative-sticky",))
async def cooperative(stage: Stage) -> None:
    """Cooperative members join one after the other and leave."""
    one, two = await leader_and_follower(stage)
    three = await stage.member("three")
    await stage.settled(one, two, three)
    await quiet()
    await one.close()
    await stage.settled(two, three)
    await two.close()
    await stage.settled(three)
    await three.close()


@scenario(libraries=COOPERATIVE, assignors=("cooperative-sticky",))
async def cooperative_crash(stage: Stage) -> None:
    """One of three cooperative members is killed."""
    members = [await stage.member(name) for name in ("one", "two", "three")]
    await stage.settled(*members)
    members[1].crash()
    await stage.settled(members[0], members[2])
    await members[2].close()
    await stage.settled(members[0])
    await members[0].close()


async def _one_after_the_other(stage: Stage, libraries: Sequence[str]) -> None:
    """Let a member of each library join, then let them leave, the first one first."""
    members = []
    for library in libraries:
        members.append(await stage.member(library, library=library))
        await stage.settled(*members)
    await quiet()
    for member in list(members):
        await member.close()
        members.remove(member)
        if members:
            await stage.settled(*members)


@scenario(libraries=("mixed",), assignors=("cooperative-sticky",))
async def cooperative_of_each(stage: Stage) -> None:
    """Cooperative members of different libraries in one group."""
    await _one_after_the_other(stage, COOPERATIVE)


@scenario(libraries=("mixed",))
async def one_of_each(stage: Stage) -> None:
    """A member of each library in one group."""
    await _one_after_the_other(stage, ALL)


@scenario(libraries=("mixed",))
async def one_of_each_crash(stage: Stage) -> None:
    """A member of each library in one group; two are killed."""
    members = [await stage.member(library, library=library) for library in ALL]
    await stage.settled(*members)
    members[0].crash()
    members[3].crash()
    await stage.settled(*members[1:3])
    for member in members[1:3]:
        await member.close()

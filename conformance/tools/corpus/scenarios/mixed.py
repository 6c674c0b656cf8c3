"""Groups with members of both protocols: rolled from one to the other and back, while members crash and stop."""

from __future__ import annotations

from ..stage import Stage
from .scenario import CONSUMER, quiet, scenario

#: The libraries that roll a group: one, or a different one for each member.
ROLLED = (*CONSUMER, "mixed")


def _library(stage: Stage, place: int) -> str:
    return stage.library if stage.library != "mixed" else ("java", "confluent-kafka", "java")[place % 3]


async def _roll(stage: Stage, first: str, second: str, *, back: bool = False) -> None:
    """Close three members of one protocol and restart them one by one with the other."""
    members = [await stage.member(f"{first}-{n}", protocol=first, library=_library(stage, n)) for n in range(3)]
    await stage.settled(*members)
    await quiet()
    for turn, protocol in enumerate((second, first) if back else (second,)):
        for at, member in enumerate(list(members)):
            await member.close()
            rest = [other for other in members if other is not member]
            await stage.settled(*rest)
            name = f"{protocol}-{at}" + "-again" * turn
            members[at] = await stage.member(name, protocol=protocol, library=_library(stage, at))
            await stage.settled(*members)
    await quiet()
    for at, member in enumerate(members):
        await member.close()
        if members[at + 1 :]:
            await stage.settled(*members[at + 1 :])


@scenario(ROLLED)
async def roll_up(stage: Stage) -> None:
    """Three classic members are replaced one by one by members with the consumer protocol."""
    await _roll(stage, "classic", "consumer")


@scenario(ROLLED, ("uniform",), protocol="consumer")
async def roll_down(stage: Stage) -> None:
    """Three members with the consumer protocol are replaced one by one by classic ones."""
    await _roll(stage, "consumer", "classic")


@scenario(ROLLED)
async def roll_up_and_back(stage: Stage) -> None:
    """Three classic members are rolled to the consumer protocol and back."""
    await _roll(stage, "classic", "consumer", back=True)


@scenario(("java",), ("cooperative-sticky",))
async def roll_cooperative(stage: Stage) -> None:
    """Three cooperative classic members are rolled to the consumer protocol and back."""
    await _roll(stage, "classic", "consumer", back=True)


@scenario(CONSUMER)
async def roll_up_static(stage: Stage) -> None:
    """Static classic members are killed and restarted one by one with the consumer protocol."""
    members = [await stage.member(f"classic-{n}", instance_id=f"s{n}") for n in range(2)]
    await stage.settled(*members)
    for at, member in enumerate(list(members)):
        member.crash()
        await member.ended()
        members[at] = await stage.member(f"consumer-{at}", instance_id=f"s{at}", protocol="consumer")
        await stage.settled(*members)
    await quiet()
    for member in members:
        await member.close()


@scenario(CONSUMER, ("uniform",), protocol="consumer")
async def roll_down_static(stage: Stage) -> None:
    """Static members with the consumer protocol are closed and restarted one by one with the classic one."""
    members = [await stage.member(f"consumer-{n}", instance_id=f"s{n}") for n in range(2)]
    await stage.settled(*members)
    for at, member in enumerate(list(members)):
        await member.close()
        members[at] = await stage.member(f"classic-{at}", instance_id=f"s{at}", protocol="classic")
        await stage.settled(*members)
    await quiet()
    for member in members:
        await member.close()


@scenario(ROLLED)
async def mixed_crash(stage: Stage) -> None:
    """A group of both protocols loses a classic member, then one of the other protocol, by SIGKILL."""
    members = []
    for place in range(4):
        protocol = ("classic", "consumer")[place % 2]
        members.append(await stage.member(f"m{place}", protocol=protocol, library=_library(stage, place // 2)))
        await stage.settled(*members)
    members[0].crash()
    await stage.settled(*members[1:])
    members[1].crash()
    await stage.settled(*members[2:])
    await quiet()
    await members[3].close()
    await stage.settled(members[2])
    await members[2].close()


@scenario(("java",))
async def mixed_at_once(stage: Stage) -> None:
    """Members of both protocols come at once; the group is converted during its first rebalance."""
    members = [await stage.member(f"m{n}", protocol=("classic", "consumer")[n % 2]) for n in range(4)]
    await stage.settled(*members)
    await quiet()
    for member in members:
        await member.close()


@scenario(CONSUMER)
async def mixed_freeze(stage: Stage) -> None:
    """In a group of both protocols each member is stopped past its session timeout, and comes back."""
    one = await stage.member("one")
    two = await stage.member("two", protocol="consumer")
    three = await stage.member("three", protocol="consumer")
    await stage.settled(one, two, three)
    one.freeze()
    await stage.settled(two, three)
    one.thaw()
    await stage.settled(one, two, three)
    two.freeze()
    await stage.settled(one, three)
    two.thaw()
    await stage.settled(one, two, three)
    for member in (one, three, two):
        await member.close()


@scenario(CONSUMER)
async def mixed_stall(stage: Stage) -> None:
    """A classic member does not poll while one with the consumer protocol joins; it is fenced and returns."""
    one = await stage.member("one", poll_interval_ms=6_000)
    await stage.settled(one)
    await one.say("stall 11")
    two = await stage.member("two", protocol="consumer")
    await stage.settled(two)
    await stage.settled(one, two)
    await one.close()
    await stage.settled(two)
    await two.close()


@scenario(CONSUMER)
async def mixed_subscription_change(stage: Stage) -> None:
    """Members of both protocols subscribe to another topic as well, and the topic grows."""
    both = list(stage.topics)[:2]
    one = await stage.member("one")
    two = await stage.member("two", protocol="consumer")
    await stage.settled(one, two)
    await two.say(f"subscribe {','.join(both)}")
    await stage.settled(one, two, topics=both)
    await one.say(f"subscribe {','.join(both)}")
    await quiet(3)
    await stage.settled(one, two, topics=both)
    await stage.administer("grow", both[0], "12")
    await quiet(3)
    await two.close()
    await quiet(2)
    await one.close()


@scenario(ROLLED, ("uniform",), protocol="consumer")
async def mixed_guest(stage: Stage) -> None:
    """A classic member joins a group of the consumer protocol as a guest, and leaves again."""
    one = await stage.member("one", library=_library(stage, 0))
    two = await stage.member("two", library=_library(stage, 1))
    await stage.settled(one, two)
    guest = await stage.member("guest", protocol="classic", library=_library(stage, 2))
    await stage.settled(one, two, guest)
    await stage.describe()
    await quiet()
    await guest.close()
    await stage.settled(one, two)
    await one.close()
    await two.close()

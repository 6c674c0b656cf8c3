"""What the members of a recorded group do. Each scenario ends with every member gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from .stage import Stage

PYTHON = ("confluent-kafka", "kafka-python", "aiokafka")
ALL = (*PYTHON, "java")
#: aiokafka has no cooperative assignor.
COOPERATIVE = ("confluent-kafka", "kafka-python", "java")
#: librdkafka's sticky assignor is its cooperative one.
STICKY = ("kafka-python", "aiokafka", "java")


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    play: Callable[[Stage], Awaitable[None]]
    libraries: tuple[str, ...]
    assignors: tuple[str, ...]
    about: str
    initial_delay_ms: int  #: of the broker

    @property
    def title(self) -> str:
        return self.name.replace("_", "-")


SCENARIOS: dict[str, Scenario] = {}
_Play = Callable[[Stage], Awaitable[None]]


def scenario(
    libraries: tuple[str, ...] = ALL, assignors: tuple[str, ...] = ("range",), initial_delay_ms: int = 500
) -> Callable[[_Play], _Play]:
    def register(play: _Play) -> _Play:
        name = getattr(play, "__name__", "")
        about = (play.__doc__ or "").strip().removesuffix(".")
        SCENARIOS[name] = Scenario(name, play, libraries, assignors, about, initial_delay_ms)
        return play

    return register


async def _quiet(seconds: float = 1.2) -> None:
    """Let some heartbeats pass."""
    await asyncio.sleep(seconds)


@scenario(initial_delay_ms=3_000)
async def alone(stage: Stage) -> None:
    """One member joins, stays a while, and leaves."""
    one = await stage.member("one")
    await stage.settled(one)
    await _quiet(3)
    await one.close()


@scenario()
async def join_and_leave(stage: Stage) -> None:
    """A second member joins and leaves again."""
    one = await stage.member("one")
    await stage.settled(one)
    two = await stage.member("two")
    await stage.settled(one, two)
    await _quiet()
    await two.close()
    await stage.settled(one)
    await one.close()


@scenario(assignors=("roundrobin",))
async def three_at_once(stage: Stage) -> None:
    """Three members start together and the first of them leaves first."""
    members = [await stage.member(name) for name in ("one", "two", "three")]
    await stage.settled(*members)
    await _quiet()
    await members[0].close()
    await stage.settled(*members[1:])
    await members[1].close()
    await stage.settled(members[2])
    await members[2].close()


@scenario()
async def crash(stage: Stage) -> None:
    """One of two members is killed; its session runs out."""
    one = await stage.member("one")
    await stage.settled(one)
    two = await stage.member("two")
    await stage.settled(one, two)
    two.crash()
    await stage.settled(one)
    await _quiet()
    await one.close()


@scenario()
async def crash_of_leader(stage: Stage) -> None:
    """The first of two members, the leader, is killed."""
    one = await stage.member("one")
    await stage.settled(one)
    two = await stage.member("two")
    await stage.settled(one, two)
    one.crash()
    await stage.settled(two)
    await two.close()


@scenario()
async def crash_of_last(stage: Stage) -> None:
    """The only member is killed; another comes when the group is empty."""
    one = await stage.member("one")
    await stage.settled(one)
    one.crash()
    await asyncio.sleep(8)
    two = await stage.member("two")
    await stage.settled(two)
    await two.close()


@scenario()
async def freeze(stage: Stage) -> None:
    """One of two members is stopped past its session timeout, goes on, and finds itself fenced."""
    one = await stage.member("one")
    await stage.settled(one)
    two = await stage.member("two")
    await stage.settled(one, two)
    two.freeze()
    await stage.settled(one)
    two.thaw()
    await stage.settled(one, two)
    await two.close()
    await one.close()


@scenario()
async def stall(stage: Stage) -> None:
    """One of two members does not poll for longer than its poll interval, then goes on."""
    one = await stage.member("one", poll_interval_ms=6_000)
    await stage.settled(one)
    two = await stage.member("two", poll_interval_ms=6_000)
    await stage.settled(one, two)
    await two.say("stall 9")
    await stage.settled(one)
    await stage.settled(one, two)
    await two.close()
    await one.close()


@scenario()
async def stall_through_rebalance(stage: Stage) -> None:
    """A member does not poll while another joins; the rebalance goes on without it."""
    one = await stage.member("one", poll_interval_ms=6_000)
    await stage.settled(one)
    await one.say("stall 11")
    two = await stage.member("two", poll_interval_ms=6_000)
    await stage.settled(two)
    await stage.settled(one, two)
    await one.close()
    await stage.settled(two)
    await two.close()


@scenario()
async def slow_member(stage: Stage) -> None:
    """One of three members is slow to give up its partitions, and all wait for it."""
    one = await stage.member("one")
    two = await stage.member("two")
    await stage.settled(one, two)
    await two.say("slow 2")
    three = await stage.member("three")
    await stage.settled(one, two, three)
    await two.say("slow 0")
    for member in (three, two, one):
        await member.close()


@scenario()
async def static_restart(stage: Stage) -> None:
    """A static member restarts within its session timeout; no rebalance follows."""
    one = await stage.member("one", instance_id="s1")
    two = await stage.member("two", instance_id="s2")
    await stage.settled(one, two)
    await two.close()
    again = await stage.member("again", instance_id="s2")
    await stage.settled(one, again)
    await _quiet()
    await again.close()
    await one.close()
    await asyncio.sleep(7)


@scenario()
async def static_leader_restart(stage: Stage) -> None:
    """The static leader is killed and restarts within its session timeout."""
    one = await stage.member("one", instance_id="s1")
    await stage.settled(one)
    two = await stage.member("two", instance_id="s2")
    await stage.settled(one, two)
    one.crash()
    await one.ended()
    again = await stage.member("again", instance_id="s1")
    await stage.settled(again, two)
    await _quiet()
    await again.close()
    await two.close()


@scenario()
async def static_away_too_long(stage: Stage) -> None:
    """A static member stays away for longer than its session timeout, then comes back."""
    one = await stage.member("one", instance_id="s1")
    two = await stage.member("two", instance_id="s2")
    await stage.settled(one, two)
    two.crash()
    await stage.settled(one)
    again = await stage.member("again", instance_id="s2")
    await stage.settled(one, again)
    await again.close()
    await one.close()


@scenario()
async def static_fenced(stage: Stage) -> None:
    """A second process takes the instance id of a live one, which finds itself fenced."""
    one = await stage.member("one", instance_id="s1")
    two = await stage.member("two", instance_id="s2")
    await stage.settled(one, two)
    thief = await stage.member("thief", instance_id="s2")
    await thief.owns()
    await asyncio.sleep(3)
    two.crash()
    await _quiet()
    await thief.close()
    await one.close()


@scenario(libraries=("confluent-kafka", "aiokafka", "java"))
async def subscription_change(stage: Stage) -> None:
    """A follower, then the leader, subscribes to more topics."""
    both = list(stage.topics)[:2]
    one = await stage.member("one")
    await stage.settled(one)
    two = await stage.member("two")
    await stage.settled(one, two)
    await two.say(f"subscribe {','.join(both)}")
    await stage.settled(one, two, topics=both)
    await one.say(f"subscribe {','.join(both)}")
    await _quiet(4)
    await stage.settled(one, two, topics=both)
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
    await _quiet()
    await two.say(f"subscribe {stage.topic}")
    await stage.settled(one, two)
    await two.close()
    await one.close()


@scenario(libraries=COOPERATIVE, assignors=("cooperative-sticky",))
async def cooperative(stage: Stage) -> None:
    """Cooperative members join one after the other and leave."""
    one = await stage.member("one")
    await stage.settled(one)
    two = await stage.member("two")
    await stage.settled(one, two)
    three = await stage.member("three")
    await stage.settled(one, two, three)
    await _quiet()
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


@scenario()
async def other_assignors(stage: Stage) -> None:
    """Members with different lists of assignors; the vote falls on the common one, then on another."""
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
    """A member that shares no assignor with the group is refused."""
    one = await stage.member("one", assignors=("range",))
    await stage.settled(one)
    two = await stage.member("two", assignors=("roundrobin",))
    await asyncio.sleep(4)
    two.crash()
    await _quiet()
    await one.close()


@scenario()
async def crash_before_joining(stage: Stage) -> None:
    """A member is killed when it was given its id; a third one has to wait for that id to run out."""
    one = await stage.member("one")
    await stage.settled(one)
    stage.crash_at("two", "received", "join_group", 1)
    two = await stage.member("two")
    await two.ended()
    three = await stage.member("three")
    await stage.settled(one, three)
    await three.close()
    await one.close()


@scenario()
async def crash_while_joining(stage: Stage) -> None:
    """A member is killed while its JoinGroup is parked; it gets into the generation and out again."""
    one = await stage.member("one")
    await stage.settled(one)
    stage.crash_at("two", "sent", "join_group", 2)
    two = await stage.member("two")
    await two.ended()
    await _quiet(2)
    await stage.settled(one)
    await _quiet(6)
    await stage.settled(one)
    await one.close()


@scenario()
async def crash_of_leader_before_sync(stage: Stage) -> None:
    """The leader is killed when it was given the members; the others wait for its assignment in vain."""
    one = await stage.member("one")
    await stage.settled(one)
    stage.crash_at("one", "received", "join_group", 1)
    two = await stage.member("two")
    await one.ended()
    await stage.settled(two)
    await two.close()


@scenario()
async def crash_of_leader_after_sync(stage: Stage) -> None:
    """The leader is killed when it has sent the assignment."""
    one = await stage.member("one")
    await stage.settled(one)
    stage.crash_at("one", "sent", "sync_group", 1)
    two = await stage.member("two")
    await one.ended()
    await stage.settled(two)
    await two.close()


@scenario()
async def static_crash_while_joining(stage: Stage) -> None:
    """A static member is killed while its first JoinGroup is parked, and restarts at once."""
    one = await stage.member("one", instance_id="s1")
    await stage.settled(one)
    stage.crash_at("two", "sent", "join_group", 1)
    two = await stage.member("two", instance_id="s2")
    await two.ended()
    again = await stage.member("again", instance_id="s2")
    await stage.settled(one, again)
    await again.close()
    await one.close()


@scenario()
async def static_all_restart(stage: Stage) -> None:
    """Every static member restarts, one after the other, as in a rolling upgrade."""
    members = [await stage.member(name, instance_id=name) for name in ("s1", "s2", "s3")]
    await stage.settled(*members)
    for at, member in enumerate(list(members)):
        member.crash()
        await member.ended()
        assert member.config.instance_id is not None
        members[at] = await stage.member(f"{member.config.name}-again", instance_id=member.config.instance_id)
        await stage.settled(*members)
    for member in members:
        await member.close()


@scenario(libraries=("confluent-kafka", "aiokafka", "java"))
async def admin_removal(stage: Stage) -> None:
    """An administrator removes a static member that is alive; it joins again."""
    one = await stage.member("one", instance_id="s1")
    two = await stage.member("two", instance_id="s2")
    await stage.settled(one, two)
    await stage.administer("remove", stage.group, "s2")
    await _quiet(3)
    await stage.settled(one, two)
    await two.close()
    await one.close()


@scenario(libraries=("confluent-kafka", "kafka-python"))
async def deletion(stage: Stage) -> None:
    """An administrator deletes the group: in vain while it is alive, then when it is empty; it begins anew."""
    one = await stage.member("one")
    await stage.settled(one)
    await stage.administer("delete", stage.group)
    await one.close()
    await stage.administer("delete", stage.group)
    two = await stage.member("two")
    await stage.settled(two)
    await two.close()


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


@scenario(libraries=("kafka-python",))
async def old_versions(stage: Stage) -> None:
    """Members that speak versions in which a member joins without being given an id first."""
    one = await stage.member("one", api_version="1.0")
    await stage.settled(one)
    two = await stage.member("two", api_version="1.0")
    await stage.settled(one, two)
    three = await stage.member("three")
    await stage.settled(one, two, three)
    two.crash()
    await stage.settled(one, three)
    await one.close()
    await stage.settled(three)
    await three.close()


@scenario(libraries=("confluent-kafka",), initial_delay_ms=3_000)
async def full(stage: Stage) -> None:
    """One member more than the group may have is refused until another leaves."""
    members = [await stage.member(f"m{n}", poll_interval_ms=10_000) for n in range(7)]
    await stage.settled(*members)
    last = await stage.member("last", poll_interval_ms=10_000)
    await asyncio.sleep(3)
    await members[0].close()
    await stage.settled(*members[1:], last)
    last.crash()
    await asyncio.gather(*[member.close() for member in members[1:]])


@scenario(initial_delay_ms=3_000)
async def crowd(stage: Stage) -> None:
    """Six members come at once and all go at once."""
    members = [await stage.member(f"m{n}", poll_interval_ms=10_000) for n in range(6)]
    await stage.settled(*members)
    await _quiet(2)
    await asyncio.gather(*[member.close() for member in members])


@scenario(libraries=("mixed",))
async def one_of_each(stage: Stage) -> None:
    """A member of each library in one group."""
    members = []
    for library in ALL:
        members.append(await stage.member(library, library=library))
        await stage.settled(*members)
    await _quiet()
    for member in list(members):
        await member.close()
        members.remove(member)
        if members:
            await stage.settled(*members)


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


@scenario(libraries=("mixed",), assignors=("cooperative-sticky",))
async def cooperative_of_each(stage: Stage) -> None:
    """Cooperative members of different libraries in one group."""
    members = []
    for library in COOPERATIVE:
        members.append(await stage.member(library, library=library))
        await stage.settled(*members)
    await _quiet()
    for member in list(members):
        await member.close()
        members.remove(member)
        if members:
            await stage.settled(*members)

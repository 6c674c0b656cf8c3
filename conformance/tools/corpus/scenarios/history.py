"""Groups with a past: older versions of the protocol, a group that is deleted and created again."""

from __future__ import annotations

from ..stage import Stage
from .scenario import leader_and_follower, scenario


@scenario(libraries=("kafka-python",))
async def old_versions(stage: Stage) -> None:
    """Members that use versions in which a member joins without getting an id first."""
    one, two = await leader_and_follower(stage, api_version="1.0")
    three = await stage.member("three")
    await stage.settled(one, two, three)
    two.crash()
    await stage.settled(one, three)
    await one.close()
    await stage.settled(three)
    await three.close()


@scenario(libraries=("confluent-kafka", "kafka-python"))
async def deletion(stage: Stage) -> None:
    """An administrator deletes the group: in vain while it has members, then when it is empty; a new one begins."""
    one = await stage.member("one")
    await stage.settled(one)
    await stage.administer("delete", stage.group)
    await one.close()
    await stage.administer("delete", stage.group)
    two = await stage.member("two")
    await stage.settled(two)
    await two.close()

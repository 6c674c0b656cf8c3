"""A broker that is judged under the profile of another release than its own: the output names the one that fits."""

from __future__ import annotations

from typing import Any

import pytest

from fencepost.protocol.profiles import KAFKA_4_0, KAFKA_4_4
from fencepost.protocol.settings import Settings
from fencepost_conformance.common.addresses import Address
from fencepost_conformance.judge.cases.catalogue import chosen
from fencepost_conformance.judge.cases.peer import BrokerUnderTest
from fencepost_conformance.judge.cases.play import Ending, play, play_all
from fencepost_conformance.run.commands.other_release import advice
from fencepost_server.faults import Fault, Plan

from .served import play as in_loop
from .served import running

SETTINGS = Settings(group_initial_rebalance_delay_ms=200)


@pytest.mark.parametrize(
    ("names", "faults", "said"),
    [
        (["offsets.commit.23", "offsets.commit.24"], (), "passes under profile kafka-4."),
        (
            ["offsets.commit.24", "classic.heartbeat.3"],
            (Fault(do="error", api="heartbeat", code="NOT_COORDINATOR"),),
            "",
        ),
        (["classic.heartbeat.6"], (), ""),
    ],
)
def test_the_profile_is_named_that_explains_every_failure(
    names: list[str], faults: tuple[Fault, ...], said: str
) -> None:
    async def session() -> None:
        async with running(settings=SETTINGS, profile=KAFKA_4_0, faults=Plan(faults)) as ready:
            broker = BrokerUnderTest(Address(ready.listen.host, ready.listen.port), KAFKA_4_4)
            words = await advice(await play_all(chosen(names), broker), [], broker)
            assert said in words if said else words == "", words

    in_loop(session())


def test_a_group_whose_records_are_not_committed_yet_is_described_again() -> None:
    async def session() -> None:
        async with running(settings=SETTINGS) as ready:
            broker = BrokerUnderTest(Address(ready.listen.host, ready.listen.port), KAFKA_4_4)
            changed: list[str] = []

            def not_yet(client: str, number: int, answer: Any) -> Any:
                if not changed and "groups" in answer:
                    changed.append(client)
                    return {**answer, "groups": [{**answer["groups"][0], "group_state": "Dead"}]}
                return answer

            played = await play(chosen(["classic.join.1"])[0], broker, not_yet)
            assert (played.ending, len(changed)) == (Ending.PASSED, 1), played.why

    in_loop(session())

"""The driver of a worker's member: when it passes events on, when it polls, and when it polls again. The test plays the
member."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from fencepost.member.consumer import ConsumerMember, ConsumerSettings
from fencepost.member.consumer.state import ApiCall, WaitingConsumerCall
from fencepost.member.events import Answered, CloseOption, MemberEvent, MetadataChanged, Poll
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import HeartbeatResponse
from fencepost.work.driver import Driver

ANSWER = Answered(0, request_id=1, body=HeartbeatResponse(ErrorCode.NONE))


def classic(*, waiting: bool = False, closed: bool = False, in_generation: bool = False) -> Any:
    return SimpleNamespace(
        waiting=object() if waiting else None,
        closed=closed,
        state=SimpleNamespace(in_generation=in_generation),
        settings=SimpleNamespace(group_id="g"),
    )


class Recorded(Driver):
    """A member that keeps its events."""

    def __init__(self, member: Any) -> None:
        super().__init__(None, member, None, lambda: None)  # type: ignore[arg-type]
        self._running = True
        self.fed: list[MemberEvent] = []

    def _feed(self, event: MemberEvent) -> None:
        self.fed.append(event)

    @property
    def kinds(self) -> list[type[MemberEvent]]:
        return [type(each) for each in self.fed]


def drive(member: Any) -> Recorded:
    """Return a driver of this member, without a running loop."""
    made: list[Recorded] = []

    async def main() -> None:
        made.append(Recorded(member))

    asyncio.run(main())
    return made[0]


@pytest.mark.parametrize(
    ("member", "fed"),
    [
        (classic(), [Answered, Poll]),
        (classic(waiting=True), []),
        (classic(waiting=True, in_generation=True), [Answered]),
        (classic(waiting=True, closed=True), [Answered]),
        (classic(closed=True), [Answered]),
        (ConsumerMember(ConsumerSettings("g"), "m", waiting=WaitingConsumerCall(ApiCall.POLL)), [Answered]),
    ],
    ids=["idle", "in a call", "in a call and a generation", "closing", "closed", "of KIP-848 in a call"],
)
def test_an_answer_waits_while_a_classic_member_that_rebalances_is_in_a_call(member: Any, fed: list[Any]) -> None:
    driver = drive(member)
    driver.deliver(ANSWER)
    assert driver.kinds == fed


def test_an_event_that_is_not_an_answer_waits_for_nothing() -> None:
    driver = drive(classic(waiting=True))
    driver.deliver(MetadataChanged(0, ()))
    assert driver.kinds == [MetadataChanged]


def test_waiting_requests_come_before_the_next_poll() -> None:
    driver = drive(classic(waiting=True))
    driver.deliver(ANSWER)
    driver.member.waiting = None
    driver._poll()
    assert driver.kinds == [Answered, Poll]
    driver._poll()
    assert driver.kinds == [Answered, Poll, Poll]


@pytest.mark.parametrize("ended", [None, "stopped", "failed"])
def test_a_driver_polls_again_until_it_is_stopped_or_its_member_has_failed(ended: str | None) -> None:
    async def main() -> None:
        driver = Recorded(classic())
        driver._running = ended != "stopped"
        if ended == "failed":
            driver.failure = SimpleNamespace()  # type: ignore[assignment]
        driver._poll_again()
        assert (driver.kinds == [Poll]) is (ended is None)
        assert (driver._poller is not None) is (ended is None)
        driver.end()

    asyncio.run(main())


@pytest.mark.parametrize("left", ["the member waits", "a request is unanswered", "nothing ever comes"])
def test_a_close_waits_for_its_member_and_for_answers_but_not_for_ever(
    left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencepost.work.driver.FAREWELL_S", 0.05 if left == "nothing ever comes" else 60.0)

    async def main() -> None:
        driver = Recorded(classic(waiting=left != "a request is unanswered", closed=True))
        if left != "the member waits":
            driver._asked[1] = asyncio.ensure_future(asyncio.sleep(60))
        loop = asyncio.get_running_loop()
        began = loop.time()
        closing = asyncio.ensure_future(driver.close(CloseOption.DEFAULT))
        if left == "nothing ever comes":
            await closing
            assert loop.time() - began >= 0.05
        else:
            await asyncio.sleep(0.02)
            assert not closing.done()
            driver.member.waiting = None
            driver._asked.clear()
            await asyncio.wait_for(closing, 30)
        assert not driver._running

    asyncio.run(main())


def test_topics_are_asked_for_until_they_come_and_again_after_a_while() -> None:
    asked: list[str] = []

    class Link:
        async def topics(self, names: frozenset[str], ids: frozenset[bytes]) -> tuple[Any, ...]:
            asked.append("topics")
            if len(asked) % 2:
                raise ConnectionError("the broker has gone")
            return ()

    async def main() -> None:
        driver = Recorded(classic())
        driver.member.settings.retry_backoff_ms = 1
        driver._link = Link()  # type: ignore[assignment]
        await driver._look_at(frozenset(), frozenset())
        assert driver.kinds.count(MetadataChanged) == 1
        driver._spawn(driver._look_again(0.001))
        while driver.kinds.count(MetadataChanged) < 4:
            await asyncio.sleep(0.005)
        driver.end()

    asyncio.run(asyncio.wait_for(main(), 60))
    assert len(asked) >= 8

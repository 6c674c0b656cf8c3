"""The clock of the tests with short timeouts."""

from __future__ import annotations

import asyncio
import time

from .idle_clock import IdleClock


def test_time_passes_only_while_there_is_nothing_to_do() -> None:
    async def session() -> tuple[float, list[str]]:
        loop, events = asyncio.get_running_loop(), list[str]()
        began = loop.time()
        loop.call_later(0.05, events.append, "timer")
        for number in range(3):
            time.sleep(0.04)  # the machine is busy
            await asyncio.sleep(0)
            events.append(f"work {number}")
        assert loop.time() == began
        await asyncio.sleep(0.06)
        return loop.time() - began, events

    with asyncio.Runner(loop_factory=IdleClock) as runner:
        passed, events = runner.run(session())
    assert events == ["work 0", "work 1", "work 2", "timer"]
    assert 0.06 <= passed < 0.08

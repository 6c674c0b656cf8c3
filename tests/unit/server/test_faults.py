"""A server with planned faults follows its plan exactly."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fencepost import Settings
from fencepost.protocol.partitions import TopicPartition
from fencepost.remote import Groups
from fencepost.wire.fill import fill
from fencepost.wire.frames import (
    API_KEYS,
    RequestHeader,
    framed,
    read_correlation_id,
    read_frame,
    read_response,
    request_schema,
    write_request,
)
from fencepost.work import CommitFailed, ShareLost
from fencepost_server.faults import BadPlan, by_seed, parse
from fencepost_server.options import Address, Options
from fencepost_server.run import Ready, Setup, serve
from fencepost_server.security.sasl import Users

QUICK = Settings(
    group_initial_rebalance_delay_ms=0,
    group_min_session_timeout_ms=100,
    group_consumer_assignment_interval_ms=0,
    group_consumer_heartbeat_interval_ms=100,
    group_consumer_min_heartbeat_interval_ms=50,
    group_consumer_session_timeout_ms=3_000,
    group_consumer_min_session_timeout_ms=100,
)
FIND = {"key": "g", "key_type": 0}


@asynccontextmanager
async def misbehaving(*faults: dict[str, Any], seed: int = 0, **more: Any) -> AsyncIterator[Address]:
    """Start a server with this plan; without faults, with the plan that the seed draws. ``more``: of its ``Setup``."""
    plan = parse({"faults": list(faults), "seed": seed}) if faults else by_seed(seed)
    there: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()
    options = Options(listen=Address(host="127.0.0.1", port=0), offsets_partitions=4)
    setup = Setup(options=options, settings=QUICK, topics={"orders": 6}, faults=plan, **more)
    running = asyncio.create_task(serve(setup, there.set_result, stop))
    try:
        yield (await there).listen
    finally:
        stop.set()
        await running


class Peer:
    """A client that writes frames, and reads any bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def ask(
        self, number: int, api: str = "find_coordinator", values: object = None, client: str = "peer", version: int = 2
    ) -> None:
        header = RequestHeader(API_KEYS[api], version, number, client)
        self.writer.write(framed(write_request(header, fill(request_schema(api, version), values or FIND))))

    async def hear(self, within_s: float = 60) -> int | None:
        """Return the id of the next answer; None if the connection ends. Raise ``TimeoutError``."""
        frame = await asyncio.wait_for(read_frame(self.reader, 1 << 20), within_s)
        return None if frame is None else read_correlation_id(frame)


@asynccontextmanager
async def peer(at: Address) -> AsyncIterator[Peer]:
    reader, writer = await asyncio.open_connection(at.host, at.port)
    yield Peer(reader, writer)
    writer.close()


def test_an_answer_is_lost_doubled_late_and_out_of_order_as_planned() -> None:
    async def story() -> None:
        faults = (
            {"do": "lose", "nth": 2},
            {"do": "double", "nth": 3},
            {"do": "delay", "nth": 4, "ms": 200},
            {"do": "reorder", "nth": 5},
            {"do": "reorder", "nth": 7, "ms": 50},
        )
        async with misbehaving(*({**each, "api": "find_coordinator"} for each in faults)) as at, peer(at) as it:
            it.ask(1)
            assert await it.hear() == 1
            it.ask(2)
            with pytest.raises(TimeoutError):
                await it.hear(0.1)
            it.ask(3)
            assert [await it.hear(), await it.hear()] == [3, 3]
            began = time.monotonic()
            it.ask(4)
            assert await it.hear() == 4
            assert time.monotonic() - began >= 0.19
            it.ask(5)
            it.ask(6)
            assert [await it.hear(), await it.hear()] == [6, 5]
            it.ask(7)  # nothing follows it
            assert await it.hear() == 7

    asyncio.run(story())


def test_a_token_without_a_header_is_no_request() -> None:
    """After SaslHandshake v0 the messages of a login have no header, as in Kafka."""

    async def story() -> None:
        users = Users({"alice": "secret"}, ("PLAIN",))
        async with misbehaving({"do": "lose", "api": "heartbeat"}, users=users) as at, peer(at) as it:
            it.ask(1, "sasl_handshake", {"mechanism": "PLAIN"}, version=0)
            assert await it.hear() == 1
            it.writer.write(framed(b"\0alice\0secret"))
            assert await asyncio.wait_for(read_frame(it.reader, 1 << 20), 60) == b""
            it.ask(2)
            assert await it.hear() == 2

    asyncio.run(story())


def test_a_connection_is_closed_and_a_request_refused() -> None:
    async def story() -> None:
        faults = (
            {"do": "error", "api": "heartbeat", "code": "REBALANCE_IN_PROGRESS", "times": 1},
            {"do": "close", "client": "bad*"},
        )
        async with misbehaving(*faults) as at:
            async with peer(at) as it:
                beat = {"group_id": "g", "generation_id": 1, "member_id": "m"}
                for code in (27, 25):  # REBALANCE_IN_PROGRESS as requested, then the real answer
                    it.ask(1, "heartbeat", beat)
                    frame = await asyncio.wait_for(read_frame(it.reader, 1 << 20), 60)
                    assert frame is not None
                    assert read_response("heartbeat", 2, frame).error_code.value == code
            async with peer(at) as it:
                it.ask(1, client="bad client")
                with pytest.raises((ConnectionError, asyncio.IncompleteReadError, AssertionError)):
                    assert await it.hear() is not None

    asyncio.run(story())


def test_coordinators_move_and_writes_fail() -> None:
    async def story() -> list[str]:
        seen: list[str] = []
        faults = (
            {"do": "fail_append", "every": 3, "code": "NOT_ENOUGH_REPLICAS"},
            {"do": "move", "ms": 300, "for_ms": 50},
        )
        async with (
            misbehaving(*faults) as at,
            Groups(str(at)) as groups,
            asyncio.timeout(20),
            groups.worker("team", ["orders"], gained=lambda each: seen.append("gained")) as worker,
        ):
            done = 0
            async for share in worker:
                while await share.rest(0.02) and done < 40:
                    try:
                        await share.commit(dict.fromkeys(share, done))
                    except ShareLost:
                        break
                    done += 1
                if done == 40:
                    assert set((await share.committed()).values()) == {39}
                    break
        return seen

    assert asyncio.run(story())


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_workers_live_through_a_plan_that_is_drawn(protocol: str) -> None:
    """Committed offsets stay committed, and in the end the work is done."""

    async def story(seed: int) -> None:
        committed = dict.fromkeys((TopicPartition("orders", number) for number in range(6)), 0)

        async def works(groups: Groups) -> None:
            # a lost answer to JoinGroup is awaited for the rebalance timeout and 5 s (G-CFG-50), by default 305 s
            options: Any = {"request_timeout_ms": 500, "rebalance_timeout_ms": 3_000}
            if protocol == "classic":
                options |= {"session_timeout_ms": 3_000, "heartbeat_interval_ms": 100}
            async with groups.worker("team", ["orders"], protocol=protocol, **options) as worker:  # type: ignore[arg-type]
                async for share in worker:
                    try:
                        have = await share.committed()
                        for each in share:
                            assert have.get(each, 0) >= committed[each]
                        while await share.rest(0.02):
                            have = {each: have.get(each, 0) + 1 for each in share}
                            await share.commit(have)
                            committed.update(have)
                            if min(committed.values()) >= 20:
                                return
                    except (ShareLost, CommitFailed):
                        continue

        async with misbehaving(seed=seed) as at, Groups(str(at)) as groups, asyncio.timeout(240):
            await asyncio.gather(works(groups), works(groups))

    asyncio.run(story(7 if protocol == "classic" else 11))


def test_an_error_in_a_plan_is_named() -> None:
    for plan, said in (
        ([], 'a plan must be an object with a list "faults"'),
        ({"faults": [], "seeds": 1}, "a plan has no field 'seeds'; "),
        ({"faults": [{"do": "lose"}, {"do": "loose"}]}, "fault 2: do must be one of lose, "),
        ({"faults": [{"do": "lose", "nht": 1}]}, "fault 1: there is no field 'nht'"),
        ({"faults": [{"do": "lose", "nth": "1"}]}, "fault 1: nth must be of type int (got '1')"),
        ({"faults": [{"do": "lose", "nth": 0}]}, "fault 1: nth must be >= 1 (got 0)"),
        ({"faults": [{"do": "lose", "chance": 3}]}, "fault 1: chance must be between 0 and 1 (got 3)"),
        ({"faults": [{"do": "error", "code": "OOPS"}]}, "fault 1: code must be an error code of groups"),
        ({"faults": ["lose"]}, 'fault 1 must be an object with "do"'),
    ):
        with pytest.raises(BadPlan, match="^" + re.escape(said)):
            parse(plan)


def test_the_command_names_the_error_in_a_plan(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    for text, said in (
        ('{"faults": [{"do": "loose"}]}', "do must be one of"),
        ("{", "Expecting property name"),
        (None, "cannot be read: No such file or directory; use a number to draw a plan"),
    ):
        plan.unlink(missing_ok=True)
        if text is not None:
            plan.write_text(text)
        words = [sys.executable, "-m", "fencepost_conformance.cli", "serve", "--listen", "127.0.0.1:0"]
        done = subprocess.run([*words, "--faults", str(plan)], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 2
        assert said in " ".join(done.stderr.split())

"""A watch of ``fencepost serve`` in the event loop of the test: groups, causes, commits, metrics, and lost servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from queue import Queue
from threading import Event, Thread
from typing import Any

import pytest

from fencepost_conformance.cli import main
from fencepost_conformance.common.addresses import Address
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.watch.board import Board, WatchedGroup
from fencepost_conformance.run.watching.session import Watching, now_ms, watch
from fencepost_conformance.show.watch.terminal import line_of, shown
from fencepost_conformance.traces.wire.access import OPEN
from fencepost_server.options import Address as Listen
from fencepost_server.options import Limits, Options
from fencepost_server.run import Ready, Setup, serve
from fencepost_server.security.acl import Acl, parse_rules

from .served import LOOPBACK, Client, play, running
from .test_group_metrics import commit, parsed, used
from .test_limits_and_rights import http
from .test_rebalance_page import QUICK, Consumers, Group


@dataclass(slots=True)
class Watch:
    """A watch under way. ``lines``: what a terminal that cannot move its cursor would show."""

    board: Board
    status: Listen
    lines: list[str]

    async def until(self, condition: Callable[[Board], Any]) -> Board:
        async with asyncio.timeout(30):
            while not condition(self.board):
                await asyncio.sleep(0.02)
        return self.board

    def group(self, name: str) -> WatchedGroup:
        return next(each for each in self.board.groups(0) if each["group"] == name)

    async def metrics(self) -> dict[str, dict[str, float]]:
        return parsed((await http(self.status, "GET /metrics HTTP/1.1\r\n\r\n"))[1])


@asynccontextmanager
async def watching(at: Listen, *groups: str, **more: Any) -> AsyncIterator[Watch]:
    """Watch a server; the watch has read the log so far when the block begins."""
    until, served, lines = asyncio.Event(), asyncio.get_running_loop().create_future(), list[str]()
    setup = Watching(at=Address(at.host, at.port), access=OPEN, groups=groups, status=LOOPBACK, interval_s=0.05, **more)

    def change(board: Board) -> None:
        while board.rebalances.new:
            lines.append(line_of(board.rebalances.new.popleft(), board.names))

    task = asyncio.ensure_future(watch(setup, lambda *ready: served.set_result(ready), change, until))
    await asyncio.wait({task, served}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    board, status = served.result()
    found = Watch(board, status, lines)
    try:
        if more.get("log", True):
            await found.until(lambda board: board.problems or board.caught_up)
        yield found
    finally:
        until.set()
        await task


def test_classic_group_is_shown_with_leader_causes_and_members() -> None:
    async def session() -> None:
        async with running(settings=QUICK) as ready:
            group = Group(ready)
            leader, other = await group.pair()
            async with watching(ready.listen) as found:
                await group.leave({"member_id": other})
                await found.until(lambda board: board.groups(0)[0]["state"] == "PreparingRebalance")
                assert (await found.metrics())["fencepost_group_rebalance_under_way_seconds"]['group="g"'] >= 0
                group.join(leader)
                await group.joined(leader)
                await group.sync(leader, 3, leader)
                await found.until(lambda board: board.rebalances.total)
                await found.until(lambda board: board.groups(0)[0]["state"] == "Stable")
                row = found.group("g")
                assert (row["type"], row["generation"], row["leader"]) == ("classic", 3, leader)
                (member,) = row["members"]
                assert (member["member"], member["client"], member["host"]) == (leader, "client", "/127.0.0.1")
                assert row["last"].cause == f"{other} left or was removed"
                assert row["last"].reason == "member left or was removed"
                assert (row["rebalances"], row["last"].leader) == (3, leader)
                counts = await found.metrics()
                assert counts["fencepost_group_rebalances_total"] == {'group="g",cause="member left or was removed"': 1}
            assert any(f"generation 3: {other} left or was removed" in line for line in found.lines)
            assert not any("generation 2" in line for line in found.lines)

    play(session())


def test_consumer_group_is_shown_with_epoch_targets_and_causes() -> None:
    async def session() -> None:
        async with running(settings=QUICK, topics={"t": 3}) as ready:
            consumers = Consumers(ready, await Client.to(ready.listen))
            epoch = await consumers.come("a", "t")
            async with watching(ready.listen) as found:
                await consumers.come("b", "t")
                await found.until(lambda board: board.rebalances.total == 1 and len(board.groups(0)[0]["members"]) == 2)
                row = found.group("g")
                assert (row["type"], row["epoch"], row["last"].cause) == ("consumer", epoch + 1, "b joined")
                assert row["last"].reason == "member joined"
                targets = [each["target"]["t"] for each in row["members"] if each["target"]]
                assert sorted(number for each in targets for number in each) == [0, 1, 2]
                assert len(targets) == 2
                assert found.board.rebalances.last(1)[0].state == "under way"
                assert row["state"] == "Reconciling"

    play(session())


def test_commits_lag_and_offsets_beyond_the_end_are_shown() -> None:
    async def session() -> None:
        async with running(topics={"t": 3}) as ready:
            client = await Client.to(ready.listen)
            for log in ready.node.topics.by_name["t"].logs:
                log.durable(10)
            await commit(client, "g", 4, 4)
            async with watching(ready.listen) as found:
                await commit(client, "g", 2, 9, 99)
                await commit(client, "gone", 1)
                await found.until(lambda board: len(board.groups(0)) == 2 and len(board.groups(0)[0]["offsets"]) == 3)
                await found.until(lambda board: board.groups(0)[0].get("commits") == 5)
                row = found.group("g")
                assert row["lag"] == 8 + 1
                assert [(each["lag"], each["flag"], each["back"]) for each in row["watched"]] == [
                    (8, None, 1), (1, None, 0), (0, "beyond the partition's end", 0),
                ]  # fmt: skip
                assert (row["back"], row["members"], row["state"]) == (1, [], "Empty")
                counts = await found.metrics()
                assert counts["fencepost_group_commits_total"]['group="g"'] == 3  # the two before are of the past
                assert counts["fencepost_group_lag"]['group="g"'] == 9
                assert used() <= {*counts}
            assert any(line.endswith("g  commit of t-0 went back from 4 to 2 (2 back)") for line in found.lines)

    play(session())


def test_page_and_terminal_show_the_same_board() -> None:
    async def session() -> None:
        async with running(topics={"t": 1}, settings=QUICK) as ready:
            consumers = Consumers(ready, await Client.to(ready.listen))
            await consumers.come("a\x1b[31m[bold]", "t")
            await commit(consumers.client, "other", 7)
            async with watching(ready.listen) as found:
                await found.until(lambda board: "rebalances" in board.groups(0)[-1])
                status, text = await http(found.status, "GET /state HTTP/1.1\r\n\r\n")
                state = json.loads(text)
                assert status == 200
                assert [each["group"] for each in state["groups"]] == ["other", "g"]
                assert state["groups"][0]["offsets"][0]["flag"] == "beyond the partition's end"
                assert state["rebalances"][0]["group_id"] == "g"
                people = (await http(found.status, "GET / HTTP/1.1\r\n\r\n"))[1]
                assert "<h1>fencepost watch 127.0.0.1:" in people
                assert json.loads((await http(found.status, "GET /health HTTP/1.1\r\n\r\n"))[1])["up"] is True
                from rich.console import Console  # noqa: PLC0415

                console = Console(width=200, force_terminal=True, color_system=None)
                with console.capture() as kept:
                    console.print(shown(found.board, 0, now_ms(), "fencepost watch"))
                for words in ("2 groups", "beyond the partition's end", "[bold]", "Last events"):
                    assert words in kept.get()
                assert "\x1b[31m" not in kept.get()
                (member,) = [
                    line for line in kept.get().splitlines() if "/127.0.0.1" in line and "client client" not in line
                ]
                assert "[bold]" in member

    play(session())


def test_group_that_does_not_exist_is_named_until_it_does() -> None:
    async def session() -> None:
        async with running(topics={"t": 1}) as ready:
            client = await Client.to(ready.listen)
            await commit(client, "orders", 0)
            async with watching(ready.listen, "ordres") as found:
                (line,) = found.board.warnings()
                assert line == "no group 'ordres'; did you mean orders? it will be shown once it exists"
                assert found.board.groups(0) == []
                await commit(client, "ordres", 0)
                await found.until(lambda board: board.groups(0))
                assert found.board.warnings() == []
                await found.until(lambda board: {*board.lives} == {"ordres"})

    play(session())


def test_topic_without_the_right_to_read_is_one_line_and_groups_are_shown() -> None:
    async def session() -> None:
        rules = "allow User:ANONYMOUS Read,Describe Group *\nallow User:ANONYMOUS Read,Describe Topic t"
        async with running(topics={"t": 1}, acl=Acl(parse_rules(rules))) as ready:
            client = await Client.to(ready.listen)
            await commit(client, "g", 0)
            async with watching(ready.listen) as found:
                (line,) = found.board.warnings()
                assert "__consumer_offsets cannot be read: no right to read it; the rights DESCRIBE and READ" in line
                assert found.group("g")["offsets"][0]["committed"] == 0
                assert "rebalances" not in found.group("g")

    play(session())


def test_topic_whose_end_may_not_be_seen_is_one_line() -> None:
    async def session() -> None:
        rules = "allow User:ANONYMOUS Read,Describe Group *\nallow User:ANONYMOUS Read,Describe Topic *"
        async with running(topics={"t": 1}, acl=Acl(parse_rules(rules))) as ready:
            await commit(await Client.to(ready.listen), "g", 0)
            ready.node.acl = Acl(parse_rules("allow User:ANONYMOUS Read,Describe Group *"))
            async with watching(ready.listen, log=False) as found:
                # the broker shows no offset of a topic that the client may not see
                assert found.group("g")["offsets"] == []
                assert found.board.warnings() == []

    play(session())


def test_without_the_log_nothing_is_read_from_it() -> None:
    async def session() -> None:
        async with running(topics={"t": 1}) as ready:
            await commit(await Client.to(ready.listen), "g", 0)
            async with watching(ready.listen, log=False) as found:
                assert "commits" not in found.group("g")
                assert ready.node.topics.by_name.keys() == {"t"}
                assert found.board.warnings() == []

    play(session())


@asynccontextmanager
async def served_at(at: Listen) -> AsyncIterator[Ready]:
    """Start a server in memory at an address."""
    until, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    setup = Setup(options=Options(listen=at, limits=Limits(drain_s=0.2)), topics={"t": 1})
    task = asyncio.ensure_future(serve(setup, ready.set_result, until))
    try:
        yield await ready
    finally:
        until.set()
        await task


def test_cluster_that_goes_away_and_returns() -> None:
    async def session() -> None:
        async with served_at(LOOPBACK) as ready:
            at = ready.listen
            client = await Client.to(at)
            for offset in range(5):
                await commit(client, "g", offset)
            started = watching(at)
            found = await started.__aenter__()
            await found.until(lambda board: "g" in board.lives and board.lives["g"].commits.total == 5)
            client.close()
        try:
            await found.until(lambda board: board.away)
            assert found.board.warnings()[0].startswith("the cluster does not respond: ")
            assert [each["group"] for each in found.board.groups(0)] == ["g"]
            assert (await found.metrics())["fencepost_watch_up"] == {"": 0}
            async with served_at(at) as again:  # with another log, which is shorter
                client = await Client.to(again.listen)
                await commit(client, "g", 1)
                await found.until(lambda board: board.away is None)
                await found.until(lambda board: "g" in board.lives and board.lives["g"].commits.total == 1)
                assert any("is no longer in the log" in line for line in found.board.warnings())
                assert (await found.metrics())["fencepost_watch_up"] == {"": 1}
                client.close()
        finally:
            await started.__aexit__(None, None, None)
        lines = [line.split("  ", 1)[1] for line in found.lines]
        assert [line.split(":")[0] for line in lines if line.startswith("the cluster")][:2] == [
            "the cluster does not respond",
            "the cluster responds again",
        ]

    play(session())


def test_closed_port_ends_the_watch_with_one_line() -> None:
    async def session() -> None:
        setup = Watching(at=Address("127.0.0.1", 1), access=OPEN)
        with pytest.raises(CannotRun, match=r"127\.0\.0\.1:1: "):
            await watch(setup, lambda *_: None, lambda _: None, asyncio.Event())
        async with running() as ready:
            at = Address(ready.listen.host, ready.listen.port)
            board = await watch(replace(setup, at=at, for_s=0.0), lambda *_: None, lambda _: None, asyncio.Event())
            assert (board.total, board.groups(0)) == (0, [])

    play(session())


def test_command_ends_after_its_time_with_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    """The command runs in the main thread, since it listens to signals; the server runs beside it."""
    at: Queue[Listen] = Queue()
    ends = Event()

    async def session() -> None:
        async with running(topics={"t": 1}) as ready:
            client = await Client.to(ready.listen)
            await commit(client, "g", 3)
            at.put(ready.listen)
            await asyncio.to_thread(ends.wait)

    beside = Thread(target=play, args=(session(),))
    beside.start()
    try:
        bootstrap = str(at.get(timeout=60))
        with pytest.raises(SystemExit) as ended:
            main(["watch", "g", "--bootstrap", bootstrap, "--for", "1", "--interval", "0.1", "--json"])
        found = json.loads(capsys.readouterr().out)
        assert (ended.value.code, found["command"], found["verdict"], found["counts"]["groups"]) == (
            0,
            "watch",
            None,
            1,
        )
        assert found["groups"][0]["offsets"][0]["flag"] == "beyond the partition's end"
        with pytest.raises(SystemExit) as ended:
            main(["watch", "--bootstrap", bootstrap, "--for", "0"])
        shown_text = capsys.readouterr().out
        assert (ended.value.code, "Groups" in shown_text, "watch: ended" in shown_text) == (0, True, True)
    finally:
        ends.set()
        beside.join()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--bootstrap", "127.0.0.1:1"], "fencepost watch: 127.0.0.1:1: "),
        (["--bootstrap", "nowhere"], "fencepost watch: --bootstrap 'nowhere' is not HOST:PORT"),
        (["--bootstrap", "127.0.0.1:1", "--status", "x"], "fencepost watch: --status 'x' is not HOST:PORT"),
        (["--bootstrap", "127.0.0.1:1", "--client-config", "/none"], "fencepost watch: --client-config /none: "),
    ],
)
def test_bad_options_are_one_line(words: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["watch", *words])
    output = capsys.readouterr()
    assert (ended.value.code, output.out, output.err.count("\n")) == (2, "", 1)
    assert output.err.startswith(line)

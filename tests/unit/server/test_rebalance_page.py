"""Each cause of a rebalance over the wire, on the status page and in the log."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as Code

from fencepost import MigrationPolicy, Settings
from fencepost.protocol.embedded import Assignment, Subscription, encode_assignment, encode_subscription
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.rebalances import MemberIdentity, RebalanceCause, RebalanceReason
from fencepost_server.observe.logs import JsonLines, TextLines, iso, one_line
from fencepost_server.run import Ready

from .idle_clock import IdleClock
from .served import LOOPBACK, Client, play, running
from .test_limits_and_rights import http

QUICK = Settings(
    group_min_session_timeout_ms=1,
    group_initial_rebalance_delay_ms=0,
    group_consumer_assignment_interval_ms=0,
    group_consumer_min_assignment_interval_ms=0,
)
#: timeouts in ms: one that does not expire, one that no member keeps, and one in which a few requests are answered (by
#: ``IdleClock`` these take no time)
LONG, SHORT, ENOUGH = 60_000, 150, 400
NOTHING = encode_assignment(Assignment(()))
C = "(client client at /127.0.0.1)"
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture
def log() -> Iterator[list[str]]:
    """Return the log lines about rebalances."""
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger, handler = logging.getLogger("fencepost_server.observe.rebalances"), Kept()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield lines
    logger.removeHandler(handler)
    logger.setLevel(before)


class Group:
    """Classic group g on a server, each member on a separate connection."""

    def __init__(self, ready: Ready) -> None:
        self.ready = ready
        self.clients: dict[str, Client] = {}

    def body(self, member_id: str, **more: Any) -> dict[str, Any]:
        body = {"group_id": "g", "session_timeout": LONG, "rebalance_timeout": LONG, "protocol_type": "consumer"}
        return body | {"member_id": member_id, "protocols": [{"name": "range", "metadata": b"m"}]} | more

    async def new(self, **more: Any) -> str:
        """Bring a dynamic member to its second JoinGroup, which may wait."""
        client = await Client.to(self.ready.listen)
        first = await client.ask("join_group", 9, **self.body("", **more))
        assert first.error_code == Code.member_id_required
        self.clients[first.member_id] = client
        self.join(first.member_id, **more)
        return str(first.member_id)

    async def static(self, instance: str, **more: Any) -> str:
        client = await Client.to(self.ready.listen)
        joined = await client.ask("join_group", 9, **self.body("", group_instance_id=instance, **more))
        assert joined.error_code == Code.none
        self.clients[joined.member_id] = client
        return str(joined.member_id)

    def join(self, member_id: str, **more: Any) -> None:
        self.clients[member_id].send("join_group", 9, **self.body(member_id, **more))

    async def joined(self, member_id: str) -> Any:
        return await self.clients[member_id].answer("join_group", 9)

    async def sync(self, member_id: str, generation: int, *members: str, **more: Any) -> Any:
        rows = [{"member_id": each, "assignment": NOTHING} for each in members]
        body = {"group_id": "g", "member_id": member_id, "generation_id": generation, "assignments": rows}
        body |= {"protocol_type": "consumer", "protocol_name": "range"} | more
        return await self.clients[member_id].ask("sync_group", 5, **body)

    async def alone(self, **more: Any) -> str:
        """Bring one member to Stable in generation 1."""
        member_id = await self.new(**more)
        await self.joined(member_id)
        assert (await self.sync(member_id, 1, member_id)).error_code == Code.none
        return member_id

    async def pair(self, **more: Any) -> tuple[str, str]:
        """Bring a leader and a follower with these settings to Stable in generation 2."""
        leader = await self.alone()
        other = await self.new(**more)
        self.join(leader)
        await self.joined(leader)
        await self.joined(other)
        await self.sync(leader, 2, leader, other)
        await self.sync(other, 2)
        return leader, other

    async def leave(self, *members: dict[str, Any]) -> None:
        client = await Client.to(self.ready.listen)
        await client.ask("leave_group", 5, group_id="g", members=list(members))


class Consumers:
    """Consumer group g on a server."""

    def __init__(self, ready: Ready, client: Client) -> None:
        self.ready, self.client = ready, client

    async def beat(self, member: str, epoch: int, **more: Any) -> Any:
        answer = await self.client.ask(
            "consumer_group_heartbeat", 1, **{"group_id": "g", "member_id": member, "member_epoch": epoch, **more}
        )
        assert answer.error_code == Code.none, answer
        return answer

    async def come(self, member: str, *topics: str, timeout: int = LONG, **more: Any) -> int:
        names = {"subscribed_topic_names": topics} if topics else {}
        answer = await self.beat(member, 0, rebalance_timeout=timeout, topic_partitions=(), **names, **more)
        return int(answer.member_epoch)


async def shown(ready: Ready) -> dict[str, Any]:
    assert ready.status is not None
    state: dict[str, Any] = json.loads((await http(ready.status, "GET /state HTTP/1.1\r\n\r\n"))[1])
    return state


async def newest(ready: Ready, count: int) -> dict[str, Any]:
    """Return the last rebalance, once there are so many."""
    async with asyncio.timeout(60):
        while (state := await shown(ready))["rebalances_total"] < count:
            await asyncio.sleep(0.02)
    assert state["rebalances_total"] == count
    row: dict[str, Any] = state["rebalances"][0]
    return row


def served(session: Coroutine[Any, Any, None]) -> None:
    """Run the test. Its timeouts are short, and a busy machine must not make them shorter."""
    play(session, IdleClock)


def test_a_group_comes_up_and_a_member_joins(log: list[str]) -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, settings=QUICK) as ready:
            group = Group(ready)
            leader = await group.alone()
            row = await newest(ready, 1)
            assert row["cause"] == f"join of member {leader} {C}"
            assert (row["reason"], row["generation"], row["leader"]) == ("member joined", 1, leader)
            assert (row["state"], row["protocol"], row["converted"]) == ("Stable", "classic", False)
            assert DATE.fullmatch(row["at"])
            assert row["duration_ms"] >= 0
            (found,) = (await shown(ready))["groups"]
            assert (found["generation"], found["leader"], found["state"]) == (1, leader, "Stable")
            other = await group.new(reason="a\nreason")
            row = await newest(ready, 2)
            assert row["cause"] == f"join of member {other} {C}; client reason: a\nreason"
            assert (row["state"], row["duration_ms"], row["generation"]) == ("under way", None, 2)
            await group.leave({"member_id": leader}, {"member_id": other})
        first = f"group g (classic): generation 1: rebalance started: join of member {leader} {C}"
        assert log[0] == first
        assert log[1] == f"group g (classic): generation 1: all have joined: 1 members, leader {leader}"
        assert re.fullmatch(
            rf"group g \(classic\): generation 1: rebalance ended: Stable after \d+ ms, leader {leader}", log[2]
        )
        assert log[3].endswith(f"join of member {other} {C}; client reason: a\\nreason")
        assert log[4].startswith("group g (classic): generation 2: rebalance ended: Empty after ")
        assert len(log) == 5

    served(session())


def test_a_member_leaves_and_gives_its_reason(log: list[str]) -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, settings=QUICK) as ready:
            group = Group(ready)
            _, other = await group.pair()
            await group.leave({"member_id": other, "reason": "closed"})
            assert (await newest(ready, 3))["cause"] == f"member {other} {C} left; client reason: closed"
        assert any(f"rebalance started: member {other} {C} left; client reason: closed" in line for line in log)

    served(session())


def test_the_leader_rejoins_and_a_follower_changes_its_protocols() -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, settings=QUICK) as ready:
            group = Group(ready)
            leader, other = await group.pair()
            group.join(leader)
            assert (await newest(ready, 3))["cause"] == f"leader {leader} {C} rejoined"
            group.join(other)
            await group.joined(leader)
            await group.joined(other)
            await group.sync(leader, 3, leader, other)
            group.join(other, protocols=[{"name": "range", "metadata": b"other"}])
            row = await newest(ready, 4)
            assert row["cause"] == f"member {other} {C} changed its protocols or subscription"

    served(session())


def test_a_session_expires_and_no_other_member_is_named(log: list[str]) -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, settings=QUICK) as ready:
            group = Group(ready)
            _, other = await group.pair(session_timeout=SHORT)
            row = await newest(ready, 3)
            assert row["cause"] == f"session of member {other} {C} expired after {SHORT} ms"
            assert row["reason"] == "session expired"
        assert any(f"session of member {other} {C} expired after {SHORT} ms" in line for line in log)

    served(session())


def test_a_static_member_expires_under_its_own_name() -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, settings=QUICK) as ready:
            group = Group(ready)
            member_id = await group.static("i", session_timeout=SHORT)
            await group.sync(member_id, 1, member_id, group_instance_id="i")
            row = await newest(ready, 2)
            who = f"{member_id} (instance i, client client at /127.0.0.1)"
            assert row["cause"] == f"session of member {who} expired after {SHORT} ms"
            assert row["state"] == "Empty"

    served(session())


def test_a_member_is_removed_when_its_rebalance_timeout_expires(log: list[str]) -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, settings=QUICK) as ready:
            group = Group(ready)
            leader = await group.alone(rebalance_timeout=ENOUGH)
            other = await group.new(rebalance_timeout=ENOUGH)
            await group.joined(other)
            row = (await shown(ready))["rebalances"][0]
            assert row["removed"] == f"removed {leader} {C}: rebalance timeout of {ENOUGH} ms expired"
            assert row["leader"] == other
            assert row["cause"] == f"join of member {other} {C}"
        assert any(f"; removed {leader} {C}: rebalance timeout of {ENOUGH} ms expired" in line for line in log)

    served(session())


def test_members_send_no_sync() -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, settings=QUICK) as ready:
            group = Group(ready)
            member_id = await group.new(rebalance_timeout=SHORT)
            await group.joined(member_id)
            row = await newest(ready, 2)
            assert (
                row["cause"] == f"no SyncGroup from member {member_id} {C} within the rebalance timeout of {SHORT} ms"
            )

    served(session())


def test_a_static_member_is_replaced_before_its_assignment() -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, settings=QUICK) as ready:
            group = Group(ready)
            old = await group.static("i")
            new = await group.static("i")
            row = await newest(ready, 2)
            assert row["cause"] == f"static member {new} (instance i, client client at /127.0.0.1) replaced {old}"
            states = [each["state"] for each in (await shown(ready))["rebalances"]]
            assert states == ["under way", "superseded"]

    served(session())


def test_an_assignment_is_not_stored_and_a_new_group_is_undone() -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, settings=QUICK) as ready:
            store: Any = ready.node.store
            group = Group(ready)
            store.failing = ErrorCode.KAFKA_STORAGE_ERROR
            client = await Client.to(ready.listen)
            await client.ask("join_group", 9, **group.body("", group_instance_id="i"))
            assert (await newest(ready, 1))["state"] == "undone"
            store.failing = None
            member_id = await group.new()
            await group.joined(member_id)
            store.failing = ErrorCode.KAFKA_STORAGE_ERROR
            await group.sync(member_id, 1, member_id)
            row = await newest(ready, 3)
            assert row["cause"].startswith(f"the assignment of leader {member_id} {C} could not be stored (")

    served(session())


def test_a_restart_shows_no_rebalance(tmp_path: Path, log: list[str]) -> None:
    """It shows none of a classic or a consumer group; generation, epoch and leader are shown immediately."""

    async def session() -> None:
        async with running(status=LOOPBACK, settings=QUICK, data=tmp_path, topics={"t": 2}) as ready:
            leader, other = await Group(ready).pair()
            consumers = Consumers(ready, await Client.to(ready.listen))
            body = {"group_id": "k", "member_id": "m", "rebalance_timeout": LONG, "topic_partitions": ()}
            epoch = (await consumers.beat("m", 0, **body, subscribed_topic_names=("t",))).member_epoch
        log.clear()
        async with running(status=LOOPBACK, settings=QUICK, data=tmp_path) as ready:
            client = await Client.to(ready.listen)
            for member_id in (leader, other):
                beat = await client.ask("heartbeat", 4, group_id="g", generation_id=2, member_id=member_id)
                assert beat.error_code == Code.none
            await Consumers(ready, client).beat("m", epoch, group_id="k")
            state = await shown(ready)
            assert (state["rebalances_total"], state["rebalances"], log) == (0, [], [])
            classic, consumer = state["groups"]
            assert (classic["generation"], classic["leader"], classic["state"]) == (2, leader, "Stable")
            assert (consumer["epoch"], consumer["state"]) == (epoch, "Stable")
            group = Group(ready)
            group.clients[other] = client
            await group.leave({"member_id": other})
            assert (await newest(ready, 1))["cause"].startswith(f"member {other} ")

    served(session())


def test_a_move_of_the_coordinator_ends_a_rebalance_and_starts_none(log: list[str]) -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, settings=QUICK) as ready:
            groups: Any = ready.node.groups
            group = Group(ready)
            leader = await group.alone()
            other = await group.new()
            assert (await newest(ready, 2))["state"] == "under way"
            await groups.move(groups.partition_of("g"))
            assert (await group.joined(other)).error_code == Code.not_coordinator
            beat = await group.clients[leader].ask("heartbeat", 4, group_id="g", generation_id=1, member_id=leader)
            assert beat.error_code == Code.none
            row = await newest(ready, 2)
            assert (row["state"], row["generation"]) == ("unloaded", 2)
            assert (await shown(ready))["groups"][0]["generation"] == 1
        assert log[-1].startswith("group g (classic): generation 2: rebalance ended: unloaded after ")

    served(session())


def test_a_loaded_group_has_too_many_members(tmp_path: Path) -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, settings=QUICK, data=tmp_path) as ready:
            await Group(ready).pair()
        small = Settings(group_max_size=1, group_min_session_timeout_ms=1)
        async with running(status=LOOPBACK, settings=small, data=tmp_path) as ready:
            row = await newest(ready, 1)
            assert row["cause"] == "the loaded group has more members than group.max.size (1)"

    served(session())


def test_causes_of_a_consumer_group(log: list[str]) -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, settings=QUICK, topics={"a": 2, "b": 1}) as ready:
            client = await Client.to(ready.listen)
            group = Consumers(ready, client)
            epoch = await group.come("m", "a", server_assignor="uniform")
            row = await newest(ready, 1)
            assert row["cause"] == f"join of member m {C}"
            assert (row["protocol"], row["generation"], row["state"]) == ("consumer", epoch, "Stable")
            await group.beat("m", epoch, subscribed_topic_names=("a", "b"))
            assert (await newest(ready, 2))["cause"] == f"member m {C} changed its protocols or subscription"
            epoch = (await group.beat("m", epoch + 1)).member_epoch
            made = await client.ask("create_partitions", 3, topics=[{"name": "a", "count": 5}], timeout=1_000)
            assert made.results[0].error_code == Code.none
            epoch = (await group.beat("m", epoch)).member_epoch
            assert (await newest(ready, 3))["cause"] == "topics changed: a"
            epoch = (await group.beat("m", epoch, server_assignor="range")).member_epoch
            assert (await newest(ready, 4))["cause"] == f"the vote of member m {C} changed the preferred assignor"
            await group.beat("m", -1)
            row = await newest(ready, 5)
            assert (row["cause"], row["state"], row["generation"]) == (f"member m {C} left", "Empty", epoch + 1)
            await group.come("r", subscribed_topic_regex="b.*")
            assert (await newest(ready, 6))["cause"] == "a subscribed regular expression matches other topics: b"
        started = [line for line in log if "rebalance started" in line]
        assert [line.partition("started: ")[2] for line in started] == [
            f"join of member m {C}",
            f"member m {C} changed its protocols or subscription",
            "topics changed: a",
            f"the vote of member m {C} changed the preferred assignor",
            f"member m {C} left",
            "a subscribed regular expression matches other topics: b",
        ]

    served(session())


def test_a_consumers_session_expires_or_its_rebalance_timeout() -> None:
    async def session() -> None:
        settings = Settings(
            group_consumer_session_timeout_ms=400,
            group_consumer_min_session_timeout_ms=400,
            group_consumer_heartbeat_interval_ms=100,
            group_consumer_min_heartbeat_interval_ms=100,
            group_consumer_assignment_interval_ms=0,
        )
        async with running(status=LOOPBACK, settings=settings, topics={"a": 2}) as ready:
            group = Consumers(ready, await Client.to(ready.listen))
            await group.come("m", "a")
            row = await newest(ready, 2)
            assert row["cause"] == f"session of member m {C} expired after 400 ms"
        async with running(status=LOOPBACK, settings=QUICK, topics={"a": 2}) as ready:
            group = Consumers(ready, await Client.to(ready.listen))
            epoch = await group.come("m", "a", timeout=SHORT)
            await group.come("n", "a")
            await group.beat("m", epoch)
            row = await newest(ready, 3)
            assert row["cause"] == f"rebalance timeout of member m {C} expired after {SHORT} ms"

    served(session())


def test_a_static_consumer_is_replaced_with_another_subscription() -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, settings=QUICK, topics={"a": 2, "b": 1}) as ready:
            group = Consumers(ready, await Client.to(ready.listen))
            await group.come("m", "a", instance_id="i")
            await group.beat("m", -2, instance_id="i")
            await group.come("n", "b", instance_id="i")
            row = await newest(ready, 2)
            assert row["cause"] == "static member n (instance i, client client at /127.0.0.1) replaced m"

    served(session())


def test_a_group_changes_its_protocol_and_back(log: list[str]) -> None:
    """The classic member does not sync, and later does not rejoin, in its time."""

    async def session() -> None:
        both = replace(QUICK, group_consumer_migration_policy=MigrationPolicy.BIDIRECTIONAL)
        async with running(status=LOOPBACK, settings=both, topics={"a": 2}) as ready:
            subscription = {"metadata": encode_subscription(Subscription(("a",)), 3), "name": "range"}
            group, client = Group(ready), await Client.to(ready.listen)
            member_id = await group.alone(protocols=[subscription])
            consumers = Consumers(ready, client)
            epoch = await consumers.come("m", "a")
            row = await newest(ready, 2)
            assert (row["cause"], row["protocol"], row["converted"]) == (f"join of member m {C}", "consumer", True)
            await consumers.beat("m", -1)
            row = await newest(ready, 3)
            assert (row["cause"], row["protocol"], row["converted"]) == (f"member m {C} left", "classic", True)
            assert row["generation"] == epoch + 1
            await group.leave({"member_id": member_id})
            epoch = await consumers.come("m", "a")
            count = (await shown(ready))["rebalances_total"]
            late = await group.new(protocols=[subscription], rebalance_timeout=SHORT)
            assert (await group.joined(late)).error_code == Code.none
            row = await newest(ready, count + 2)
            assert row["cause"] == f"no SyncGroup from member {late} {C} within the rebalance timeout of {SHORT} ms"
            late = await group.new(protocols=[subscription], rebalance_timeout=ENOUGH)
            generation = (await group.joined(late)).generation_id
            await group.sync(late, generation)
            await consumers.beat(
                "m", (await consumers.beat("m", epoch)).member_epoch, subscribed_topic_names=("a", "b")
            )
            beat = {"group_id": "g", "generation_id": generation, "member_id": late}
            assert (await client.ask("heartbeat", 4, **beat)).error_code == Code.rebalance_in_progress
            row = await newest(ready, count + 5)
            assert row["cause"] == f"member {late} {C} did not rejoin within its rebalance timeout of {ENOUGH} ms"
        assert sum("rebalance started: the group changes its protocol; " in line for line in log) == 2

    served(session())


def test_a_committed_offset_beyond_the_end_is_flagged() -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, topics={"t": 2}) as ready:
            client = await Client.to(ready.listen)
            parts = [{"partition_index": 0, "committed_offset": 12_722}, {"partition_index": 1, "committed_offset": 0}]
            answer = await client.ask("offset_commit", 8, group_id="g", topics=[{"name": "t", "partitions": parts}])
            assert {row.error_code for row in answer.topics[0].partitions} == {Code.none}
            ready.node.topics.by_name["t"].logs[0].durable(100)
            (group,) = (await shown(ready))["groups"]
            rows = {
                row["partition"]: (row["committed"], row["end"], row["lag"], row["flag"]) for row in group["offsets"]
            }
            assert rows == {0: (12_722, 100, 0, "beyond the partition's end"), 1: (0, 0, 0, None)}

    served(session())


def test_dates_are_of_one_form() -> None:
    record = logging.LogRecord("n", logging.INFO, "p", 1, "said", (), None)
    record.created = 1_700_000_000.25
    assert TextLines().format(record) == "2023-11-14T22:13:20.250Z INFO said"
    assert json.loads(JsonLines().format(record))["at"] == iso(1_700_000_000_250) == "2023-11-14T22:13:20.250Z"


@pytest.mark.parametrize(("text", "shown"), [("é plain", "é plain"), ("a\nb\x1b[1m", "a\\nb\\x1b[1m"), ("", "")])
def test_a_line_of_the_log_is_one_line(text: str, shown: str) -> None:
    assert one_line(text) == shown


@pytest.mark.parametrize("reason", RebalanceReason)
def test_the_documentation_lists_each_shown_cause(reason: RebalanceReason) -> None:
    document = (Path(__file__).parents[3] / "docs" / "serving.md").read_text(encoding="utf-8")
    topics = ("orders", "payments") if reason is RebalanceReason.TOPICS_CHANGED else ("orders",)
    timeout = 45_000 if reason is RebalanceReason.SESSION_EXPIRED else 300_000
    more: dict[str, Any] = {"topics": topics, "timeout_ms": timeout, "replaced": "N", "capacity": 100}
    cause = RebalanceCause(reason, (MemberIdentity("M"),), error=ErrorCode.NOT_COORDINATOR, **more)
    assert f"| {reason.value} | {cause} |" in document

"""Numbers of groups in /metrics of a server: what is counted, and the bound on labels. The dashboard uses them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fencepost import Settings
from fencepost_server.observe.groups import OTHERS, GroupCounts
from fencepost_server.run import Ready

from .idle_clock import IdleClock
from .served import LOOPBACK, Client, play, running
from .test_limits_and_rights import http
from .test_rebalance_page import ENOUGH, LONG, QUICK, SHORT, Consumers, Group, newest, shown

DASHBOARD = Path(__file__).parents[3] / "examples" / "grafana-consumer-groups.json"
_LINE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")


def parsed(text: str) -> dict[str, dict[str, float]]:
    """Return the values of each number by its labels, as they are in the text."""
    found: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            found.setdefault(line.split(" ")[2], {})
        elif not line.startswith("#"):
            name, labels, value = _LINE.fullmatch(line).groups()  # type: ignore[union-attr]
            found.setdefault(name, {})[labels or ""] = float(value)
    return found


async def metrics(ready: Ready) -> dict[str, dict[str, float]]:
    assert ready.status is not None
    return parsed((await http(ready.status, "GET /metrics HTTP/1.1\r\n\r\n"))[1])


def counted(counts: GroupCounts, members: dict[str, int], **more: dict[str, int]) -> dict[str, dict[str, float]]:
    return parsed("\n".join(counts.lines(members, more.get("lag", {}), more.get("under_way", {}))))


async def commit(client: Client, group: str, *offsets: int) -> None:
    rows = [{"partition_index": place, "committed_offset": offset} for place, offset in enumerate(offsets)]
    topics = [{"name": "t", "partitions": rows}]
    answer = await client.ask("offset_commit", 8, group_id=group, generation_id_or_member_epoch=-1, topics=topics)
    assert not answer.topics[0].partitions[0].error_code


def test_rebalances_evictions_time_and_members_are_counted() -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, settings=QUICK) as ready:
            group = Group(ready)
            leader, other = await group.pair(session_timeout=ENOUGH)
            await newest(ready, 3)  # the session of the other member expires
            group.join(leader)
            await group.joined(leader)
            before = await metrics(ready)
            await group.sync(leader, 3, leader)
            found = await metrics(ready)
            assert found["fencepost_group_members"] == {'group="g"': 1, f'group="{OTHERS}"': 0}
            assert found["fencepost_group_rebalances_total"] == {
                'group="g",cause="member joined"': 2,
                'group="g",cause="session expired"': 1,
            }
            assert found["fencepost_group_evictions_total"]['group="g"'] == 1
            assert 'group="g"' in before["fencepost_group_rebalance_under_way_seconds"]
            assert 'group="g"' not in found["fencepost_group_rebalance_under_way_seconds"]
            rows = (await shown(ready))["rebalances"]
            seconds = found["fencepost_group_rebalance_seconds_total"]['group="g"']
            assert seconds == pytest.approx(sum(each["duration_ms"] for each in rows) / 1_000)
            assert before["fencepost_group_rebalance_seconds_total"]['group="g"'] <= seconds
            assert other != leader

    play(session(), IdleClock)


def test_members_that_do_not_rejoin_in_time_are_evictions() -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, settings=QUICK) as ready:
            group = Group(ready)
            await group.alone(rebalance_timeout=SHORT)
            other = await group.new(rebalance_timeout=SHORT)
            await group.joined(other)
            assert (await metrics(ready))["fencepost_group_evictions_total"]['group="g"'] == 1

    play(session(), IdleClock)


def test_commits_and_lag_are_counted_by_partition() -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, topics={"t": 2}) as ready:
            client = await Client.to(ready.listen)
            for log in ready.node.topics.by_name["t"].logs:
                log.durable(10)
            await commit(client, "plain", 1, 2)
            await commit(client, "plain", 4, 5)
            await commit(client, "beyond", 99)
            found = await metrics(ready)
            assert found["fencepost_group_commits_total"] == {
                'group="beyond"': 1, 'group="plain"': 4, f'group="{OTHERS}"': 0,
            }  # fmt: skip
            assert found["fencepost_group_lag"] == {'group="beyond"': 0, 'group="plain"': 11, f'group="{OTHERS}"': 0}

    play(session(), IdleClock)


@pytest.mark.parametrize("committed", [True, False])
def test_commits_of_a_transaction_count_when_it_commits(*, committed: bool) -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, topics={"t": 1}) as ready:
            client = await Client.to(ready.listen)
            who = {"transactional_id": "x"}
            made = await client.ask("init_producer_id", 4, transaction_timeout=LONG, **who)
            who |= {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
            await client.ask("add_offsets_to_txn", 3, group_id="g", **who)
            rows = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 3}]}]
            answer = await client.ask("txn_offset_commit", 3, group_id="g", generation_id=-1, topics=rows, **who)
            assert not answer.topics[0].partitions[0].error_code
            assert (await metrics(ready))["fencepost_group_commits_total"].get('group="g"', 0) == 0
            await client.ask("end_txn", 3, committed=committed, **who)
            found = {}
            for _ in range(100):  # the markers are written after the answer
                found = (await metrics(ready))["fencepost_group_commits_total"]
                if 'group="g"' in found and found['group="g"'] == committed:
                    break
            assert found.get('group="g"', 0) == committed

    play(session(), IdleClock)


def test_groups_above_the_limit_are_summed() -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, topics={"t": 1}, metric_groups=2, settings=QUICK) as ready:
            client = await Client.to(ready.listen)
            ready.node.topics.by_name["t"].logs[0].durable(10)
            for place, name in enumerate("abcde"):
                await commit(client, name, place)
            consumers = Consumers(ready, client)
            await consumers.come("m", "t")
            found = await metrics(ready)
            assert found["fencepost_groups_without_label"] == {"": 4}
            assert found["fencepost_group_commits_total"] == {
                'group="a"': 1, 'group="b"': 1, f'group="{OTHERS}"': 3,
            }  # fmt: skip
            assert found["fencepost_group_lag"] == {'group="a"': 10, 'group="b"': 9, f'group="{OTHERS}"': 8 + 7 + 6}
            assert found["fencepost_group_members"] == {'group="a"': 0, 'group="b"': 0, f'group="{OTHERS}"': 1}
            rebalances = found["fencepost_group_rebalances_total"]
            assert rebalances == {f'group="{OTHERS}",cause="member joined"': 1}

    play(session(), IdleClock)


def test_no_counter_decreases_when_groups_come_and_go() -> None:
    counts, before = GroupCounts(3), dict[tuple[str, str], float]()
    for turn in range(40):
        alive = {f"g{each}" for each in range(turn, turn + 8)}
        for name in alive:
            counts.rebalance(name, "member joined" if turn % 2 else "member left")
            counts.evict(name, 1)
            counts.spend(name, 5 if turn % 3 else -5)
            counts.commit(name, 2)
        found = counted(counts, dict.fromkeys(alive, 1))
        for name in ("rebalances", "evictions", "rebalance_seconds", "commits"):
            rows = found[f"fencepost_group_{name}_total"]
            labels = {re.search('group="([^"]*)"', each)[1] for each in rows}  # type: ignore[index]
            assert len(labels) <= 4
            others = {each: value for each, value in rows.items() if OTHERS in each}
            assert all(value >= before.get((name, each), 0) for each, value in others.items())
            before |= {(name, each): value for each, value in others.items()}
        assert found["fencepost_group_members"][f'group="{OTHERS}"'] == 5
    total = sum(counted(counts, {})["fencepost_group_commits_total"].values())
    assert total == 40 * 8 * 2


def test_group_with_the_name_of_the_others_is_one_of_them() -> None:
    counts = GroupCounts(5)
    counts.commit(OTHERS, 1)
    counts.commit("g", 1)
    found = counted(counts, {OTHERS: 3, "g": 1})
    assert found["fencepost_group_members"] == {'group="g"': 1, f'group="{OTHERS}"': 3}
    assert found["fencepost_group_commits_total"] == {'group="g"': 1, f'group="{OTHERS}"': 1}


def test_limit_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must be >= 0 \(got -1\)"):
        GroupCounts(-1)


def used() -> set[str]:
    """Return the names of metrics in the dashboard's queries."""
    board = json.loads(DASHBOARD.read_text())
    queries = [each["expr"] for panel in board["panels"] for each in panel["targets"]]
    queries += [each["query"] for each in board["templating"]["list"]]
    return {name for query in queries for name in re.findall(r"\bfencepost_\w+", query)}


def test_dashboard_uses_metrics_that_exist_and_all_of_groups() -> None:
    async def session() -> None:
        async with running(status=LOOPBACK, settings=Settings()) as ready:
            exist = {*await metrics(ready)}
            assert used() <= exist
            assert {each for each in exist if each.startswith("fencepost_group")} <= used()

    play(session(), IdleClock)

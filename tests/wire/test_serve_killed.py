"""The scenario of ``examples/three_languages``: clients of several languages on one ``fencepost serve``, which is
killed by SIGKILL and restarted. And its checker, which must find violations."""

from __future__ import annotations

import copy
import importlib.util
import json
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PLACE = Path(__file__).parents[2] / "examples" / "three_languages"


def judged(lines: Any, log: Any, committed: Any) -> list[str]:
    spec = importlib.util.spec_from_file_location("judge", PLACE / "judge.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.faults(lines, log, committed))


def line(at: int, event: str, **more: Any) -> dict[str, Any]:
    return {"worker": "w", "at": at, "event": event, **more}


#: two partitions, a group that reads some records twice before it commits them, and a commit without an answer
LOG = {0: {0: "a-0", 1: "b-0", 3: "a-2"}, 1: {0: "a-1"}}
LINES = [
    line(1, "acked", value="a-0"),
    line(2, "read", group="g", records=[[0, 0, "a-0"], [0, 1, "b-0"]]),
    line(3, "read", group="g", records=[[0, 0, "a-0"], [0, 1, "b-0"]]),
    line(4, "committed", group="g", offsets=[[0, 2]]),
    line(5, "acked", value="a-1"),
    line(6, "read", group="g", records=[[0, 3, "a-2"], [1, 0, "a-1"]]),
]
COMMITTED = {"g": {0: 4, 1: 1}}


def _change(lines: Any, log: Any, committed: Any, *words: str) -> None:
    match words:
        case ["lost"]:
            lines.append(line(7, "acked", value="a-3"))
        case ["twice"]:
            log[1][1] = "a-1"
            lines.append(line(7, "read", group="g", records=[[1, 1, "a-1"]]))
            committed["g"][1] = 2
        case ["order"]:
            log[0][0], log[0][3] = log[0][3], log[0][0]
            lines[1]["records"][0][2] = lines[2]["records"][0][2] = "a-2"
            lines[5]["records"][0][2] = "a-0"
        case ["otherwise"]:
            lines[1]["records"][0][2] = "b-0"
        case ["unread"]:
            lines[5]["records"].pop()
        case ["again"]:
            lines.append(line(7, "read", group="g", records=[[0, 1, "b-0"]]))
        case ["forgotten"]:
            lines.append(line(7, "committed", group="g", offsets=[[0, 5]]))
        case ["behind"]:
            committed["g"][1] = 0


def test_a_scene_in_which_all_holds_is_accepted() -> None:
    assert judged(LINES, LOG, COMMITTED) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("lost", "a-3 was acknowledged, but is not in the topic"),
        ("twice", "a-1 is in partition 1 after a-1"),
        ("order", "a-0 is in partition 0 after a-2"),
        ("otherwise", "w in g read b-0 at 0@0, but the topic has a-0 there"),
        ("unread", "g has not read a-1"),
        ("again", "w got b-0 at 0@1 after g had committed 2"),
        ("forgotten", "g had committed 0@5, but the server has 4"),
        ("behind", "g ends at 1@0, but the partition ends at 1"),
    ],
)
def test_violations_are_found(change: str, message: str) -> None:
    lines, log, committed = copy.deepcopy((LINES, LOG, COMMITTED))
    _change(lines, log, committed, change)
    assert judged(lines, log, committed) == [message]


def holds(*words: str, least: Callable[[dict[str, int]], bool]) -> None:
    command = [sys.executable, str(PLACE / "scene.py"), "--json", *words]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=560, check=False)
    if ended.returncode == 2:
        pytest.skip(ended.stderr.strip().splitlines()[-1].removeprefix("scene: "))
    report = json.loads(ended.stdout)
    assert report["faults"] == [], ended.stderr
    assert ended.returncode == 0
    assert least(report["counts"]), report


@pytest.mark.clients
def test_two_clients_of_python_continue_when_the_server_is_killed() -> None:
    """Each client in a separate group, and both in a shared one."""
    for client in ("confluent_kafka", "aiokafka"):
        pytest.importorskip(client, reason=f"needs {client}: pip install -e '.[clients]'")
    holds("python", "aiokafka", "--kills", "1", least=lambda counts: counts["acknowledged"] > 150)


@pytest.fixture
def database() -> Iterator[str]:
    """A private PostgreSQL; the test is skipped if there is none."""
    server = runpy.run_path(str(PLACE.parents[1] / "tests" / "unit" / "store" / "postgres.py"))["Postgres"]()
    yield f"postgresql://postgres@/postgres?host={server.folder}"
    server.close()


@pytest.mark.all
@pytest.mark.jvm
@pytest.mark.clients
def test_clients_of_three_languages_continue_when_one_of_two_nodes_is_killed(database: str) -> None:
    """Each time the leading node is killed, and the other takes over."""
    pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install -e '.[clients]'")
    holds("--kills", "4", "--database", database, least=lambda counts: counts["acknowledged"] > 600)


@pytest.mark.all
@pytest.mark.jvm
@pytest.mark.clients
def test_clients_of_three_languages_continue_when_the_server_is_killed() -> None:
    """Python, Java and Go, with both protocols, each client in a separate group, and all in one group of each
    protocol."""
    pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install -e '.[clients]'")
    holds("--kills", "4", "--seed", "7", least=lambda counts: counts["acknowledged"] > 600)

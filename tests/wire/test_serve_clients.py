"""``fencepost serve`` and unmodified clients of Go, Node and Rust: each produces, joins, reads, commits, and resumes at
its commit (``roundtrip`` in ``conformance/peers``)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import Served

from fencepost_conformance.run.matrix.clients import peers_folder
from fencepost_conformance.targets.jvm.jars import cache_root

pytestmark = [pytest.mark.clients, pytest.mark.all]
GO = ("franz-go", "franz-go-next", "sarama", "kafka-go")
NODE = ("kafkajs", "platformatic", "platformatic-next")
RUST = ("krafka", "krafka-next")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    topics = tuple(f"{name}:2" for name in (*GO, *NODE, *RUST))
    with Served("--setting", "group.initial.rebalance.delay.ms=0", topics=topics) as server:
        yield server


def prepared(program: str, language: str) -> Path:
    """Install the clients of a language; return the folder of what was built. Skip the test if that is impossible."""
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    ended = subprocess.run(
        [peers_folder() / language / "install"], capture_output=True, text=True, timeout=900, check=False
    )
    if ended.returncode != 0:
        pytest.skip(f"{program} cannot build the clients: {ended.stderr.strip().splitlines()[-1:]}")
    return cache_root() / "peers" / language


@pytest.fixture(scope="module")
def go() -> Path:
    return prepared("go", "go") / "roundtrip"


@pytest.fixture(scope="module")
def node() -> Path:
    return prepared("npm", "javascript") / "roundtrip.mjs"


@pytest.fixture(scope="module")
def rust() -> Path:
    return prepared("cargo", "rust") / "debug" / "roundtrip"


def works(*command: str) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ, check=False)
    assert (ended.returncode, ended.stdout) == (0, "ok\n"), ended.stderr


@pytest.mark.parametrize("client", GO)
def test_go(served: Served, go: Path, client: str) -> None:
    works(str(go), served.bootstrap, client)


@pytest.mark.parametrize("client", NODE)
def test_node(served: Served, node: Path, client: str) -> None:
    works("node", str(node), served.bootstrap, client)


@pytest.mark.parametrize("client", RUST)
def test_rust(served: Served, rust: Path, client: str) -> None:
    works(str(rust), served.bootstrap, client)

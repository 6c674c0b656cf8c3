"""``fencepost serve`` and unmodified clients of Go, Node and Rust: each produces, joins, reads, commits, and resumes at
its commit (``tests/clients``)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import Served

from fencepost_conformance.targets.jvm.jars import cache_root

pytestmark = [pytest.mark.clients, pytest.mark.all]
CLIENTS = Path(__file__).parents[1] / "clients"
GO = ("franz-go", "franz-go-next", "sarama", "kafka-go")
NODE = ("kafkajs", "platformatic", "platformatic-next")
RUST = ("krafka", "krafka-next")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    topics = tuple(f"{name}:2" for name in (*GO, *NODE, *RUST))
    with Served("--setting", "group.initial.rebalance.delay.ms=0", topics=topics) as server:
        yield server


def prepared(program: str, folder: str, place: Path, *command: str) -> Path:
    """Return a copy of the folder in which the command has run; skip the test if that is impossible."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"needs {program}")
    copy = place / folder
    shutil.copytree(CLIENTS / folder, copy)
    ended = subprocess.run([path, *command], cwd=copy, capture_output=True, text=True, timeout=900, check=False)
    if ended.returncode != 0:
        pytest.skip(f"{program} cannot build the clients: {ended.stderr.strip().splitlines()[-1:]}")
    return copy


@pytest.fixture(scope="module")
def go(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared("go", "go", tmp_path_factory.mktemp("go"), "build", "-o", "clients", ".") / "clients"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared("npm", "node", tmp_path_factory.mktemp("node"), "install", "--no-audit", "--no-fund")


@pytest.fixture(scope="module")
def rust(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build is kept, because compiling takes minutes."""
    target = cache_root() / "workers" / "rust"
    prepared("cargo", "rust", tmp_path_factory.mktemp("rust"), "build", "--locked", "--target-dir", str(target))
    return target / "debug" / "clients"


def works(*command: str, cwd: Path | None = None) -> None:
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, env=os.environ, check=False)
    assert (ended.returncode, ended.stdout) == (0, "ok\n"), ended.stderr


@pytest.mark.parametrize("client", GO)
def test_go(served: Served, go: Path, client: str) -> None:
    works(str(go), served.bootstrap, client)


@pytest.mark.parametrize("client", NODE)
def test_node(served: Served, node: Path, client: str) -> None:
    works("node", "main.mjs", served.bootstrap, client, cwd=node)


@pytest.mark.parametrize("client", RUST)
def test_rust(served: Served, rust: Path, client: str) -> None:
    works(str(rust), served.bootstrap, client)

"""``fencepost serve`` and Kafka's own unmodified Java clients: consumers of both protocols, transactions (the version
that bumps epochs), and the actions of admin tools: list, describe, reset and delete."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from served import Served

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.targets.jvm import jars
from fencepost_conformance.targets.jvm.builds import Build
from fencepost_conformance.targets.jvm.compiled import classes

pytestmark = [pytest.mark.jvm, pytest.mark.clients]
RELEASE = "4.4.0"
SOURCE = Path(__file__).parents[1] / "clients" / "Serve.java"
STEPS = ["topics", "produce", "classic", "consumer", "regex", "group settings", "transactions", "deleted"]


def test_the_java_clients_do_all_that_they_do_with_kafka() -> None:
    try:
        libraries = jars.fetch(f"org.apache.kafka:kafka-clients:{RELEASE}", "org.slf4j:slf4j-nop:1.7.36")
        compiled = classes("serve", Build(RELEASE), {SOURCE.name: SOURCE.read_text()}, libraries)
        program = jars.java()
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])
    path = os.pathsep.join(map(str, [compiled, *libraries]))
    with Served("--setting", "group.initial.rebalance.delay.ms=0") as server:
        command = [program, "-XX:TieredStopAtLevel=1", "-cp", path, "Serve", server.bootstrap]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert ended.stdout.split("\n")[:-1] == STEPS, ended.stderr
    assert ended.returncode == 0

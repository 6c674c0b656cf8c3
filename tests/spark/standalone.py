"""A Spark cluster on loopback: one master and some workers, each in a separate folder, which cannot import the
checkout."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark

START_S = 60
SPARK_HOME = Path(pyspark.__file__).parent
#: the suite and everything that would make it importable; executors get PySpark from Spark
_KEPT_FROM_THEM = re.compile(r"(__editable__|fencepost|pyspark|__pycache__|a1_coverage|distutils)")


def python_without(folder: Path, *left_out: str) -> Path:
    """Return an interpreter with the packages of this one, except the suite and packages whose names begin with these
    prefixes."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", folder], check=True, timeout=START_S)
    (room,) = folder.glob("lib/python*/site-packages")
    here = Path(pyspark.__file__).parent.parent
    for item in here.iterdir():
        if not _KEPT_FROM_THEM.match(item.name) and not item.name.startswith(left_out or ("\0",)):
            (room / item.name).symlink_to(item)
    return folder / "bin" / "python"


@dataclass(slots=True)
class Node:
    """One process of the cluster, in a separate folder."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def descendants(self) -> list[int]:
        """Return the live descendants of the process: the executor, its Python workers, their JVMs."""
        return descendants(self.process.pid)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@dataclass(slots=True)
class Cluster:
    url: str
    master: Node
    workers: list[Node] = field(default_factory=list)


@contextmanager
def cluster(folder: Path, workers: int = 2, cores: int = 1) -> Iterator[Cluster]:
    """Run the block, then end the processes by id. Fail if a process that they started is still alive."""
    port = free_port()
    master = _start(folder / "master", ["master.Master", "--host", "127.0.0.1", "--port", str(port)])
    made = Cluster(f"spark://127.0.0.1:{port}", master)
    try:
        _until(lambda: "I have been elected leader" in master.log, master)
        for number in range(workers):
            words = ["worker.Worker", "--host", "127.0.0.1", "--cores", str(cores), "--memory", "2g", made.url]
            made.workers.append(_start(folder / f"worker-{number}", words))
        for worker in made.workers:
            _until(lambda worker=worker: "Successfully registered with master" in worker.log, worker)
        yield made
    finally:
        nodes = [*made.workers, master]
        left = {pid for node in nodes for pid in node.descendants()}
        for node in nodes:
            node.process.terminate()
        for node in nodes:
            with suppress(subprocess.TimeoutExpired):
                node.process.wait(10)
            node.process.kill()
            node.process.wait()
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _start(folder: Path, words: Sequence[str]) -> Node:
    folder.mkdir(parents=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_WORKER_OPTS": "-Dspark.ui.enabled=false",
        "SPARK_DAEMON_MEMORY": "256m",
        **({"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}),
    }
    program = [SPARK_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{words[0]}"]
    page = ["--webui-port", "0"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*program, *page, *words[1:]], cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
    return Node(process, folder)


def _until(true: Any, node: Node) -> None:
    deadline = time.monotonic() + START_S
    while not true():
        assert node.process.poll() is None, node.log
        assert time.monotonic() < deadline, node.log
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def descendants(pid: int) -> list[int]:
    """Return the child processes of a process, from the parent ids in /proc."""
    below: dict[int, list[int]] = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(each.read_text().rpartition(")")[2].split()[1])
            below.setdefault(parent, []).append(int(each.parent.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = below.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def unavailable() -> str:
    """Return the reason why no cluster can run here, or ""."""
    if not (Path("/proc") / "self" / "stat").exists():
        return "processes are watched through /proc, which this system has not"
    return "" if shutil.which("java") else "needs a JDK 17 or later (java on the PATH)"

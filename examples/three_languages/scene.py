"""Clients in several languages on one ``fencepost serve``, which is killed and restarted while they work.

``python examples/three_languages/scene.py`` runs it. Workers in Python (confluent-kafka), Java (Kafka's clients) and
Go (franz-go) produce to one topic and read it in groups: one group for each worker, and two that all share, one of the
classic protocol and one of KIP-848. The server keeps its data in a folder. It is killed by SIGKILL and restarted on the
same port, ``--kills`` times. At the end, ``judge.py`` checks the reports of the workers against the server's data: no
acknowledged value is lost or duplicated, no committed record was delivered again, and every group is at the end.

A worker is a program: ``BOOTSTRAP TOPIC PARTITIONS NAME GROUP:PROTOCOL...``. It reports each step as a line of JSON
(``acked``, ``read``, ``committed``, ``assigned``, ...), each with the time in ms. After the first line on its standard
input it stops producing. At the end of that input, it leaves its groups and exits."""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from judge import Committed, Log, faults
from workers import WORKERS

from fencepost_conformance.common.errors import CannotRun

TOPIC, PARTITIONS = "orders", 4
#: values that each worker must have acknowledged before the next kill; each member must have committed, too
ENOUGH = 40
#: the longest wait for any progress
PATIENCE_S = 90
#: KIP-848 rebalances by heartbeats, and Kafka's default interval of five seconds would make a run long
SETTINGS = (
    "group.initial.rebalance.delay.ms=0",
    "group.consumer.min.heartbeat.interval.ms=500",
    "group.consumer.heartbeat.interval.ms=500",
)
#: the protocol of the group that only this worker reads in
OWN = {"python": "classic", "aiokafka": "classic", "java": "consumer", "go": "consumer"}


class Stuck(Exception):
    """Something made no progress."""


class Server:
    """``fencepost serve`` on a folder, or as a node on a database. A restart keeps the port."""

    def __init__(self, *options: str) -> None:
        self.at = "127.0.0.1:0"
        self._options = options
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the server, and return when it listens."""
        words = ["--json", *self._options, "--topic", f"{TOPIC}:{PARTITIONS}", "--listen", self.at]
        words += [word for each in SETTINGS for word in ("--setting", each)]
        command = [sys.executable, "-m", "fencepost_conformance.cli", "serve", *words]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        started = json.loads(self._process.stdout.readline() or '{"error": "it ended"}')
        if "listen" not in started:
            raise CannotRun(f"fencepost serve: {started['error']}")
        self.at = started["listen"]

    def kill(self) -> None:
        """Kill the server with SIGKILL, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    end = kill


class Nodes:
    """Two nodes on one database. The leader is killed, and the other node takes over."""

    def __init__(self, database: str) -> None:
        self._nodes = [
            Server("--data", database, "--node-id", str(number), "--lease-seconds", "2") for number in (1, 2)
        ]
        self._killed: Server | None = None

    @property
    def at(self) -> str:
        return ",".join(each.at for each in self._nodes)

    def start(self) -> None:
        """Start both nodes. Later, start the killed one again, as the standby."""
        for each in self._nodes if self._killed is None else [self._killed]:
            each.start()
        self._killed = None

    def kill(self) -> None:
        """Kill the leader."""
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415

        leader = AdminClient({"bootstrap.servers": self.at, "log_level": 0}).list_topics(timeout=20).controller_id
        self._killed = self._nodes[leader - 1]
        self._killed.kill()

    def end(self) -> None:
        for each in self._nodes:
            each.kill()


class Worker:
    """A running worker, and the lines that it has reported."""

    def __init__(self, name: str, command: list[str], at: str, groups: list[str], errors: Path) -> None:
        self.name = name
        self.groups = [each.partition(":")[0] for each in groups]
        self.lines: list[dict[str, Any]] = []
        self._errors = errors
        with errors.open("w") as file:
            self._process = subprocess.Popen(
                [*command, at, TOPIC, str(PARTITIONS), name, *groups],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            self.lines.append({"worker": self.name, **json.loads(text)})

    def check(self) -> None:
        """Raise ``Stuck`` if the worker has ended."""
        if self._process.poll() is not None:
            said = self._errors.read_text().strip().splitlines()[-3:]
            raise Stuck(f"worker {self.name} has ended with status {self._process.returncode}: {' / '.join(said)}")

    def lacks(self, since_ms: int) -> str:
        """Say what the worker has not done enough of since then; "" if it has."""
        acked = sum(line["event"] == "acked" and line["at"] > since_ms for line in self.lines)
        if acked < ENOUGH:
            return f"{self.name}: {acked} values acknowledged"
        for group in self.groups:
            some = [line for line in self.lines if line.get("group") == group and line["at"] > since_ms]
            if not any(line["event"] == "committed" and line["offsets"] for line in some):
                return f"{self.name}: nothing committed in {group}"
        return ""

    def last(self, event: str) -> bool:
        return any(line["event"] == event for line in self.lines)

    def no_more(self) -> None:
        """Make the worker stop producing."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def leave(self) -> None:
        """Make the worker leave its groups and exit."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            status = self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise Stuck(f"worker {self.name} does not end") from None
        self._reading.join(10)
        if status != 0:
            self.check()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Scene:
    """One run. ``say`` gets a line of text for each step."""

    def __init__(self, names: list[str], folder: Path, database: str | None, say: Callable[[str], None]) -> None:
        self._names, self._folder, self._say = names, folder, say
        self.server = Nodes(database) if database else Server("--data", str(folder / "data"))
        self.workers: list[Worker] = []

    def run(self, kills: int, seed: int) -> tuple[list[str], dict[str, int]]:
        """Return the faults found, and counts. Raise ``CannotRun``, or ``Stuck`` if something makes no progress."""
        commands = {name: WORKERS[name]() for name in self._names}
        try:
            self.server.start()
            self._say(f"the server listens on {self.server.at}")
            for name, command in commands.items():
                groups = [f"{name}:{OWN[name]}", "shared:classic", *["shared-next:consumer"] * (name != "aiokafka")]
                errors = self._folder / f"{name}.log"
                self.workers.append(Worker(name, command, self.server.at, groups, errors))
            self._all_go_on(0)
            chance = random.Random(seed)
            for kill in range(kills):
                time.sleep(chance.uniform(0, 2))
                self.server.kill()
                self._say(f"the server is killed ({kill + 1} of {kills})")
                time.sleep(chance.uniform(0, 1))
                self.server.start()
                since = time.time_ns() // 1_000_000
                self._say("the server is restarted")
                self._all_go_on(since)
            return self._end()
        finally:
            for worker in self.workers:
                worker.kill()
            self.server.end()

    def _end(self) -> tuple[list[str], dict[str, int]]:
        for worker in self.workers:
            worker.no_more()
        self._until(
            lambda: next((f"{each.name} has not ended" for each in self.workers if not each.last("produced")), "")
        )
        log = log_of(self.server.at)
        groups = sorted({group for worker in self.workers for group in worker.groups})
        self._say("the producers have stopped; the groups read to the end")

        def behind() -> str:
            at = committed_of(self.server.at, groups)
            ends = {partition: len(rows) for partition, rows in log.items()}
            return next((f"{group} is at {at[group]} of {ends}" for group in groups if at[group] != ends), "")

        self._until(behind, 0.5)
        for worker in self.workers:
            worker.leave()
        committed = committed_of(self.server.at, groups)
        lines = self.lines()
        counts = {
            "acknowledged": sum(line["event"] == "acked" for line in lines),
            "in the topic": sum(map(len, log.values())),
            "read": sum(len(line["records"]) for line in lines if line["event"] == "read"),
            "commits": sum(line["event"] == "committed" for line in lines),
            "errors reported by clients": sum(line["event"] == "error" for line in lines),
        }
        return faults(lines, log, committed), counts

    def lines(self) -> list[dict[str, Any]]:
        """Return the lines that the workers have reported."""
        return [line for worker in self.workers for line in worker.lines]

    def _all_go_on(self, since_ms: int) -> None:
        self._until(lambda: next(filter(None, (worker.lacks(since_ms) for worker in self.workers)), ""))
        self._say("all produce, read and commit")

    def _until(self, lacks: Callable[[], str], pause_s: float = 0.1) -> None:
        """Wait until ``lacks`` returns ""."""
        deadline = time.monotonic() + PATIENCE_S
        while lacking := lacks():
            for worker in self.workers:
                worker.check()
            if time.monotonic() > deadline:
                raise Stuck(f"after {PATIENCE_S} s: {lacking}")
            time.sleep(pause_s)


def log_of(at: str) -> Log:
    """Read the whole topic with a client that joins no group."""
    from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415  # a worker reports it if it is missing

    reader = Consumer({"bootstrap.servers": at, "group.id": "nobody", "enable.auto.commit": False, "log_level": 0})
    rows: dict[int, dict[int, str]] = {partition: {} for partition in range(PARTITIONS)}
    places = [TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)]
    ends = {place.partition: reader.get_watermark_offsets(place, timeout=20)[1] for place in places}
    reader.assign(places)
    while any(len(rows[partition]) < end for partition, end in ends.items()):
        message = reader.poll(20)
        if message is None or message.error():
            raise Stuck(f"the topic cannot be read: {message and message.error()}")
        rows[message.partition()][message.offset()] = message.value().decode()
    reader.close()
    return rows


def committed_of(at: str, groups: list[str]) -> Committed:
    """Return the committed offsets of each group, read from the server."""
    from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415

    found = {}
    for group in groups:
        reader = Consumer({"bootstrap.servers": at, "group.id": group, "enable.auto.commit": False, "log_level": 0})
        places = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
        found[group] = {row.partition: row.offset for row in reader.committed(places, timeout=20)}
        reader.close()
    return found


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    words.add_argument("workers", nargs="*", choices=[*WORKERS, []], help="python, java and go if none is named")
    words.add_argument("--kills", type=int, default=2)
    words.add_argument("--seed", type=int, default=1, help="seed of the moments of the kills")
    words.add_argument("--database", metavar="postgresql://…", help="run two nodes on it, and kill the leader")
    words.add_argument("--lines", type=Path, metavar="FILE", help="write the workers' reports to it")
    words.add_argument("--json", action="store_true")
    given = words.parse_args()
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {text}", file=sys.stderr if given.json else sys.stdout, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(given.workers or ["python", "java", "go"], Path(folder), given.database, say)
        try:
            found, counts = scene.run(given.kills, given.seed)
        except CannotRun as reason:
            print(f"scene: {reason}", file=sys.stderr)
            sys.exit(2)
        except Stuck as reason:
            found, counts = [str(reason)], {}
        except KeyboardInterrupt:
            sys.exit(2)
        finally:
            if given.lines:
                lines = sorted(scene.lines(), key=lambda line: line["at"])
                given.lines.write_text("".join(json.dumps(line) + "\n" for line in lines))
    if given.json:
        print(json.dumps({"passed": not found, "faults": found, "counts": counts}))
    else:
        print(", ".join(f"{count:,} {name}" for name, count in counts.items()))
        print("\n".join(["failed:", *found[:20]]) if found else "passed: nothing is lost, nothing is delivered again")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()

"""A whole Apache Kafka broker of one node, on loopback, in a temporary folder (``docs/targets.md``)."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32, i32Timedelta

from fencepost.wire.frames import API_KEYS, RequestHeader, framed, read_response, write_request

from ..common.errors import BrokerFault
from .jvm import jars
from .jvm.builds import numbers
from .jvm.releases import broker_artifacts

#: setting for 3.9 with its own default coordinator, the one in Scala
SCALA_COORDINATOR: Final = {"group.coordinator.new.enable": "false"}
DEFAULT_VERSION = "4.3.1"
HOST = "127.0.0.1"
START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 20.0
TAIL_LINES = 30
_MEMORY: Final = Path("/dev/shm")
_ROOM: Final = 2 << 30
#: Any valid cluster id works: 16 bytes in URL-safe base 64.
CLUSTER_ID = "ZmVuY2Vwb3N0LWNvbmZvcg"


_SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_TIMED: Final = ("-XX:+UseSerialGC", "-XX:-UsePerfData")
#: the message of an exception, in a line of a log
_EXCEPTION: Final = re.compile(r"^(?:Exception in thread .*? )?[\w.]+(?:Exception|Error): (.+)$", re.MULTILINE)
#: the names and passwords that Kafka's StorageTool reads
_FORMATTED: Final = re.compile("[!#-+.-~-]+")


class Broker:
    """A context manager: the broker runs from ``start`` (or ``with``) to ``stop``.

    ``settings`` are broker settings by Kafka's names; they override the defaults below. ``bootstrap`` is its address.
    With ``logins``, passwords by name, it also listens at ``secured_port``, where these users log in by PLAIN or SCRAM;
    over TLS, if the settings have a key store for the listener ``secured``. Users with commas, quotes, spaces or
    characters beyond ASCII log in by PLAIN alone, because Kafka's StorageTool cannot read them; the request
    AlterUserScramCredentials adds them for SCRAM. ``timed``: its JVM compiles as an operator's does, so that times
    count; otherwise it starts with two thirds of the processor time, and its controller writes each change at once.
    ``log_level``: the least level of the lines in its log.
    """

    def __init__(
        self,
        version: str = DEFAULT_VERSION,
        *,
        initial_rebalance_delay_ms: int = 3_000,
        offsets_partitions: int = 4,
        heap_mb: int = 512,
        timed: bool = False,
        log_level: str = "info",
        settings: Mapping[str, str] | None = None,
        logins: Mapping[str, str] | None = None,
    ) -> None:
        self.version = version
        self.name = f"broker:{version}"
        flags = _TIMED if timed else jars.SHORT_RUN
        log = f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log_level}"
        self._java = [f"-Xmx{heap_mb}m", *flags, "-Djava.awt.headless=true", log]
        self._settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": str(offsets_partitions),
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "1",
            "group.initial.rebalance.delay.ms": str(initial_rebalance_delay_ms),
            # Kafka deletes empty groups at a time that no trace shows (O-EXP-20); here never while the broker runs
            "offsets.retention.check.interval.ms": str(7 * 24 * 3_600_000),
            # on a busy machine the controller would declare a slow broker dead, and its coordinators would move
            "broker.session.timeout.ms": "300000",
            "auto.create.topics.enable": "false",
            "num.network.threads": "2",
            "num.io.threads": "4",
            "log.cleaner.dedupe.buffer.size": "2097152",
            # the controller waits 25 ms for further changes, and a broker forwards one request at a time to it
            **({} if timed else {"controller.quorum.append.linger.ms": "0"}),
            # the coordinator that the rule book describes is Kafka's default from 4.0 on (D-01 to D-21)
            **({"group.coordinator.new.enable": "true"} if numbers(version) < (4,) else {}),
            **(_secured(logins, settings or {}) if logins else {}),
            **(settings or {}),
        }
        self._logins = logins or {}
        self._folder: Path | None = None
        self._store: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        self._run: list[str] = []
        self.port = self.secured_port = 0
        #: seconds from the last start of its process to its first answer
        self.ready_s = 0.0

    @property
    def bootstrap(self) -> str:
        """``host:port`` for clients."""
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """Id of its process, while it runs."""
        if self._process is None:
            raise BrokerFault(f"{self.name} was not started")
        return self._process.pid

    @property
    def log(self) -> Path:
        """The broker's log, while it runs."""
        if self._folder is None:
            raise BrokerFault(f"{self.name} was not started")
        return self._folder / "broker.log"

    @property
    def data(self) -> Path:
        """The folder with the logs of its partitions, while it runs."""
        if self._store is None:
            raise BrokerFault(f"{self.name} was not started")
        return self._store / "data"

    def start(self) -> Self:
        """Format a fresh store and wait until the broker answers. Raises ``CannotRun`` without Java or jars."""
        libraries = jars.fetch(*broker_artifacts(self.version))
        java = jars.java()
        self._folder = Path(tempfile.mkdtemp(prefix="fencepost-broker-"))
        self._store = Path(tempfile.mkdtemp(prefix="fencepost-broker-", dir=_in_memory()))
        try:
            properties = self._write_properties()
            self._output = self.log.open("wb")
            command = [
                java, *self._java,
                f"-Dkafka.logs.dir={self._folder}", "-cp", os.pathsep.join(map(str, libraries)),
            ]  # fmt: skip
            self._format(command, properties)
            self._run = [*command, "kafka.Kafka", str(properties)]
            self._launch()
        except BaseException:
            self.stop()
            raise
        return self

    def _launch(self) -> None:
        began = time.monotonic()
        self._process = subprocess.Popen(
            self._run, stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.STDOUT, cwd=self._folder
        )
        self._wait_until_ready()
        self.ready_s = time.monotonic() - began

    def restart(self, *, cleanly: bool = False) -> None:
        """Kill the broker (SIGKILL) and start it again with its store, at its address. ``cleanly``: end it by SIGTERM,
        so that the controller need not wait for the end of its session. Raises ``BrokerFault``."""
        if self._process is None:
            raise BrokerFault(f"{self.name} was not started")
        if cleanly:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(START_TIMEOUT_S)
        self._process.kill()
        self._process.wait()
        self._launch()

    def _write_properties(self) -> Path:
        assert self._folder is not None
        assert self._store is not None
        with _free_port() as port, _free_port() as controller_port, _free_port() as secured_port:
            self.port, self.secured_port = port, secured_port
        secured = f",SECURED://{HOST}:{secured_port}" if self._logins else ""
        values = {
            **self._settings,
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}{secured}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port}{secured}",
            "controller.quorum.voters": f"1@{HOST}:{controller_port}",
            "log.dirs": str(self.data),
        }
        path = self._folder / "server.properties"
        path.write_text("".join(f"{name}={_property(value)}\n" for name, value in values.items()))
        return path

    def _format(self, command: list[str], properties: Path) -> None:
        users = [
            word
            for name, password in self._logins.items()
            if _FORMATTED.fullmatch(name + password)
            for mechanism in _SCRAM
            for word in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
        ]
        answer = subprocess.run(
            [*command, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties), *users],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            timeout=START_TIMEOUT_S,
            check=False,
        )
        if answer.returncode != 0:
            raise BrokerFault(f"{self.name}: its store could not be formatted{self._end_of_log()}")

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while not _answers(self.port):
            if self._process.poll() is not None:
                status = self._process.returncode
                raise BrokerFault(f"{self.name} ended with status {status} while starting{self._end_of_log()}")
            if time.monotonic() > deadline:
                raise BrokerFault(f"{self.name} was not ready after {START_TIMEOUT_S:g} s{self._end_of_log()}")
            time.sleep(0.1)

    def tail(self) -> str:
        """The last lines of the broker's log."""
        if self._output is not None:
            self._output.flush()
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:])

    def _end_of_log(self) -> str:
        """The message of the first exception in the broker's last lines, if any, and these lines."""
        tail = self.tail()
        exception = _EXCEPTION.search(tail)
        return f"{f': {exception[1]}' if exception else ''}. Its log ends:\n{tail}"

    def create_topic(self, name: str, partitions: int = 1, *, timeout_s: float = 30.0) -> None:
        """Create a topic and wait until the broker leads it. Raises ``BrokerFault`` if the broker fails."""
        topic = CreatableTopic(
            name=TopicName(name),
            num_partitions=i32(partitions),
            replication_factor=i16(1),
            assignments=(),
            configs=(),
        )
        request = CreateTopicsRequest(topics=(topic,), timeout=i32Timedelta.parse(timedelta(seconds=timeout_s)))
        with socket.create_connection((HOST, self.port), timeout=timeout_s) as connection:
            header = RequestHeader(API_KEYS["create_topics"], CreateTopicsRequest.__version__, 1, "fencepost")
            connection.sendall(framed(write_request(header, request)))
            with connection.makefile("rb") as stream:
                answer = stream.read(int.from_bytes(stream.read(4), "big"))
        (result,) = read_response("create_topics", CreateTopicsRequest.__version__, answer).topics
        if result.error_code != 0:
            raise BrokerFault(f"{self.name} did not create topic {name!r}: {result.error_message or result.error_code}")

    def stop(self) -> None:
        """End the broker and delete its folder. May be called again."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_TIMEOUT_S)
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
        self._process = None
        if self._output is not None:
            self._output.close()
            self._output = None
        for folder in filter(None, (self._folder, self._store)):
            shutil.rmtree(folder, ignore_errors=True)
        self._folder = self._store = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


def _secured(logins: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the listener for log-ins."""
    tls = "listener.name.secured.ssl.keystore.location" in settings
    users = " ".join(f"{_quoted(f'user_{name}')}={_quoted(password)}" for name, password in logins.items())
    modules = "org.apache.kafka.common.security"
    scram = {
        f"listener.name.secured.{mechanism.lower()}.sasl.jaas.config": f"{modules}.scram.ScramLoginModule required;"
        for mechanism in _SCRAM
    }
    protocol = "SASL_SSL" if tls else "SASL_PLAINTEXT"
    return {
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:{protocol}",
        "sasl.enabled.mechanisms": ",".join(("PLAIN", *_SCRAM)),
        "listener.name.secured.plain.sasl.jaas.config": f"{modules}.plain.PlainLoginModule required {users};",
        **scram,
    }


def _quoted(text: str) -> str:
    """Return a word as it is written in a JAAS configuration."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _property(value: str) -> str:
    """Return a value as it is written in Java's properties files, which are Latin-1."""
    units = value.replace("\\", "\\\\").encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2)]
    return "".join(chr(code) if " " <= chr(code) <= "~" else f"\\u{code:04x}" for code in codes)


def _in_memory() -> Path | None:
    """Return a folder in memory with room for a store, if there is one: Kafka waits for the disk several times for each
    new partition."""
    try:
        return _MEMORY if shutil.disk_usage(_MEMORY).free >= _ROOM and os.access(_MEMORY, os.W_OK) else None
    except OSError:
        return None


@contextmanager
def _free_port() -> Iterator[int]:
    """Yield an unused port, held until the block ends so that two of them differ."""
    with socket.socket() as holder:
        holder.bind((HOST, 0))
        yield holder.getsockname()[1]


def _answers(port: int) -> bool:
    """Whether the broker there answers ApiVersions, which it does only when it has started."""
    request = b"\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff"  # ApiVersions v0, correlation id 1, no client id
    try:
        with socket.create_connection((HOST, port), timeout=2) as connection:
            connection.settimeout(2)
            connection.sendall(len(request).to_bytes(4, "big") + request)
            answer = connection.recv(10)
    except OSError:
        return False
    return len(answer) == 10 and answer[4:8] == b"\x00\x00\x00\x01" and answer[8:10] == b"\x00\x00"

"""The place where Spark runs: this machine, or a cluster. Only names and addresses; nothing is started here."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...common.errors import CannotRun

#: seconds in which a cluster must answer, and then provide a first executor
WAIT_S = 120
KNOWN = "local[N], spark://HOST:PORT, yarn, k8s://HOST:PORT"
LOOPBACK = "127.0.0.1"
_LOCAL = re.compile(r"local(\[(\*|\d+)(, *\d+)?\])?")
_STANDALONE = re.compile(r"spark://[^/,\s:]+:\d+(,[^/,\s:]+:\d+)*")
_KUBERNETES = re.compile(r"k8s://(https?://)?(?P<host>\[[^]]+\]|[^/,\s:]+)(:(?P<port>\d+))?(/\S*)?")
#: any of these tells executors the address of this process
_SET_BY_OPTIONS = ("spark.driver.host", "spark.driver.bindAddress")
_CONNECT_S = 5


@dataclass(frozen=True, slots=True)
class Place:
    """``master``: in Spark's form, "" for this machine (or for what spark-submit has set); ``conf``: settings by
    Spark's names; ``cores``: of this machine, 0 for all; ``wait_s``: how long a cluster may take to provide cores."""

    master: str = ""
    conf: tuple[tuple[str, str], ...] = ()
    cores: int = 0
    wait_s: int = WAIT_S

    @property
    def here(self) -> str:
        """The master on this machine."""
        return f"local[{self.cores or os.cpu_count() or 1}]"


def place_of(master: str | None, conf: Sequence[str] = (), workers: int = 0, wait_s: int = WAIT_S) -> Place:
    """Return the place that a command's options describe. Raises ``CannotRun`` for values that Spark does not know."""
    settings = dict(map(_setting, conf))
    if "spark.master" in settings:
        raise CannotRun("set the master with --master, not with --conf spark.master")
    master = master or ""
    if master and not any(each.fullmatch(master) for each in (_LOCAL, _STANDALONE, _KUBERNETES)) and master != "yarn":
        raise CannotRun(f"no Spark master {master!r}; known: {KNOWN}")
    if master and workers:
        raise CannotRun(
            "--workers counts cores of this machine; with --master use local[N], or on a cluster "
            "--conf spark.cores.max=N (spark://) or --conf spark.executor.instances=N (yarn, k8s://)"
        )
    return Place(master, tuple(settings.items()), workers, wait_s)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark.") or name != name.strip():
        raise CannotRun(f"--conf needs a setting of Spark as spark.NAME=VALUE (got {text!r})")
    return name, value


def submitted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether spark-submit started this process, and so has decided where it runs."""
    return "PYSPARK_GATEWAY_PORT" in environment


def is_cluster(master: str) -> bool:
    """Whether executors are separate processes, perhaps on other machines."""
    return not _LOCAL.fullmatch(master)


def driver_address(place: Place, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the settings for the address at which this process listens for its executors: loopback, unless set
    otherwise.

    Raises ``CannotRun`` if the executors could not reach it there.
    """
    cluster = place.master and is_cluster(place.master)
    if any(name in _SET_BY_OPTIONS for name, _ in place.conf) or (cluster and "SPARK_LOCAL_IP" in environment):
        return {}
    if cluster and not all(map(_is_loopback, _hosts(place.master))):
        raise CannotRun(
            f"the executors of {place.master} must reach this process, which listens on loopback by default: "
            "give its address for them with --conf spark.driver.host=ADDRESS"
        )
    return dict.fromkeys(_SET_BY_OPTIONS, LOOPBACK)


def require_reachable(master: str, environment: Mapping[str, str] = os.environ) -> None:
    """Raise ``CannotRun`` if nothing listens at the master's address; Spark itself would try for minutes."""
    if master == "yarn":
        if not {"HADOOP_CONF_DIR", "YARN_CONF_DIR"} & set(environment):
            raise CannotRun("HADOOP_CONF_DIR or YARN_CONF_DIR must be set to the folder with YARN's configuration")
        return
    wrong: list[str] = []
    for host, port in _addresses(master):
        try:
            socket.create_connection((host, port), timeout=_CONNECT_S).close()
        except OSError as reason:
            wrong.append(f"{host}:{port}: {'no answer' if isinstance(reason, TimeoutError) else reason.strerror}")
        else:
            return
    if wrong:
        raise CannotRun(f"no Spark master at {master} ({'; '.join(wrong)}); is it running, and is the address right?")


def _addresses(master: str) -> list[tuple[str, int]]:
    if master.startswith("spark://"):
        parts = [each.rpartition(":") for each in master.removeprefix("spark://").split(",")]
        return [(host, int(port)) for host, _, port in parts]
    if found := _KUBERNETES.fullmatch(master):
        usual = 80 if "http://" in master else 443
        return [(found["host"].strip("[]"), int(found["port"] or usual))]
    return []


def _hosts(master: str) -> list[str]:
    """Return the hosts of the master; one empty name if it has no address."""
    return [host for host, _ in _addresses(master)] or [""]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

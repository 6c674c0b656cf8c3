"""The jobs of Fencepost, and the parts that each needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .parts import PORT, Part


@dataclass(frozen=True, slots=True)
class Job:
    """One job. ``what``: the job and its command. ``needs``: the parts that it cannot run without. ``uses``: the parts
    without which it runs in another way."""

    what: str
    needs: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()


_KAFKA: Final = ("extra suite", "JDK", "cache", "Kafka's coordinator")
_BROKER: Final = ("extra suite", "Java", "cache", "Kafka's broker")

JOBS: Final[Mapping[str, Job]] = {
    "embed": Job("embed the coordinator, its stores and workers: import fencepost", ("Python",), ("extra kafka",)),
    "serve": Job("serve Kafka clients: fencepost serve", ("extra serve",), (f"port {PORT}",)),
    "workers": Job("share work over TCP: fencepost.remote", ("extra serve",)),
    "postgres": Job("keep groups in PostgreSQL", ("extra postgres",)),
    "check": Job("explore a model: fencepost check", ("extra suite",)),
    "tlc": Job("compare the model with the TLA+ spec: fencepost check --engine tlc", ("extra suite", "TLC")),
    "conform": Job("test the core, or a broker at HOST:PORT: fencepost conform", ("extra suite",)),
    "record": Job("record and judge traces: fencepost record, validate, replay", ("extra suite",)),
    "import": Job("make traces from packet captures: fencepost import", ("extra suite", "extra pcap")),
    "kafka": Job("compare with Kafka's coordinator: fencepost conform --target kafka:VERSION, diff", _KAFKA),
    "broker": Job("test a whole Kafka broker: fencepost conform --target broker:VERSION", _BROKER),
    "certify": Job("make a certificate of the core: fencepost certify", ("extra suite", "TLC", *_KAFKA[1:])),
    "spark": Job("run on Spark: --engine spark", ("extra spark", "Java")),
    "clients": Job("test Python's Kafka clients", ("extra suite", "extra clients")),
    "bench": Job("measure the server beside Kafka and kfake: fencepost bench serve", (*_BROKER, "Go")),
    "compile": Job("compile the core with mypyc: make compiled", ("C compiler",)),
}


def lacking(job: Job, parts: Mapping[str, Part]) -> list[Part]:
    """The parts without which the job cannot run."""
    return [parts[name] for name in job.needs if not parts[name].there]


def missed(job: Job, parts: Mapping[str, Part]) -> list[Part]:
    """The parts without which the job runs in another way."""
    return [parts[name] for name in job.uses if not parts[name].there]

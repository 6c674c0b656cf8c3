"""The choices that a seed makes before a schedule of workers runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from random import Random
from typing import Final

from fencepost.remote import Sasl
from fencepost.remote.sasl import Mechanism

from .network import NetworkFaults
from .store import StoreFaults

USER, PASSWORD = "alice", "secret of alice"


class Way(Enum):
    """How workers reach the coordinator."""

    WITHIN = "in the same process"
    PORT = "over the port"
    SECURED = "over the port, with log-ins and TLS"


@dataclass(frozen=True, slots=True)
class Security:
    """``sasl``: the log-in of the workers, None if there is none. ``login_ms``: how long it lasts; 0: it does not end.
    ``tls``: whether TLS is spoken."""

    sasl: Sasl | None = None
    login_ms: int = 0
    tls: bool = False


NO_SECURITY: Final = Security()


@dataclass(frozen=True, slots=True)
class Plan:
    """The choices of a seed that are made before the run."""

    remote: bool
    protocol: str
    workers: int
    static: bool
    store: StoreFaults
    network: NetworkFaults
    disturbances: int
    restarts: bool
    security: Security = NO_SECURITY

    @property
    def static_classic(self) -> bool:
        """Whether the members are static members of a classic group, which Kafka protects less."""
        return self.static and self.protocol == "classic"


def plan_of(random: Random, way: Way) -> Plan:
    """The plan of a seed: half of them have failures of the store, and half of those over the port failures of the
    network."""
    remote = way is not Way.WITHIN
    store, network = random.random() < 0.5, random.random() < 0.5
    return replace(
        _plan_of(random, remote, store=store, network=network),
        security=_security_of(random) if way is Way.SECURED else NO_SECURITY,
    )


def _security_of(random: Random) -> Security:
    mechanism: Mechanism = random.choice(("PLAIN", "PLAIN", "SCRAM-SHA-256"))
    return Security(
        sasl=Sasl(USER, PASSWORD, mechanism) if random.random() < 0.8 else None,
        login_ms=random.choice((0, 1_500, 4_000, 15_000)),
        tls=random.random() < 0.6,
    )


def _plan_of(random: Random, remote: bool, *, store: bool, network: bool) -> Plan:
    return Plan(
        remote=remote,
        protocol=random.choice(("consumer", "classic")),
        workers=random.randint(1, 3),
        static=random.random() < 0.3,
        store=StoreFaults(
            slow_s=random.choice((0.0, 0.01, 0.3)),
            refuse=0.1 if store else 0.0,
            doubt=random.choice((0.0, 0.05)) if store else 0.0,
            unloadable=0.2 if store else 0.0,
        ),
        network=NetworkFaults(
            latency_s=random.choice((0.0, 0.001, 0.05)),
            lose=0.03 if network else 0.0,
            stall=0.02 if network else 0.0,
            stall_s=random.choice((0.5, 4.0, 8.0)),
        ),
        disturbances=random.randint(0, 5),
        restarts=random.random() < 0.3,
    )

"""Brokers that a run starts for itself: Apache Kafka, franz-go's kfake, and ``fencepost serve``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from ..common.errors import BrokerFault, CannotRun
from ..targets.broker import Broker
from ..targets.registry import TargetName, require_open
from .bench.served import fencepost, kfake

_HOST: Final = "127.0.0.1"


@contextmanager
def running(named: TargetName, profile: str, settings: Mapping[str, str]) -> Iterator[TargetName]:
    """Yield the address of a broker target; start the broker if the target is not an address. ``settings``: by Kafka's
    names, for the brokers that take settings; kfake takes none. Raises ``CannotRun``."""
    if named.host:
        require_open(named)
        yield named
    elif named.program == "kfake":
        with kfake() as server:
            yield _at(server.bootstrap)
    elif named.program == "serve":
        with fencepost(name="fencepost serve", settings=settings, more=("--profile", profile)) as server:
            yield _at(server.bootstrap)
    else:
        try:
            with Broker(named.release, settings=settings) as broker:
                yield TargetName("broker", host=_HOST, port=broker.port)
        except BrokerFault as fault:
            raise CannotRun(str(fault)) from None


def _at(bootstrap: str) -> TargetName:
    host, _, port = bootstrap.rpartition(":")
    return TargetName("broker", host=host, port=int(port))

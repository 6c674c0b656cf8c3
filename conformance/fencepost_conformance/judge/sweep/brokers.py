"""The brokers of the sweep, by name: ``serve``, or a release of Apache Kafka."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import PROFILES

from ...common.addresses import Address, parse_address
from ...targets.broker import Broker

SERVE: Final = "serve"
ALL: Final = (SERVE, "4.0.2", "4.3.1", "4.4.0")
_NO_DELAY: Final = "group.initial.rebalance.delay.ms=0"
_STOP_TIMEOUT_S: Final = 30.0


def profile_of(broker: str) -> Profile:
    """The profile of the broker of that name."""
    return PROFILES["intended" if broker == SERVE else f"kafka-{broker.rpartition('.')[0]}"]


@contextmanager
def running(broker: str) -> Iterator[Address]:
    """Start the broker of that name; yields its address. Raises ``CannotRun`` without Java or Kafka's jars, and
    ``BrokerFault``."""
    if broker != SERVE:
        with Broker(broker, initial_rebalance_delay_ms=0) as kafka:
            yield parse_address(kafka.bootstrap, broker)
        return
    command = [sys.executable, "-m", "fencepost_conformance.cli", "serve", "--json", "--listen", "127.0.0.1:0"]
    with subprocess.Popen([*command, "--setting", _NO_DELAY], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield parse_address(json.loads(process.stdout.readline())["listen"], broker)
        finally:
            process.terminate()
            process.communicate(timeout=_STOP_TIMEOUT_S)

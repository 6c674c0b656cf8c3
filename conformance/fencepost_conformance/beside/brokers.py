"""Start the two brokers that are compared."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ..addresses import Address, parse_address
from ..targets.broker import Broker, BrokerFault
from .play import Logins, Player, error_codes
from .script import Move, Run

DEFAULT: Final = "4.4.0"
_OFFSETS_PARTITIONS: Final = 4
_STOP_TIMEOUT_S: Final = 30.0
_NO_DELAY: Final = "group.initial.rebalance.delay.ms=0"
_SERVE: Final = (
    "serve", "--json", "--listen", "127.0.0.1:0", "--profile", "kafka-4.4", "--node-id", "1",
    "--partitions", str(_OFFSETS_PARTITIONS), "--setting", _NO_DELAY,
)  # fmt: skip


@contextmanager
def served(environment: Mapping[str, str] = os.environ, options: Sequence[str] = ()) -> Iterator[Address]:
    """Start ``fencepost serve``; yields its address. ``environment``: of its process, for example with the path of a
    faulty copy. ``options``: further options."""
    command = [sys.executable, "-m", "fencepost_conformance.cli", *_SERVE, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield parse_address(json.loads(process.stdout.readline())["listen"], "serve")
        finally:
            process.terminate()
            process.communicate(timeout=_STOP_TIMEOUT_S)


@contextmanager
def kafka(release: str) -> Iterator[Address]:
    """Start a broker of that release; yields its address once its coordinators are loaded. Raises ``CannotRun`` without
    Java or Kafka's jars, and ``BrokerFault``."""
    with Broker(release, initial_rebalance_delay_ms=0, offsets_partitions=_OFFSETS_PARTITIONS) as broker:
        address = parse_address(broker.bootstrap, release)
        asyncio.run(_until_loaded(address))
        yield address


@contextmanager
def guarded_server(
    logins: Logins, rules: Sequence[str], environment: Mapping[str, str] = os.environ
) -> Iterator[Address]:
    """As ``served``, with users and with ACL rules: lines of ``--acl``."""
    with tempfile.TemporaryDirectory(prefix="fencepost-rights-") as folder:
        users, acl = Path(folder) / "users", Path(folder) / "acl"
        users.write_text("".join(f"{name}:{password}\n" for name, password in logins.passwords.items()))
        acl.write_text("".join(f"{line}\n" for line in rules))
        options = (
            "--users",
            str(users),
            "--sasl",
            "PLAIN",
            "--acl",
            str(acl),
            "--superuser",
            f"User:{logins.superuser}",
        )
        with served(environment, options) as address:
            yield address


@contextmanager
def guarded_kafka(release: str, logins: Logins, rules: Sequence[Mapping[str, Any]]) -> Iterator[Address]:
    """As ``kafka``, with users and with ACL rules: rows of CreateAcls. Yields the address of the listener with
    log-in."""
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{logins.superuser};User:ANONYMOUS",
    }
    with Broker(
        release,
        initial_rebalance_delay_ms=0,
        offsets_partitions=_OFFSETS_PARTITIONS,
        settings=settings,
        logins=logins.passwords,
    ) as broker:
        address = parse_address(broker.bootstrap, release)
        asyncio.run(_until_loaded(address))
        asyncio.run(_guarded(address, rules))
        yield Address(address.host, broker.secured_port)


async def _guarded(address: Address, rules: Sequence[Mapping[str, Any]]) -> None:
    player = Player(address, Run("guarded-", 0))
    answer, _ = await player.exchange("create_acls", 3, {"creations": list(rules)})
    if any(error_codes(answer)):
        raise BrokerFault(f"CreateAcls is answered {answer}")
    await player.barrier()
    await player.close()


async def _until_loaded(address: Address) -> None:
    """Wait until the coordinators are loaded. Kafka creates its internal topics on the first request; ``Player.ask``
    retries while they load."""
    player = Player(address, Run("loaded-", 0))
    for kind in (0, 1):
        await player.ask(Move("find_coordinator", 4, {"coordinator_keys": ["g"], "key_type": kind}))
    await player.ask(Move("list_groups", 4, {}))
    await player.ask(Move("init_producer_id", 4, {"transactional_id": "loaded", "transaction_timeout": 60_000}))
    for at in range(10 * _OFFSETS_PARTITIONS):  # one coordinator in every partition of the offsets topic
        await player.ask(Move("heartbeat", 0, {"group_id": f"g{at}", "generation_id": 1, "member_id": "m"}))
    await player.close()

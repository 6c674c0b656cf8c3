"""Start the two brokers that are compared."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fencepost_server.transactions.state import Transaction

from ...common.addresses import Address, parse_address
from ...common.errors import BrokerFault
from ...targets.broker import Broker
from . import exhausted
from .lines import Place, Tcp
from .parts import Part
from .play import NO_LOGINS, OFFSETS_PARTITIONS, Logins, Player, error_codes
from .script import Move, Run

DEFAULT: Final = "4.4.0"
_STOP_TIMEOUT_S: Final = 30.0
#: of fetches: scripts leave theirs behind
_SESSIONS: Final = {"max.incremental.fetch.session.cache.slots": "1000000"}
_ANY: Final = 1
#: a filter of DeleteAcls
_EVERY_RULE: Final = {
    "resource_type_filter": _ANY, "resource_name_filter": None, "pattern_type_filter": _ANY,
    "principal_filter": None, "host_filter": None, "operation": _ANY, "permission_type": _ANY,
}  # fmt: skip
_NO_DELAY: Final = "group.initial.rebalance.delay.ms=0"
_SERVE: Final = (
    "serve", "--json", "--listen", "127.0.0.1:0", "--profile", "kafka-4.4", "--node-id", "1",
    "--partitions", str(OFFSETS_PARTITIONS), "--setting", _NO_DELAY,
)  # fmt: skip


@contextmanager
def served(
    environment: Mapping[str, str] = os.environ,
    logins: Logins = NO_LOGINS,
    rules: Sequence[str] = (),
    *,
    data: Path | None = None,
) -> Iterator[Tcp]:
    """Run ``fencepost serve`` in another process. ``environment``: of the process, for example with the path of a
    faulty copy. ``logins``: the users, if there are any; ``rules``: their rights, as lines of ``--acl``. ``data``: the
    folder of its store; None: it stores everything in memory."""
    with tempfile.TemporaryDirectory(prefix="fencepost-beside-") as folder:
        options: tuple[str, ...] = () if data is None else ("--data", str(data), "--no-flush")
        if logins.passwords:
            users, acl = Path(folder) / "users", Path(folder) / "acl"
            users.write_text("".join(f"{name}:{password}\n" for name, password in logins.passwords.items()))
            acl.write_text("".join(f"{line}\n" for line in rules))
            superuser = f"User:{logins.superuser}"
            options += ("--users", str(users), "--sasl", "PLAIN", "--acl", str(acl), "--superuser", superuser)
        command = [sys.executable, "-m", "fencepost_conformance.cli", *_SERVE, *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stdout is not None
            try:
                yield Tcp(parse_address(json.loads(process.stdout.readline())["listen"], "serve"))
            finally:
                process.terminate()
                process.communicate(timeout=_STOP_TIMEOUT_S)


@dataclass(frozen=True, slots=True)
class Kafka:
    """A broker. ``place``: the listener for scripts; ``admin``: the listener on which every client has all rights."""

    place: Place
    admin: Place
    broker: Broker | None = None

    async def prepare(self, part: Part) -> None:
        """Set the broker's rules and transactions to those with which a part begins. Raises ``BrokerFault``."""
        if part.guarded:
            await self._allow(part.rows)
        if part.transactions:
            await self._load(part.transactions)

    async def _allow(self, rules: Sequence[Mapping[str, Any]]) -> None:
        """Replace all rules by these."""
        player = Player(self.admin, Run("guarded-", 0))
        await _done(player, "delete_acls", 3, {"filters": [_EVERY_RULE]})
        await _done(player, "create_acls", 3, {"creations": list(rules)})
        await player.barrier()
        await player.close()

    async def _load(self, rows: Sequence[Transaction]) -> None:
        """Write transactions to the broker's log, and restart it."""
        if self.broker is None:
            raise BrokerFault("initial transactions need a broker that is started for the run (got an address)")
        player = Player(self.admin, Run("loaded-", 0), client_id=exhausted.CLIENT)
        await _done(player, "produce", exhausted.PRODUCE, exhausted.produced(rows, int(time.time() * 1_000)))
        await player.close()
        self.broker.restart(cleanly=True)
        await _until_loaded(self.admin)


async def _done(player: Player, api: str, version: int, values: Any) -> None:
    answer, _ = await player.exchange(api, version, values)
    if any(error_codes(answer)):
        raise BrokerFault(f"{api} is answered {answer}")


@contextmanager
def kafka(release: str, logins: Logins = NO_LOGINS) -> Iterator[Kafka]:
    """Run a broker of that release; its coordinators are loaded. ``logins``: the users, if there are any; they have no
    rights yet. Raises ``CannotRun`` without Java or Kafka's jars, and ``BrokerFault``."""
    settings = dict(_SESSIONS)
    if logins.passwords:
        settings["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        settings["super.users"] = f"User:{logins.superuser};User:ANONYMOUS"
    with Broker(
        release,
        initial_rebalance_delay_ms=0,
        offsets_partitions=OFFSETS_PARTITIONS,
        log_level="warn",  # it logs several lines for each topic
        settings=settings,
        logins=logins.passwords,
    ) as broker:
        admin = Tcp(parse_address(broker.bootstrap, release))
        asyncio.run(_until_loaded(admin))
        place = Tcp(Address(admin.address.host, broker.secured_port)) if logins.passwords else admin
        yield Kafka(place, admin, broker)


async def _until_loaded(place: Place) -> None:
    """Wait until the coordinators are loaded. Kafka creates its internal topics on the first request; ``Player.ask``
    retries while they load."""
    player = Player(place, Run("loaded-", 0))
    for kind in (0, 1):
        await player.ask(Move("find_coordinator", 4, {"coordinator_keys": ["g"], "key_type": kind}))
    await player.ask(Move("list_groups", 4, {}))
    await player.ask(Move("init_producer_id", 4, {"transactional_id": "loaded", "transaction_timeout": 60_000}))
    for at in range(10 * OFFSETS_PARTITIONS):  # in every partition of the offsets topic there is one
        await player.ask(Move("heartbeat", 0, {"group_id": f"g{at}", "generation_id": 1, "member_id": "m"}))
    await player.close()

"""Groups that a broker coordinates outside this process."""

from __future__ import annotations

import ssl
from typing import Unpack

from fencepost.work import Worker
from fencepost.work.worker import Options, Topics, worker_of

from .cluster import Address, Cluster, Line
from .sasl import Sasl


class Groups:
    """Workers of groups that this broker, or others of its cluster, coordinate: ``async with Groups("127.0.0.1:9092")
    as groups``. ``bootstrap``: HOST:PORT, or several with commas. ``tls``, ``sasl``: for brokers that need them.

    Raises ``ValueError`` for a bad address; entering the context raises ``Refused`` if no broker responds."""

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "fencepost",
        tls: ssl.SSLContext | None = None,
        sasl: Sasl | None = None,
    ) -> None:
        self._cluster = Cluster([_address(each) for each in bootstrap.split(",")], client_id, tls, sasl)
        self._workers = 0

    async def __aenter__(self) -> Groups:
        await self._cluster.topics()  # fails now if no broker responds
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._cluster.close()

    def worker(self, group_id: str, topics: Topics, **options: Unpack[Options]) -> Worker:
        """Create a member of the group in this program, which works on shares of these topics; ``fencepost.work``
        describes it. Raises ``BadSettings``, ``ValueError``."""
        self._workers += 1
        return worker_of(Line(self._cluster, self._workers), group_id, topics, options)


def _address(text: str) -> Address:
    host, _, port = text.strip().rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise ValueError(f"bootstrap must be HOST:PORT, as in 127.0.0.1:9092 (got {text.strip()!r})")
    return host.strip("[]"), int(port)

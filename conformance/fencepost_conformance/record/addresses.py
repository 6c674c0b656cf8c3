"""Keeps clients on the proxy: answers that tell a broker's address tell the proxy's instead.

The addresses are in Metadata, FindCoordinator and DescribeCluster answers. Produce and Fetch answers can name a new
leader's address too, but only when a partition moved to another broker, and one node has no other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fencepost.server.wire.frames import highest_version

from ..console import CannotRun

#: APIs whose answers hold broker addresses.
WITH_ADDRESSES = frozenset({"metadata", "find_coordinator", "describe_cluster"})


class SeveralBrokers(Exception):
    """The cluster has more than the one node that a recording covers."""


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, option: str) -> Address:
    """``HOST:PORT`` or ``[HOST]:PORT``; raises CannotRun."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise CannotRun(f"{option} {text!r} is not HOST:PORT")
    return Address(host, int(port))


def _moved(node: Any, here: Address) -> Any:
    # A lookup that failed names node -1 without an address: nothing to replace.
    return node if node.port < 0 or not node.host else replace(node, host=here.host, port=type(node.port)(here.port))


def on_proxy(entity: Any, here: Address) -> Any:
    """The answer with every broker address replaced. Raises SeveralBrokers if it names more than one node."""
    if hasattr(entity, "brokers"):
        if len(entity.brokers) > 1:
            raise SeveralBrokers(f"the cluster has {len(entity.brokers)} brokers; a recording covers exactly one")
        return replace(entity, brokers=tuple([_moved(broker, here) for broker in entity.brokers]))
    if hasattr(entity, "coordinators"):  # FindCoordinator v4 and later
        return replace(entity, coordinators=tuple([_moved(found, here) for found in entity.coordinators]))
    return _moved(entity, here)


def within_known_versions(entity: Any, apis: frozenset[str], keys: dict[str, int]) -> Any:
    """An ApiVersions answer that offers, of the APIs to be decoded, no version newer than can be decoded here."""
    highest = {keys[api]: highest_version(api) for api in apis}
    rows = tuple(
        [
            replace(row, max_version=type(row.max_version)(min(row.max_version, highest[row.api_key])))
            if row.api_key in highest
            else row
            for row in entity.api_keys
        ]
    )
    return entity if rows == entity.api_keys else replace(entity, api_keys=rows)

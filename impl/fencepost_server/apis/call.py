"""The argument of a request handler: the node, the request header and the client, with its rights."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fencepost.wire.frames import RequestHeader
from fencepost_server.security.acl import BITS, Operation, Resource

if TYPE_CHECKING:
    from fencepost_server.node import Node
    from fencepost_server.security.session import Session


#: Kafka's value in the field of rights if the request did not ask for them
NOT_ASKED: Final = -2_147_483_648


@dataclass(frozen=True, slots=True)
class Call:
    """The context of a request: the node that handles it, its header, and the session of the client."""

    node: Node
    header: RequestHeader
    session: Session

    @property
    def version(self) -> int:
        return self.header.api_version

    @property
    def client_host(self) -> str:
        """The client's address with a leading slash, like Kafka's (G-WIRE-29)."""
        return f"/{self.session.peer_host}"

    def may(self, operation: Operation, resource: Resource, name: str) -> bool:
        """Return whether the client has a right."""
        return self.node.acl.allows(self.session.principal, self.session.peer_host, operation, resource, name)

    def rights(self, resource: Resource, name: str, *, asked: bool = True) -> int:
        """Return the client's rights as Kafka's bit field; ``NOT_ASKED`` if the request did not ask for them."""
        if not asked:
            return NOT_ASKED
        return sum(1 << bit for operation, bit in BITS[resource].items() if self.may(operation, resource, name))

    def denied(self, operation: Operation, resource: Resource, names: Iterable[str]) -> frozenset[str]:
        """Return the names for which the client does not have a right."""
        if self.node.acl.open:
            return frozenset()
        return frozenset(name for name in names if not self.may(operation, resource, name))

    def all_topics_denied(self, operation: Operation) -> frozenset[str]:
        """Return the existing topics for which the client does not have a right."""
        return self.denied(operation, Resource.TOPIC, self.node.topics.by_name)


def first_of(values: Any, *names: str, default: Any = None) -> Any:
    """Return the first of these attributes that the message has in its version, or ``default``."""
    return next((getattr(values, name) for name in names if hasattr(values, name)), default)


def uuid_bytes(value: Any) -> bytes:
    """Return a topic id of kio as 16 bytes; zeros for None."""
    return bytes(16) if value is None else bytes(value.bytes)


def rows(values: Collection[Any] | None) -> Collection[Any]:
    """Return an array, empty if it is null."""
    return () if values is None else values

"""What a handler is called with, and what its caller may do."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..security.acl import BITS, Operation, Resource
from ..wire.frames import RequestHeader

if TYPE_CHECKING:
    from ..node import Node
    from ..security.session import Session


#: in the place of rights that were not asked for
NOT_ASKED: Final = -2_147_483_648


@dataclass(frozen=True, slots=True)
class Call:
    """One request: to which node it came, in which words, and from whom."""

    node: Node
    header: RequestHeader
    session: Session

    @property
    def version(self) -> int:
        return self.header.api_version

    @property
    def client_host(self) -> str:
        """With a slash before it, as Kafka has it (G-WIRE-29)."""
        return f"/{self.session.peer_host}"

    def may(self, operation: Operation, resource: Resource, name: str) -> bool:
        """Whether the caller has that right."""
        return self.node.acl.allows(self.session.principal, self.session.peer_host, operation, resource, name)

    def rights(self, resource: Resource, name: str, *, asked: bool = True) -> int:
        """What the caller may do, as Kafka's bits; the least number of all where it was not asked."""
        if not asked:
            return NOT_ASKED
        return sum(1 << bit for operation, bit in BITS[resource].items() if self.may(operation, resource, name))

    def denied(self, operation: Operation, resource: Resource, names: Iterable[str]) -> frozenset[str]:
        """Those of the names for which the caller does not have that right."""
        if self.node.acl.open:
            return frozenset()
        return frozenset(name for name in names if not self.may(operation, resource, name))

    def all_topics_denied(self, operation: Operation) -> frozenset[str]:
        """Those of all topics for which the caller does not have that right."""
        return self.denied(operation, Resource.TOPIC, self.node.topics.by_name)


def first_of(values: Any, *names: str, default: Any = None) -> Any:
    """The first attribute that the message of this version has."""
    return next((getattr(values, name) for name in names if hasattr(values, name)), default)


def uuid_bytes(value: Any) -> bytes:
    """A topic id of kio's as 16 bytes; none is zero."""
    return bytes(16) if value is None else bytes(value.bytes)


def rows(values: Collection[Any] | None) -> Collection[Any]:
    """An array that may be null."""
    return () if values is None else values

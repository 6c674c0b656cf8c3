"""The argument of a request handler: the node, the request header and the client, with its rights."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar
from uuid import UUID

from fencepost.protocol.messages import ResponseBody
from fencepost.protocol.offset_messages import OffsetFetchResponseGroup
from fencepost.wire.frames import RequestHeader
from fencepost_server.security.acl import BITS, Operation, Resource

if TYPE_CHECKING:
    from fencepost_server.node import Node
    from fencepost_server.security.session import Session


T = TypeVar("T")

#: The fields of an answer by kio's names; rows are mappings too. ``fill`` makes the message of the version, and gives
#: Kafka's default to each field that is missing.
Values: TypeAlias = Mapping[str, object]
#: The answer of a handler: values, or the coordinator's message.
Answer: TypeAlias = Values | ResponseBody | OffsetFetchResponseGroup

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


def optional(message: object, name: str, default: T) -> T:
    """Return a field that only some versions of a message have, else ``default``."""
    found: T = getattr(message, name, default)
    return found


def uuid_bytes(value: UUID | None) -> bytes:
    """Return a topic id of kio as 16 bytes; zeros for None."""
    return bytes(16) if value is None else value.bytes


def rows(values: Collection[T] | None) -> Collection[T]:
    """Return an array, empty if it is null."""
    return () if values is None else values

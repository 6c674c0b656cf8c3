"""The session of a connection: its client, and its login."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from fencepost_server.options import Address

ANONYMOUS: Final = "User:ANONYMOUS"


class Exchange(Protocol):
    """A SASL exchange in progress."""

    def step(self, message: bytes) -> tuple[bytes, str | None]:
        """Return the answer to a message, and the name of the user once the exchange has succeeded. Raises
        ``LoginRefused``, and ``LoginUnanswered`` where Kafka closes the connection without an answer."""


class LoginRefused(Exception):
    """The login failed: the user is unknown, or the password or a message is wrong."""


class LoginUnanswered(LoginRefused):
    """The login failed in a way for which Kafka closes the connection without an answer."""


@dataclass(slots=True, eq=False)
class Session:
    """The session of a connection. ``exchange``: the SASL exchange in progress. ``local``: the address that the client
    connected to. ``bare``: messages of the exchange have no header, as after SaslHandshake v0. ``refused``: the login
    failed, and the connection is closed after the answer. ``versions_known``: ApiVersions was answered."""

    peer_host: str
    connected_at: float
    local: Address | None = None
    principal: str = ANONYMOUS
    logged_in: bool = False
    refused: bool = False
    versions_known: bool = False
    bare: bool = False
    exchange: Exchange | None = None
    client_software: str = ""

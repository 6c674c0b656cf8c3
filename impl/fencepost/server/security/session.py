"""What a connection is known as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from ..options import Address

ANONYMOUS: Final = "User:ANONYMOUS"


class Exchange(Protocol):
    """A SASL exchange that is under way."""

    def step(self, message: bytes) -> tuple[bytes, str | None]:
        """The answer to a message, and the name of the user once the exchange has succeeded. Raises
        ``LoginRefused``, and ``MalformedFrame`` for what Kafka gives no answer to."""


class LoginRefused(Exception):
    """The user is not known, or has said something else than what is known of him."""


class LoginUnanswered(LoginRefused):
    """Kafka closes the connection without an answer."""


@dataclass(slots=True, eq=False)
class Session:
    """``exchange``: the SASL exchange that was begun. ``local``: where the client came in. ``bare``: messages of the
    exchange come without a header, as after SaslHandshake v0. ``refused``: the connection is closed once that is
    answered. ``versions_known``: ApiVersions was answered."""

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

"""The session of a connection: its client, and its login."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from fencepost_server.options import Address

ANONYMOUS: Final = "User:ANONYMOUS"
_BETWEEN_RENEWALS_S: Final = 1.0


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
    failed, and the connection is closed after the answer. ``versions_known``: ApiVersions was answered. ``mechanism``:
    of the last exchange. ``ends_at``: when the login ends, None if it does not; ``renewed_at``: when the last exchange
    to renew it began. Both in seconds of the loop's clock."""

    peer_host: str
    connected_at: float
    local: Address | None = None
    principal: str = ANONYMOUS
    logged_in: bool = False
    refused: bool = False
    versions_known: bool = False
    bare: bool = False
    exchange: Exchange | None = None
    mechanism: str = ""
    ends_at: float | None = None
    renewed_at: float | None = None
    client_software: str = ""

    @property
    def logging_in(self) -> bool:
        """Whether the user is not logged in, or renews the login."""
        return not self.logged_in or self.exchange is not None

    def has_ended(self, now: float) -> bool:
        """Whether the login has ended."""
        return self.ends_at is not None and now > self.ends_at

    def may_renew(self, now: Callable[[], float]) -> bool:
        """Whether an exchange to renew the login may begin: not without an end, and once a second (KIP-368)."""
        if self.ends_at is None:
            return False
        return self.renewed_at is None or now() - self.renewed_at >= _BETWEEN_RENEWALS_S

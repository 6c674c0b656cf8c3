"""The client side of a login: PLAIN (RFC 4616), and SCRAM (RFC 5802) with SHA-256 and SHA-512.

Two parts are missing, as in Kafka: channel binding, and the preparation of strings (SASLprep). Names and passwords are
sent unchanged, in UTF-8.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Final, Literal, TypeAlias

Mechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
#: Yields messages for the broker, receives the broker's messages, and returns after the broker's last proof.
Exchange: TypeAlias = Generator[bytes, bytes, None]

_DIGESTS: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
#: From the least that SCRAM requires (RFC 7677) to more than any broker should ask for: each iteration takes time.
_ITERATIONS: Final = range(4_096, 1_000_001)
#: no channel binding, no other identity to act for
_GS2: Final = "n,,"


class LoginFailed(ConnectionError):
    """The broker rejects the login, or has not proved that it knows the password."""


@dataclass(frozen=True, slots=True)
class Sasl:
    """A login. PLAIN sends the password unencrypted: use it with TLS. Raises ``ValueError`` for an unknown mechanism,
    and for a name or password that cannot be sent."""

    username: str
    password: str = field(repr=False)
    mechanism: Mechanism = "SCRAM-SHA-512"

    def __post_init__(self) -> None:
        if self.mechanism != "PLAIN" and self.mechanism not in _DIGESTS:
            raise ValueError(f"SASL mechanism must be PLAIN or {' or '.join(_DIGESTS)} (got {self.mechanism!r})")
        if not self.username or not self.password or "\0" in self.username + self.password:
            raise ValueError("a login needs a user name and a password, both without zero bytes")

    def exchange(self, nonce: Callable[[], str] = token_urlsafe) -> Exchange:
        """Start an exchange. It raises ``LoginFailed`` if the broker's messages are malformed or prove nothing."""
        return self._plain() if self.mechanism == "PLAIN" else self._scram(_DIGESTS[self.mechanism], nonce())

    def _plain(self) -> Exchange:
        yield f"\0{self.username}\0{self.password}".encode()

    def _scram(self, digest: str, nonce: str) -> Exchange:
        name = self.username.replace("=", "=3D").replace(",", "=2C")
        bare = f"n={name},r={nonce}"
        first = yield (_GS2 + bare).encode()
        attributes = _attributes(first)
        try:
            salt, iterations, both = b64decode(attributes["s"], validate=True), int(attributes["i"]), attributes["r"]
        except (KeyError, ValueError, binascii.Error):
            raise LoginFailed("the broker's first SCRAM message is malformed") from None
        if not both.startswith(nonce) or both == nonce:
            raise LoginFailed("SCRAM failed: the server nonce does not extend the client nonce")
        if iterations not in _ITERATIONS:
            raise LoginFailed(f"SCRAM iterations must be from 4096 to 1000000 (the broker asks for {iterations})")
        salted = hashlib.pbkdf2_hmac(digest, self.password.encode(), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", digest)
        without_proof = f"c={b64encode(_GS2.encode()).decode()},r={both}"
        signed = b",".join((bare.encode(), first, without_proof.encode()))
        signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        last = _attributes((yield f"{without_proof},p={b64encode(proof).decode()}".encode()))
        verifier = hmac.digest(hmac.digest(salted, b"Server Key", digest), signed, digest)
        if not hmac.compare_digest(last.get("v", ""), b64encode(verifier).decode()):
            raise LoginFailed(f"the broker has not proved that it knows the user: {last.get('e', 'wrong signature')}")


def _attributes(message: bytes) -> dict[str, str]:
    text = message.decode(errors="replace")
    return {part[0]: part[2:] for part in text.split(",") if part[1:2] == "="}

"""The SASL mechanisms PLAIN (RFC 4616) and SCRAM (RFC 5802) with SHA-256 and SHA-512, as in Kafka."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fencepost_server.security.session import Exchange, LoginRefused, LoginUnanswered

_REFUSED: Final = "Authentication failed: Invalid username or password"
_SCRAM: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS: Final = ("PLAIN", *_SCRAM)
_NO_SCRAM: Final = "Authentication failed: invalid SCRAM message"
# The terms saslname, value, printable and base64 of RFC 5802 (section 7). Kafka accepts ASCII only.
_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_NONCE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64: Final = r"(?:[A-Za-z0-9/+]{4})*(?:[A-Za-z0-9/+]{3}=|[A-Za-z0-9/+]{2}==)?"
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*"
#: ``bare`` is the signed part: Kafka leaves out the reserved ``m=``, and the extensions of the final message
_CLIENT_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<behalf>{_NAME}))?,(?:m={_VALUE},)?"
    rf"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>{_EXTENSIONS}))"
)
_CLIENT_FINAL: Final = re.compile(rf"(?P<bare>c={_BASE64},r=(?P<nonce>{_NONCE})){_EXTENSIONS},p=(?P<proof>{_BASE64})")
#: Kafka's minimum
ITERATIONS: Final = 4096


class BadMechanism(ValueError):
    """A mechanism is unknown or not configured."""


class BadUsers(ValueError):
    """A users file is invalid; the message says which line."""


@dataclass(frozen=True, slots=True)
class Credential:
    """The stored data of a password for one SCRAM mechanism."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


def credential(password: str, digest: str, salt: bytes | None = None) -> Credential:
    """Return the stored data of a password, with a random salt if none is given."""
    salt = salt or os.urandom(16)
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, ITERATIONS)
    client_key = hmac.digest(salted, b"Client Key", digest)
    return Credential(
        salt, hashlib.new(digest, client_key).digest(), hmac.digest(salted, b"Server Key", digest), ITERATIONS
    )


class Users:
    """The users and the mechanisms of their logins. ``passwords`` by name. Raises ``BadMechanism``."""

    def __init__(self, passwords: Mapping[str, str], mechanisms: tuple[str, ...] = MECHANISMS) -> None:
        if unknown := set(mechanisms) - set(MECHANISMS):
            raise BadMechanism(f"mechanisms must be among {', '.join(MECHANISMS)} (got {', '.join(sorted(unknown))})")
        self.mechanisms = mechanisms
        self._passwords = dict(passwords)
        self._credentials = {
            (mechanism, name): credential(password, _SCRAM[mechanism])
            for mechanism in mechanisms
            if mechanism in _SCRAM
            for name, password in passwords.items()
        }

    def begin(self, mechanism: str) -> Exchange:
        """Begin an exchange. Raises ``BadMechanism`` if the mechanism is not configured."""
        if mechanism not in self.mechanisms:
            raise BadMechanism(mechanism)
        return Plain(self) if mechanism == "PLAIN" else Scram(self, mechanism)

    def password(self, name: str) -> str | None:
        """Return the password of a user; None if the user is unknown."""
        return self._passwords.get(name)

    def credential(self, mechanism: str, name: str) -> Credential | None:
        """Return the stored data of a user's password for a mechanism; None if the user is unknown."""
        return self._credentials.get((mechanism, name))


def parse_users(text: str) -> dict[str, str]:
    """Return the users of a file with ``NAME:PASSWORD`` in each line. Raises ``BadUsers``."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, password = line.partition(":")
        if not colon or not name.strip() or not password:
            raise BadUsers(f"line {number} must be NAME:PASSWORD")
        found[name.strip()] = password
    if not found:
        raise BadUsers("the file must have at least one line NAME:PASSWORD")
    return found


class Plain:
    """A PLAIN exchange: one message with authorization id, name and password, separated by zero bytes."""

    def __init__(self, users: Users) -> None:
        self._users = users

    def step(self, message: bytes) -> tuple[bytes, str | None]:
        """Return the name of the user. Raises ``LoginRefused``."""
        try:
            behalf, name, password = message.decode().split("\0")
        except ValueError:
            raise LoginRefused("Invalid SASL/PLAIN response: expected 3 tokens") from None
        known = self._users.password(name)
        same = hmac.compare_digest((known or "").encode(), password.encode())
        if known is None or not same:
            raise LoginRefused(_REFUSED)
        if behalf not in ("", name):
            raise LoginRefused(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        return b"", name


class Scram:
    """A SCRAM exchange of two messages: a nonce, then a proof. The answer to the proof shows that the server knows the
    user too."""

    def __init__(self, users: Users, mechanism: str) -> None:
        self._users = users
        self._mechanism = mechanism
        self._digest = _SCRAM[mechanism]
        self._name = ""
        self._bare = self._first = ""
        self._nonce = ""
        self._known: Credential | None = None

    def step(self, message: bytes) -> tuple[bytes, str | None]:
        """Return the next message and, at the end, the name of the user. Raises ``LoginRefused``, and
        ``LoginUnanswered`` for a proof of the wrong length."""
        try:
            text = message.decode("ascii")
        except UnicodeDecodeError:
            raise LoginRefused(_NO_SCRAM) from None
        return self._begin(text) if not self._first else self._finish(text)

    def _begin(self, text: str) -> tuple[bytes, None]:
        found = _CLIENT_FIRST.fullmatch(text)
        if found is None:
            raise LoginRefused(_NO_SCRAM)
        self._bare = found["bare"]
        self._name = found["name"].replace("=2C", ",").replace("=3D", "=")
        self._known = None if _has_token(found["extensions"]) else self._users.credential(self._mechanism, self._name)
        if self._known is None:
            raise LoginRefused("Authentication failed: Invalid user credentials")
        if found["behalf"] not in (None, self._name):  # Kafka does not undo escapes in this field
            raise LoginRefused(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self._nonce = found["nonce"] + base64.b64encode(os.urandom(24)).decode()
        salt = base64.b64encode(self._known.salt).decode()
        self._first = f"r={self._nonce},s={salt},i={self._known.iterations}"
        return self._first.encode(), None

    def _finish(self, text: str) -> tuple[bytes, str]:
        assert self._known is not None
        found = _CLIENT_FINAL.fullmatch(text)
        if found is None:
            raise LoginRefused(_NO_SCRAM)
        if found["nonce"] != self._nonce:
            raise LoginRefused("Authentication failed: Invalid user credentials")
        signed = f"{self._bare},{self._first},{found['bare']}".encode()
        signature = hmac.digest(self._known.stored_key, signed, self._digest)
        given = base64.b64decode(found["proof"])
        if len(given) != len(signature):
            words = f"the proof for {self._mechanism} must have {len(signature)} bytes (got {len(given)})"
            raise LoginUnanswered(words)
        client_key = bytes(one ^ other for one, other in zip(given, signature, strict=True))
        if not hmac.compare_digest(hashlib.new(self._digest, client_key).digest(), self._known.stored_key):
            raise LoginRefused("Authentication failed: Invalid user credentials")
        verifier = hmac.digest(self._known.server_key, signed, self._digest)
        return b"v=" + base64.b64encode(verifier), self._name


def _has_token(extensions: str) -> bool:
    """Return whether the client authenticates by a delegation token, which this server does not support."""
    said = dict(part.split("=", 1) for part in extensions.split(",")[1:])
    return said.get("tokenauth", "").lower() == "true"

"""A client of SCRAM, written from RFC 5802; the salted password is that of RFC 8018."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

DIGESTS: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


def saslname(name: str) -> str:
    """Return a name as written in a message: comma and equals sign are escaped (section 5.1)."""
    return "".join({",": "=2C", "=": "=3D"}.get(each, each) for each in name)


class ScramClient:
    """One exchange. ``flag``: ``n`` without channel binding, ``y`` if only the client supports it. ``reserved``: text
    before the name; ``extension``: text behind the nonce."""

    def __init__(
        self,
        mechanism: str,
        name: str,
        password: str,
        nonce: str,
        *,
        authzid: str | None = None,
        flag: str = "n",
        reserved: str = "",
        extension: str = "",
    ) -> None:
        self._digest = DIGESTS[mechanism]
        self._password = password
        self.nonce = nonce
        self._header = f"{flag},{'' if authzid is None else 'a=' + saslname(authzid)},"
        self._bare = ",".join(filter(None, (reserved, f"n={saslname(name)},r={nonce}", extension)))
        self._signature = b""

    def first(self) -> bytes:
        return (self._header + self._bare).encode()

    def final(
        self, server_first: bytes, *, nonce: str | None = None, channel: bytes | None = None, extension: str = ""
    ) -> bytes:
        """Return the proof for the server's message. Raise ``AssertionError`` if the server may not send that."""
        text = server_first.decode()
        fields = dict(part.split("=", 1) for part in text.split(","))
        assert list(fields) == ["r", "s", "i"]
        assert fields["r"].startswith(self.nonce)
        assert len(fields["r"]) > len(self.nonce)
        rounds = int(fields["i"])
        assert rounds >= 4_096
        salt = base64.b64decode(fields["s"], validate=True)
        salted = hashlib.pbkdf2_hmac(self._digest, self._password.encode(), salt, rounds)
        client_key = self._hmac(salted, b"Client Key")
        stored_key = hashlib.new(self._digest, client_key).digest()
        binding = base64.b64encode(self._header.encode() if channel is None else channel).decode()
        without_proof = ",".join(filter(None, (f"c={binding},r={nonce or fields['r']}", extension)))
        message = f"{self._bare},{text},{without_proof}".encode()
        proof = bytes(one ^ other for one, other in zip(client_key, self._hmac(stored_key, message), strict=True))
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), message)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def is_server(self, server_final: bytes) -> bool:
        """Whether the server has proven that it knows the user."""
        return server_final == b"v=" + base64.b64encode(self._signature)

    def _hmac(self, key: bytes, text: bytes) -> bytes:
        return hmac.new(key, text, self._digest).digest()

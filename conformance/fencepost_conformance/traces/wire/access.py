"""TLS and log-in for connections to a broker, from a file of properties as Kafka's own tools read it.

The names are those of Kafka's clients, with certificates in PEM, and librdkafka's names for the same. Properties about
other things (the group, the addresses) are ignored. An unknown property about security is an error.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.remote.connection import Connection
from fencepost.remote.sasl import Sasl
from fencepost.wire.frames import SPEAKS_TLS, connect

from ...common.errors import CannotRun
from ...common.nearest import unknown

#: part of the error of a connection that the broker closed
CLOSED: Final = "closed the connection"
_CLIENT_ID: Final = "fencepost"
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_KNOWN: Final = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.jaas.config",
        "sasl.username",
        "sasl.password",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.ca.location",
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
    }
)
_SECURITY: Final = ("security.", "sasl.", "ssl.")
_IN_JAAS: Final = re.compile(r"""\b(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;]+))""")


@dataclass(frozen=True, slots=True)
class Access:
    """How to connect. ``tls``: None for plaintext. ``certificate``: whether the client presents one. ``sasl``: the
    log-in; None for none."""

    tls: ssl.SSLContext | None = None
    certificate: bool = False
    sasl: Sasl | None = None

    async def open(self, host: str, port: int) -> Connection:
        """A connection for requests of the suite, logged in. Raises ``OSError``."""
        try:
            return await Connection.open(host, port, _CLIENT_ID, self.tls, self.sasl)
        except ssl.SSLCertVerificationError as wrong:
            raise ConnectionError(f"the broker's certificate is not trusted: {wrong.verify_message}") from None
        except (ssl.SSLError, ConnectionResetError) as wrong:
            if self.tls is None:
                raise
            if "ALERT" in (reason := _reason(wrong)):
                raise ConnectionError(f"the broker refuses TLS: {reason}{self.hint}") from None
            raise ConnectionError(f"no TLS is spoken there: {reason}") from None
        except ConnectionError as wrong:
            if CLOSED not in str(wrong) and SPEAKS_TLS not in str(wrong):
                raise
            raise ConnectionError(f"{wrong}{self.hint}") from None

    @property
    def hint(self) -> str:
        """A hint why a broker closed the connection, which it does not say."""
        wants = ["a log-in"] if self.sasl is None else []
        if not self.certificate:
            wants.append("TLS" if self.tls is None else "a certificate")
        return f"; perhaps it wants {' or '.join(wants)} (--client-config)" if wants else ""

    async def streams(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The streams of a connection, for a caller that writes frames itself. Raises ``OSError``."""
        if self.tls is None and self.sasl is None:
            return await connect(host, port)
        return (await self.open(host, port)).streams


#: neither TLS nor a log-in
OPEN: Final = Access()


def _reason(wrong: OSError) -> str:
    return getattr(wrong, "reason", None) or wrong.strerror or str(wrong) or "the connection is closed"


def read_access(path: Path | None) -> Access:
    """Read a file of properties. None: neither TLS nor a log-in. Raises ``CannotRun``."""
    if path is None:
        return OPEN
    try:
        said = _properties(path.read_text())
    except OSError as wrong:
        raise CannotRun(f"--client-config {path}: {wrong.strerror}") from None
    except UnicodeDecodeError:
        raise CannotRun(f"--client-config {path}: not a file of properties in UTF-8") from None
    try:
        return _access(said)
    except ValueError as wrong:
        raise CannotRun(f"--client-config {path}: {wrong}") from None


def _properties(text: str) -> dict[str, str]:
    """Parse properties as Java does: a backslash at the end continues a line; before a character it stands for that."""
    found = {}
    for line in re.sub(r"\\\r?\n[ \t]*", "", text).splitlines():
        stripped = line.strip()
        if stripped and stripped[0] not in "#!":
            name, value, *_ = [*re.split(r"\s*[=:]\s*", stripped, maxsplit=1), ""]
            found[name] = re.sub(r"\\(.)", r"\1", value)
    return found


def _access(said: Mapping[str, str]) -> Access:
    """The access that these properties describe. Raises ``ValueError``."""
    for name in said:
        if name.startswith(_SECURITY) and name not in _KNOWN:
            raise ValueError(unknown("property", name, _KNOWN, f"known: {', '.join(sorted(_KNOWN))}"))
    protocol = said.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise ValueError(unknown("security.protocol", protocol, _PROTOCOLS, f"known: {', '.join(_PROTOCOLS)}"))
    own = said.get("ssl.keystore.location") or said.get("ssl.certificate.location")
    tls = _tls(said, own) if protocol.endswith("SSL") else None
    return Access(tls, own is not None, _sasl(said) if protocol.startswith("SASL") else None)


def _sasl(said: Mapping[str, str]) -> Sasl:
    mechanism = said.get("sasl.mechanism") or said.get("sasl.mechanisms") or "GSSAPI"
    jaas = {name: _first(values) for name, *values in _IN_JAAS.findall(said.get("sasl.jaas.config", ""))}
    username = said.get("sasl.username") or jaas.get("username", "")
    password = said.get("sasl.password") or jaas.get("password", "")
    return Sasl(username, password, mechanism.upper())  # type: ignore[arg-type] # it says which it knows


def _first(values: list[str]) -> str:
    return next((each for each in values if each), "")


def _tls(said: Mapping[str, str], own: str | None) -> ssl.SSLContext:
    for store in ("truststore", "keystore"):
        kind = said.get(f"ssl.{store}.type", "JKS" if f"ssl.{store}.location" in said else "PEM")
        if kind.upper() != "PEM":
            raise ValueError(f"ssl.{store}.type {kind} cannot be read here: PEM can")
    trusted = said.get("ssl.truststore.location") or said.get("ssl.ca.location")
    read = trusted
    try:
        context = ssl.create_default_context(cafile=trusted)
        read = own
        if own is not None:
            context.load_cert_chain(own, said.get("ssl.key.location"), said.get("ssl.key.password", ""))
    except ssl.SSLError as wrong:
        raise ValueError(f"{read}: {_reason(wrong)}") from None
    except OSError as wrong:
        raise ValueError(f"{read}: {wrong.strerror or wrong}") from None
    context.check_hostname = said.get("ssl.endpoint.identification.algorithm", "https").lower() not in ("", "none")
    return context

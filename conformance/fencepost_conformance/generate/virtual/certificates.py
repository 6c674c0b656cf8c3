"""Certificates for schedules with TLS: one that clients trust, and one that they do not.

A schedule follows from its seed only if its messages always have the same lengths. Those of ECDSA's signatures and of
serial numbers vary, so the keys are of RSA and the number is given.
"""

from __future__ import annotations

import shutil
import ssl
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from ...common.errors import CannotRun

#: the name under which clients reach the server
NAME: Final = "proxy"
_DAYS: Final = "36500"


@dataclass(frozen=True, slots=True)
class Contexts:
    """``client`` trusts the certificate of ``trusted`` alone."""

    client: ssl.SSLContext
    trusted: ssl.SSLContext
    strange: ssl.SSLContext


def has_openssl() -> bool:
    """Whether certificates can be made."""
    return shutil.which("openssl") is not None


@cache
def contexts() -> Contexts:
    """Make two certificates, once in a process. Raises ``CannotRun`` without the program openssl."""
    if not has_openssl():
        raise CannotRun("schedules with TLS need the program openssl, which makes their certificates")
    with tempfile.TemporaryDirectory(prefix="fencepost-tls-") as folder:
        trusted, strange = (_made(Path(folder), name) for name in ("trusted", "strange"))
        return Contexts(ssl.create_default_context(cafile=str(Path(folder) / "trusted.pem")), trusted, strange)


def _made(folder: Path, name: str) -> ssl.SSLContext:
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    words = (
        "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-set_serial", "1",
        "-keyout", str(key), "-out", str(certificate), "-days", _DAYS, "-subj", f"/CN={NAME}",
        "-addext", f"subjectAltName=DNS:{NAME}",
    )  # fmt: skip
    subprocess.run(words, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context

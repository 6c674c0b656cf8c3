"""Addresses of brokers in options and messages."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import CannotRun


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, option: str) -> Address:
    """Parse ``HOST:PORT`` or ``[HOST]:PORT``; raises CannotRun."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise CannotRun(f"{option} {text!r} is not HOST:PORT")
    return Address(host, int(port))

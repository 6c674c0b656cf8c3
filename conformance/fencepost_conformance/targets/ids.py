"""Member ids that are the same in every run: the n-th random UUID of a trace is a function of n."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from functools import lru_cache
from uuid import UUID


@lru_cache(maxsize=4096)
def member_uuid(n: int) -> str:
    """The UUID that the n-th fresh member id of a trace ends with, counted from 0.

    The harness gives Kafka the same ones: 16 bytes of SHA-256 over n in decimal, as a random (version 4) UUID.
    """
    return str(UUID(bytes=hashlib.sha256(str(n).encode()).digest()[:16], version=4))


def member_id(prefix: str, n: int) -> str:
    """A whole member id as Kafka forms it: instance id or client id, then the UUID (G-WIRE-28)."""
    return f"{prefix}-{member_uuid(n)}"


def kafka_uuid(n: int) -> str:
    """The n-th UUID as Kafka writes its own: 22 characters of URL-safe base64 (G-WIRE-28)."""
    return urlsafe_b64encode(UUID(member_uuid(n)).bytes).rstrip(b"=").decode()


class MemberIds:
    """Draws the fresh member ids of one trace in order: call it with the prefix, or call ``uuid``."""

    __slots__ = ("drawn",)

    def __init__(self) -> None:
        self.drawn = 0

    def __call__(self, prefix: str) -> str:
        drawn = self.drawn
        self.drawn += 1
        return member_id(prefix, drawn)

    def uuid(self) -> str:
        """Return the next UUID; Kafka draws again while the text begins with a hyphen."""
        while True:
            drawn = kafka_uuid(self.drawn)
            self.drawn += 1
            if not drawn.startswith("-"):
                return drawn

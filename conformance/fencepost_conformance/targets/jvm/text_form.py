"""Byte strings and topic ids in the harness's JSON: bytes as one character each, ids in Kafka's own text form."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache


def bytes_to_text(data: bytes) -> str:
    return data.decode("latin-1")


def text_to_bytes(text: str) -> bytes:
    return text.encode("latin-1")


@lru_cache(maxsize=4096)
def id_to_text(topic_id: bytes) -> str:
    """Return 16 bytes as 22 characters."""
    return urlsafe_b64encode(topic_id).rstrip(b"=").decode()


@lru_cache(maxsize=4096)
def text_to_id(text: str) -> bytes:
    return urlsafe_b64decode(text + "==")

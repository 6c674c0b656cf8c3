"""The functions that a coordinator has its host hand in (``fencepost.protocol.choices.Functions``).

``StandardFunctions`` needs the standard library only: a coordinator that embeds the core wants *some* hash of the
topics and *some* regular expressions. ``KafkaFunctions`` does what Kafka's coordinator does, so that both write the
same records and resolve the same regexes; it needs the packages of the extra ``kafka``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

from fencepost.extras import require


@dataclass(frozen=True, slots=True)
class StandardFunctions:
    """BLAKE2b cut to 64 bits, and the syntax of ``re``."""

    def hash64(self, data: bytes) -> int:
        """A digest of the standard library: as good, but not Kafka's."""
        return int.from_bytes(blake2b(data, digest_size=8).digest(), "big", signed=True)

    def matcher(self, regex: str) -> Callable[[str], bool] | None:
        """A regex of the standard library, whose syntax is another in details."""
        try:
            pattern = re.compile(regex)
        except (re.error, OverflowError, RecursionError):
            return None
        return lambda name: pattern.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class KafkaFunctions:
    """XXH3 and RE2. Raises ``ModuleNotFoundError`` when made, if a package is missing."""

    def __post_init__(self) -> None:
        require("KafkaFunctions", "kafka", "xxhash", "re2")

    def hash64(self, data: bytes) -> int:
        """XXH3, as Kafka computes it."""
        from xxhash import xxh3_64_intdigest  # noqa: PLC0415  # optional

        unsigned: int = xxh3_64_intdigest(data)
        return unsigned - (1 << 64) if unsigned >> 63 else unsigned

    def matcher(self, regex: str) -> Callable[[str], bool] | None:
        """RE2, as Kafka matches; None if the regex does not compile."""
        import re2  # noqa: PLC0415  # optional

        options = re2.Options()
        options.log_errors = False
        try:
            pattern = re2.compile(regex, options)
        except re2.error:
            return None
        return lambda name: pattern.fullmatch(name) is not None

"""Functions that the host passes to a coordinator (``fencepost.protocol.choices.Functions``).

``StandardFunctions`` needs only the standard library: a program that embeds the core needs *some* hash of the topics
and *some* regular expressions. ``KafkaFunctions`` equals Kafka's coordinator, so that both write the same records and
resolve the same regexes; it needs the packages of the extra ``kafka``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

from fencepost.extras import require


@dataclass(frozen=True, slots=True)
class StandardFunctions:
    """BLAKE2b truncated to 64 bits, and the syntax of ``re``."""

    def hash64(self, data: bytes) -> int:
        """Return a digest of the standard library: as good as Kafka's, but different."""
        return int.from_bytes(blake2b(data, digest_size=8).digest(), "big", signed=True)

    def matcher(self, regex: str) -> Callable[[str], bool] | None:
        """Compile a regex of the standard library, whose syntax differs in details."""
        try:
            pattern = re.compile(regex)
        except (re.error, OverflowError, RecursionError):
            return None
        return lambda name: pattern.fullmatch(name) is not None

    def regex_fault(self, regex: str) -> str:
        """Return the standard library's message, with the position."""
        try:
            re.compile(regex)
        except (re.error, OverflowError, RecursionError) as fault:
            return str(fault)
        return ""


#: Messages of RE2/J, the library of Kafka's coordinator, by the prefix of RE2's message.
_RE2J_WORDS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "unexpected )": "regexp/syntax: internal error",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator: (?<": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid escape sequence": "invalid escape sequence",
    "invalid character class range": "invalid character class range",
    "invalid UTF-8": "invalid escape sequence",
}


@dataclass(frozen=True, slots=True)
class KafkaFunctions:
    """XXH3 and RE2. Creating it raises ``ModuleNotFoundError`` if a package is missing.

    Kafka uses RE2/J, which differs from RE2 in few expressions. Only RE2 accepts ``\\C``, two groups with the same
    name, and repeat counts that do not fit into an integer. Only RE2/J accepts nested repetitions above 1,000."""

    def __post_init__(self) -> None:
        require("KafkaFunctions", "kafka", "xxhash", "re2")

    def hash64(self, data: bytes) -> int:
        """Return XXH3, as Kafka computes it."""
        from xxhash import xxh3_64_intdigest  # noqa: PLC0415  # optional

        unsigned: int = xxh3_64_intdigest(data)
        return unsigned - (1 << 64) if unsigned >> 63 else unsigned

    def matcher(self, regex: str) -> Callable[[str], bool] | None:
        """Compile with RE2, as Kafka matches; return None if the regex does not compile."""
        pattern = _compiled(regex)
        if isinstance(pattern, str):
            return None
        return lambda name: pattern.fullmatch(name) is not None

    def regex_fault(self, regex: str) -> str:
        """Return RE2/J's message, without the part of the regex that it is about."""
        fault = _compiled(regex)
        if not isinstance(fault, str):
            return ""
        return next((words for begin, words in _RE2J_WORDS.items() if fault.startswith(begin)), fault)


def _compiled(regex: str) -> Any:
    """Return RE2's pattern, or its error message."""
    import re2  # noqa: PLC0415  # optional

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(regex, options)
    except re2.error as fault:
        (said,) = fault.args
        return said.decode(errors="replace") if isinstance(said, bytes) else str(said)

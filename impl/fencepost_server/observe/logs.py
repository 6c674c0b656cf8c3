"""The log on standard error, as lines of text or JSON."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final

FORMATS: Final = ("text", "json")


def iso(at_ms: float) -> str:
    """Return a time in ms since 1970 as a date in UTC (ISO 8601)."""
    return datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def one_line(text: str) -> str:
    """Return the text with line ends and other control characters, which a client may send, escaped."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


class TextLines(logging.Formatter):
    """Date in UTC, level and message."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """Return the date in the form of the JSON lines."""
        return iso(record.created * 1_000)


class JsonLines(logging.Formatter):
    """A line of JSON for each message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, even if the message contains line ends."""
        row = {
            "at": iso(record.created * 1_000),
            "level": record.levelname.lower(),
            "from": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            row["trace"] = self.formatException(record.exc_info)
        return json.dumps(row)


def configure(form: str, level: str) -> None:
    """Write the log of the project's modules in a format, from a level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    root = logging.getLogger("fencepost")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False

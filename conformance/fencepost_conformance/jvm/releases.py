"""The releases of Apache Kafka that the project is held against: the newest patch of each that the harness serves."""

from __future__ import annotations

from typing import Final

RELEASES: Final = ("4.0.2", "4.1.2", "4.2.2", "4.3.1", "4.4.0")
NEWEST: Final = RELEASES[-1]

"""The releases of Apache Kafka that the project is compared with: the newest patch of each supported release."""

from __future__ import annotations

from typing import Final

RELEASES: Final = ("4.0.2", "4.1.2", "4.2.2", "4.3.1", "4.4.0")
NEWEST: Final = RELEASES[-1]

#: Kafka logs through slf4j 1.7; this is the smallest logger for it. Without one a broker fails in silence.
_LOGGER: Final = "org.slf4j:slf4j-simple:1.7.36"


def broker_artifacts(version: str) -> tuple[str, ...]:
    """The artifacts that a whole broker of that release is started from."""
    return f"org.apache.kafka:kafka_2.13:{version}", _LOGGER

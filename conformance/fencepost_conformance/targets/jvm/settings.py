"""Settings by Kafka's own names; a release ignores names that it does not know."""

from __future__ import annotations

from fencepost.protocol.kafka_names import BROKER_NAMES, CONSTANTS, text_of
from fencepost.protocol.settings import Settings

#: Kafka's coordinator classes take this separately from the settings.
_APART = "consumer_protocol_enabled"


def kafka_config(settings: Settings) -> dict[str, str | int]:
    """Return each setting's name in Kafka, with its value. Raises ``ValueError`` for a changed constant of Kafka, and
    for a retention that is not in minutes."""
    usual = Settings()
    for name in CONSTANTS:
        if getattr(settings, name) != getattr(usual, name):
            raise ValueError(f"{name} is a constant in Kafka (G-CFG-26, 27, 33); a trace cannot change it")
    config: dict[str, str | int] = {}
    for field, name in BROKER_NAMES.items():
        if field != _APART:
            text = text_of(field, getattr(settings, field))
            config[name] = int(text) if isinstance(getattr(settings, field), int) else text
    return config

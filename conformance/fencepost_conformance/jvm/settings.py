"""Settings by Kafka's own names of them; a release passes over the names that it does not know."""

from __future__ import annotations

from fencepost.protocol.settings import Settings
from fencepost.server.settings import BROKER_NAMES

#: those of offsets, of which no recording tells
OFFSET_NAMES = {
    "offset_metadata_max_bytes": "offset.metadata.max.bytes",
    "offsets_retention_check_interval_ms": "offsets.retention.check.interval.ms",
}
_RETENTION = "offsets.retention.minutes"
_MINUTE_MS = 60_000
#: what Kafka has as constants
_FIXED = ("new_member_join_timeout_ms", "regex_min_refresh_interval_ms", "metadata_refresh_interval_ms")


def kafka_config(settings: Settings) -> dict[str, str | int]:
    """Kafka's name of each setting, with its value. Raises ``ValueError`` if a constant of Kafka is to be another."""
    usual = Settings()
    for name in _FIXED:
        if getattr(settings, name) != getattr(usual, name):
            raise ValueError(f"{name} is a constant in Kafka (G-CFG-26, 27, 33); a trace cannot change it")
    config: dict[str, str | int] = {}
    for field, name in BROKER_NAMES.items():
        value = getattr(settings, field)
        config[name] = ",".join(value) if isinstance(value, tuple) else value
    for field, name in OFFSET_NAMES.items():
        config[name] = getattr(settings, field)
    config[_RETENTION], rest = divmod(settings.offsets_retention_ms, _MINUTE_MS)
    if rest:
        raise ValueError(
            f"offsets_retention_ms is in minutes in Kafka (G-CFG-21), and {settings.offsets_retention_ms} is not"
        )
    return config

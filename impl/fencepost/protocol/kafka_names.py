"""Settings by Kafka's names: those of the coordinators, and those that a single group may have (G-CFG-28)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from .settings import MigrationPolicy, Settings

if TYPE_CHECKING:
    from .events import GroupConfig

#: Field of ``Settings`` -> Kafka's name (G-CFG-01…04, 06, 10…14, 20…22, 25, 30, 31, 33), without Kafka's constants.
BROKER_NAMES: Final = {
    "group_min_session_timeout_ms": "group.min.session.timeout.ms",
    "group_max_session_timeout_ms": "group.max.session.timeout.ms",
    "group_initial_rebalance_delay_ms": "group.initial.rebalance.delay.ms",
    "group_max_size": "group.max.size",
    "offsets_commit_timeout_ms": "offsets.commit.timeout.ms",
    "offset_metadata_max_bytes": "offset.metadata.max.bytes",
    "offsets_retention_ms": "offsets.retention.minutes",
    "offsets_retention_check_interval_ms": "offsets.retention.check.interval.ms",
    "consumer_protocol_enabled": "group.coordinator.rebalance.protocols",
    "group_consumer_session_timeout_ms": "group.consumer.session.timeout.ms",
    "group_consumer_min_session_timeout_ms": "group.consumer.min.session.timeout.ms",
    "group_consumer_max_session_timeout_ms": "group.consumer.max.session.timeout.ms",
    "group_consumer_heartbeat_interval_ms": "group.consumer.heartbeat.interval.ms",
    "group_consumer_min_heartbeat_interval_ms": "group.consumer.min.heartbeat.interval.ms",
    "group_consumer_max_heartbeat_interval_ms": "group.consumer.max.heartbeat.interval.ms",
    "group_consumer_max_size": "group.consumer.max.size",
    "group_consumer_assignors": "group.consumer.assignors",
    "group_consumer_migration_policy": "group.consumer.migration.policy",
    "group_consumer_assignment_interval_ms": "group.consumer.assignment.interval.ms",
    "group_consumer_min_assignment_interval_ms": "group.consumer.min.assignment.interval.ms",
    "group_consumer_max_assignment_interval_ms": "group.consumer.max.assignment.interval.ms",
    "group_consumer_regex_refresh_interval_ms": "group.consumer.regex.refresh.interval.ms",
}
#: Kafka's name of a broker setting -> field of ``Settings``
FIELDS: Final = {name: field for field, name in BROKER_NAMES.items()}

#: Fields that are constants in Kafka, so that no broker setting changes them (G-CFG-26, 27, 33).
CONSTANTS: Final = ("new_member_join_timeout_ms", "regex_min_refresh_interval_ms", "metadata_refresh_interval_ms")

_MINUTE_MS: Final = 60_000
_CONSUMER: Final = "consumer"
#: The group protocols of a broker (G-CFG-06); the first is always on.
_PROTOCOLS: Final = ("classic", _CONSUMER, "share", "streams")
_CLASSIC: Final = "classic"

#: Kafka's name of a group setting -> its field of ``GroupConfig``, and the stem of the broker settings that are its
#: default and its bounds.
GROUP_SETTINGS: Final = {
    f"consumer.{name.replace('_', '.')}.ms": (f"consumer_{name}_ms", name)
    for name in ("session_timeout", "heartbeat_interval", "assignment_interval")
}


#: Kafka's class of a server-side assignor -> its short name. Kafka 4.0 and later report the name, 3.9 the class.
_CLASSES: Final = {
    f"org.apache.kafka.coordinator.group.assignor.{name.capitalize()}Assignor": name for name in ("uniform", "range")
}


def value_of(name: str, text: str) -> int | bool | str | tuple[str, ...]:
    """Return the value of a field of ``Settings`` from the text of Kafka's setting.

    Args:
        name: Kafka's name of the setting.
        text: its value, as a broker reports it or a properties file contains it.

    Raises:
        ValueError: the setting cannot have this value.
    """
    field = FIELDS[name]
    usual = getattr(Settings(), field)
    if field == "consumer_protocol_enabled":
        protocols = _list(text)
        if _CLASSIC not in protocols or not set(protocols) <= set(_PROTOCOLS):
            words = f"{name} must contain {_CLASSIC}, and otherwise only {', '.join(_PROTOCOLS[1:])} (got {text})"
            raise ValueError(words)
        return _CONSUMER in protocols
    if isinstance(usual, tuple):
        return tuple(_CLASSES.get(name, name) for name in _list(text))
    if isinstance(usual, MigrationPolicy):
        return MigrationPolicy(text.strip().lower()).value
    return int(text) * (_MINUTE_MS if field == "offsets_retention_ms" else 1)


def text_of(field: str, value: object) -> str:
    """Return the value of a field of ``Settings`` as the text of Kafka's setting; the inverse of ``value_of``.

    Raises:
        ValueError: Kafka's setting is in minutes, and the value is not a whole number of them (G-CFG-21).
    """
    if field == "consumer_protocol_enabled":
        return f"{_CLASSIC},{_CONSUMER}" if value else _CLASSIC
    if field == "offsets_retention_ms":
        minutes, rest = divmod(int(str(value)), _MINUTE_MS)
        if rest:
            raise ValueError(f"{field} is in minutes in Kafka (G-CFG-21); {value} ms is not a whole number of minutes")
        return str(minutes)
    return ",".join(value) if isinstance(value, tuple) else str(value)


def broker_rows(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield each setting of the coordinators by Kafka's name, as text; a value that Kafka cannot express is left
    out."""
    for field, name in BROKER_NAMES.items():
        with suppress(ValueError):
            yield name, text_of(field, getattr(settings, field))


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


def group_rows(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield each group setting by Kafka's name, with its default as text."""
    for name, (_, stem) in GROUP_SETTINGS.items():
        yield name, str(getattr(settings, f"group_consumer_{stem}_ms"))


def group_config(settings: Settings, given: Mapping[str, str]) -> GroupConfig | None:
    """Return the settings of a group; None if there are none. Raises ``ValueError`` for a value that is not a whole
    number, or out of bounds."""
    # imported here, since the command line reads the names above before it needs any event
    from .events import GroupConfig  # noqa: PLC0415

    values: dict[str, int] = {}
    for name, text in given.items():
        field, stem = GROUP_SETTINGS[name]
        try:
            value = int(text)
        except ValueError:
            raise ValueError(f"Invalid value {text} for configuration {name}: Not a number of type INT") from None
        least = getattr(settings, f"group_consumer_min_{stem}_ms")
        most = getattr(settings, f"group_consumer_max_{stem}_ms")
        if value < least:
            raise ValueError(f"{name} must be greater than or equal to group.consumer.min.{_dotted(stem)}.ms")
        if value > most:
            raise ValueError(f"{name} must be less than or equal to group.consumer.max.{_dotted(stem)}.ms")
        values[field] = value
    if not values:
        return None
    heartbeat = values.get("consumer_heartbeat_interval_ms", settings.group_consumer_heartbeat_interval_ms)
    session = values.get("consumer_session_timeout_ms", settings.group_consumer_session_timeout_ms)
    if heartbeat >= session:
        raise ValueError("consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms")
    return GroupConfig(**values)


def _dotted(stem: str) -> str:
    return stem.replace("_", ".")

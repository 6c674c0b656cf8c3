"""Broker settings that groups use."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final

from .errors import MisuseError
from .shapes import fault


class MigrationPolicy(StrEnum):
    """Allowed conversions between the protocols (X-POL-01…04)."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def upgrades(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def downgrades(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


class BadSettings(MisuseError, ValueError):
    """The settings are invalid; the message says which, and what they must be."""


#: The coordinator's assignors (A-UHOM-*, A-UHET-*, A-SRNG-*).
ASSIGNORS: Final = ("uniform", "range")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Broker configuration that groups use. Times in milliseconds.

    Raises ``BadSettings`` for the same errors as a broker's start: a value outside its bounds, a heartbeat interval
    that is not less than the session timeout, an unknown assignor. Stricter than a broker, it also rejects a negative
    initial delay, and an empty range of classic session timeouts (G-CFG-36).
    """

    group_min_session_timeout_ms: int = 6_000  # G-CFG-01
    group_max_session_timeout_ms: int = 1_800_000  # G-CFG-02
    group_initial_rebalance_delay_ms: int = 3_000  # G-CFG-03
    group_max_size: int = 2_147_483_647  # G-CFG-04
    offsets_commit_timeout_ms: int = 5_000  # G-CFG-25: the timeout of every write operation
    offset_metadata_max_bytes: int = 4_096  # G-CFG-20: in UTF-16 units; if negative, every text is too long
    offsets_retention_ms: int = 604_800_000  # G-CFG-21; in minutes in Kafka
    offsets_retention_check_interval_ms: int = 600_000  # G-CFG-22
    new_member_join_timeout_ms: int = 300_000  # G-CFG-26, a constant in Kafka
    consumer_protocol_enabled: bool = True  # G-CFG-29
    group_consumer_session_timeout_ms: int = 45_000  # G-CFG-10
    group_consumer_min_session_timeout_ms: int = 45_000  # G-CFG-10; bounds of the group's own value (G-CFG-28)
    group_consumer_max_session_timeout_ms: int = 60_000  # G-CFG-10
    group_consumer_heartbeat_interval_ms: int = 5_000  # G-CFG-11
    group_consumer_min_heartbeat_interval_ms: int = 5_000  # G-CFG-11
    group_consumer_max_heartbeat_interval_ms: int = 15_000  # G-CFG-11
    group_consumer_max_size: int = 2_147_483_647  # G-CFG-12
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")  # G-CFG-13; the first is the default
    group_consumer_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL  # G-CFG-14
    group_consumer_assignment_interval_ms: int = 1_000  # G-CFG-30
    group_consumer_min_assignment_interval_ms: int = 0  # G-CFG-31
    group_consumer_max_assignment_interval_ms: int = 15_000  # G-CFG-31
    group_consumer_regex_refresh_interval_ms: int = 600_000  # G-CFG-33
    regex_min_refresh_interval_ms: int = 10_000  # G-CFG-33, a constant in Kafka
    metadata_refresh_interval_ms: int = 2_147_483_647  # G-CFG-27, a constant in Kafka

    def __post_init__(self) -> None:
        wrong = fault(self)
        if wrong is not None:
            raise BadSettings(wrong)
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise BadSettings(f"{name} must be >= {least} (got {getattr(self, name)})")
        for lower, upper in ORDERED:
            if getattr(self, lower) > getattr(self, upper):
                raise BadSettings(f"{lower} must be <= {upper} (got {getattr(self, lower)} and {getattr(self, upper)})")
        heartbeat, session = self.group_consumer_heartbeat_interval_ms, self.group_consumer_session_timeout_ms
        if heartbeat >= session:
            raise BadSettings(
                "group_consumer_heartbeat_interval_ms must be less than group_consumer_session_timeout_ms "
                f"(got {heartbeat} and {session})"
            )
        if not self.group_consumer_assignors:
            raise BadSettings(f"group_consumer_assignors must name at least one of {', '.join(ASSIGNORS)} (got none)")

    def require_assignors(self, custom: Collection[str] = ()) -> None:
        """Raise ``BadSettings`` if a configured server assignor is neither Kafka's nor in ``custom``."""
        for name in self.group_consumer_assignors:
            if name not in ASSIGNORS and name not in custom:
                known = ", ".join((*ASSIGNORS, *custom))
                raise BadSettings(f"group_consumer_assignors must contain only {known} (got {name!r})")


#: Pairs of settings of which the first must not exceed the second.
ORDERED: Final = (
    ("group_min_session_timeout_ms", "group_max_session_timeout_ms"),
    *(
        (f"group_consumer_{low}{name}", f"group_consumer_{high}{name}")
        for name in ("session_timeout_ms", "heartbeat_interval_ms", "assignment_interval_ms")
        for low, high in (("min_", "max_"), ("min_", ""), ("", "max_"))
    ),
)
_NONE_AT_ALL: Final = ("group_min_session_timeout_ms", "group_max_session_timeout_ms")
_MAY_BE_NEGATIVE: Final = "offset_metadata_max_bytes"  # G-CFG-36
#: The least value of each number: 1 for sizes, timeouts and retention, 0 for numbers that may be zero.
_LEAST: Final = {
    field.name: int(
        field.name not in _NONE_AT_ALL
        and any(word in field.name for word in ("size", "timeout", "heartbeat", "retention"))
    )
    for field in fields(Settings)
    if field.type == "int" and field.name != _MAY_BE_NEGATIVE
}

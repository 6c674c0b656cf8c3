"""Broker settings that groups use, by Kafka's names: what a broker tells, what is said with ``--setting``, and what is
left to be assumed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fencepost.protocol.kafka_names import BROKER_NAMES, FIELDS, text_of, value_of
from fencepost.protocol.settings import ORDERED, MigrationPolicy, Settings

from ..console import CannotRun
from ..nearest import unknown

if TYPE_CHECKING:  # what describes traces needs the suite's packages, and serving does not
    from ..trace.lines import Setting

#: those that decide what clients of classic groups see
OF_CLASSIC = frozenset(
    FIELDS[name]
    for name in (
        "group.min.session.timeout.ms",
        "group.max.session.timeout.ms",
        "group.initial.rebalance.delay.ms",
        "group.max.size",
    )
)

#: those by which committed offsets expire
OF_OFFSETS = frozenset({"offsets_retention_ms", "offsets_retention_check_interval_ms"})

#: help of the option
OPTION_HELP = "NAME=VALUE: a broker setting by Kafka's name, over what the broker tells; may be repeated"


@dataclass(frozen=True, slots=True)
class Known:
    """``settings`` to check with. ``assumed``: fields that nobody told, so that Kafka's default was taken."""

    settings: Settings
    assumed: tuple[str, ...] = ()


def given(options: Sequence[str] | None) -> dict[str, Setting]:
    """Field to value of what was given as ``NAME=VALUE``, the last one of each name. Raises ``CannotRun``."""
    found: dict[str, Setting] = {}
    for option in options or ():
        name, equals, text = option.partition("=")
        name = name.strip()
        if not equals:
            raise CannotRun(f"--setting {option!r} is not NAME=VALUE, such as group.initial.rebalance.delay.ms=0")
        if name not in FIELDS:
            raise CannotRun(unknown("setting", name, FIELDS, f"known: {', '.join(FIELDS)}"))
        try:
            found[FIELDS[name]] = value_of(name, text)
        except ValueError:
            raise CannotRun(f"--setting {option!r}: {text!r} is no value of {name}") from None
    return found


def settle(
    told: Mapping[str, Setting], wanted: Mapping[str, Setting], fields: Collection[str] = frozenset(BROKER_NAMES)
) -> Known:
    """What to check with; all by field. ``wanted`` goes over what the broker ``told``; ``fields``: those that matter.
    Where a bound was not told, Kafka's default gives way to what was.

    Raises ``CannotRun`` for settings that contradict each other."""
    found = {**told, **wanted}
    untold = [field for field in BROKER_NAMES if field not in found]
    try:
        settings = changed(Settings(), fitting(Settings(), found, untold))
        return Known(settings, tuple(field for field in untold if field in fields))
    except ValueError as contradiction:
        raise CannotRun(f"these settings do not go together: {contradiction}") from None


def fitting(base: Settings, changes: Mapping[str, Setting], free: Collection[str]) -> dict[str, Setting]:
    """The changes, and with them those of ``free`` fields that are bounds of theirs and would be overstepped."""
    found: dict[str, Any] = dict(changes)
    for lower, upper in (*ORDERED, *ORDERED):  # a bound that gives way may move the one beyond it
        least, most = found.get(lower, getattr(base, lower)), found.get(upper, getattr(base, upper))
        if least > most and lower in free and lower not in changes:
            found[lower] = most
        elif least > most and upper in free and upper not in changes:
            found[upper] = least
    return found


def changed(settings: Settings, changes: Mapping[str, Setting]) -> Settings:
    """The settings with these changes, by field. Raises ``ValueError`` for settings that contradict each other."""
    values: dict[str, Any] = dict(changes)
    if "group_consumer_migration_policy" in values:
        values["group_consumer_migration_policy"] = MigrationPolicy(values["group_consumer_migration_policy"])
    return replace(settings, **values)


def spelled(field: str, value: object) -> str:
    """Such as ``group.max.size=3``, as ``--setting`` takes it."""
    return f"{BROKER_NAMES[field]}={text_of(field, value)}"


def assumed_words(known: Known) -> str:
    """What was assumed and how to tell better, in a line; empty if nothing was."""
    if not known.assumed:
        return ""
    told = ", ".join(spelled(field, getattr(known.settings, field)) for field in known.assumed)
    return f"the broker does not tell all its settings; assumed: {told} (give what it has with --setting NAME=VALUE)"


def settings_json(known: Known) -> dict[str, Any]:
    """What was assumed, by Kafka's names, as JSON data."""
    return {"assumed": {BROKER_NAMES[field]: _shown(field, known.settings) for field in known.assumed}}


def _shown(field: str, settings: Settings) -> object:
    """As it stands in a broker's properties, with numbers as such."""
    value = getattr(settings, field)
    text = text_of(field, value)
    return int(text) if isinstance(value, int) and text.lstrip("-").isdecimal() else text

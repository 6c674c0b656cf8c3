"""The broker settings that groups use, by Kafka's names: from the broker, from ``--setting``, or assumed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fencepost.protocol.kafka_names import BROKER_NAMES, FIELDS, text_of, value_of
from fencepost.protocol.settings import ORDERED, MigrationPolicy, Settings

from ...common.errors import CannotRun
from ...common.nearest import unknown

if TYPE_CHECKING:  # traces need the suite's packages, serving does not
    from ..lines import Setting

#: the settings that decide what clients of classic groups see
OF_CLASSIC = frozenset(
    FIELDS[name]
    for name in (
        "group.min.session.timeout.ms",
        "group.max.session.timeout.ms",
        "group.initial.rebalance.delay.ms",
        "group.max.size",
    )
)

#: the settings that decide when committed offsets expire
OF_OFFSETS = frozenset({"offsets_retention_ms", "offsets_retention_check_interval_ms"})

#: the help text of the option
OPTION_HELP = "NAME=VALUE: the value of a broker setting, by Kafka's name; may be repeated"


#: help texts that are here, because a command line that needs no connection shows them too
METRIC_GROUPS_HELP = "how many groups get their own label in /metrics; the others are summed"
ACCESS_HELP = "properties as Kafka's clients take them: security.protocol, sasl.…, ssl.… (PEM)"


@dataclass(frozen=True, slots=True)
class Known:
    """``settings``: those to check with. ``assumed``: fields with Kafka's default, since no source gave them."""

    settings: Settings
    assumed: tuple[str, ...] = ()


def given(options: Sequence[str] | None) -> dict[str, Setting]:
    """Parse options ``NAME=VALUE`` to values by field; the last one of each name counts. Raises ``CannotRun``."""
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
            raise CannotRun(f"--setting {option!r}: {text!r} is not a value of {name}") from None
    return found


def settle(
    reported: Mapping[str, Setting], wanted: Mapping[str, Setting], fields: Collection[str] = frozenset(BROKER_NAMES)
) -> Known:
    """Combine settings, all by field. ``wanted`` overrides what the broker ``reported``. ``fields``: those that matter.
    An assumed bound is moved if a known value exceeds it.

    Raises ``CannotRun`` for settings that contradict each other."""
    found = {**reported, **wanted}
    missing = [field for field in BROKER_NAMES if field not in found]
    try:
        settings = changed(Settings(), fitting(Settings(), found, missing))
        return Known(settings, tuple(field for field in missing if field in fields))
    except ValueError as contradiction:
        raise CannotRun(f"these settings do not go together: {contradiction}") from None


def fitting(base: Settings, changes: Mapping[str, Setting], free: Collection[str]) -> dict[str, Setting]:
    """The changes, and further changes of ``free`` fields: of bounds that the changes would exceed."""
    found: dict[str, Any] = dict(changes)
    for lower, upper in (*ORDERED, *ORDERED):  # a moved bound may move the next one
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
    found = replace(settings, **values)
    found.require_assignors()
    return found


def spelled(field: str, value: object) -> str:
    """A setting in the form of ``--setting``, such as ``group.max.size=3``."""
    return f"{BROKER_NAMES[field]}={text_of(field, value)}"


def assumed_words(known: Known) -> str:
    """A line that says which settings were assumed, and how to give them; empty if none was."""
    if not known.assumed:
        return ""
    values = ", ".join(spelled(field, getattr(known.settings, field)) for field in known.assumed)
    return f"settings that the broker did not report, assumed: {values} (give its values with --setting NAME=VALUE)"


def settings_json(known: Known) -> dict[str, Any]:
    """The assumed settings, by Kafka's names, as JSON data."""
    return {"assumed": {BROKER_NAMES[field]: _shown(field, known.settings) for field in known.assumed}}


def _shown(field: str, settings: Settings) -> object:
    """The value as in a broker's properties, but numbers as numbers."""
    value = getattr(settings, field)
    text = text_of(field, value)
    return int(text) if isinstance(value, int) and text.lstrip("-").isdecimal() else text

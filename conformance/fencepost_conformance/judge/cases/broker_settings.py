"""The settings of a broker, as far as cases depend on them.

A case uses timeouts that the broker allows. If a case fails because the broker is configured for smaller groups or
without conversions, the broker does not support the case: it does as its operator told it to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from .answers import Exchange

#: the session timeout of consumer groups
CONSUMER_SESSION: Final = "group.consumer.session.timeout.ms"
#: the policy for conversions, and its values with upgrades and with downgrades (X-POL-01…04)
POLICY: Final = "group.consumer.migration.policy"
UPGRADES: Final = ("bidirectional", "upgrade")
DOWNGRADES: Final = ("bidirectional", "downgrade")
#: values with which members of both protocols may be in one group
MIXES: Final = ("bidirectional", "upgrade", "downgrade")
_SHORTEST_SESSION: Final = "group.min.session.timeout.ms"
_LONGEST_SESSION: Final = "group.max.session.timeout.ms"
#: Kafka's defaults of these two; a session timeout outside them is what a case tests
_USUAL_SESSIONS: Final = range(6_000, 1_800_001)
_SIZES: Final = ("group.max.size", "group.consumer.max.size")
#: how a broker refuses a member that a group has no room for, and the upgrade of a group that is too large (X-UP-02)
_TOO_LARGE: Final = {
    ("join_group", "GROUP_MAX_SIZE_REACHED"),
    ("consumer_group_heartbeat", "GROUP_MAX_SIZE_REACHED"),
    ("consumer_group_heartbeat", "GROUP_ID_NOT_FOUND"),
}
#: all settings that cases depend on
NAMES: Final = (CONSUMER_SESSION, POLICY, _SHORTEST_SESSION, _LONGEST_SESSION, *_SIZES)


def allowed_session_ms(settings: Mapping[str, str], wanted_ms: int) -> int:
    """Return the session timeout of a classic member that is nearest to the wanted one and allowed."""
    if wanted_ms not in _USUAL_SESSIONS:
        return wanted_ms
    least, most = settings.get(_SHORTEST_SESSION, ""), settings.get(_LONGEST_SESSION, "")
    at_least = max(wanted_ms, int(least)) if least.isdecimal() else wanted_ms
    return min(at_least, int(most)) if most.isdecimal() else at_least


def not_allowed(
    settings: Mapping[str, str], needs: Mapping[str, tuple[str, ...]], exchanges: Iterable[Exchange], clients: int
) -> str | None:
    """Return why a case cannot succeed with these settings; None if they are not the reason. ``needs``: by setting, the
    values with which the case can succeed; ``clients``: at least as many as the case wanted in one group."""
    for name, values in needs.items():
        if (value := settings.get(name)) is not None and value.lower() not in values:
            return f"the broker has {name}={value}; this case needs {' or '.join(values)}"
    errors = {(each.api, each.answer.get("error_code")) for each in exchanges if isinstance(each.answer, Mapping)}
    if _TOO_LARGE & errors:
        for name in _SIZES:
            if (value := settings.get(name, "")).isdecimal() and int(value) < clients:
                return f"the broker has {name}={value}, and this case needs a larger group"
    return None

"""What of the catalogue can be seen from outside a broker: versions that it offers, and the errors that it answers.

States, timers, records and the rules that decide are inside it: a run over the wire says nothing of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from .catalogue import FEATURES

#: errors that no client brings about, however it behaves
_REASONS = {
    "NOT_COORDINATOR": "said by a broker that does not lead the group's partition (F-RT-01)",
    "COORDINATOR_LOAD_IN_PROGRESS": "said while the coordinator loads, before the traces begin (F-RT-02)",
    "GROUP_AUTHORIZATION_FAILED": "needs an authorizer that refuses",
    "COORDINATOR_NOT_AVAILABLE": "needs a partition that cannot be written",
    "UNKNOWN_SERVER_ERROR": "needs a broker that fails inside",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "needs replicas that fall behind",
}


def visible(versions: Mapping[str, tuple[int, int]]) -> tuple[str, ...]:
    """The features that a run can see; ``versions``: of each API that it uses, the first and the last one."""
    found = []
    for name in FEATURES:
        kind, _, rest = name.partition(" ")
        api, _, value = rest.partition(" ")
        if api not in versions:
            continue
        first, last = versions[api]
        if kind == "error" or (kind == "version" and first <= int(value) <= last):
            found.append(name)
    return tuple(found)


def reasons(features: tuple[str, ...]) -> dict[str, str]:
    """Why such a feature need not be reached, for those of which it is known."""
    errors = {name: name.rpartition(" ")[2] for name in features if name.startswith("error ")}
    return {name: _REASONS[error] for name, error in errors.items() if error in _REASONS}

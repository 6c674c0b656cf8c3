"""All cases, and the choice of some by name."""

from __future__ import annotations

from collections.abc import Sequence

from ...common.errors import CannotRun
from ...common.nearest import unknown
from .admin import groups as _groups
from .admin import versions as _versions
from .case import CASES, Case
from .classic import heartbeat as _heartbeat
from .classic import join as _join
from .classic import leave as _leave
from .classic import static as _static
from .classic import sync as _sync
from .consumer import fence as _fence
from .consumer import join as _consumer_join
from .consumer import leave as _consumer_leave
from .consumer import reconcile as _reconcile
from .consumer import static as _consumer_static
from .mixed import downgrade as _downgrade
from .mixed import upgrade as _upgrade
from .offsets import commit as _commit
from .offsets import delete as _delete
from .offsets import fetch as _fetch
from .offsets import transaction as _transaction

#: the modules that register cases
_MODULES = (
    _join, _sync, _heartbeat, _leave, _static,
    _consumer_join, _fence, _reconcile, _consumer_leave, _consumer_static,
    _upgrade, _downgrade,
    _commit, _fetch, _transaction, _delete,
    _groups, _versions,
)  # fmt: skip


def chosen(names: Sequence[str]) -> list[Case]:
    """Return the cases with these names, or below them: ``classic``, ``classic.join`` or ``classic.join.3``. All cases
    for no names. Raises ``CannotRun`` for a name that no case has."""
    found = {case.name: case for case in CASES.values() if not names}
    for wanted in names:
        some = {name: case for name, case in CASES.items() if name == wanted or name.startswith(f"{wanted}.")}
        if not some:
            parents = {name.rpartition(".")[0] for name in CASES}
            known = sorted({*CASES, *parents, *(name.partition(".")[0] for name in CASES)})
            raise CannotRun(unknown("case", wanted, known, "fencepost conform --list shows them"))
        found |= some
    return list(found.values())

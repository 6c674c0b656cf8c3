"""All cases for clients, and the choice of some by name."""

from __future__ import annotations

from collections.abc import Sequence

from ...common.errors import CannotRun
from ...common.nearest import unknown
from .case import CLIENT_CASES, ClientCase
from .cases import errors as _errors
from .cases import final as _final
from .cases import handing_over as _handing_over
from .cases import joining as _joining
from .cases import membership as _membership
from .cases import partial as _partial

#: the modules that register cases
_MODULES = (_joining, _errors, _membership, _handing_over, _partial, _final)


def chosen(names: Sequence[str]) -> list[ClientCase]:
    """Return the cases with these names, or below them: ``client``, ``client.join`` or ``client.join.3``. All cases for
    no names. Raises ``CannotRun`` for a name that no case has."""
    found = {case.name: case for case in CLIENT_CASES.values() if not names}
    for wanted in names:
        some = {name: case for name, case in CLIENT_CASES.items() if name == wanted or name.startswith(f"{wanted}.")}
        if not some:
            known = sorted({*CLIENT_CASES, *(case.family for case in CLIENT_CASES.values())})
            raise CannotRun(unknown("case", wanted, known, "fencepost conform --list shows them"))
        found |= some
    return list(found.values())

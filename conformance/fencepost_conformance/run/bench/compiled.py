"""Steps per second of the compiled core, by kind of groups, beside the same core from its sources."""

from __future__ import annotations

from ...common.repository import root
from ...generate.plan import GroupProtocol
from ..compiled import build, is_of_these_sources
from .core import GOALS, in_turn, probe, row
from .measure import Row


def compiled() -> list[Row]:
    """Measure; first compile the core unless ``out/compiled`` has it from these sources. Raises ``CannotRun``."""
    built = root() / "out" / "compiled"
    if not is_of_these_sources(built):
        build(built)
    rows = []
    for protocol in GroupProtocol:
        with probe("intended", protocol, built) as native, probe("intended", protocol) as sources:
            rates = in_turn([native, sources])
        rows.append(row("compiled", protocol, "from the sources", rates, GOALS[protocol][1]))
    return rows

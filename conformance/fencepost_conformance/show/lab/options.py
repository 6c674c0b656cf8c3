"""The choices that the page offers: releases, protocols, and the bounds of each number."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fencepost.protocol.profiles import PROFILES

from ...generate.lab import Protocol, Start
from ...generate.lab.actions import TIMEOUTS
from ...generate.lab.start import BOUNDS


def options() -> dict[str, Any]:
    """Return the choices, and the start of a new session, as JSON data."""
    return {
        "start": asdict(Start()),
        "profiles": list(PROFILES),
        "protocols": list(Protocol),
        "bounds": {name: list(each) for name, each in BOUNDS.items()},
        "timeouts": list(TIMEOUTS),
    }

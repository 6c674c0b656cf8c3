"""The choices that the page offers: releases, protocols, and the bounds of each number."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fencepost.protocol.profiles import PROFILES

from ...generate.lab import Protocol, Start
from ...generate.lab.actions import TIMEOUTS
from ...generate.lab.start import BOUNDS
from ...generate.lab.tours import TOURS, Tour


def options() -> dict[str, Any]:
    """Return the choices, and the start of a new session, as JSON data."""
    return {
        "start": asdict(Start()),
        "profiles": list(PROFILES),
        "protocols": list(Protocol),
        "bounds": {name: list(each) for name, each in BOUNDS.items()},
        "timeouts": list(TIMEOUTS),
        "tours": [_tour(tour) for tour in TOURS.values()],
    }


def _tour(tour: Tour) -> dict[str, Any]:
    chapters = [{"text": each.text, "actions": [dict(action) for action in each.actions]} for each in tour.chapters]
    return {
        "name": tour.name,
        "title": tour.title,
        "articles": tour.articles,
        "start": asdict(Start()) | dict(tour.start),
        "chapters": chapters,
    }

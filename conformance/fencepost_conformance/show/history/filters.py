"""The controls that choose what a page shows, and the marks of the rows and parts that they hide."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape

from ...judge.history.events import Event


def filter_of(kind: str, names: Iterable[str]) -> str:
    """Return the controls that choose what is shown; the script fills them in. ``names``: of groups or members."""
    return f'<div class="tools filter" data-kind="{kind}" data-names="{_json(sorted(set(names)))}"></div>'


def about(names: Iterable[str]) -> str:
    """Return the mark of a row or of a part of a picture that a filter may hide."""
    return f' data-about="{_json([*names])}"'


def members_of(event: Event) -> dict[str, None]:
    """Return the members that the event names, in order."""
    moved = (member for move in event.moves for member in (move.old, move.new) if member is not None)
    return dict.fromkeys((*event.members, *moved))


def _json(value: object) -> str:
    return escape(json.dumps(value, ensure_ascii=False), quote=True)

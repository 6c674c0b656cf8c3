"""A sequence chart as a part of a page: its data, which the page's script draws as far as they are in view.

A trace may have thousands of steps. So the page has each step as a row of data, and the script
(``fencepost_server/look/static/page.js``) keeps few elements. Most of a picture or a text repeats others, so HTML is
cut at its tags, and the page has each distinct piece once (``packed``): about 300 bytes for a step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from .chart import (
    DEFS,
    STRIP,
    TIME,
    Chart,
    Plan,
    band,
    cells,
    full_name,
    heads_of,
    height,
    kinds,
    lifelines,
    plan_of,
    strip_head,
)
from .details import group_panel, panel
from .folding import heartbeats
from .palette import swatch
from .steps import COORDINATOR, LOG, StepWords

#: shown until the script has drawn the chart, so also where scripts are blocked
_WITHOUT_SCRIPT: Final = (
    "This chart needs JavaScript. <code>fencepost replay</code> shows the same trace on a terminal."
)

#: a tag with the text before it, or the text after the last tag
_PIECE: Final = re.compile(r"[^>]*>|[^>]+$")


def chart_html(chart: Chart, *, level: int = 2) -> str:
    """Return the chart as a part of a page: the picture on the left, details of the selected step on the right.
    ``level``: of its heading."""
    plan = plan_of(chart)
    title = escape(chart.title, quote=True)
    notes = "".join(f'<div class="note">{escape(note)}</div>' for note in chart.notes)
    marked = "" if chart.marked is None else f' data-marked="{chart.marked}"'
    data = json.dumps(packed(chart_data(plan)), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<h{level} id="{title}">{title}</h{level}>{notes}{_legend(plan)}'
        f'<section class="trace" aria-label="{title}"{marked}><div class="tools"></div>'
        f'<div class="picture" tabindex="0" role="group" aria-label="steps of {title}">{_WITHOUT_SCRIPT}</div>'
        f'<div class="panels" tabindex="0" role="group" aria-label="selected step of {title}"></div>'
        f'<script type="application/json">{data}</script></section>'
    )


def chart_data(plan: Plan) -> dict[str, Any]:
    """Return what the script draws. A row of ``steps`` is: time, height, classes, clients, groups, whether it is a
    heartbeat without news, picture, strips, panel, states of groups. Strips are pairs of a strip and a place in
    ``cells``; states are pairs of a place in ``states`` and whether the step changed it."""
    chart = plan.chart
    cell_numbers: dict[str, int] = {}
    states: dict[str, int] = {}
    quiet = heartbeats(chart.steps)
    client_of = {lane: column for column, sharing in plan.columns.items() for lane in sharing}
    rows: list[list[Any]] = []
    about: set[str] = set()
    for at, step in enumerate(chart.steps):
        held = [[strip, cell_numbers.setdefault(cell, len(cell_numbers))] for strip, cell in cells(plan, at)]
        touched = {group.group for group in step.groups}
        standing = [
            [states.setdefault(group_panel(group, plan.colours), len(states)), int(name in touched)]
            for name, group in plan.standing[at].items()
        ]
        groups = sorted({step.group, *touched} - {""})
        about.update(groups)
        rows.append(
            [
                step.at_ms,
                round(height(step)),
                kinds(plan, step),
                list(dict.fromkeys(client_of[each] for each in _clients(step) if each in client_of)),
                groups,
                int(at in quiet and step.index != chart.marked),
                band(plan, at),
                held,
                panel(step),
                standing,
            ]
        )
    return {
        "width": round(plan.width),
        "head": round(plan.head),
        "time": TIME,
        "strip": STRIP,
        "defs": DEFS,
        "heads": heads_of(plan),
        "lanes": [[x, int(own)] for x, own in lifelines(plan)],
        "strips": [[group, strip_head(plan, at)] for at, (group, _) in enumerate(plan.strips)],
        "clients": [lane for lane in plan.columns if lane not in (COORDINATOR, LOG)],
        "groups": sorted(about),
        "marked": next((at for at, step in enumerate(chart.steps) if step.index == chart.marked), -1),
        "steps": rows,
        "cells": list(cell_numbers),
        "states": list(states),
    }


def packed(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a chart with each picture, panel, cell and state as a list of places in ``pieces``."""
    pieces: dict[str, int] = {}

    def cut(html: str) -> list[int]:
        return [pieces.setdefault(piece, len(pieces)) for piece in _PIECE.findall(html)]

    steps = [[*row[:6], cut(row[6]), row[7], cut(row[8]), row[9]] for row in data["steps"]]
    more = {name: [cut(html) for html in data[name]] for name in ("cells", "states")}
    return {**data, "steps": steps, **more, "pieces": list(pieces)}


def _clients(step: StepWords) -> Sequence[str]:
    return [each for each in dict.fromkeys((step.who, step.whom, *(a.to for a in step.answers))) if each != COORDINATOR]


def _legend(plan: Plan) -> str:
    if not plan.colours:
        return ""
    members = "".join(
        f'<span class="member" title="{escape(full_name(name, plan.chart.full), quote=True)}">'
        f"{swatch(number)}{escape(name)}</span>"
        for name, number in plan.colours.items()
    )
    return (
        f'<p class="legend">{members}<span class="dim">hatched: to revoke · red frame: two holders at once</span></p>'
    )

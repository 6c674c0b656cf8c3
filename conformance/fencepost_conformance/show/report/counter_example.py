"""Counter-examples of the model checker: each step with what it changed, as text, JSON, ITF and HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, Final

from fencepost_model.system.changes import ABSENT, Change, Shown, all_changes, shown
from fencepost_model.system.checking import Row
from fencepost_model.tlc.itf import itf_state, itf_value
from fencepost_server.look.made import Made
from fencepost_server.look.page import page


def steps_as_text(row: Row, *, states: bool) -> Iterator[str]:
    """Yield the lines of a counter-example: each step, and below it what it changed. ``states``: the whole state."""
    if len(row.steps) < 2:
        yield from (f"{number:>3}  {line}" for number, line in enumerate(row.trace))
        return
    for number, (line, step, changed) in enumerate(zip(row.trace, row.steps, all_changes(row.steps), strict=False)):
        yield f"{number:>3}  {line}"
        if states or not number:
            yield from (f"       {name} = {shown(value)}" for name, value in step.state.items())
        else:
            yield from (f"       {change}" for change in changed)
    yield from (f"     {line}" for line in row.trace[len(row.steps) :])


def steps_as_json(steps: Sequence[Shown], *, states: bool) -> list[dict[str, Any]]:
    """Return the steps as JSON data. Values are those of ITF. The first step has its whole state; the others do with
    ``states``."""
    return [
        {
            "action": list(step.action),
            "changes": [_change(change) for change in changed],
            **({"state": itf_state(step.state)} if states or not number else {}),
        }
        for number, (step, changed) in enumerate(zip(steps, all_changes(steps), strict=True))
    ]


def _change(change: Change) -> dict[str, Any]:
    return {
        "path": change.path,
        **({} if change.old is ABSENT else {"old": itf_value(change.old)}),
        **({} if change.new is ABSENT else {"new": itf_value(change.new)}),
    }


def as_itf(row: Row) -> dict[str, Any]:
    """Return the counter-example as ITF data. ``#meta`` names the configuration, the property and each action."""
    return {
        "#meta": {
            "format": "ITF",
            "description": f"counter-example of {row.name}",
            "fencepost": {
                "type": "counter-example",
                "version": 1,
                "configuration": row.name,
                "engine": row.engine,
                "violated": row.violated,
            },
        },
        "vars": list(row.steps[0].state),
        **({} if row.loop is None else {"loop": row.loop}),
        "states": [
            {"#meta": {"index": number, "action": list(step.action)}, **itf_state(step.state)}
            for number, step in enumerate(row.steps)
        ],
    }


_STYLE: Final = """
.steps { border-left: 2px solid var(--line); padding-left: 1rem; list-style: none; }
.steps > li { margin: .7rem 0; }
.steps code, .steps td { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 12px; }
.steps td { overflow-wrap: anywhere; }
del { color: var(--bad); text-decoration: none; } ins { color: var(--good); text-decoration: none; }
del::before { content: "\u2212 "; } ins::before { content: "+ "; }
summary { color: var(--soft); cursor: pointer; }
"""


def as_html(rows: Sequence[Row], made: Made) -> str:
    """Return a page with each counter-example: what each step changed, and the whole state behind a click."""
    parts = [_section(row) for row in rows] or ["<p>There is no counter-example.</p>"]
    return page("Fencepost: counter-examples", "".join(parts), made, style=_STYLE)


def _section(row: Row) -> str:
    why = ", ".join(row.violated) or "; ".join(row.wrong) or row.broken
    steps = "".join(
        f"<li><b>{number} {escape(line)}</b>{_changed(changed)}{_state(step, is_open=not number)}</li>"
        for number, (line, step, changed) in enumerate(zip(row.trace, row.steps, all_changes(row.steps), strict=False))
    )
    rest = "".join(f"<li><b>{escape(line)}</b></li>" for line in row.trace[len(row.steps) :])
    return f'<h2>{escape(row.name)}</h2><p class="note">{escape(why)}</p><ol class="steps">{steps}{rest}</ol>'


def _changed(changed: Sequence[Change]) -> str:
    rows = "".join(f"<tr><td>{escape(each.path)}</td><td>{_difference(each)}</td></tr>" for each in changed)
    return f"<table>{rows}</table>" if rows else ""


def _difference(change: Change) -> str:
    old, new = change.sides
    return "<br>".join(
        [*(f"<del>{escape(each)}</del>" for each in old), *(f"<ins>{escape(each)}</ins>" for each in new)]
    )


def _state(step: Shown, *, is_open: bool) -> str:
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(shown(value))}</td></tr>" for name, value in step.state.items()
    )
    return f"<details{' open' if is_open else ''}><summary>state</summary><table>{rows}</table></details>"

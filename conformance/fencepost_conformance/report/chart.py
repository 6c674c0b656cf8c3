"""Traces as sequence charts in one HTML page that needs nothing else: no script, no font, no other file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .words import COORDINATOR, StepWords

STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; --bad: #c0392b; --good: #2e8b57; --note: #b8860b; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 78rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; }
h2 { font-size: 1.15rem; margin-top: 2.2rem; }
code, .chart, td.n { font-family: ui-monospace, monospace; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top; }
td.n { text-align: right; }
.held { color: var(--good); }
.broken { color: var(--bad); }
.chart { display: grid; font-size: 12px; overflow-x: auto; }
.chart { border: 1px solid var(--line); border-radius: 6px; padding: .6rem; }
.chart > * { padding: .12rem .4rem; overflow-wrap: anywhere; }
.lane { font-weight: 600; border-bottom: 1px solid var(--line); position: sticky; top: 0; background: Canvas; }
.time { color: GrayText; text-align: right; }
.say { border-bottom: 2px solid currentColor; }
.say.to::after { content: " →"; }
.say.back { border-bottom-style: dashed; }
.say.back::before { content: "← "; }
.own { background: var(--soft); border-radius: 4px; }
.error { color: var(--bad); }
.after { color: GrayText; padding-left: 1.2rem; }
.differs { outline: 2px solid var(--bad); }
.note { border-left: 3px solid var(--bad); padding: .2rem .6rem; margin: .4rem 0; }
"""


@dataclass(frozen=True, slots=True)
class Chart:
    """One trace: a title, lines above it, the lanes, the steps, and the step (index) to mark, or None."""

    title: str
    notes: tuple[str, ...]
    lanes: Sequence[str]
    steps: Sequence[StepWords]
    marked: int | None = None


def page(title: str, body: str) -> str:
    """A whole HTML page."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head><body>\n<h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def chart_html(chart: Chart) -> str:
    """The chart as a part of a page: time, a column for each lane, a row for each thing that is said."""
    columns = {lane: number for number, lane in enumerate(chart.lanes, 2)}
    cells = ['<div class="lane time">ms</div>']
    cells += [f'<div class="lane" style="grid-column:{columns[lane]}">{escape(lane)}</div>' for lane in chart.lanes]
    row = 2
    for step in chart.steps:
        marked = " differs" if step.index == chart.marked else ""
        row = _step(cells, row, step, columns, marked)
    width = " ".join(["max-content", *["minmax(9rem, 1fr)"] * (len(chart.lanes) - 1), "minmax(22rem, 2fr)"])
    notes = "".join(f'<div class="note">{escape(note)}</div>' for note in chart.notes)
    return (
        f'<h2 id="{escape(chart.title, quote=True)}">{escape(chart.title)}</h2>{notes}'
        f'<div class="chart" style="grid-template-columns:{width}">{"".join(cells)}</div>'
    )


def _step(cells: list[str], row: int, step: StepWords, columns: dict[str, int], marked: str) -> int:
    last = columns[COORDINATOR]

    def put(column: str, kind: str, text: str) -> None:
        nonlocal row
        cells.append(f'<div class="{kind}{marked}" style="grid-area:{row}/{column}">{escape(text)}</div>')
        row += 1

    cells.append(f'<div class="time" style="grid-area:{row}/1" title="event {step.index}">{step.at_ms}</div>')
    if step.who == COORDINATOR:
        if step.what:
            put(f"{last}", "own", step.what)
    else:
        put(f"{columns[step.who]} / auto / {last + 1}", "say to", step.what)
    for text in (
        *step.groups,
        *(f"writes {text}" for text in step.records),
        *(f"timer {text}" for text in step.timers),
    ):
        put(f"{last}", "after", text)
    if step.error:
        put(f"{last}", "after error", f"raised inside: {step.error}")
    for answer in step.answers:
        column = columns.get(answer.to, 2)
        kind = "say back error" if answer.error else "say back"
        put(f"{column} / auto / {last + 1}", kind, f"#{answer.request_id} {answer.text}")
    return row

"""The files of a comparison: ``diff.json``, ``report.html``, and the shortest trace of each group."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from fencepost.protocol.profiles import PROFILES
from fencepost.rulebook.book import Rule
from fencepost_server.look.made import Made
from fencepost_server.look.page import page

from ...common.counting import counted
from ...judge.diff.explain import Followed
from ...judge.diff.groups import Group, Groups
from ...judge.diff.job import Side
from ...judge.diff.shortest import Shortest
from ...judge.known import Accepted
from ...traces.files import EventTrace, write_traces
from ..report.chart import Chart
from ..report.chart_page import chart_html
from ..report.steps import StepDescriber
from .results import values_of


def write_files(  # noqa: PLR0917 — the contents to write
    directory: Path,
    sides: tuple[Side, Side],
    found: Groups,
    small: Mapping[str, Shortest],
    accepted: Mapping[str, Accepted],
    document: Mapping[str, Any],
    book: Mapping[str, Rule],
    made: Made,
) -> None:
    """Write everything; ``document``: the output of ``--json``. Traces are ``traces/NN.jsonl`` by group:
    the first side's and the other's."""
    (directory / "diff.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    groups = found.ordered()
    traces = directory / "traces"
    for number, group in enumerate(groups, 1):
        if group.key in small:
            traces.mkdir(exist_ok=True)
            write_traces(traces / f"{number:02}.jsonl", _traces(small[group.key]))
    (directory / "report.html").write_text(
        _page(sides, found, groups, small, accepted, book, document.get("error", ""), made), encoding="utf-8"
    )


def _traces(shown: Shortest) -> list[EventTrace]:
    return [
        EventTrace(
            shown.settings,
            PROFILES[side.profile],
            tuple(event for event, _ in steps),
            tuple(seen for _, seen in steps),
            shown.seed,
            f"{side.name}: {shown.key}",
            (("target", side.name),),
        )
        for side, steps in ((shown.job.one, shown.mine), (shown.job.other, shown.theirs))
    ]


# --- the page --------------------------------------------------------------------------------------------------------


def _page(  # noqa: PLR0917 — as ``write_files``
    sides: tuple[Side, Side],
    found: Groups,
    groups: Sequence[Group],
    small: Mapping[str, Shortest],
    accepted: Mapping[str, Accepted],
    book: Mapping[str, Rule],
    incomplete: str,
    made: Made,
) -> str:
    """Return the page. ``incomplete``: why some traces have no verdict."""
    one, other = sides
    left = [group for group in groups if group.key not in accepted]
    verdict = '<b class="bad">differ</b>' if left else '<b class="good">do the same, apart from known differences</b>'
    if not groups:
        verdict = '<b class="good">do the same</b>' if not incomplete else "did the same"
    body = [
        f"<p><code>{escape(one.name)}</code> (A) and <code>{escape(other.name)}</code> (B) {verdict}: "
        f"{counted(len(groups), 'groups')} of differences in {found.differing:,} of {counted(found.traces, 'traces')}, "
        f"{counted(found.steps, 'steps')}.</p>",
        f'<p class="bad">Some traces have no verdict: {escape(incomplete)}.</p>' if incomplete else "",
        *_unsettled(found),
        _table(groups, accepted),
        *(_section(number, group, small.get(group.key), accepted, book) for number, group in enumerate(groups, 1)),
    ]
    return page(f"Fencepost: {one.name} and {other.name}", "\n".join(body), made)


def _unsettled(found: Groups) -> list[str]:
    unsettled = found.unsettled()
    if not unsettled:
        return []
    rows = (
        f"<tr><td>{each.verdict}</td><td>{escape(each.what)}</td><td><code>{escape(each.why)}</code></td></tr>"
        for each in unsettled
    )
    head = f"<h2>No verdict ({len(unsettled):,})</h2><p>A side could not run these traces.</p>"
    return [head + "<table><tr><th>verdict</th><th>trace</th><th>why</th></tr>", *rows, "</table>"]


def _table(groups: Sequence[Group], accepted: Mapping[str, Accepted]) -> str:
    if not groups:
        return ""
    rows = "".join(
        f'<tr><td class="n">{number}</td><td class="n">{group.traces:,}</td><td class="n">{group.following:,}</td>'
        f'<td><a href="#group-{number}"><code>{escape(group.key)}</code></a>'
        f"{' <span class=good>known</span>' if group.key in accepted else ''}</td></tr>"
        for number, group in enumerate(groups, 1)
    )
    return f"<table><tr><th></th><th>traces</th><th>following</th><th>what, where, how</th></tr>{rows}</table>"


def _section(
    number: int, group: Group, shown: Shortest | None, accepted: Mapping[str, Accepted], book: Mapping[str, Rule]
) -> str:
    parts = [f'<h2 id="group-{number}">{number}. <code>{escape(group.key)}</code></h2>']
    if group.key in accepted:
        parts.append(f'<p class="good">known: {escape(accepted[group.key].reason)}</p>')
    parts.append(f"<p>{escape(_where(group))}</p>")
    if group.others:
        names = ", ".join(f"<code>{escape(name)}</code>" for name, _ in group.others.most_common(6))
        parts.append(f'<p class="dim">at the same step: {names}</p>')
    if shown is not None:
        parts += _explained(shown, book)
        for letter, side, steps, followed, value in (
            ("A", shown.job.one, shown.mine, shown.explanation.one, shown.left),
            ("B", shown.job.other, shown.theirs, shown.explanation.other, shown.right),
        ):
            describer = StepDescriber([event for event, _ in steps], [seen for _, seen in steps], followed.rules)
            chart = Chart(
                f"{number}{letter}. {side.name}", _notes(followed, value), describer.lanes(), describer.steps(),
                len(steps) - 1, describer.names.full(),
            )  # fmt: skip
            parts.append(chart_html(chart, level=3))
    return "\n".join(parts)


def _where(group: Group) -> str:
    if group.first is None:
        return f"{counted(group.following, 'differences')} that are consequences"
    protocol, seed, found = group.first
    times = f", {counted(group.times, 'times')}" if group.times > group.traces else ""
    return (
        f"In {counted(group.traces, 'traces')}{times}, first in {protocol} trace {seed} at step {found.event}: "
        f"{values_of(group)}. {counted(group.following, 'differences')} are consequences."
    )


def _notes(followed: Followed, value: str) -> tuple[str, ...]:
    return (value, *([] if followed.refused is None else [followed.refused]))


def _explained(shown: Shortest, book: Mapping[str, Rule]) -> list[str]:
    parts = [
        f"<p>Caused by the switch <code>{escape(name)}</code> of the profiles: {escape(cites)}</p>"
        for name, cites in shown.explanation.switches
    ] or [f"<p>{escape(shown.explanation.why())}</p>"]
    if shown.explanation.rules:
        rows = "".join(
            f"<tr><td>{escape(rule)}</td><td>{escape(book[rule].text) if rule in book else ''}</td></tr>"
            for rule in shown.explanation.rules
        )
        names = escape(" ".join(shown.explanation.rules))
        parts.append(f"<details><summary>rules: {names}</summary><table>{rows}</table></details>")
    return parts

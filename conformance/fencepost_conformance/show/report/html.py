"""A run as one HTML page: each cause of failures with its shortest trace, then the counts and the coverage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from fencepost_server.look.made import Made
from fencepost_server.look.page import page

from ...common.counting import counted
from ...judge.rows.summary import FailureGroup, Summary
from ...judge.verdict import Outcome
from .chart import Chart
from .chart_page import chart_html
from .names import short_ids
from .terminal import asides, counts, sides_of

#: characters of a value that a row shows; the chart of the cause has the rest
_VALUE: Final = 200


def report_page(
    summary: Summary, seconds: float, charts: Sequence[tuple[str, Chart]], made: Made, otherwise: str = ""
) -> str:
    """Return the page: the causes first, then the counts and the coverage. ``charts``: the key of a group of failures,
    and the shortest trace of it. ``otherwise``: a sentence about a profile under which all failures pass."""
    job = summary.job
    outcome = summary.outcome
    verdict = f'<b class="{"good" if outcome is Outcome.PASSED else "bad"}">{outcome}</b>'
    if summary.gaps:
        verdict += f"; some traces have no verdict: {escape('; '.join(summary.gaps))}"
    tally = summary.tally
    body = [
        f"<p>Target <code>{escape(job.target)}</code>, profile <code>{escape(job.profile)}</code>: {verdict}. "
        f"{counted(summary.traces, 'traces')} of {job.protocol} groups, {counted(job.steps, 'events')} a trace: "
        f"{tally.passed:,} passed, {tally.failed:,} failed, {tally.undecided:,} undecided, "
        f"{tally.broken:,} broken.</p>",
        f'<p class="note">{escape(otherwise)}</p>' if otherwise else "",
        *(f"<p>{escape(words)}.</p>" for words in asides(summary)),
        *_causes(summary, charts),
        *_unsettled(summary),
        *_divergences(summary),
        *_counts(summary, seconds),
        *_coverage(summary),
    ]
    return page("Fencepost conformance run", "\n".join(body), made)


def _causes(summary: Summary, charts: Sequence[tuple[str, Chart]]) -> Iterable[str]:
    """Yield a row for each cause, then a part for each with its shortest trace, then the traces without a group."""
    groups, drawn = summary.in_order(), dict(reversed(charts))
    if groups:
        known = f", {summary.known_traces:,} known" if summary.known_traces else ""
        yield f"<h2>Causes of failures ({len(groups):,}; {summary.tally.failed:,} traces failed{known})</h2>"
        yield '<table class="rows"><tr><th></th><th class="n">traces</th><th>cause</th><th>first</th></tr>'
        yield from (_row(summary, number, group, drawn.get(group.key)) for number, group in enumerate(groups, 1))
        yield "</table>"
    for number, group in enumerate(groups, 1):
        yield from _cause(summary, number, group, drawn.get(group.key))
    named = {id(chart) for key, chart in drawn.items() if key in summary.groups}
    yield from (chart_html(chart) for _, chart in charts if id(chart) not in named)


def _row(summary: Summary, number: int, group: FailureGroup, chart: Chart | None) -> str:
    known = summary.accepted.get(group.key)
    reason = "" if known is None else f' <span class="good">known: {escape(known.reason)}</span>'
    rules = "" if chart is None else "".join(f"<br>{escape(line)}" for line in chart.rules)
    place = f"{summary.job.name(group.seed)}, {'line' if summary.over_wire else 'event'} {group.event}"
    return (
        f'<tr><td class="n"><a href="#cause-{number}">{number}</a></td><td class="n">{group.traces:,}</td>'
        f"<td>{escape(group.key)}{reason}<br>{_sentence(summary, group)}{rules}</td><td>{escape(place)}</td></tr>"
    )


def _sentence(summary: Summary, group: FailureGroup) -> str:
    """Say what the first of the traces shows, and what was expected."""
    if summary.over_wire:
        return f"{_value(group.left)}; allowed: {_value(group.right)}"
    one, other = sides_of(summary)
    return f"{one}: {_value(group.left)}; {escape(other)}: {_value(group.right)}"


def _value(text: str) -> str:
    """Return a value with short ids and at most so many characters; the whole text is shown on hover."""
    brief = short_ids(text)
    brief = brief if len(brief) <= _VALUE else f"{brief[:_VALUE]}…"
    if brief == text:
        return escape(text)
    return f'<span title="{escape(text, quote=True)}">{escape(brief)}</span>'


def _cause(summary: Summary, number: int, group: FailureGroup, chart: Chart | None) -> Iterable[str]:
    yield f'<h2 id="cause-{number}">{number}. {escape(group.key)}</h2>'
    yield f"<p>{_sentence(summary, group)}</p>"
    if not summary.over_wire:
        yield f"<p><code>{escape(summary.job.replay(group.seed))} --shrink</code></p>"
    if chart is not None:
        yield chart_html(chart, level=3)


def _counts(summary: Summary, seconds: float) -> list[str]:
    rows = (
        f'<tr><th>{escape(name.replace("_", " "))}</th><td class="n">{value:,}</td></tr>'
        for name, value in (summary.tally.as_counts() | counts(summary, seconds)).items()
    )
    followed = "follows" if summary.job.model else "does not follow"
    return [f"<h2>Counts</h2><p>The model {followed} each step.</p><table>", *rows, "</table>"]


def _divergences(summary: Summary) -> list[str]:
    if not summary.divergences:
        return []
    rows = (
        f'<tr><td>{escape(name)}</td><td class="n">{count:,}</td></tr>'
        for name, count in sorted(summary.divergences.items())
    )
    return ["<h2>Known divergences</h2><table><tr><th>name</th><th>traces</th></tr>", *rows, "</table>"]


def _unsettled(summary: Summary) -> list[str]:
    unsettled = summary.unsettled()
    if not unsettled:
        return []
    rows = (
        f"<tr><td>{each.verdict}</td><td>{escape(each.what)}</td><td><code>{escape(each.why)}</code></td></tr>"
        for each in unsettled
    )
    number = summary.tally.undecided + summary.tally.broken
    head = f"<h2>No verdict ({number:,})</h2><p>The run does not pass, since these traces are undecided or broken.</p>"
    return [head + "<table><tr><th>verdict</th><th>trace</th><th>why</th></tr>", *rows, "</table>"]


def _coverage(summary: Summary) -> list[str]:
    covered = summary.coverage()
    kinds = (
        f'<tr><td>{escape(kind)}</td><td class="n">{count["reached"]}</td><td class="n">{count["reachable"]}</td></tr>'
        for kind, count in covered["kinds"].items()
    )
    unreached = "".join(f"<li>{escape(name)}</li>" for name in covered["unreached"]) or "<li>nothing</li>"
    reasons = (
        f"<tr><td>{escape(name)}</td><td>{escape(reason)}</td></tr>" for name, reason in covered["with_reason"].items()
    )
    return [
        "<h2>Coverage</h2><table><tr><th>kind</th><th>reached</th><th>reachable</th></tr>",
        *kinds,
        f'</table><h3>Reachable, not reached by this run</h3><ul class="many">{unreached}</ul>',
        "<h3>Not reached by any trace, and why</h3><table>",
        *reasons,
        "</table>",
    ]

"""A run as one HTML page: its numbers, its coverage, and each failure as a sequence chart."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from fencepost_server.look.made import Made
from fencepost_server.look.page import page

from ...common.counting import counted
from ...judge.rows.summary import Summary
from ...judge.verdict import Outcome
from .chart import Chart
from .chart_page import chart_html
from .terminal import asides, counts, sides_of


def report_page(summary: Summary, seconds: float, charts: Sequence[Chart], made: Made) -> str:
    """Return the page; ``charts`` show the shrunk failures."""
    job = summary.job
    outcome = summary.outcome
    verdict = f'<b class="{"good" if outcome is Outcome.PASSED else "bad"}">{outcome}</b>'
    if summary.gaps:
        verdict += f"; some traces have no verdict: {escape('; '.join(summary.gaps))}"
    body = [
        f"<p>Target <code>{escape(job.target)}</code>, profile <code>{escape(job.profile)}</code>, "
        f"{job.protocol} groups, {counted(job.steps, 'events')} a trace, "
        f"model {'follows' if job.model else 'does not follow'}: {verdict}.</p>",
        "<table>",
        *(
            f'<tr><th>{escape(name.replace("_", " "))}</th><td class="n">{value:,}</td></tr>'
            for name, value in (summary.tally.as_counts() | counts(summary, seconds)).items()
        ),
        "</table>",
        *(f"<p>{escape(words)}.</p>" for words in asides(summary)),
        *_divergences(summary),
        *_failures(summary),
        *_unsettled(summary),
        *(chart_html(chart) for chart in charts),
        *_coverage(summary),
    ]
    return page("Fencepost conformance run", "\n".join(body), made)


def _divergences(summary: Summary) -> list[str]:
    if not summary.divergences:
        return []
    rows = (
        f'<tr><td>{escape(name)}</td><td class="n">{count:,}</td></tr>'
        for name, count in sorted(summary.divergences.items())
    )
    return ["<h2>Known divergences</h2><table><tr><th>name</th><th>traces</th></tr>", *rows, "</table>"]


def _failures(summary: Summary) -> list[str]:
    if not summary.failures:
        return []
    rows = (
        f'<tr><td class="n">{row.seed}</td><td>{row.outcome}</td><td class="n">{row.event}</td>'
        f"<td>{escape(row.field)}</td><td><code>{escape(row.left)}</code></td><td><code>{escape(row.right)}</code></td></tr>"
        for row in summary.failures
    )
    groups = "".join(
        f'<tr><td class="n">{group.traces:,}</td><td><code>{escape(group.key)}</code></td>'
        f"<td>{escape(summary.accepted[group.key].reason) if group.key in summary.accepted else ''}</td></tr>"
        for group in summary.in_order()
    )
    common = f"<table><tr><th>traces</th><th>what, where, how</th><th>known</th></tr>{groups}</table>"
    head = "<tr><th>seed</th><th>outcome</th><th>event</th><th>field</th>"
    sides = sides_of(summary)
    head += f"<th>{sides[0]}</th><th>{sides[1]}</th></tr>"
    known = f", {summary.known_traces:,} known" if summary.known_traces else ""
    title = f"<h2>Differences ({summary.tally.failed:,} failed{known})</h2>"
    return [f"{title}{common}<h3>The first failures</h3><table>{head}", *rows, "</table>"]


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
        f'<tr><td>{escape(kind)}</td><td class="n">{told["reached"]}</td><td class="n">{told["reachable"]}</td></tr>'
        for kind, told in covered["kinds"].items()
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

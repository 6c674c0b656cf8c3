"""Played cases as one self-contained page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

from fencepost_server.look.made import Made
from fencepost_server.look.page import page

from ...judge.cases.play import Ending, Played
from ...judge.rows.summary import Summary
from ...judge.rulebook.texts import rule_lines
from ..console import Result
from .cases import exchange_lines, not_supported, notes

#: endings whose cases are shown with their exchange, in this order
_SHOWN = (Ending.FAILED, Ending.NOT_REACHED, Ending.KNOWN_FAULT)


def cases_page(  # noqa: PLR0917
    played: Sequence[Played],
    target: str,
    profile: str,
    again: str,
    result: Result,
    traces: Sequence[Summary],
    made: Made,
    hint: str = "",
) -> str:
    """Return the page: the verdict, the endings of each family, each case that did not pass with its exchange, and the
    random traces. ``again``: the command that runs a case alone, without its name."""
    good = "good" if result.outcome == "passed" else "bad"
    body = [
        f"<p>Target <code>{escape(target)}</code>, profile <code>{escape(profile)}</code>, "
        f"<code>{escape(again)}</code>: "
        f'<b class="{good}">{result.outcome}</b>{escape(": " + "; ".join(result.gaps)) if result.gaps else ""}</p>',
        *(f"<p>{escape(note)}</p>" for note in [*notes(played), *[hint] * bool(hint)]),
        *_families(played),
        *_traces(traces),
        *(part for ending in _SHOWN for part in _section(played, ending, again)),
        *_all(played),
    ]
    return page(f"Fencepost: named cases on {target}", "\n".join(body), made)


def _families(played: Sequence[Played]) -> Iterable[str]:
    families: dict[str, Counter[Ending]] = {}
    for each in played:
        families.setdefault(each.case.family, Counter())[each.ending] += 1
    yield f"<h2>Families</h2><table><tr><th>family</th>{''.join(f'<th>{each}</th>' for each in Ending)}</tr>"
    for family, counts in families.items():
        cells = (f'<td class="n">{counts[each]:,}</td>' if counts[each] else "<td></td>" for each in Ending)
        yield f"<tr><td>{escape(family)}</td>{''.join(cells)}</tr>"
    yield "</table>"


def _traces(traces: Sequence[Summary]) -> Iterable[str]:
    if not traces:
        return
    yield "<h2>Random traces, judged by the model</h2><table>"
    yield "<tr><th>protocol</th><th>verdict</th><th>traces</th><th>failed</th><th>no verdict</th></tr>"
    for each in traces:
        open_ = each.tally.undecided + each.tally.broken
        cells = "".join(f'<td class="n">{number:,}</td>' for number in (each.traces, each.tally.failed, open_))
        yield f"<tr><td>{each.job.protocol}</td><td>{each.outcome}</td>{cells}</tr>"
    yield "</table>"
    for each in traces:
        for group in each.in_order():
            yield (
                f'<p class="note"><code>{escape(group.key)}</code> ({group.traces:,} traces of {each.job.protocol} '
                f"groups, first: seed {group.seed}): {escape(group.left)}; allowed: {escape(group.right)}</p>"
            )


def _section(played: Sequence[Played], ending: Ending, again: str) -> Iterable[str]:
    found = [each for each in played if each.ending is ending]
    if not found:
        return
    yield f"<h2>{ending.value.capitalize()} ({len(found):,})</h2>"
    for each in found:
        case = each.case
        lines = "\n".join(line for exchange in each.exchanges for line in exchange_lines(exchange))
        yield f'<h3 id="{case.name}">{case.name}</h3><p>{escape(case.text)}</p><p class="note">{escape(each.why)}</p>'
        yield "".join(f"<p>{escape(rule)}</p>" for rule in rule_lines(case.rules))
        yield f"<details open><summary>exchange</summary><pre>{escape(lines)}</pre></details>"
        yield f"<p><code>{escape(again)} --case {case.name}</code></p>"


def _all(played: Sequence[Played]) -> Iterable[str]:
    lacking = not_supported(played)
    if lacking:
        yield "<h2>Not supported</h2><ul>"
        yield from (f"<li>{escape(why)}: {escape(', '.join(names))}</li>" for why, names in lacking.items())
        yield "</ul>"
    yield "<h2>All cases</h2><table><tr><th>case</th><th>ending</th><th>seconds</th><th>text</th></tr>"
    for each in played:
        name = each.case.name
        linked = f'<a href="#{name}">{name}</a>' if each.ending in _SHOWN else name
        yield (
            f'<tr><td>{linked}</td><td>{each.ending}</td><td class="n">{each.seconds:.1f}</td>'
            f"<td>{escape(each.case.text)}</td></tr>"
        )
    yield "</table>"

"""The rules as a heat map: a square for each rule, coloured by its evidence, with its text on hover and on a click."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from fencepost_server.look.made import Made
from fencepost_server.look.page import SCRIPT, page

from ..judge.rulebook.standing import COLUMNS, MEANINGS, Level, Standing

#: classes of a square, with what each means, the strongest evidence first
_LEGEND: Final = {
    "decided": f"compared with Kafka: {MEANINGS[Level.DECIDED]}",
    "ran": f"compared with Kafka: {MEANINGS[Level.RAN]}",
    "cited": "implemented, and not compared with Kafka",
    "missing": "in scope, and not implemented",
    "out": "out of scope",
}
_STYLE: Final = """
ul.legend { list-style: none; padding: 0; }
.map { display: flex; flex-wrap: wrap; gap: 3px; margin: .2rem 0 .9rem; }
.map button, .key { width: 1.5rem; height: 1.5rem; min-height: 0; padding: 0; border-radius: 4px; font-size: 11px; }
.key { display: inline-block; border: 1px solid var(--soft); vertical-align: middle; margin-right: .4em; }
.decided { background: var(--m2); color: var(--inside); } .ran { background: var(--m6); color: var(--inside); }
.cited { background: var(--m0); color: var(--inside); } .missing { background: var(--m4); color: var(--inside); }
.out { background: var(--ground); color: var(--soft); border-style: dashed; }
.map button[aria-pressed="true"] { outline: 3px solid var(--accent); background: var(--ground); color: var(--text); }
#rule { border: 1px solid var(--line); border-radius: 8px; background: var(--card); padding: .4rem .9rem;
 position: sticky; top: 0; max-height: 40vh; overflow: auto; z-index: 2; }
#rule p { margin: .3rem 0; }
"""
#: a click on a square shows its rule; the address names it
_SCRIPT: Final = """
const squares = [...document.querySelectorAll('.map button')], only = document.getElementById('only');
function choose(square) {
  for (const each of squares) each.setAttribute('aria-pressed', String(each === square));
  const [name, kind, where] = [square.dataset.rule, square.title, square.dataset.where];
  document.getElementById('rule').replaceChildren(element('h2', name), element('p', kind),
    element('p', where, {className: 'dim'}));
  try { history.replaceState(null, '', '#' + name); } catch { location.replace('#' + name); }
}
for (const square of squares) square.onclick = () => choose(square);
only.onchange = () => {
  for (const square of squares) square.hidden = Boolean(only.value) && !square.classList.contains(only.value);
};
const named = squares.find(each => each.dataset.rule === decodeURIComponent(location.hash.slice(1)));
if (named) { choose(named); named.scrollIntoView({block: 'center'}); }
"""


def rules_page(families: Mapping[str, Sequence[Standing]], made: Made) -> str:
    """Return the page. ``families``: the rules by their prefix, in the order of the book."""
    every = [each for rules in families.values() for each in rules]
    counts = {kind: sum(kind_of(each) == kind for each in every) for kind in _LEGEND}
    legend = "".join(
        f'<li><span class="key {kind}"></span>{counts[kind]:,} {escape(text)}</li>' for kind, text in _LEGEND.items()
    )
    options = "".join(f'<option value="{kind}">{kind}</option>' for kind in _LEGEND)
    parts = [
        f'<ul class="legend">{legend}</ul>',
        f'<p><label>show <select id="only"><option value="">all rules</option>{options}</select></label></p>',
        '<div id="rule" role="status" tabindex="0"><p class="dim">Select a square to read its rule.</p></div>',
    ]
    for name, rules in families.items():
        squares = "".join(map(_square, rules))
        parts.append(f'<h2>{escape(name)} <span class="dim">{len(rules):,}</span></h2><div class="map">{squares}</div>')
    return page("Fencepost: coverage of the rules", "".join(parts), made, style=_STYLE, script=SCRIPT + _SCRIPT)


def kind_of(standing: Standing) -> str:
    """Return the class of a rule's square: its strongest evidence."""
    if standing.excused is not None:
        return "out"
    if standing.level is not Level.NONE:
        return standing.level.value
    return "missing" if standing.missing else "cited"


def _square(standing: Standing) -> str:
    rule = standing.rule
    number = rule.id.rpartition("-")[2]
    has = ", ".join(column for column in COLUMNS if standing.has(column)) or "no evidence"
    reason = standing.excused or standing.impossible
    where = f"{has}; docs/rules/{rule.file}{f'; {reason}' if reason else ''}"
    name, text, place = (escape(each, quote=True) for each in (rule.id, rule.plain, where))
    return (
        f'<button type="button" class="{kind_of(standing)}" aria-pressed="false" aria-label="{name}" title="{text}" '
        f'data-rule="{name}" data-where="{place}">{escape(number)}</button>'
    )

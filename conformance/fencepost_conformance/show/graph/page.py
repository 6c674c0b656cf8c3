"""The page on which a state graph is walked: one file with its data, style and script."""

from __future__ import annotations

import json
from html import escape
from typing import Any, Final

from fencepost_server.look.made import Made
from fencepost_server.look.page import page

_STYLE: Final = """
.graph { display: grid; grid-template-columns: minmax(14rem, 1fr) minmax(24rem, 2.2fr) minmax(14rem, 1fr); gap: 1rem; }
section { border: 1px solid var(--line); border-radius: 8px; background: var(--card); padding: .5rem .8rem;
 max-height: 78vh; overflow: auto; }
section h2 { font-size: .95rem; margin: .2rem 0 .5rem; }
ol, ul { margin: 0; padding: 0; list-style: none; }
button { font: 12px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; color: var(--text); background: none; border: 0;
 border-radius: 4px; text-align: left; width: 100%; padding: .15rem .4rem; cursor: pointer; overflow-wrap: anywhere; }
button:hover { background: var(--band); }
button:focus-visible, input:focus-visible { outline: 2px solid var(--accent); }
button[aria-current] { background: var(--band); font-weight: 700; }
button small { color: var(--soft); }
form { display: flex; gap: .5rem; margin: .6rem 0; align-items: center; }
input { flex: 1; font: 13px ui-monospace, "DejaVu Sans Mono", monospace; padding: .3rem .5rem; color: var(--text);
 background: var(--ground); border: 1px solid var(--line); border-radius: 4px; }
form button { width: auto; border: 1px solid var(--line); }
td { font: 12px/1.4 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
td:first-child { color: var(--soft); white-space: nowrap; }
tr.changed td:first-child { color: var(--accent); font-weight: 700; }
del { color: var(--bad); text-decoration: line-through; } ins { color: var(--good); text-decoration: none; }
kbd { border: 1px solid var(--line); border-radius: 3px; padding: 0 .3em; font-size: 11px; }
#said { min-height: 1.4em; margin: 0; }
#broken button { color: var(--bad); }
@media (max-width: 60rem) { .graph { grid-template-columns: 1fr; } section { max-height: none; } }
"""

_SCRIPT: Final = r"""
const graph = JSON.parse(document.getElementById('graph').textContent);
const at = id => document.getElementById(id);
let path = [{state: 0, label: 'initial state'}];

const values = state => Object.fromEntries(
  graph.variables.map((name, place) => [name, graph.values[place][graph.states[state][place]]]));
const now = () => path[path.length - 1].state;
const before = () => path.length > 1 ? path[path.length - 2].state : -1;

// every field of a value, by its path; a list of plain values is one field
function fields(value, name, into) {
  const isList = Array.isArray(value);
  if (value === null || typeof value !== 'object' || Object.keys(value).length === 0
      || (isList && value.every(each => typeof each !== 'object'))) {
    into.set(name, JSON.stringify(value));
  } else if (isList) {
    value.forEach(each => into.set(name + ' \u220b ' + JSON.stringify(each), ''));
  } else {
    for (const key of Object.keys(value)) fields(value[key], name + '.' + key, into);
  }
  return into;
}
function all(state) {
  const found = new Map();
  if (state >= 0) for (const [name, value] of Object.entries(values(state))) fields(value, name, found);
  return found;
}
const actions = state => {
  const found = [];
  for (let each = graph.start[state]; each < graph.start[state + 1]; each++)
    found.push({label: graph.labels[graph.label[each]], state: graph.target[each]});
  return found;
};
function element(name, text, more = {}) {
  const made = Object.assign(document.createElement(name), more);
  if (text !== undefined) made.textContent = text;
  return made;
}
function listed(list, buttons) {
  list.replaceChildren(...buttons.map(button => { const item = element('li'); item.append(button); return item; }));
}
function show(focus) {
  const state = now(), old = before() < 0 ? null : all(before()), next = all(state);
  at('title').textContent = `State ${state} of ${graph.states.length.toLocaleString()}, step ${path.length - 1}`;
  const rows = [];
  for (const name of new Set([...next.keys(), ...(old ? old.keys() : [])])) {
    const was = old ? old.get(name) : next.get(name), is = next.get(name);
    if (was === is && at('only').checked) continue;
    const row = element('tr', undefined, {className: was === is ? '' : 'changed'});
    row.append(element('td', name));
    const cell = element('td');
    if (was !== is && was !== undefined) cell.append(element('del', was || 'gone'), ' ');
    if (is !== undefined) cell.append(was === is ? is : element('ins', is || 'new'));
    row.append(cell);
    rows.push(row);
  }
  at('state').replaceChildren(...rows);
  listed(at('path'), path.map((step, number) => {
    const button = element('button', `${number} ${step.label}`);
    if (number === path.length - 1) button.setAttribute('aria-current', 'step');
    button.onclick = () => { path = path.slice(0, number + 1); show('path'); };
    return button;
  }));
  at('path').lastChild.scrollIntoView({block: 'nearest'});
  const possible = actions(state);
  listed(at('actions'), possible.map((action, number) => {
    const button = element('button', `${number < 9 ? number + 1 + ' ' : ''}${action.label} `);
    button.append(element('small', action.state === state ? 'same state' : `to ${action.state}`));
    button.onclick = () => { path.push(action); show('actions'); };
    return button;
  }));
  at('none').textContent = possible.length ? '' :
    state >= graph.expanded ? 'The exploration stopped before this state.' : 'No action is enabled.';
  location.replace('#' + path.map(step => step.state).join(','));
  if (focus === 'actions' && possible.length) at('actions').querySelector('button').focus();
}
function shortest(state) {
  const found = [];
  for (let each = state; each >= 0; each = graph.parent[each])
    found.unshift({state: each, label: graph.parent[each] < 0 ? 'initial state' : graph.labels[graph.via[each]]});
  return found;
}
function search(from) {
  const text = at('predicate').value.trim();
  if (!text) return;
  let holds;
  try { holds = new Function(...graph.variables, 'return (' + text + ')'); }
  catch (wrong) { at('said').textContent = `not an expression: ${wrong.message}`; return; }
  let raised = '';
  const count = graph.states.length;
  for (let tried = 0; tried < count; tried++) {
    const state = (from + tried) % count;
    let answer = false;
    try { answer = holds(...graph.variables.map((_, place) => graph.values[place][graph.states[state][place]])); }
    catch (wrong) { raised = raised || `in state ${state}: ${wrong.message}`; }
    if (answer) {
      path = shortest(state);
      at('said').textContent = `state ${state}, after ${path.length - 1} steps`;
      show();
      return;
    }
  }
  at('said').textContent = raised ? `no state; ${raised}` : `none of ${count.toLocaleString()} states`;
}
at('search').onsubmit = event => { event.preventDefault(); search(0); };
at('next').onclick = () => search(now() + 1);
at('only').onchange = () => show();
listed(at('broken'), graph.broken.map(each => {
  const button = element('button', `${each.property} (${each.path.length - 1} steps)`);
  button.onclick = () => {
    path = each.path.map((state, number) => ({state, label: each.steps[number] || 'initial state'}));
    show();
  };
  return button;
}));
document.addEventListener('keydown', event => {
  if (event.target.tagName === 'INPUT' && event.target.type !== 'checkbox') {
    if (event.key === 'Escape') event.target.blur();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const buttons = [...at('actions').querySelectorAll('button')];
  const here = buttons.indexOf(document.activeElement);
  if (event.key >= '1' && event.key <= '9') buttons[event.key - 1]?.click();
  else if (event.key === 'ArrowDown') buttons[Math.min(here + 1, buttons.length - 1)]?.focus();
  else if (event.key === 'ArrowUp') buttons[Math.max(here - 1, 0)]?.focus();
  else if (event.key === 'ArrowLeft' || event.key === 'Backspace') { if (path.length > 1) path.pop(); show('actions'); }
  else if (event.key === 'ArrowRight') (buttons[here] || buttons[0])?.click();
  else if (event.key === 'Home') { path = path.slice(0, 1); show('actions'); }
  else if (event.key === '/') at('predicate').focus();
  else if (event.key === 'n') search(now() + 1);
  else if (event.key === 'c') { at('only').checked = !at('only').checked; show(); }
  else return;
  event.preventDefault();
});
const walked = location.hash.slice(1).split(',').map(Number);
for (const state of walked.slice(1)) {
  const step = actions(now()).find(each => each.state === state);
  if (!step) break;
  path.push(step);
}
show();
"""


def graph_page(data: dict[str, Any], made: Made) -> str:
    """Return the page of a graph (``graph_data``), one HTML file."""
    # a string in the data must not end the element
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    stopped = f"The exploration stopped early: {escape(data['stopped'])}." if data["stopped"] else ""
    counts = f"{len(data['states']):,} states, {len(data['target']):,} transitions. {stopped}"
    body = f"""<p>{counts}</p>
<form id="search"><label for="predicate">State with</label>
<input id="predicate" autocomplete="off" spellcheck="false" placeholder="{_EXAMPLE.get(_kind(data), "")}">
<button type="submit">find</button><button type="button" id="next">next</button>
<label><input type="checkbox" id="only"> only changes</label></form>
<p id="said" role="status" class="dim"></p>
<div class="graph">
<section aria-label="path" tabindex="0"><h2>Path</h2><ol id="path"></ol>
<ul id="broken" aria-label="broken properties"></ul></section>
<section aria-label="state" aria-live="polite" tabindex="0"><h2 id="title"></h2>
<table><tbody id="state"></tbody></table></section>
<section aria-label="enabled actions" tabindex="0"><h2>Enabled actions</h2><ol id="actions"></ol>
<p id="none" class="dim"></p></section>
</div>
<p class="dim"><kbd>1</kbd>…<kbd>9</kbd> take an action, <kbd>↑</kbd> <kbd>↓</kbd> choose one, <kbd>→</kbd> take it,
<kbd>←</kbd> go back, <kbd>Home</kbd> begin again, <kbd>/</kbd> search, <kbd>n</kbd> next state, <kbd>c</kbd> only
changes.</p>
<script type="application/json" id="graph">{text}</script>
"""
    return page(f"{data['name']}: state graph", body, made, style=_STYLE, script=_SCRIPT, icon=True)


#: A search for each kind of system, by a variable that only it has.
_EXAMPLE: Final = {
    "client": "group.state === 'Stable' &amp;&amp; client.c1.owned.length === 2",
    "member": "faultsLeft === 0",
}


def _kind(data: dict[str, Any]) -> str:
    return next((name for name in _EXAMPLE if name in data["variables"]), "")

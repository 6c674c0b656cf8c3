"""The status page for people. It reads ``/state`` each second, and inserts names from clients as text, never as
markup."""

from __future__ import annotations

from typing import Final

from fencepost_server.look.made import Made
from fencepost_server.look.page import page

_BODY: Final = """<p id="where" class="dim"></p>
<p id="lines" role="status">asking…</p><div id="notices" class="bad"></div><div id="groups"></div>
<h2>Last rebalances</h2><div class="wide" tabindex="0"><table id="rebalances" class="rows"></table></div>
"""
_SCRIPT: Final = """
const el = (name, text, cls) => { const e = document.createElement(name); if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls; return e; };
const row = (cells, head) => { const tr = el("tr");
  for (const [text, cls] of cells) tr.append(el(head ? "th" : "td", text, cls)); return tr; };
const table = (name) => { const t = el("table", undefined, "rows"); t.ariaLabel = name; return t; };
const wide = (t) => { const div = el("div", undefined, "wide"); div.tabIndex = 0; div.append(t); return div; };
const parts = (a) => Object.entries(a || {}).map(([t, p]) => t + " " + p.join(",")).join("\\n") || "–";
const lasting = (ms) => ms < 1000 ? ms + " ms" : (ms / 1000).toFixed(1) + " s";
const times = (n) => n === 1 ? "once" : n + " times";
function show(s) {
  document.getElementById("where").textContent = s.listen ? s.listen + " · " + s.profile : "";
  document.getElementById("notices").replaceChildren(...(s.notices || []).map(text => el("div", text)));
  document.getElementById("lines").textContent = s.lines || s.connections + " connections, " + s.topics + " topics, " +
    s.groups_total + " groups" + (s.groups_total > s.groups.length ? " (the first " + s.groups.length + " here)" : "") +
    ", " + s.requests + " requests, " + s.rebalances_total + " rebalances";
  const groups = document.getElementById("groups"); groups.replaceChildren();
  for (const g of s.groups) {
    groups.append(el("h2", g.group));
    groups.append(el("div", g.type + " · " + g.state + (g.assignor ? " · " + g.assignor : "") +
      (g.epoch === undefined ? "" : " · epoch " + g.epoch) +
      (g.generation === undefined ? "" : " · generation " + g.generation) + (g.leader ? " · leader " + g.leader : "") +
      (g.commits === undefined ? "" : " · " + g.rebalances + " rebalances in " + lasting(g.rebalance_ms) + ", " +
      g.commits + " commits, " + g.back + " went back") + " · lag " + g.lag, g.lag > 0 ? "" : "dim"));
    if (g.members.length) {
      const t = table(g.group + ": members"), targets = g.members.some(m => m.target);
      t.append(row([["member"], ["client"], ["assignment"], ...(targets ? [["target"]] : [])], true));
      for (const m of g.members) t.append(row([[m.member + (m.instance ? " (" + m.instance + ")" : "")],
        [m.client + " " + m.host], [parts(m.assignment), "lines"],
        ...(targets ? [[m.target ? parts(m.target) : "", "lines"]] : [])]));
      groups.append(wide(t));
    }
    if (g.offsets.length) {
      const t = table(g.group + ": offsets");
      t.append(row([["topic"], ["partition", "n"], ["committed", "n"], ["end", "n"], ["lag", "n"], ["note"]], true));
      for (const o of g.offsets) t.append(row([[o.topic], [o.partition, "n"], [o.committed, "n"], [o.end, "n"],
        [o.lag, o.lag > 0 ? "n bad" : "n"], [o.flag || (o.back ? "went back " + times(o.back) : ""), "bad"]]));
      groups.append(wide(t));
    }
  }
  const rebalances = document.getElementById("rebalances"); rebalances.replaceChildren();
  rebalances.append(row([["at (UTC)"], ["group"], ["protocol"], ["generation or epoch", "n"], ["cause"], ["leader"],
    ["state"], ["ms", "n"]], true));
  for (const r of s.rebalances) rebalances.append(row([[r.at.replace("T", " ").replace("Z", ""), "word"], [r.group_id],
    [r.protocol + (r.converted ? " (new)" : ""), "word"], [r.generation, "n"],
    [r.cause + (r.removed ? "; " + r.removed : ""), "text"], [r.leader || ""], [r.state, "word"],
    [r.duration_ms === null ? "" : r.duration_ms, "n"]]));
}
let before = "";
async function ask() {
  try {
    const text = await (await fetch("state")).text();
    if (text !== before) show(JSON.parse(before = text));  // else what has the focus keeps it
  }
  catch (e) { before = ""; 
    document.getElementById("lines").textContent = "No response from the command that serves this page (" + e.message +
      "). The view is old.";
  }
  setTimeout(ask, 1000);
}
ask();
"""


def status_page(made: Made, title: str = "fencepost serve") -> str:
    """Return the page, without data."""
    return page(title, _BODY, made, script=_SCRIPT, icon=True)

"""The status page for people. It reads ``/state`` each second, and inserts names from clients as text, never as
markup."""

from __future__ import annotations

from typing import Final

PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>fencepost serve</title>
<style>
:root { color-scheme: light dark; font: 14px/1.45 system-ui, sans-serif; }
body { max-width: 72rem; margin: 1.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.2rem; } h2 { font-size: 1.05rem; margin: 1.6rem 0 .3rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #8884; vertical-align: top; }
th { font-weight: 600; } td.n, th.n { text-align: right; }
code { font-size: .92em; } .quiet { opacity: .65; } .bad { color: #c33; }
</style></head><body>
<h1>fencepost serve <span id="where" class="quiet"></span></h1>
<p id="lines" class="quiet">asking…</p><div id="groups"></div>
<h2>Last rebalances</h2><table id="rebalances"></table>
<script>
const el = (name, text, cls) => { const e = document.createElement(name); if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls; return e; };
const row = (cells, head) => { const tr = el("tr");
  for (const [text, cls] of cells) tr.append(el(head ? "th" : "td", text, cls)); return tr; };
const parts = (a) => Object.entries(a || {}).map(([t, p]) => t + " " + p.join(",")).join("  ") || "–";
function show(s) {
  document.getElementById("where").textContent = s.listen + " · " + s.profile;
  document.getElementById("lines").textContent = s.connections + " connections, " + s.topics + " topics, " +
    s.groups_total + " groups" + (s.groups_total > s.groups.length ? " (the first " + s.groups.length + " here)" : "") +
    ", " + s.requests + " requests, " + s.rebalances_total + " rebalances";
  const groups = document.getElementById("groups"); groups.replaceChildren();
  for (const g of s.groups) {
    groups.append(el("h2", g.group));
    groups.append(el("div", g.type + " · " + g.state + (g.assignor ? " · " + g.assignor : "") +
      (g.epoch === undefined ? "" : " · epoch " + g.epoch) +
      (g.generation === undefined ? "" : " · generation " + g.generation) + (g.leader ? " · leader " + g.leader : "") +
      " · lag " + g.lag, g.lag > 0 ? "" : "quiet"));
    if (g.members.length) {
      const t = el("table"); t.append(row([["member"], ["client"], ["assignment"], ["target"]], true));
      for (const m of g.members) t.append(row([[m.member + (m.instance ? " (" + m.instance + ")" : "")],
        [m.client + " " + m.host], [parts(m.assignment)], [m.target ? parts(m.target) : ""]]));
      groups.append(t);
    }
    if (g.offsets.length) {
      const t = el("table"); t.append(row([["topic"], ["partition", "n"], ["committed", "n"], ["end", "n"],
        ["lag", "n"], [""]], true));
      for (const o of g.offsets) t.append(row([[o.topic], [o.partition, "n"], [o.committed, "n"], [o.end, "n"],
        [o.lag, o.lag > 0 ? "n bad" : "n"], [o.flag || "", "bad"]]));
      groups.append(t);
    }
  }
  const table = document.getElementById("rebalances"); table.replaceChildren();
  table.append(row([["at (UTC)"], ["group"], ["protocol"], ["generation or epoch", "n"], ["cause"], ["leader"],
    ["state"], ["ms", "n"]], true));
  for (const r of s.rebalances) table.append(row([[r.at], [r.group_id], [r.protocol + (r.converted ? " (new)" : "")],
    [r.generation, "n"], [r.cause + (r.removed ? "; " + r.removed : "")], [r.leader || ""], [r.state],
    [r.duration_ms === null ? "" : r.duration_ms, "n"]]));
}
async function ask() {
  try { show(await (await fetch("state")).json()); }
  catch (e) { document.getElementById("lines").textContent = "no answer: " + e; }
  setTimeout(ask, 1000);
}
ask();
</script></body></html>
"""

"""The style of pictures and pages, in light and dark mode."""

from __future__ import annotations

from .palette import COLOURS

#: the style of a picture, alone or in a page
PICTURE = """
:root { color-scheme: light dark; --text: #1c2430; --soft: #64707d; --ground: #fff; --card: #f4f6f8; --line: #c9d1d9;
 --accent: #2563a8; --bad: #c0322b; --good: #23804a; --band: #2563a814; --hatch: #fff9; --inside: #fff;
 --m0: #2f6fb5; --m1: #c76a12; --m2: #2b8a57; --m3: #9b4bb0; --m4: #b3374f; --m5: #0f8a94; --m6: #8a6d1a; --m7: #5b61c9;
 --m8: #6d7f25; --m9: #a0557a; }
@media (prefers-color-scheme: dark) { :root { --text: #dde4ec; --soft: #95a2b0; --ground: #12161b; --card: #1b2129;
 --line: #39424d; --accent: #79b2f2; --bad: #ff7b72; --good: #5fc98a; --band: #79b2f21f; --hatch: #12161b99;
 --inside: #0c0f13; --m0: #6fa8e8; --m1: #eb9a4b; --m2: #62c48f; --m3: #c98bdc; --m4: #ec7d92; --m5: #4dc3cc;
 --m6: #d0b052; --m7: #9a9ff2; --m8: #b0c45a; --m9: #dd97b8; } }
.ground { fill: var(--ground); }
text { font-size: 11px; fill: var(--text); }
text.dim, text.strip { fill: var(--soft); }
text.lane { font-weight: 600; }
text.own { fill: var(--accent); }
text.strip { font-size: 10px; }
text.label { paint-order: stroke; stroke: var(--ground); stroke-width: 3px; stroke-linejoin: round; }
text.bad { fill: var(--bad); }
text.gone { fill: var(--soft); }
text.who { font-size: 10px; font-weight: 700; fill: var(--inside); }
text.leaving { fill: var(--text); }
.life { stroke: var(--line); }
.life.own { stroke: var(--accent); stroke-opacity: .55; }
.band { fill: transparent; }
.step { cursor: pointer; }
.step:hover .band { fill: var(--band); }
.step.chosen .band { fill: var(--band); stroke: var(--accent); }
.step.marked .band { stroke: var(--bad); stroke-width: 2; }
.step.failover .band { fill: var(--card); }
.arrow { fill: none; stroke: var(--text); stroke-width: 1.2; }
.arrow.answer { stroke-dasharray: 5 3; }
.arrow.write { stroke: var(--accent); }
.arrow.bad, .arrow.lost, .cross { stroke: var(--bad); }
.end { fill: var(--text); }
.end.bad, .end.lost { fill: var(--bad); }
.end.write { fill: var(--accent); }
.tip { fill: var(--text); }
.tip.bad { fill: var(--bad); }
.cut { stroke: var(--accent); stroke-dasharray: 2 3; }
.timer { fill: var(--ground); stroke: var(--accent); stroke-width: 1.4; }
.hands { fill: none; stroke: var(--accent); stroke-width: 1.2; }
.kept { fill: var(--good); }
.cross { fill: none; stroke-width: 2; }
.rail { fill: var(--card); }
.hatch { fill: var(--hatch); }
.clash { fill: none; stroke: var(--bad); stroke-width: 2; }
"""
PICTURE += "".join(f".m{n} {{ fill: var(--m{n}); background: var(--m{n}); }}\n" for n in range(COLOURS))

PAGE = (
    PICTURE
    + """
body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5rem auto; padding: 0 1.2rem; color: var(--text);
 background: var(--ground); }
h1 { font-size: 1.5rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
code, .picture, .panel { font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top; }
td.n { text-align: right; }
.good { color: var(--good); }
.broken, .bad { color: var(--bad); }
.dim { color: var(--soft); font-weight: 400; }
.note { border-left: 3px solid var(--bad); padding: .2rem .6rem; margin: .4rem 0; overflow-wrap: anywhere; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; margin: .4rem 0 .7rem; }
.swatch { display: inline-block; width: 1.25em; margin-right: .4em; border-radius: 3px; text-align: center;
 font: 600 11px/1.35 ui-monospace, monospace; color: var(--inside); }
.trace { display: grid; grid-template-columns: minmax(0, max-content) minmax(20rem, 1fr); gap: .9rem;
 align-items: start; }
.picture { overflow: auto; max-height: 88vh; border: 1px solid var(--line); border-radius: 8px; }
.picture svg { display: block; }
.heads { position: sticky; top: 0; z-index: 1; background: var(--card); border-bottom: 1px solid var(--line); }
.panels { position: sticky; top: .6rem; max-height: 88vh; overflow: auto; border: 1px solid var(--line);
 border-radius: 8px; background: var(--card); padding: .3rem .9rem .8rem; }
.panel { font-size: 12px; overflow-wrap: break-word; }
.panel td { overflow-wrap: anywhere; min-width: 4.6em; }
.panel h3 { font-size: 13px; margin: .5rem 0; }
.panel h4 { font-size: 12px; margin: .6rem 0 .1rem; }
.panel p { margin: .35rem 0; }
.panel ul { margin: 0; padding-left: 1.1rem; }
.panel .group { border-top: 1px solid var(--line); margin-top: .7rem; padding-top: .5rem; opacity: .65; }
.panel .changed { opacity: 1; }
div.leaving { color: var(--soft); font-style: italic; }
@media (max-width: 75rem) { .trace { grid-template-columns: minmax(0, 1fr); }
 .panels { top: auto; bottom: .4rem; max-height: 40vh; } }
ul.many { columns: 20rem; }
"""
)

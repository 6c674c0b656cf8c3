"""A machine as an SVG picture, laid out in layers.

States stand in one column. An arrow to the next state down is straight; every other arrow runs in a lane on the right,
the short ones inside, with its labels beside it. Starts and arrows from any state come in from the left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from xml.sax.saxutils import escape

from ..machines import ANY, MachineSpec
from .edges import Edge, edges, layers

LINE: Final = 16  # height of a line of labels
CHAR: Final = 6.3  # width of a character of a label
BOX_HEIGHT: Final = 46
MARGIN: Final = 24
_STYLE: Final = (
    "text{font-family:Helvetica,Arial,sans-serif;fill:#1b2733}"
    ".name{font-size:15px;font-weight:600}.rules{font-size:11px;fill:#5a6b7b}.label{font-size:11.5px}"
    ".title{font-size:17px;font-weight:600}"
    ".box{fill:#eef4fa;stroke:#2f6690;stroke-width:1.6}.any{fill:#fff;stroke:#8a99a8;stroke-dasharray:5 4}"
    ".edge{fill:none;stroke:#41505e;stroke-width:1.3}.dot{fill:#1b2733}"
)


@dataclass(slots=True)
class _Layout:
    """``top`` and ``ends``: of each state, its y, and the arrows that touch its right side from above and below."""

    spec: MachineSpec
    order: list[str]
    left: float
    width: float
    top: dict[str, float] = field(default_factory=dict)

    @property
    def right(self) -> float:
        return self.left + self.width

    def middle(self, state: str) -> float:
        return self.top[state] + BOX_HEIGHT / 2


def svg(spec: MachineSpec) -> str:
    """The picture, complete with its own style."""
    order = layers(spec)
    arrows = edges(spec)
    down = [e for e in arrows if e.source != ANY and order.index(e.dest) == order.index(e.source) + 1]
    lanes = [e for e in arrows if e.source != ANY and e not in down]
    entries = [e for e in arrows if e.source == ANY]
    notes = [", ".join(rules) for rules in spec.initial.values()]
    box_width = max(len(state) + sum(map(str.isupper, state)) / 3 for state in order) * 9.2 + 30
    left = MARGIN + max([_width(e.labels) + 120 for e in entries] + [_width(notes) + 40])
    layout = _Layout(spec, order, left, box_width)
    bottom = _stack(layout, down, lanes)
    body: list[str] = []
    for state in order:
        body += _box(layout, state)
    for state, rules in spec.initial.items():
        body += _start(layout, state, ", ".join(rules), shifted=any(e.dest == state for e in entries))
    for edge in entries:
        body += _entry(layout, edge, shifted=edge.dest in spec.initial)
    for edge in down:
        body += _down(layout, edge)
    right, drawn = _lanes(layout, lanes, max([_width(e.labels) for e in down], default=0))
    body += drawn
    width, height = right + MARGIN, bottom + MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(spec.title)}">'
    )
    marker = (
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="#41505e"/></marker></defs>'
    )
    ground = f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>'
    title = _text(MARGIN, MARGIN + 8, spec.title, "title")
    return "\n".join([head, f"<style>{_STYLE}</style>", marker, ground, title, *body, "</svg>"]) + "\n"


def _width(labels: list[str] | tuple[str, ...]) -> float:
    return max((len(label) for label in labels), default=0) * CHAR


def _stack(layout: _Layout, down: list[Edge], lanes: list[Edge]) -> float:
    """Puts the states under each other, far enough apart for the labels between them; the lower end of the last."""
    y = MARGIN + 40.0
    for above, below in zip(layout.order, [*layout.order[1:], ""], strict=True):
        layout.top[above] = y
        lines = [len(e.labels) for e in down if (e.source, e.dest) == (above, below)]
        lines += [len(e.labels) for e in lanes if {e.source, e.dest} == {above, below}]
        y += BOX_HEIGHT + max([48, *(count * LINE + 30 for count in lines)])
    return layout.top[layout.order[-1]] + BOX_HEIGHT


def _box(layout: _Layout, state: str) -> list[str]:
    y = layout.top[state]
    middle = layout.left + layout.width / 2
    size = f'width="{layout.width:.0f}" height="{BOX_HEIGHT}"'
    return [
        f'<rect class="box" x="{layout.left:.0f}" y="{y:.0f}" {size} rx="9"/>',
        _text(middle, y + 20, state, "name", "middle"),
        _text(middle, y + 36, ", ".join(layout.spec.states[state]), "rules", "middle"),
    ]


def _start(layout: _Layout, state: str, rules: str, *, shifted: bool) -> list[str]:
    y = layout.middle(state) + (12 if shifted else 0)
    x = layout.left - 44
    return [
        f'<circle class="dot" cx="{x:.0f}" cy="{y:.0f}" r="6"/>',
        _arrow(f"M{x + 6:.0f} {y:.0f} H{layout.left - 1:.0f}"),
        _text(x - 12, y + 4, rules, "rules", "end"),
    ]


def _entry(layout: _Layout, edge: Edge, *, shifted: bool) -> list[str]:
    """An arrow from any state."""
    y = layout.middle(edge.dest) - (12 if shifted else 0)
    width = _width(edge.labels)
    x = layout.left - width - 104
    drawn = [
        f'<rect class="any" x="{x:.0f}" y="{y - 13:.0f}" width="74" height="26" rx="8"/>',
        _text(x + 37, y + 4, "any state", "rules", "middle"),
        _arrow(f"M{x + 74:.0f} {y:.0f} H{layout.left - 1:.0f}"),
    ]
    return drawn + [_text(x + 84, y - 6 - LINE * at, label, "label") for at, label in enumerate(reversed(edge.labels))]


def _down(layout: _Layout, edge: Edge) -> list[str]:
    x = layout.left + layout.width / 2 - 30
    start, end = layout.top[edge.source] + BOX_HEIGHT, layout.top[edge.dest]
    first = (start + end) / 2 - (len(edge.labels) - 1) * LINE / 2 + 4
    return [_arrow(f"M{x:.0f} {start:.0f} V{end - 1:.0f}")] + [
        _text(x + 10, first + LINE * at, label, "label") for at, label in enumerate(edge.labels)
    ]


def _lanes(layout: _Layout, arrows: list[Edge], inner: float) -> tuple[float, list[str]]:
    """The arrows on the right; how far they reach, and their drawing. ``inner`` is the width of the labels inside."""
    drawn: list[str] = []
    right = x = max(layout.right, layout.left + layout.width / 2 + inner - 10) + 26
    taken: list[tuple[float, float]] = []
    for edge in sorted(arrows, key=lambda e: abs(layout.middle(e.source) - layout.middle(e.dest))):
        start, end = _port(layout, edge, arrows, edge.source), _port(layout, edge, arrows, edge.dest)
        low, high = min(start, end), max(start, end)
        if any(low < other_high and other_low < high for other_low, other_high in taken):
            x, taken = right + 20, []
        taken.append((low, high))
        up = -8 if end < start else 8
        drawn.append(
            _arrow(
                f"M{layout.right:.0f} {start:.0f} H{x - 8:.0f} Q{x:.0f} {start:.0f} {x:.0f} {start + up:.0f} "
                f"V{end - up:.0f} Q{x:.0f} {end:.0f} {x - 8:.0f} {end:.0f} H{layout.right + 1:.0f}"
            )
        )
        first = (start + end) / 2 - (len(edge.labels) - 1) * LINE / 2 + 4
        drawn += [_text(x + 8, first + LINE * at, label, "label") for at, label in enumerate(edge.labels)]
        right = max(right, x + 8 + _width(edge.labels))
    return right, drawn


def _port(layout: _Layout, edge: Edge, arrows: list[Edge], state: str) -> float:
    """Where an arrow touches the right side of a state. Ordered so that an outer lane crosses no inner one."""

    def key(other: Edge) -> tuple[bool, float, bool]:
        far = other.dest if other.source == state else other.source
        distance = layout.middle(far) - layout.middle(state)
        return distance > 0, -distance, other.source == state

    touching = sorted((other for other in arrows if state in (other.source, other.dest)), key=key)
    return layout.top[state] + BOX_HEIGHT * (touching.index(edge) + 1) / (len(touching) + 1)


def _arrow(path: str) -> str:
    return f'<path class="edge" d="{path}" marker-end="url(#head)"/>'


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(text)}</text>'

"""A machine as an SVG picture, laid out in layers.

The states are in one column. An arrow to the next state down is straight. Every other arrow leaves on the right, runs
in a separate lane, and enters on the right under its label, so that each state's causes are beside it. A transition
from several states is one line that joins them. Starts and arrows from any state enter on the left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from xml.sax.saxutils import escape

from ..machines import ANY, MachineSpec
from .edges import Bus, buses, layers

LINE: Final = 16  # height of a line of labels
CHAR: Final = 6.3  # width of a character of a label
BOX_HEIGHT: Final = 46
MARGIN: Final = 24
LANE: Final = 14  # between two lanes
OUT: Final = 11  # height of a row where an arrow leaves
COLOURS: Final = ("#41505e", "#2f6fb5", "#a8551a", "#2b7a4b", "#8a3f9f", "#a8324a", "#0f7681")
_STYLE: Final = (
    "text{font-family:Helvetica,Arial,sans-serif;fill:#1b2733}"
    ".name{font-size:15px;font-weight:600}.rules{font-size:11px;fill:#5a6b7b}.label{font-size:11.5px}"
    ".title{font-size:17px;font-weight:600}"
    ".box{fill:#eef4fa;stroke:#2f6690;stroke-width:1.6}.any{fill:#fff;stroke:#8a99a8;stroke-dasharray:5 4}"
    ".edge{fill:none;stroke:#41505e;stroke-width:1.3}.dot{fill:#1b2733}"
    + "".join(
        f".c{n}{{stroke:{colour}}}text.c{n},.j{n}{{stroke:none;fill:{colour}}}" for n, colour in enumerate(COLOURS)
    )
)


@dataclass(slots=True)
class _Layout:
    """The layout. ``top``, ``height``: of each state. ``ins``, ``outs``: of each bus by number, where it touches a
    state."""

    spec: MachineSpec
    order: list[str]
    left: float
    width: float
    top: dict[str, float] = field(default_factory=dict)
    height: dict[str, float] = field(default_factory=dict)
    ins: dict[int, float] = field(default_factory=dict)
    outs: dict[tuple[int, str], float] = field(default_factory=dict)

    @property
    def right(self) -> float:
        return self.left + self.width

    def middle(self, state: str) -> float:
        return self.top[state] + self.height[state] / 2


def svg(spec: MachineSpec) -> str:
    """Return the picture, complete with its style."""
    order = layers(spec)
    arrows = buses(spec)
    entries = [bus for bus in arrows if bus.sources == (ANY,)]
    down = [bus for bus in arrows if bus not in entries and _is_down(bus, order)]
    lanes = [bus for bus in arrows if bus not in entries and bus not in down]
    notes = [", ".join(rules) for rules in spec.initial.values()]
    box_width = max(len(state) + sum(map(str.isupper, state)) / 3 for state in order) * 9.2 + 30
    left = MARGIN + max([_width(bus.labels) + 120 for bus in entries] + [_width(notes) + 40])
    layout = _Layout(spec, order, left, box_width)
    bottom = _stack(layout, down, lanes)
    body: list[str] = []
    for state in order:
        body += _box(layout, state)
    for state, rules in spec.initial.items():
        body += _start(layout, state, ", ".join(rules), shifted=any(bus.dest == state for bus in entries))
    for bus in entries:
        body += _entry(layout, bus, shifted=bus.dest in spec.initial)
    for bus in down:
        body += _down(layout, bus)
    right, drawn = _lanes(layout, lanes, down)
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


def _is_down(bus: Bus, order: list[str]) -> bool:
    return len(bus.sources) == 1 and order.index(bus.dest) == order.index(bus.sources[0]) + 1


def _width(labels: list[str] | tuple[str, ...]) -> float:
    return max((len(label) for label in labels), default=0) * CHAR


def _stack(layout: _Layout, down: list[Bus], lanes: list[Bus]) -> float:
    """Place the states below each other, each as high as the arrows on its right need. Returns the lower end of the
    last."""
    y = MARGIN + 40.0
    for state in layout.order:
        layout.top[state] = y
        row = y + 6
        for number, bus in enumerate(lanes):
            if bus.dest == state:
                row += len(bus.labels) * LINE + 5
                layout.ins[number] = row
        for number, bus in enumerate(lanes):
            if state in bus.sources:
                row += OUT
                layout.outs[number, state] = row
        layout.height[state] = max(BOX_HEIGHT, row + 9 - y)
        between = [len(bus.labels) for bus in down if bus.sources[0] == state]
        y += layout.height[state] + max([34, *(count * LINE + 30 for count in between)])
    last = layout.order[-1]
    return layout.top[last] + layout.height[last]


def _box(layout: _Layout, state: str) -> list[str]:
    y = layout.top[state]
    middle = layout.left + layout.width / 2
    size = f'width="{layout.width:.0f}" height="{layout.height[state]:.0f}"'
    return [
        f'<rect class="box" x="{layout.left:.0f}" y="{y:.0f}" {size} rx="9"/>',
        _text(middle, layout.middle(state) - 3, state, "name", "middle"),
        _text(middle, layout.middle(state) + 13, ", ".join(layout.spec.states[state]), "rules", "middle"),
    ]


def _start(layout: _Layout, state: str, rules: str, *, shifted: bool) -> list[str]:
    y = layout.middle(state) + (12 if shifted else 0)
    x = layout.left - 44
    return [
        f'<circle class="dot" cx="{x:.0f}" cy="{y:.0f}" r="6"/>',
        _arrow(f"M{x + 6:.0f} {y:.0f} H{layout.left - 1:.0f}"),
        _text(x - 12, y + 4, rules, "rules", "end"),
    ]


def _entry(layout: _Layout, bus: Bus, *, shifted: bool) -> list[str]:
    """Draw an arrow from any state."""
    y = layout.middle(bus.dest) - (12 if shifted else 0)
    width = _width(bus.labels)
    x = layout.left - width - 104
    drawn = [
        f'<rect class="any" x="{x:.0f}" y="{y - 13:.0f}" width="74" height="26" rx="8"/>',
        _text(x + 37, y + 4, "any state", "rules", "middle"),
        _arrow(f"M{x + 74:.0f} {y:.0f} H{layout.left - 1:.0f}"),
    ]
    return drawn + [_text(x + 84, y - 6 - LINE * at, label, "label") for at, label in enumerate(reversed(bus.labels))]


def _down(layout: _Layout, bus: Bus) -> list[str]:
    x = layout.left + layout.width / 2 - 30
    start, end = layout.top[bus.sources[0]] + layout.height[bus.sources[0]], layout.top[bus.dest]
    first = (start + end) / 2 - (len(bus.labels) - 1) * LINE / 2 + 4
    return [_arrow(f"M{x:.0f} {start:.0f} V{end - 1:.0f}")] + [
        _text(x + 10, first + LINE * at, label, "label") for at, label in enumerate(bus.labels)
    ]


def _lanes(layout: _Layout, lanes: list[Bus], down: list[Bus]) -> tuple[float, list[str]]:
    """Return how far the arrows on the right reach, and their drawing. Short arrows run inside."""
    spans = {}
    for number, bus in enumerate(lanes):
        rows = [layout.ins[number], *(layout.outs[number, state] for state in bus.sources)]
        spans[number] = min(rows), max(rows)
    inner = layout.right + max([_width(bus.labels) for bus in lanes], default=0) + 24
    beside = layout.left + layout.width / 2 + max([_width(bus.labels) for bus in down], default=0)
    inner = max(inner, beside)
    taken: list[list[tuple[float, float]]] = []
    drawn: list[str] = []
    for number in sorted(spans, key=lambda each: spans[each][1] - spans[each][0]):
        low, high = spans[number]
        lane = next(
            (at for at, others in enumerate(taken) if all(high < begin or end < low for begin, end in others)),
            len(taken),
        )
        if lane == len(taken):
            taken.append([])
        taken[lane].append((low, high))
        drawn += _lane(layout, number, lanes[number], inner + lane * LANE)
    return inner + len(taken) * LANE, drawn


def _lane(layout: _Layout, number: int, bus: Bus, x: float) -> list[str]:
    """Draw a bus from each source to the lane, along it, and back to the destination, under the labels."""
    colour, end = number % len(COLOURS), layout.ins[number]
    rows = [layout.outs[number, state] for state in bus.sources]
    low, high = min(end, *rows), max(end, *rows)
    drawn = [f'<path class="edge c{colour}" d="M{layout.right:.0f} {row:.0f} H{x:.0f}"/>' for row in rows]
    drawn += [f'<circle class="j{colour}" cx="{x:.0f}" cy="{row:.0f}" r="2.4"/>' for row in rows]
    drawn.append(f'<path class="edge c{colour}" d="M{x:.0f} {low:.0f} V{high:.0f}"/>')
    drawn.append(_arrow(f"M{x:.0f} {end:.0f} H{layout.right + 1:.0f}", f" c{colour}"))
    return drawn + [
        _text(layout.right + 14, end - 5 - LINE * at, label, f"label c{colour}")
        for at, label in enumerate(reversed(bus.labels))
    ]


def _arrow(path: str, colour: str = "") -> str:
    return f'<path class="edge{colour}" d="{path}" marker-end="url(#head)"/>'


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(text)}</text>'

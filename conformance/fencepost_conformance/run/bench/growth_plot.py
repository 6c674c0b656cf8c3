"""The growth of cost as a picture: a panel each for groups, members and topics, with a line for each kind of step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from .growth import by_size
from .measure import Row
from .sizes import Case

_WIDTH, _HEIGHT = 900, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 330, 40, 40  #: margins within a panel; the names of the lines are on the right
_COLOURS = ("#1f6feb", "#bf3989", "#1a7f37", "#9a6700")
_LEAST = 10.0  #: the upper end of a panel is at least this ratio


def picture(rows: Sequence[Row]) -> str:
    """Return an SVG picture of the ratios; both axes are logarithmic."""
    panels = list(by_size(rows).items())
    height = _HEIGHT * len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="12">',
        "<title>Cost of a step as the coordinator grows, relative to the smallest</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for number, (of, cases) in enumerate(panels):
        parts.append(f'<g transform="translate(0 {number * _HEIGHT})">')
        parts += _panel(of, cases)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def _panel(of: str, cases: Sequence[tuple[Case, list[Row]]]) -> list[str]:
    sizes = max((case.sizes for case, _ in cases), key=len)
    ratios = [row.ratio or 1.0 for _, rows in cases for row in rows]
    highest = 10 ** math.ceil(math.log10(max(_LEAST, *ratios)))
    lowest = min(0.5, *ratios)

    def x(size: float) -> float:
        part = math.log(size / sizes[0]) / math.log(sizes[-1] / sizes[0])
        return _LEFT + part * (_WIDTH - _LEFT - _RIGHT)

    def y(ratio: float) -> float:
        part = math.log(ratio / lowest) / math.log(highest / lowest)
        return _HEIGHT - _BOTTOM - part * (_HEIGHT - _TOP - _BOTTOM)

    parts = [f'<text x="{_LEFT}" y="22" font-weight="600">{escape(of)}</text>']
    for power in range(int(math.log10(highest)) + 1):
        at, line = y(10**power), "#8c959f" if power == 0 else "#d0d7de"
        parts.append(f'<path d="M{_LEFT} {at:.1f}H{_WIDTH - _RIGHT}" stroke="{line}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{10**power:,}×</text>')
    for size in sizes:
        parts.append(f'<text x="{x(size):.1f}" y="{_HEIGHT - _BOTTOM + 20}" text-anchor="middle">{size:,}</text>')
    for number, (case, rows) in enumerate(cases):
        colour = _COLOURS[number % len(_COLOURS)]
        points = [(x(size), y(row.ratio or 1.0)) for size, row in zip(case.sizes, rows, strict=True)]
        dashed = ' stroke-dasharray="5 3"' if case.grows else ""
        path = " ".join(f"{across:.1f},{down:.1f}" for across, down in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashed}/>')
        parts += [f'<circle cx="{across:.1f}" cy="{down:.1f}" r="3" fill="{colour}"/>' for across, down in points]
        down = _TOP + 18 + number * 40
        across = _WIDTH - _RIGHT + 20
        parts.append(f'<path d="M{across} {down - 4}h22" stroke="{colour}" stroke-width="2"{dashed}/>')
        parts.append(f'<text x="{across + 30}" y="{down}">{escape(case.what)}: {rows[-1].ratio:.2g}×</text>')
        said = case.grows or f"{rows[0].value:,.0f} µs, then {rows[-1].value:,.0f} µs"
        parts.append(f'<text x="{across + 30}" y="{down + 15}" fill="#59636e" font-size="11">{escape(said)}</text>')
    return parts

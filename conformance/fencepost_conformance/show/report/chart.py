"""A trace as a sequence chart, in SVG. Each client has a lane, time runs downwards, and a strip for each partition
shows its holder.

A step is a band across the picture: the event, its records and its answers, each on its own row. In a partition's strip
a full colour is a holder, a hatched one a holder that must revoke the partition. Two holders at the same time stand
side by side in a red frame, since the protocol must prevent that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from fencepost_server.look.page import PICTURE

from .details import panel
from .holdings import GroupAt, after_each
from .names import Partition
from .palette import COLOURS, letter, swatch
from .steps import COORDINATOR, LOG, Append, Kind, StepWords

ROW, GAP = 19, 5
TIME, STATE, STRIP = 88, 256, 17
LANES, LANE = 430, 96  # least width of all client lanes, and of one
LOG_WIDTH = 182
CHAR = 6.7  # width of a character of a label
NAME = 24  # characters of a topic's name


@dataclass(frozen=True, slots=True)
class Chart:
    """One trace: a title, notes above the picture, the lanes, the steps, and the index of the step to mark, or None."""

    title: str
    notes: tuple[str, ...]
    lanes: Sequence[str]
    steps: Sequence[StepWords]
    marked: int | None = None


@dataclass(slots=True)
class _Plan:
    """The layout: ``x`` of each lane, top and bottom of each step, the strips in order."""

    chart: Chart
    x: dict[str, float] = field(default_factory=dict)
    bands: list[tuple[float, float]] = field(default_factory=list)
    strips: list[tuple[str, Partition]] = field(default_factory=list)
    colours: dict[str, int] = field(default_factory=dict)
    standing: list[dict[str, GroupAt]] = field(default_factory=list)
    state_x: float = 0
    strip_x: float = 0
    width: float = 0
    height: float = 0


def chart_html(chart: Chart) -> str:
    """Return the chart as a part of a page: the picture on the left, details of the selected step on the right."""
    plan = _plan(chart)
    notes = "".join(f'<div class="note">{escape(note)}</div>' for note in chart.notes)
    size = f'width="{plan.width:.0f}" viewBox="0 0 {plan.width:.0f}'
    head = f'<svg class="heads" {size} {_head_height(plan):.0f}" height="{_head_height(plan):.0f}">{_heads(plan)}</svg>'
    body = f'<svg class="steps" {size} {plan.height:.0f}" height="{plan.height:.0f}">{_body(plan)}</svg>'
    panels = "".join(
        panel(step, standing, plan.colours) for step, standing in zip(chart.steps, plan.standing, strict=True)
    )
    marked = "" if chart.marked is None else f' data-marked="{chart.marked}"'
    return (
        f'<h2 id="{escape(chart.title, quote=True)}">{escape(chart.title)}</h2>{notes}{_legend(plan)}'
        f'<div class="trace"{marked}><div class="picture" tabindex="0">{head}{body}</div>'
        f'<div class="panels">{panels}</div></div>'
    )


def chart_svg(chart: Chart) -> str:
    """Return the picture alone, as an SVG file."""
    plan = _plan(chart)
    head, width = _head_height(plan) + ROW, plan.width
    members = "   ".join(f"{letter(number)} {name}" for name, number in plan.colours.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{head + plan.height:.0f}" '
        f'viewBox="0 0 {width:.0f} {head + plan.height:.0f}" role="img" aria-label="{escape(chart.title, quote=True)}">'
        f"<style>{PICTURE}text {{ font-family: ui-monospace, monospace; }}</style>"
        f'<rect class="ground" width="100%" height="100%"/>'
        f'<rect class="rail" width="100%" height="{head:.0f}"/>'
        f'{_text(12, ROW, members, "dim")}<g transform="translate(0 {ROW})">{_heads(plan)}</g>'
        f'<g transform="translate(0 {head:.0f})">{_body(plan)}</g></svg>\n'
    )


def _plan(chart: Chart) -> _Plan:
    plan = _Plan(chart, standing=after_each([step.groups for step in chart.steps]))
    clients = [lane for lane in chart.lanes if lane not in (COORDINATOR, LOG)]
    lane_width = max(LANE, LANES / max(len(clients), 1))
    for number, lane in enumerate(clients):
        plan.x[lane] = TIME + lane_width * (number + 0.5 if number else 0.3)
    plan.x[COORDINATOR] = TIME + lane_width * len(clients) + 30
    right = plan.x[COORDINATOR] + 64
    if LOG in chart.lanes:
        plan.x[LOG] = plan.x[COORDINATOR] + LOG_WIDTH
        right = plan.x[LOG] + 24
    plan.state_x, plan.strip_x = right, right + STATE
    held: dict[tuple[str, Partition], None] = {}
    for groups in plan.standing:
        for group in groups.values():
            for member in group.members:
                plan.colours.setdefault(member.member, len(plan.colours))
                held.update(((group.group, each), None) for each in (*member.holds, *member.giving_up))
    plan.strips = sorted(held)
    y = 4.0
    for step in chart.steps:
        plan.bands.append((y, y + _rows(step) * ROW + GAP))
        y = plan.bands[-1][1]
    plan.width, plan.height = plan.strip_x + len(plan.strips) * STRIP + 20, y + 6
    return plan


def _rows(step: StepWords) -> int:
    own = bool(step.what) + (step.append is not None) + len(step.answers) + bool(step.error)
    return max(own, len(step.groups), 1)


# --- heads -----------------------------------------------------------------------------------------------------------


def _head_height(plan: _Plan) -> float:
    names = {f"{group}·{topic}" for group, (topic, _) in plan.strips}
    return max(54.0, 40 + max((len(_shortened(name, NAME)) for name in names), default=0) * 5.4)


def _heads(plan: _Plan) -> str:
    low = _head_height(plan) - 8
    drawn = [_text(TIME - 12, low, "ms", "dim", "end"), _text(12, low, "step", "dim")]
    for lane, x in plan.x.items():
        kind = "lane own" if lane in (COORDINATOR, LOG) else "lane"
        lines = _wrapped(lane, 15)
        drawn += [_text(x, low - 15 * (len(lines) - 1 - at), line, kind, "middle") for at, line in enumerate(lines)]
    drawn.append(_text(plan.state_x, low, "group", "lane own"))
    several = len({group for group, _ in plan.strips}) > 1
    for at, (group, (topic, number)) in enumerate(plan.strips):
        x = plan.strip_x + (at + 0.5) * STRIP
        drawn.append(_text(x, low, str(number), "strip", "middle"))
        if at == 0 or plan.strips[at - 1][0] != group or plan.strips[at - 1][1][0] != topic:
            name = _shortened(f"{group}·{topic}" if several else topic, NAME)
            turned = f"translate({x + 3:.0f} {low - 14:.0f}) rotate({0 if len(name) < 3 else -60})"
            drawn.append(f'<text class="strip" transform="{turned}">{escape(name)}</text>')
    return "".join(drawn)


def _legend(plan: _Plan) -> str:
    if not plan.colours:
        return ""
    members = "".join(
        f'<span class="member">{swatch(number)}{escape(name)}</span>' for name, number in plan.colours.items()
    )
    return (
        f'<p class="legend">{members}<span class="dim">hatched: to revoke · red frame: two holders at once</span></p>'
    )


# --- steps -----------------------------------------------------------------------------------------------------------


def _body(plan: _Plan) -> str:
    drawn = [_DEFS]
    for lane, x in plan.x.items():
        kind = "life own" if lane in (COORDINATOR, LOG) else "life"
        drawn.append(f'<line class="{kind}" x1="{x:.0f}" x2="{x:.0f}" y1="0" y2="{plan.height:.0f}"/>')
    drawn += _strips(plan)
    for step, (top, bottom) in zip(plan.chart.steps, plan.bands, strict=True):
        marked = " marked" if step.index == plan.chart.marked else ""
        failover = " failover" if step.kind is Kind.FAIL_OVER else ""
        drawn.append(
            f'<g class="step{marked}{failover}" data-step="{step.index}">'
            f'<rect class="band" x="2" y="{top:.0f}" width="{plan.width - 4:.0f}" height="{bottom - top:.0f}" rx="4"/>'
        )
        drawn += _step(plan, step, top)
        drawn.append("</g>")
    return "".join(drawn)


def _step(plan: _Plan, step: StepWords, top: float) -> list[str]:
    y = top + ROW * 0.72
    drawn = [_text(12, y, str(step.index), "dim"), _text(TIME - 12, y, f"{step.at_ms}", "dim", "end")]
    for at, group in enumerate(step.groups):
        drawn.append(_text(plan.state_x, y + at * ROW, _state(group), "state gone" if group.gone else "state"))
    if step.what:
        drawn += _event(plan, step, y)
        y += ROW
    if step.append is not None:
        drawn += _written(plan, step.append, y)
        y += ROW
    for answer in step.answers:
        kind = "answer bad" if answer.error else "answer"
        drawn += _arrow(plan, COORDINATOR, answer.to, y, label=answer.brief, kind=kind)
        y += ROW
    if step.error:
        x = plan.x[COORDINATOR]
        drawn.append(_text(x - 10, y, f"exception inside: {step.error}", "label bad", "end"))
    return drawn


def _event(plan: _Plan, step: StepWords, y: float) -> list[str]:
    if step.who != COORDINATOR:
        return _arrow(plan, step.who, COORDINATOR, y, label=step.brief, kind="request")
    x = plan.x[COORDINATOR]
    if step.kind in (Kind.APPENDED, Kind.APPEND_FAILED) and LOG in plan.x:
        kind = "answer" if step.kind is Kind.APPENDED else "answer bad"
        return _arrow(plan, LOG, COORDINATOR, y, label=step.brief, kind=kind)
    if step.kind is Kind.FAIL_OVER:
        line = f'<line class="cut" x1="{TIME:.0f}" x2="{plan.state_x - 14:.0f}" y1="{y:.0f}" y2="{y:.0f}"/>'
        return [line, _text(x - 10, y - 4, _fitting(plan, step.brief), "label own", "end")]
    mark = (
        f'<circle class="timer" cx="{x:.0f}" cy="{y - 4:.0f}" r="5.5"/>'
        f'<path class="hands" d="M{x:.0f} {y - 7:.0f} v3 h2.5"/>'
        if step.kind is Kind.TIMER
        else f'<rect class="timer" x="{x - 5:.0f}" y="{y - 9:.0f}" width="10" height="10"/>'
    )
    return [mark, _text(x - 12, y, _fitting(plan, step.brief), "label own", "end")]


def _written(plan: _Plan, append: Append, y: float) -> list[str]:
    places = f"{append.first}" if append.end - append.first == 1 else f"{append.first}–{append.end - 1}"
    room = int((LOG_WIDTH - 24) / CHAR)
    label = _shortened(f"[{places}] {append.brief}", room)
    kind = "write lost" if append.failed else "write"
    drawn = _arrow(plan, COORDINATOR, LOG, y, label=label, kind=kind, start=True)
    x = plan.x[LOG]
    if append.failed:
        drawn.append(f'<path class="cross" d="M{x - 4:.0f} {y - 4:.0f} l8 8 m0 -8 l-8 8"/>')
    elif append.fate:
        drawn.append(f'<circle class="kept" cx="{x:.0f}" cy="{y:.0f}" r="3.5"/>')
    return drawn


def _arrow(plan: _Plan, who: str, whom: str, y: float, *, label: str, kind: str, start: bool = False) -> list[str]:
    """Draw an arrow under its label, which is at the coordinator's end; ``start``: on the side towards the log."""
    one, other = plan.x.get(who, plan.x[COORDINATOR]), plan.x.get(whom, plan.x[COORDINATOR])
    back = -5 if other > one else 5
    base = "bad" if "bad" in kind or "lost" in kind else "good"
    line = (
        f'<path class="arrow {kind}" d="M{one:.0f} {y:.0f} H{other + back:.0f}" marker-end="url(#{base})"/>'
        f'<circle class="end {kind}" cx="{one:.0f}" cy="{y:.0f}" r="2.2"/>'
    )
    bad = " bad" if base == "bad" else ""
    centre = plan.x[COORDINATOR]
    if start or LOG in (who, whom):
        text = _text(centre + 10, y - 4, label, f"label{bad}")
    else:
        text = _text(centre - 10, y - 4, _fitting(plan, label), f"label{bad}", "end")
    return [line, text]


def _state(group: GroupAt) -> str:
    if group.gone:
        return f"{group.group}: gone"
    brief = {"generation": "gen", "group epoch": "epoch", "assignment epoch": "target"}
    epochs = " ".join(f"{brief[name]} {number}" for name, number in group.epochs)
    return _shortened(f"{_shortened(group.group, 14)}: {group.state} {epochs}", int((STATE - 10) / CHAR))


# --- strips ----------------------------------------------------------------------------------------------------------


def _strips(plan: _Plan) -> list[str]:
    drawn = []
    for at, (group, partition) in enumerate(plan.strips):
        x = plan.strip_x + at * STRIP
        drawn.append(f'<rect class="rail" x="{x + 1:.0f}" y="0" width="{STRIP - 2}" height="{plan.height:.0f}"/>')
        begin: tuple[tuple[str, bool], ...] = ()
        since = 0.0
        for index, standing in enumerate(plan.standing):
            now = holders(standing.get(group), partition)
            if now != begin:
                drawn += _segment(plan, begin, x, since, plan.bands[index][0])
                begin, since = now, plan.bands[index][0]
        drawn += _segment(plan, begin, x, since, plan.height)
    return drawn


def holders(group: GroupAt | None, partition: Partition) -> tuple[tuple[str, bool], ...]:
    """Return the members that hold the partition, each with whether it must revoke it."""
    if group is None:
        return ()
    return tuple(
        (member.member, partition in member.giving_up)
        for member in group.members
        if partition in member.holds or partition in member.giving_up
    )


def _segment(
    plan: _Plan, held: tuple[tuple[str, bool], ...], x: float, top: float, bottom: float
) -> list[str]:  # fmt: skip
    if not held or bottom <= top:
        return []
    drawn = []
    width = (STRIP - 3) / len(held)
    for at, (member, leaving) in enumerate(held):
        number = plan.colours[member]
        left, size = x + 1.5 + at * width, f'width="{width:.1f}" height="{bottom - top - 1:.0f}"'
        place = f'x="{left:.1f}" y="{top:.0f}" {size} rx="2"'
        kind = f"held m{number % COLOURS}{' leaving' if leaving else ''}"
        drawn.append(f'<rect class="{kind}" {place}/>')
        if leaving:
            drawn.append(f'<rect fill="url(#hatch)" {place}/>')
        if len(held) == 1:
            drawn.append(
                _text(left + width / 2, top + 13, letter(number), "who leaving" if leaving else "who", "middle")
            )
    if len(held) > 1:
        drawn.append(
            f'<rect class="clash" x="{x + 0.5:.1f}" y="{top:.0f}" width="{STRIP - 1}" height="{bottom - top - 1:.0f}"/>'
        )
    return drawn


# --- text ------------------------------------------------------------------------------------------------------------

_DEFS = (
    '<defs><marker id="good" viewBox="0 0 10 10" refX="7" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L10 5L0 10z" class="tip"/></marker>'
    '<marker id="bad" viewBox="0 0 10 10" refX="7" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L10 5L0 10z" class="tip bad"/></marker>'
    '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="3" height="6" class="hatch"/></pattern></defs>'
)


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(text)}</text>'


def _fitting(plan: _Plan, label: str) -> str:
    """Return as much of the label as fits between the times and the coordinator."""
    return _shortened(label, int((plan.x[COORDINATOR] - TIME - 12) / CHAR))


def _shortened(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: max(room - 1, 1)]}…"


def _wrapped(text: str, room: int) -> list[str]:
    """Break the text at blanks into at most three lines."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= room:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return [_shortened(line, room) for line in lines[:3]]

"""A trace as a sequence chart, in SVG. Each client has a lane, time runs downwards, and a strip for each partition
shows its holder.

A step is a band across the picture: the event, its records and its answers, each on its own row. In a partition's strip
a full colour is a holder, a hatched one a holder that must revoke the partition. Two holders at the same time stand
side by side in a red frame, since the protocol must prevent that.

Each band is drawn for itself, from y = 0 on. ``chart_svg`` puts all bands below each other; a page does so for those
that are in view (``chart_page``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from fencepost_server.look.page import PICTURE

from .holdings import GroupAt, after_each
from .names import Partition
from .palette import COLOURS, letter
from .steps import COORDINATOR, LOG, Append, Kind, StepWords

ROW, GAP = 19, 5
TIME, STATE, STRIP = 88, 256, 17
LANES, LANE = 430, 96  # least width of all client lanes, and of one
LOG_WIDTH = 182
CHAR = 6.7  # width of a character of a label
NAME = 24  # characters of a topic's name
#: a lane of a connection, of a member, or of a connection without a client id
_OF_CLIENT = re.compile(r"(?P<one>.+) #\d+|(?P<other>.+ /\S+) .+|\d+: \S*")
MOST_LANES = 12  # of clients; beyond it the members and connections of one client share a lane


@dataclass(frozen=True, slots=True)
class Chart:
    """One trace: a title, notes above the picture, the lanes, the steps, and the index of the step to mark, or None.
    ``full``: the full form of each short name. ``rules``: a line for each rule that decides at the marked step."""

    title: str
    notes: tuple[str, ...]
    lanes: Sequence[str]
    steps: Sequence[StepWords]
    marked: int | None = None
    full: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[str, ...] = ()


@dataclass(slots=True)
class Plan:
    """The layout: ``x`` of each lane, the strips in order, the groups after each step. ``width`` is that of the bands;
    the strips are to their right. ``columns``: the lanes that are drawn, each with those that share it."""

    chart: Chart
    x: dict[str, float] = field(default_factory=dict)
    columns: dict[str, list[str]] = field(default_factory=dict)
    strips: list[tuple[str, Partition]] = field(default_factory=list)
    colours: dict[str, int] = field(default_factory=dict)
    standing: list[dict[str, GroupAt]] = field(default_factory=list)
    state_x: float = 0
    width: float = 0
    head: float = 0


def chart_svg(chart: Chart) -> str:
    """Return the picture alone, as an SVG file."""
    plan = plan_of(chart)
    head, width = plan.head + ROW, plan.width + len(plan.strips) * STRIP + 20
    members = "   ".join(f"{letter(number)} {name}" for name, number in plan.colours.items())
    heads, drawn, y = [_moved(0, ROW, heads_of(plan))], [], 4.0
    heads += [_moved(plan.width + at * STRIP, ROW, strip_head(plan, at)) for at in range(len(plan.strips))]
    for at, step in enumerate(chart.steps):
        drawn.append(_moved(0, y, band(plan, at), kinds(plan, step), step.index))
        drawn += [_moved(plan.width + strip * STRIP, y, cell) for strip, cell in cells(plan, at)]
        y += height(step)
    rails = "".join(
        f'<rect class="rail" x="{plan.width + at * STRIP + 1:.0f}" y="0" width="{STRIP - 2}" height="{y:.0f}"/>'
        for at in range(len(plan.strips))
    )
    body = f"{DEFS}{lives(plan, y)}{rails}{''.join(drawn)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{head + y + 6:.0f}" '
        f'viewBox="0 0 {width:.0f} {head + y + 6:.0f}" role="img" aria-label="{escape(chart.title, quote=True)}">'
        f"<style>{PICTURE}text {{ font-family: ui-monospace, monospace; }}</style>"
        f'<rect class="ground" width="100%" height="100%"/>'
        f'<rect class="rail" width="100%" height="{head:.0f}"/>'
        f"{_text(12, ROW, members, 'dim')}{''.join(heads)}{_moved(0, head, body)}</svg>\n"
    )


def _moved(x: float, y: float, drawn: str, kind: str = "", step: int | None = None) -> str:
    marks = f' class="{kind}"' * bool(kind) + ("" if step is None else f' data-step="{step}"')
    return f'<g transform="translate({x:.0f} {y:.0f})"{marks}>{drawn}</g>'


def plan_of(chart: Chart) -> Plan:
    """Return the layout of a chart."""
    plan = Plan(chart, standing=after_each([step.groups for step in chart.steps]))
    plan.columns = columns_of([lane for lane in chart.lanes if lane not in (COORDINATOR, LOG)])
    lane_width = max(LANE, LANES / max(len(plan.columns), 1))
    for number, sharing in enumerate(plan.columns.values()):
        plan.x |= dict.fromkeys(sharing, TIME + lane_width * (number + 0.5 if number else 0.3))
    plan.x[COORDINATOR] = TIME + lane_width * len(plan.columns) + 30
    plan.columns |= {lane: [lane] for lane in (COORDINATOR, LOG) if lane in chart.lanes}
    right = plan.x[COORDINATOR] + 64
    if LOG in chart.lanes:
        plan.x[LOG] = plan.x[COORDINATOR] + LOG_WIDTH
        right = plan.x[LOG] + 24
    plan.state_x, plan.width = right, right + STATE
    held: dict[tuple[str, Partition], None] = {}
    for groups in plan.standing:
        for group in groups.values():
            for member in group.members:
                plan.colours.setdefault(member.member, len(plan.colours))
                held.update(((group.group, each), None) for each in (*member.holds, *member.giving_up))
    plan.strips = sorted(held)
    names = {f"{group}·{topic}" for group, (topic, _) in plan.strips}
    plan.head = max(54.0, 40 + max((len(_shortened(name, NAME)) for name in names), default=0) * 5.4)
    return plan


def columns_of(clients: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns to draw, each with its lanes: one for each lane, or of too many one for each client."""
    columns: dict[str, list[str]] = {}
    for lane in clients:
        columns.setdefault(_client_of(lane) if len(clients) > MOST_LANES else lane, []).append(lane)
    return columns


def _client_of(lane: str) -> str:
    """Return the client of a lane: its name without the number of a connection or a member's short name."""
    found = _OF_CLIENT.fullmatch(lane)
    return lane if found is None else found["one"] or found["other"] or "no client id"


def height(step: StepWords) -> float:
    """Return the height of a step's band."""
    own = bool(step.what) + (step.append is not None) + len(step.answers) + bool(step.error)
    return max(own, len(step.groups), 1) * ROW + GAP


def kinds(plan: Plan, step: StepWords) -> str:
    """Return the classes of a step's band."""
    marked = " marked" if step.index == plan.chart.marked else ""
    return f"step{marked}{' failover' if step.kind is Kind.FAIL_OVER else ''}"


# --- heads -----------------------------------------------------------------------------------------------------------


def heads_of(plan: Plan) -> str:
    """Draw the names of the lanes."""
    low = plan.head - 8
    drawn = [_text(TIME - 12, low, "ms", "dim", "end"), _text(12, low, "step", "dim")]
    for lane, sharing in plan.columns.items():
        x = plan.x[sharing[0]]
        kind = "lane own" if lane in (COORDINATOR, LOG) else "lane"
        lines = _wrapped(lane if len(sharing) == 1 else f"{lane} ({len(sharing):,})", 15)
        full = full_name(lane, plan.chart.full) if len(sharing) == 1 else f"{len(sharing):,} lanes of {lane} in one"
        drawn += [
            _text(x, low - 15 * (len(lines) - 1 - at), line, kind, "middle", full) for at, line in enumerate(lines)
        ]
    drawn.append(_text(plan.state_x, low, "group", "lane own"))
    return "".join(drawn)


def strip_head(plan: Plan, at: int) -> str:
    """Draw the name of a strip: the partition's number, and at the first one of a topic the topic."""
    low, (group, (topic, number)) = plan.head - 8, plan.strips[at]
    drawn = _text(STRIP / 2, low, str(number), "strip", "middle", f"{topic}:{number} of group {group}")
    if at == 0 or plan.strips[at - 1][0] != group or plan.strips[at - 1][1][0] != topic:
        several = len({group for group, _ in plan.strips}) > 1
        name = _shortened(f"{group}·{topic}" if several else topic, NAME)
        turned = f"translate({STRIP / 2 + 3:.0f} {low - 14:.0f}) rotate({0 if len(name) < 3 else -60})"
        whole = f"<title>{escape(topic)} of group {escape(group)}</title>"
        drawn += f'<text class="strip" transform="{turned}">{whole}{escape(name)}</text>'
    return drawn


def full_name(name: str, full: Mapping[str, str]) -> str:
    """Return a lane or a member with each short name in its full form."""
    return " ".join(full.get(word, word) for word in name.split(" "))


# --- steps -----------------------------------------------------------------------------------------------------------


def lives(plan: Plan, bottom: float) -> str:
    """Draw the line of each lane."""
    return "".join(
        f'<line class="life{" own" if own else ""}" x1="{x}" x2="{x}" y1="0" y2="{bottom:.0f}"/>'
        for x, own in lifelines(plan)
    )


def lifelines(plan: Plan) -> list[tuple[int, bool]]:
    """Return the place of each lane that is drawn, and whether it is the coordinator or its log."""
    return [(round(plan.x[sharing[0]]), lane in (COORDINATOR, LOG)) for lane, sharing in plan.columns.items()]


def band(plan: Plan, at: int) -> str:
    """Draw a step: its band, then its parts."""
    step = plan.chart.steps[at]
    y = ROW * 0.72
    drawn = [
        f'<rect class="band" x="2" y="0" width="{plan.width - 4:.0f}" height="{height(step):.0f}" rx="4"/>',
        _text(12, y, str(step.index), "dim"),
        _text(TIME - 12, y, f"{step.at_ms}", "dim", "end"),
    ]
    for number, group in enumerate(step.groups):
        drawn.append(_text(plan.state_x, y + number * ROW, _state(group), "state gone" if group.gone else "state"))
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
    return "".join(drawn)


def _event(plan: Plan, step: StepWords, y: float) -> list[str]:
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


def _written(plan: Plan, append: Append, y: float) -> list[str]:
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


def _arrow(plan: Plan, who: str, whom: str, y: float, *, label: str, kind: str, start: bool = False) -> list[str]:
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


def cells(plan: Plan, at: int) -> list[tuple[int, str]]:
    """Draw the strips beside a step: the number of each strip with a holder, and its picture."""
    drawn = []
    now, before = plan.standing[at], plan.standing[at - 1] if at else {}
    for strip, (group, partition) in enumerate(plan.strips):
        held = holders(now.get(group), partition)
        if held:
            begins = held != holders(before.get(group), partition)
            drawn.append((strip, _cell(plan, held, height(plan.chart.steps[at]), begins=begins)))
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


def _cell(plan: Plan, held: tuple[tuple[str, bool], ...], tall: float, *, begins: bool) -> str:
    drawn = []
    width, top = (STRIP - 3) / len(held), 1 if begins else 0
    for at, (member, leaving) in enumerate(held):
        number = plan.colours[member]
        left = 1.5 + at * width
        place = f'x="{left:.1f}" y="{top}" width="{width:.1f}" height="{tall - top:.0f}"'
        drawn.append(f'<rect class="held m{number % COLOURS}{" leaving" if leaving else ""}" {place}/>')
        if leaving:
            drawn.append(f'<rect fill="url(#hatch)" {place}/>')
        if len(held) == 1 and begins:
            kind = "who leaving" if leaving else "who"
            drawn.append(_text(left + width / 2, 13, letter(number), kind, "middle", member))
    if len(held) > 1:
        upper = f"M0.5 1 H{STRIP - 0.5} " if begins else ""
        sides = f"M0.5 0 V{tall:.0f} M{STRIP - 0.5} 0 V{tall:.0f}"
        drawn.append(f'<path class="clash" d="{upper}{sides}"/>')
    return "".join(drawn)


# --- text ------------------------------------------------------------------------------------------------------------

DEFS = (
    '<defs><marker id="good" viewBox="0 0 10 10" refX="7" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L10 5L0 10z" class="tip"/></marker>'
    '<marker id="bad" viewBox="0 0 10 10" refX="7" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L10 5L0 10z" class="tip bad"/></marker>'
    '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="3" height="6" class="hatch"/></pattern></defs>'
)


def _text(  # noqa: PLR0917
    x: float, y: float, text: str, kind: str, anchor: str = "start", full: str = ""
) -> str:
    """Draw a text; ``full`` is shown on hover, where it differs."""
    whole = f"<title>{escape(full)}</title>" if full and full != text else ""
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{whole}{escape(text)}</text>'


def _fitting(plan: Plan, label: str) -> str:
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

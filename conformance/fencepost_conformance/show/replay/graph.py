"""A trace as a text sequence chart: narrow lanes on the left, like branches in version control, words on the right.

It is plain text; a terminal adds colour. Lines are wrapped to the available width.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from rich.text import Text

from ..report.chart import Chart, columns_of, holders
from ..report.holdings import GroupAt, MemberAt, after_each
from ..report.names import Partition, compact
from ..report.palette import letter
from ..report.steps import COORDINATOR, LOG, Append, Kind, StepWords

LIFE = "│"
WIDTH = 100  #: width without a terminal
_LEAST = 40  # columns for words
_COLOURS = ("blue", "dark_orange", "green", "magenta", "red", "cyan", "yellow", "bright_blue", "bright_green", "pink3")


def text_chart(chart: Chart, width: int = WIDTH) -> list[Text]:
    """Return the lines: a legend of the lanes, the steps, and the holders of partitions over time."""
    graph = _Graph(chart.lanes, width)
    lines = [*graph.legend(), graph.heads()]
    before: dict[str, GroupAt] = {}
    standing = after_each([step.groups for step in chart.steps])
    for step, after in zip(chart.steps, standing, strict=True):
        lines += _step(graph, step, before, marked=step.index == chart.marked)
        before = after
    return [*lines, *who_held_what(chart.steps, width)]


class _Graph:
    """The lanes: letters for clients, ``◆`` for the coordinator, ``≡`` for its log."""

    def __init__(self, lanes: Sequence[str], width: int) -> None:
        columns = columns_of([lane for lane in lanes if lane not in (COORDINATOR, LOG)])
        self._signs = {name: letter(at) for at, name in enumerate(columns)}
        self._signs |= {lane: sign for lane, sign in ((COORDINATOR, "◆"), (LOG, "≡")) if lane in lanes}
        columns |= {lane: [lane] for lane in (COORDINATOR, LOG) if lane in lanes}
        self._step = next((step for step in (3, 2) if len(columns) * step <= width // 3), 1)
        self._heads = {name: at * self._step for at, name in enumerate(columns)}
        self._places = {lane: self._heads[name] for name, sharing in columns.items() for lane in sharing}
        self._width = (len(columns) - 1) * self._step + 1
        self._room = max(width - self._width - 2, _LEAST)

    def legend(self) -> list[Text]:
        text = "   ".join(f"{sign} {lane}" for lane, sign in self._signs.items())
        return [Text(line, style="bold") for line in wrap(text, self._room + self._width + 2)]

    def heads(self) -> Text:
        row = [" "] * self._width
        for name, place in self._heads.items():
            row[place] = self._signs[name]
        return Text("".join(row), style="bold")

    def lines(
        self, drawn: str | None, text: str, style: str, lead: str = "", lead_style: str = "dim"
    ) -> Iterator[Text]:
        """Yield lines. ``drawn``: the lanes of the first line; the words follow, wrapped, under a lead of fixed
        width."""
        room = self._room - len(lead)
        for at, words in enumerate(wrap(text, max(room, 20), drop_whitespace=True) or [""]):
            line = Text(drawn if at == 0 and drawn is not None else self._lives(), style=style if at == 0 else "dim")
            line.append("  ")
            line.append(lead if at == 0 else " " * len(lead), style=lead_style)
            line.append(words, style=style)
            yield line

    def arrow(self, who: str, whom: str, *, answer: bool = False, lost: bool = False) -> str:
        """Return the lanes with an arrow from one to the other."""
        row = list(self._lives())
        start, end = self._places.get(who), self._places.get(whom)
        if start is None or end is None or start == end:
            return self._mark(COORDINATOR, "●")
        shaft = "╌" if answer else "─"
        for place in range(min(start, end) + 1, max(start, end)):
            row[place] = shaft
        row[start] = "●"
        row[end] = "✗" if lost else ">" if end > start else "<"
        return "".join(row)

    def own(self, kind: Kind) -> str:
        """Return the lanes with an event of the coordinator itself."""
        if kind is Kind.FAIL_OVER:
            return "".join("╪" if char == LIFE else "═" for char in self._lives())
        if kind in (Kind.APPENDED, Kind.APPEND_FAILED):
            return self.arrow(LOG, COORDINATOR, lost=kind is Kind.APPEND_FAILED)
        return self._mark(COORDINATOR, "◷" if kind is Kind.TIMER else "●")

    def _mark(self, lane: str, sign: str) -> str:
        row = list(self._lives())
        if lane in self._places:
            row[self._places[lane]] = sign
        return "".join(row)

    def _lives(self) -> str:
        row = [" "] * self._width
        for place in self._places.values():
            row[place] = LIFE
        return "".join(row)


def _step(graph: _Graph, step: StepWords, before: dict[str, GroupAt], *, marked: bool) -> Iterator[Text]:
    lead = f"{'✗' if marked else ' '}{step.index:>4} {step.at_ms:>8} ms  "
    if step.what:
        if step.who == COORDINATOR:
            bad = step.kind is Kind.APPEND_FAILED
            yield from graph.lines(graph.own(step.kind), step.what, "red" if bad else "blue", lead, _lead(marked))
        else:
            yield from graph.lines(graph.arrow(step.who, step.whom), step.what, "", lead, _lead(marked))
    indent = " " * (len(lead) - 9)
    if step.append is not None:
        yield from _append(graph, step.append, indent)
    for answer in step.answers:
        drawn = graph.arrow(COORDINATOR, answer.to, answer=True)
        first = indent + "answers  " if step.what else lead
        text = f"#{answer.request_id} {answer.text}"
        yield from graph.lines(drawn, text, "red" if answer.error else "green", first, _lead(marked))
    if step.error:
        yield from graph.lines(None, step.error, "red", f"{indent}raised   ")
    for title, texts in (("timer    ", step.timers), ("starts   ", step.tasks)):
        for text in texts:
            yield from graph.lines(None, text, "dim", indent + title)
    for group in step.groups:
        for at, text in enumerate(_group(group, before.get(group.group))):
            yield from graph.lines(
                None, text, "bold" if at == 0 else "", indent + ("group    " if at == 0 else " " * 9)
            )
    if step.rules:
        yield from graph.lines(None, " ".join(step.rules), "dim italic", f"{indent}rules    ")


def _lead(marked: bool) -> str:
    return "bold red" if marked else "dim"


def _append(graph: _Graph, append: Append, indent: str) -> Iterator[Text]:
    drawn: str | None = graph.arrow(COORDINATOR, LOG, lost=append.failed)
    for at, text in enumerate(append.records):
        fate = f"  [{append.fate}]" if append.fate and at == len(append.records) - 1 else ""
        style = "red" if append.failed else "blue"
        yield from graph.lines(
            drawn, f"{append.first + at} {text}{fate}", style, indent + ("writes   " if at == 0 else " " * 9)
        )
        drawn = None


def _group(group: GroupAt, before: GroupAt | None) -> Iterator[str]:
    """Yield a line for the group, and one for each member that has changed."""
    if group.gone:
        yield f"{group.group} gone"
        return
    epochs = ", ".join(f"{name} {number}" for name, number in group.epochs)
    notes = "".join(f"; {note}" for note in group.notes)
    same = before is not None and not before.gone
    yield f"{group.group} ({group.kind}) {group.state} {epochs}{notes}"
    known = {row.member: row for row in before.members} if same and before is not None else {}
    for row in group.members:
        if known.pop(row.member, None) != row:
            yield _member(row)
    for name in known:
        yield f"{name} removed"


def _member(row: MemberAt) -> str:
    about = f"{row.member}{' (classic)' if row.protocol == 'classic' and 'epoch' in row.epochs else ''} {row.epochs}"
    parts = [f"{about} {row.state}".strip(), f"holds {row.other or compact(row.holds)}"]
    if row.giving_up:
        parts.append(f"gives up {compact(row.giving_up)}")
    if row.target is not None and row.target != row.holds:
        parts.append(f"target {compact(row.target)}")
    return ", ".join(parts)


# --- holders ---------------------------------------------------------------------------------------------------


def who_held_what(steps: Sequence[StepWords], width: int = WIDTH) -> list[Text]:
    """Return a row for each partition, and a column for each step at which a holder changes."""
    standing = after_each([step.groups for step in steps])
    signs: dict[str, int] = {}
    places: dict[tuple[str, Partition], None] = {}
    for groups in standing:
        for group in groups.values():
            for member in group.members:
                for partition in (*member.holds, *member.giving_up):
                    places[group.group, partition] = None
                    signs.setdefault(member.member, len(signs))
    if not places:
        return []
    rows = {place: [holders(groups.get(place[0]), place[1]) for groups in standing] for place in sorted(places)}
    turns = [at for at in range(len(steps)) if any(row[at] != (row[at - 1] if at else ()) for row in rows.values())]
    cell = max(3, *(len(str(steps[at].index)) for at in turns)) + 1
    several = len({group for group, _ in rows}) > 1
    names = {
        (group, (topic, number)): f"{f'{group} ' if several else ''}{topic}:{number}" for group, (topic, number) in rows
    }
    margin = max(map(len, names.values())) + 1
    legend = "   ".join(f"{letter(number)} {name}" for name, number in signs.items())
    lines = [Text(), Text("holders of partitions", style="bold")]
    lines += [Text(line) for line in wrap(f"{legend}   (x) to revoke   !xy two holders", width)]
    for part in _parts(turns, max((width - margin) // cell, 1)):
        lines.append(Text("step".ljust(margin) + "".join(f"{steps[at].index:>{cell}}" for at in part), style="dim"))
        for place, row in rows.items():
            line = Text(names[place].ljust(margin))
            for at in part:
                _cell(line, row[at], signs, cell)
            lines.append(line)
    return lines


def _cell(line: Text, held: tuple[tuple[str, bool], ...], signs: dict[str, int], width: int) -> None:
    letters = "".join(letter(signs[member]) for member, _ in held)
    if len(held) > 1:
        line.append(f"!{letters}".rjust(width), style="bold red")
    elif held and held[0][1]:
        line.append(f"({letters})".rjust(width), style="dim")
    elif held:
        line.append(letters.rjust(width), style=_COLOURS[signs[held[0][0]] % len(_COLOURS)])
    else:
        line.append("·".rjust(width), style="dim")


def _parts(items: Sequence[int], size: int) -> Iterable[Sequence[int]]:
    return (items[at : at + size] for at in range(0, len(items), size))

"""``fencepost rules``: the text of the rule book's rules, and the status of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.text import Text

from fencepost.rulebook.book import Rule
from fencepost_server.look.made import made_now

from ...common.counting import counted
from ...common.errors import CannotRun
from ...judge.rulebook.scope import out_of_scope
from ...judge.rulebook.standing import COLUMNS, MEANINGS, Level, Standing, read_standings
from ...judge.rulebook.texts import chosen, rule_book, source
from ...judge.verdict import Tally
from ...show.console import Result, finish
from ...show.listing import Listing
from ...show.rules_page import rules_page

#: up to this many rules are shown with their texts, more as a table
_WHOLE: Final = 12
#: up to this many places of a kind are shown; JSON has all
_PLACES: Final = 6
_HEADINGS: Final = ("spec", "model", "core", "tests", "decided", "ran", "wire")
_LEVELS: Final = "; ".join(f"{level}: {MEANINGS[level]}" for level in (Level.DECIDED, Level.RAN))
_WORDS: Final = "an id (c-join-43), a range (C-JOIN-40..43) or a beginning (C-JOIN)"
_NO_SOURCE: Final = (
    "the source shows where a rule is specified, modelled, implemented, tested and compared; run this in a checkout"
)


def rules(  # noqa: PLR0917 — options of a command line
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RULE]...", help=_WORDS),
    ] = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="only rules in scope that are not implemented anywhere")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="a line for each rule, also those out of scope")] = False,
    only: Annotated[
        Level | None,
        typer.Option("--only", help="only rules in scope with this level"),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="also write a page: a square for each rule, by its evidence")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Show the text of rules, and the status of each: specified, modelled, implemented, tested, compared with Kafka
    (decided, or only ran), seen on the wire."""
    wanted = list(dict.fromkeys(rule.id for word in words or () for rule in chosen(word))) or list(rule_book())
    root = source()
    if root is None:
        needed = missing or only is not None or html is not None
        _without_source([rule_book()[rule_id] for rule_id in wanted], as_json=as_json, named=bool(words), needed=needed)
    known = {standing.rule.id: standing for standing in read_standings(root)}
    standings = [known[rule_id] for rule_id in wanted]
    in_scope = [each for each in standings if each.excused is None]
    unrealised = [each for each in in_scope if each.missing]
    counts: dict[str, int | float] = {
        "rules": len(standings),
        "in_scope": len(in_scope),
        "out_of_scope": len(standings) - len(in_scope),
        "missing": len(unrealised),
    }
    counts |= {column: sum(each.has(column) for each in in_scope) for column in COLUMNS}
    counts["none"] = sum(each.level is Level.NONE for each in in_scope)
    if html is not None:
        html.write_text(rules_page(by_family(standings), made_now()), encoding="utf-8")
    rows = unrealised if missing else standings
    if only is not None:
        rows = [each for each in rows if each.level is only and each.excused is None]
    shown: RenderableType
    if words and len(rows) <= _WHOLE:
        shown = Group(*(part for each in rows for part in whole(each)))
    else:
        shown = by_rule(rows) if missing or everything or words or only is not None else summary(standings)
    # rules that were requested by id are shown, not judged
    tally = Tally(len(standings) - len(unrealised), len(unrealised)) if unrealised or not words else None
    details = {
        "meanings": {level.value: meaning for level, meaning in MEANINGS.items()},
        "families": {name: _levels(each) for name, each in by_family(in_scope).items()},
        "rules": [_as_json(each) for each in rows],
    }
    result = Result("rules", tally, counts, details, things="rules")
    finish(result, as_json=as_json, table=shown)


def _as_json(standing: Standing) -> dict[str, object]:
    return {
        **_text_as_json(standing.rule),
        **{column: list(standing.places.get(column, ())) for column in COLUMNS[:4]},
        **{column: standing.observed.get(column, 0) for column in COLUMNS[4:]},
        "level": standing.level.value,
        "cannot_occur": standing.impossible,
    }


def by_family(standings: Iterable[Standing]) -> dict[str, list[Standing]]:
    """Return rules by their prefix, in the order of the book."""
    found: dict[str, list[Standing]] = {}
    for each in standings:
        found.setdefault(each.rule.id.rpartition("-")[0], []).append(each)
    return found


def _levels(standings: list[Standing]) -> dict[str, int]:
    return {level.value: sum(each.level is level for each in standings) for level in Level}


def _text_as_json(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.id,
        "file": rule.file,
        "text": rule.plain,
        "kafka_fault": rule.kafka_fault,
        "out_of_scope": out_of_scope(rule),
    }


def _without_source(found: list[Rule], *, as_json: bool, named: bool, needed: bool) -> NoReturn:
    """Print the texts only. Raises ``CannotRun`` if the source is ``needed``."""
    if needed:
        raise CannotRun(_NO_SOURCE)
    details = {"rules": [_text_as_json(rule) for rule in found], "note": _NO_SOURCE}
    shown: RenderableType
    if named:
        shown = Group(*(part for rule in found for part in said(rule)), Text(_NO_SOURCE, style="dim"))
    else:
        shown = Listing(("rules", "number"), caption=f"fencepost rules C-JOIN-43 shows one; {_NO_SOURCE}")
        for name, many in Counter(rule.id.rpartition("-")[0] for rule in found).items():
            shown.add(f"{name}-*", str(many))
    finish(Result("rules", None, {"rules": len(found)}, details), as_json=as_json, table=shown)


def said(rule: Rule) -> Iterator[RenderableType]:
    """Yield a rule's id, its place in the book, and its text."""
    yield Text.assemble((rule.id, "bold"), (f"  docs/rules/{rule.file}", "dim"))
    yield Padding(Text(rule.plain), (0, 0, 0, 2))


def whole(standing: Standing) -> Iterator[RenderableType]:
    """Yield a rule with everything known about it."""
    yield from said(standing.rule)
    listing = Listing(("", ""))
    for column in COLUMNS[:4]:
        listing.add(column, _some(standing.places.get(column, ())))
    listing.add("compared with Kafka", _compared(standing))
    times = standing.observed.get("wire", 0)
    listing.add("seen on the wire", f"decided in {counted(times, 'steps')} that agreed" if times else "no")
    if standing.excused is not None:
        listing.add("out of scope", escape(standing.excused))
    elif standing.missing:
        listing.add("[red]missing[/]", "in scope, but not implemented anywhere")
    for name, cell in listing.rows:
        yield Padding(Text.from_markup(f"[dim]{name}:[/] {cell}"), (0, 0, 0, 2))
    yield ""


def _compared(standing: Standing) -> str:
    """Return the level in words."""
    if standing.impossible is not None:
        return f"no; {escape(standing.impossible)}"
    times = standing.observed.get(standing.level, 0)
    match standing.level:
        case Level.DECIDED:
            return f"decided in {counted(times, 'steps')} that agreed"
        case Level.RAN:
            return f"a function that cites it ran in {counted(times, 'traces')} that agreed; it did not decide a step"
        case Level.NONE:
            return "no"


def _some(places: Iterable[str]) -> str:
    """Return the first of the places, with the lines of one file together."""
    lines: dict[str, list[str]] = {}
    for place in places:
        file, _, line = place.rpartition(":")
        lines.setdefault(file, []).append(line)
    shown = [f"{file}:{','.join(numbers)}" for file, numbers in lines.items()]
    more = f" and {counted(len(shown) - _PLACES, 'more files')}" if len(shown) > _PLACES else ""
    return escape(", ".join(shown[:_PLACES])) + more if shown else "no"


def by_rule(standings: list[Standing]) -> Listing:
    """Return a table with a row for each rule, and a tick for each kind of evidence."""
    table = Listing(
        ("rule", *_HEADINGS, "note"), caption=f"fencepost rules ID shows a rule's text and its places. {_LEVELS}."
    )
    for each in standings:
        marks = ["✓" if each.has(column) else "" for column in COLUMNS]
        note = each.excused or each.impossible or ("missing" if each.missing else "")
        table.add(each.rule.id, *marks, escape(note))
    return table


def summary(standings: list[Standing]) -> Group:
    """Return a table with a row for each prefix, and why rules are out of scope."""
    reasons = Counter(each.excused for each in standings if each.excused is not None)
    excused = Listing(("rules", "out of scope, because"), numbers=frozenset(("rules",)))
    for reason, count in reasons.most_common():
        excused.add(str(count), escape(reason))
    return Group(_by_prefix(standings), excused)


def _by_prefix(standings: list[Standing]) -> Listing:
    table = Listing(
        ("rules", "in scope", *_HEADINGS, "missing"),
        title="Number of rules in scope with each kind of evidence",
        numbers=frozenset(("in scope", *_HEADINGS, "missing")),
        caption=f"core: implemented; {_LEVELS}; wire: in recorded traces.",
    )
    for name, members in by_family(standings).items():
        scope = [each for each in members if each.excused is None]
        if scope:
            cells = [str(sum(each.has(column) for each in scope)) for column in COLUMNS]
            table.add(f"{name}-*", f"{len(scope)}/{len(members)}", *cells, str(sum(e.missing for e in scope)))
    return table

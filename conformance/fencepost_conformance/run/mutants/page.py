"""Mutants for readers: in ``docs/mutants.md``, and on the terminal with their rules and as diffs of the core."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff

from rich.console import RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.text import Text

from ...judge.rulebook.texts import rule_lines
from .catalogue import MUTANTS
from .killers import pinned
from .mutant import Mutant, Side, text_of
from .replacement import lines_of

_HEADS = ("--", "++", "@@")
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def as_markdown() -> str:
    """Return the section of ``docs/mutants.md`` on each mutant, by side; made from the mutants, without a run."""
    parts = []
    side = None
    for mutant in sorted(MUTANTS.values(), key=lambda mutant: [*Side].index(mutant.side)):
        if mutant.side is not side:
            side = mutant.side
            parts.append(f"## Faults: {side.value}")
        parts.append("\n".join(_section(mutant)))
    return "\n\n".join(parts)


def _section(mutant: Mutant) -> Iterator[str]:
    yield f"### `{mutant.name}`"
    yield ""
    yield f"{mutant.words[0].upper()}{mutant.words[1:]}. {'. '.join(_facts(mutant))}."
    yield ""
    yield "```diff"
    for place, changes in _by_place(mutant).items():
        yield f"@@ {place} @@"
        yield from changes
    yield "```"


def _facts(mutant: Mutant) -> Iterator[str]:
    yield f"Breaks {', '.join(mutant.rules)}"
    if mutant.origin:
        yield f"As in {mutant.origin}"
    yield f"Found by {'; '.join(pinned().get(mutant.name, ())) or 'no check yet'}"


def _by_place(mutant: Mutant) -> dict[str, list[str]]:
    """Return the changed lines, by file and function, without common indentation."""
    places: dict[str, list[str]] = {}
    for each in mutant.replacements:
        changes = unified_diff(*lines_of(each), lineterm="")
        places.setdefault(f"{each.file}, {each.where}", []).extend(line for line in changes if line[:2] not in _HEADS)
    return places


def shown(mutant: Mutant) -> Iterator[RenderableType]:
    """Yield the mutant with the texts of its rules, and as a diff. Raises ``DoesNotApply``."""
    yield Text.from_markup(f"[bold]{mutant.name}[/]: {escape(mutant.words)}")
    facts = [f"breaks {rule}" for rule in rule_lines(mutant.rules)]
    if mutant.origin:
        facts.append(f"as in {mutant.origin}")
    facts += [f"found by {each}" for each in pinned().get(mutant.name, ())]
    for fact in facts:
        yield Padding(Text(fact, style="dim"), (0, 0, 0, 2))
    for line in text_of(mutant).splitlines():
        yield Text(line, style=_STYLES.get(line[:1], ""))
    yield ""

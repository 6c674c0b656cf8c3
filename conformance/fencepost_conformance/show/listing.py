"""Rows of a command's output, readable in any terminal.

They are a table if it fits: no word is broken, and it is not longer than the same rows as blocks. Otherwise each row is
a block of lines: the first cell, and below it the others, each with its column's name; short ones share a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

_INDENT = 2
#: lines of a table besides its rows
_FRAME = 4
#: characters between two columns
_BETWEEN = 3
#: in a block, a longer cell has its own line
_SHORT = 40


@dataclass(slots=True)
class Listing:
    """Rows of cells; a cell is text with Rich's markup, so text of clients must pass through ``rich.markup.escape``.

    ``numbers``: columns that are aligned to the right. ``caption``: a paragraph below the rows.
    """

    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    title: str = ""
    caption: str = ""
    numbers: frozenset[str] = frozenset()

    def add(self, *cells: str) -> None:
        self.rows.append(cells)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.title:
            yield Text.from_markup(self.title, style="bold")
        widths = self._widths(options.max_width)
        table, blocks = self._table(widths), [*self._blocks()]
        high = sum(_lines(console, options, block) for block in blocks)
        if not widths or _lines(console, options, table) - _FRAME > high:
            yield from blocks
        else:
            yield table
        if self.caption:
            yield Text.from_markup(self.caption)

    def _widths(self, width: int) -> list[int]:
        """Return the width of each column: its longest word, and a share of the rest by its needs; empty if even the
        words do not fit. (Rich would break words of wide columns before it narrows others.)"""
        cells = [
            [name, *(Text.from_markup(row[at]).plain for row in self.rows)] for at, name in enumerate(self.columns)
        ]
        least = [max(len(word) for cell in column for word in ["", *cell.split()]) for column in cells]
        wanted = [max(len(line) for cell in column for line in ["", *cell.splitlines()]) for column in cells]
        rest = width - _BETWEEN * len(cells) - sum(least)
        if rest < 0:
            return []
        short = sum(wanted) - sum(least)
        if short <= rest:
            return wanted
        return [low + rest * (high - low) // short for low, high in zip(least, wanted, strict=True)]

    def _table(self, widths: Sequence[int]) -> Table:
        columns = (
            Column(Text(name), justify="right" if name in self.numbers else "left", width=width)
            for name, width in zip_longest(self.columns, widths)
        )
        table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
        for row in self.rows:
            table.add_row(*row)
        return table

    def _blocks(self) -> Iterator[RenderableType]:
        for head, *cells in self.rows:
            number = f"{self.columns[0]}: " if self.columns[0] in self.numbers else ""
            yield Text.from_markup(number + head, style="bold", overflow="fold")
            short: list[Text] = []
            for name, cell in zip(self.columns[1:], cells, strict=True):
                text = Text.from_markup(cell)
                if not text:
                    continue
                named = Text.assemble((f"{name}: " if name else "", "dim"), text)
                if len(text) <= _SHORT and "\n" not in cell:
                    short.append(named)
                    continue
                yield from _together(short)
                short = []
                yield Padding(named, (0, 0, 0, _INDENT))
            yield from _together(short)


def _together(cells: list[Text]) -> Iterator[RenderableType]:
    if cells:
        yield Padding(Text(", ").join(cells), (0, 0, 0, _INDENT))


def _lines(console: Console, options: ConsoleOptions, shown: RenderableType) -> int:
    return len(console.render_lines(shown, options, pad=False))

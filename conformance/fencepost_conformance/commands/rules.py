"""``fencepost rules``: where each rule of the rule book stands."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer
from rich.console import Group
from rich.table import Column, Table

from .. import repository
from ..console import CannotRun, Result, finish
from ..rulebook.standing import COLUMNS, Standing, read_standings


def rules(
    prefix: Annotated[list[str] | None, typer.Argument(help="only rules whose id starts so, e.g. C-JOIN")] = None,
    missing: Annotated[bool, typer.Option("--missing", help="only rules in scope that nothing realises")] = False,
    everything: Annotated[bool, typer.Option("--all", help="each rule on a line, also those out of scope")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """For each rule: specified, modelled, implemented, tested, compared with Kafka, seen on the wire."""
    standings = read_standings(repository.root())
    if prefix:
        standings = [each for each in standings if each.rule.id.startswith(tuple(prefix))]
        if not standings:
            raise CannotRun(f"no rule starts with {' or '.join(prefix)}; docs/rules/README.md lists the prefixes")
    in_scope = [each for each in standings if each.excused is None]
    unrealised = [each for each in in_scope if each.missing]
    counts: dict[str, int | float] = {
        "rules": len(standings),
        "in_scope": len(in_scope),
        "out_of_scope": len(standings) - len(in_scope),
        "missing": len(unrealised),
    }
    counts |= {column: sum(each.has(column) for each in in_scope) for column in COLUMNS}
    listed = unrealised if missing else standings if everything or prefix else []
    rows = unrealised if missing else standings
    result = Result("rules", held=not unrealised, counts=counts, details={"rules": [_as_json(each) for each in rows]})
    finish(result, as_json=as_json, table=_by_rule(listed) if listed else _summary(standings))


def _as_json(standing: Standing) -> dict[str, object]:
    return {
        "id": standing.rule.id,
        "file": standing.rule.file,
        "kafka_fault": standing.rule.kafka_fault,
        "out_of_scope": standing.excused,
        **{column: list(standing.places.get(column, ())) for column in COLUMNS[:4]},
        **{column: standing.observed.get(column, 0) for column in COLUMNS[4:]},
    }


def _by_rule(standings: list[Standing]) -> Table:
    table = Table(Column("rule", no_wrap=True), *COLUMNS, "note")
    for each in standings:
        marks = ["✓" if each.has(column) else "" for column in COLUMNS]
        table.add_row(each.rule.id, *marks, each.excused or ("missing" if each.missing else ""))
    return table


def _summary(standings: list[Standing]) -> Group:
    reasons = Counter(each.excused for each in standings if each.excused is not None)
    excused = Table("rules", "out of scope, because")
    for reason, count in reasons.most_common():
        excused.add_row(str(count), reason)
    return Group(_by_prefix(standings), excused)


def _by_prefix(standings: list[Standing]) -> Table:
    table = Table(
        Column("rules", no_wrap=True),
        "in scope",
        *COLUMNS,
        "missing",
        title="How many rules in scope have each kind of evidence",
    )
    groups: dict[str, list[Standing]] = {}
    for each in standings:
        groups.setdefault(each.rule.id.rpartition("-")[0], []).append(each)
    for name, members in groups.items():
        scope = [each for each in members if each.excused is None]
        if scope:
            cells = [str(sum(each.has(column) for each in scope)) for column in COLUMNS]
            table.add_row(f"{name}-*", f"{len(scope)}/{len(members)}", *cells, str(sum(e.missing for e in scope)))
    return table

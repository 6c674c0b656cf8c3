"""``fencepost promises``: each promise of the catalogue in words, where it is checked, and what breaks it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.markup import escape

from fencepost_model.promises import PROMISES
from fencepost_model.system.manifest import BadManifest, read_manifest

from ...common import repository
from ...common.counting import counted
from ...common.errors import CannotRun
from ...common.nearest import unknown
from ...judge.promise_checks import Standing, standing_of
from ...judge.rulebook.texts import rule_book
from ...show.console import Result, finish
from ...show.listing import Listing
from ..mutants.catalogue import MUTANTS
from ..mutants.killers import pinned

#: so many names are printed of a list; JSON has all
_MOST = 6


def promises(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[PROMISE]...", help="ids, such as INV-KIP-01")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Show each promise in words, where it is checked, and the configurations and mutants that break it."""
    wanted = [each.upper() for each in ids or PROMISES]
    for each in wanted:
        if each not in PROMISES:
            raise CannotRun(unknown("promise", each, PROMISES, f"the catalogue has {', '.join(PROMISES)}"))
    try:
        entries = read_manifest(repository.root() / "spec")
        rules = {name: mutant.rules for name, mutant in MUTANTS.items()}
        found = [standing_of(PROMISES[each], entries, pinned(), rules) for each in dict.fromkeys(wanted)]
    except BadManifest as reason:
        raise CannotRun(str(reason)) from reason
    outside = [rule for rule in rule_book() if rule.startswith(("INV-", "LIV-")) and rule not in PROMISES]
    finish(
        Result(
            "promises",
            None,
            {"promises": len(found), "not_in_the_catalogue": len(outside)},
            {"promises": [_as_json(each) for each in found], "not_in_the_catalogue": outside},
            done="listed",
        ),
        as_json=as_json,
        table=Group(*map(_shown, found)),
    )


def _as_json(standing: Standing) -> dict[str, Any]:
    promise = standing.promise
    return {
        "id": promise.id,
        "words": promise.words,
        "faults_of_kafka": list(promise.faults),
        "checked": {
            "closed_systems": {
                "properties": {family: list(names) for family, names in promise.properties.items()},
                "restated": {family: list(names) for family, names in promise.restated.items()},
                "configurations": list(standing.holds),
            },
            "catalogue": list(standing.asked),
            "partial": {what: list(files) for what, files in standing.partial.items()},
            "cases": list(standing.cases),
        },
        "broken_by": {
            "configurations": list(standing.siblings),
            "mutants_found_by_it": list(standing.mutants),
            "mutants_made_to_break_it": list(standing.meant),
        },
    }


def _shown(standing: Standing) -> RenderableType:
    promise = standing.promise
    listing = Listing(("", "", ""), title=f"{promise.id}: {promise.words}")
    rows = [(f"closed system, {family}", names) for family, names in promise.properties.items()]
    rows += [(f"closed system, {family}, in its own form", names) for family, names in promise.restated.items()]
    if rows:
        rows.append(("configurations that must keep it", standing.holds))
    rows += [("by the catalogue", (what,)) for what in standing.asked]
    rows += [(f"of a part of the state: {what}", files) for what, files in standing.partial.items()]
    if standing.cases:
        rows.append(("named cases, over the wire", standing.cases))
    for number, (what, names) in enumerate(rows):
        listing.add("" if number else "checked", what, _some(names))
    if promise.faults:
        listing.add(
            "not kept by Kafka", f"under {', '.join(promise.faults)}", "a part remains" if promise.remains else ""
        )
    if standing.is_broken:
        listing.add("broken by", "configurations", _some(standing.siblings))
        listing.add("", "mutants that it finds", _some(standing.mutants))
        listing.add("", "mutants made to break it", _some(standing.meant))
    else:
        listing.add("broken by", "nothing", "no configuration and no mutant shows that it can fail")
    return listing


def _some(names: Sequence[str]) -> str:
    if not names:
        return "none"
    more = f" and {counted(len(names) - _MOST, 'more')}" if len(names) > _MOST else ""
    return escape(", ".join(names[:_MOST])) + more

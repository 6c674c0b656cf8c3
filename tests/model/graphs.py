"""Graphs to compare (E1): TLC's graph of a changed configuration, and the model's with mutants in place."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fencepost_model.system.checking import compare_with_model
from fencepost_model.system.families import family_of_module
from fencepost_model.system.manifest import Entry
from fencepost_model.system.mutants import mutated
from fencepost_model.tlc.compare import Comparison
from fencepost_model.tlc.run import run_tlc

SPEC: Final = Path(__file__).parents[2] / "spec"


def dumped(tmp_path: Path, entry: Entry, *overrides: str) -> Path:
    """Return TLC's graph of the configuration, with constants and operators overridden in the specification only."""
    names = {line.split()[0] for line in overrides}
    lines = entry.cfg.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.strip() or line.split()[0] not in names]
    constants = kept.index("CONSTANTS")
    text = "\n".join([*kept[: constants + 1], *overrides, *kept[constants + 1 :]])
    changed = tmp_path / "Changed.cfg"
    changed.write_text(text.split("INVARIANTS", maxsplit=1)[0], encoding="utf-8")
    dump = tmp_path / "graph.dot"
    mutants = family_of_module(entry.module.stem).modules[-1]
    run_tlc(SPEC / f"{mutants}.tla", changed, dump=dump, short=entry.size == "small")
    return dump


def compared(dump: Path, entry: Entry, *mutants: str) -> Comparison:
    """Compare the dump with the graph of the model without these guards."""
    with mutated(*mutants):
        return compare_with_model(entry, dump)


def check_changes_of_the_model(tmp_path: Path, entry: Entry, *mutants: str) -> None:
    """Check that each guard that is removed from the model alone is reported, with a path to the difference."""
    dump = dumped(tmp_path, entry)
    assert compared(dump, entry).equal
    for mutant in mutants:
        comparison = compared(dump, entry, mutant)
        assert not comparison.equal
        assert comparison.differences[0].path


def sides_of_a_changed_specification(tmp_path: Path, entry: Entry, *overrides: str) -> set[str]:
    """Change the specification alone, and return the sides that have extra states or transitions."""
    comparison = compared(dumped(tmp_path, entry, *overrides), entry)
    assert not comparison.equal
    return {each.side for each in comparison.differences}


def check_the_same_change_of_both(tmp_path: Path, entry: Entry, mutant: str) -> None:
    dump = dumped(tmp_path, entry, mutant)
    assert not compared(dump, entry).equal
    assert compared(dump, entry, mutant).equal

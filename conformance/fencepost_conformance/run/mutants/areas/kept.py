"""The checks that kill each fault, as measured last: ``killers.json``.

Each fault has a list. The first entry is the test of its area that failed with the fault planted, if one did. Other
checks add further entries. An empty list is a survivor.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from .catalogue import FAULTS
from .trial import Trial, tests_of

FILE: Final = Path(__file__).with_name("killers.json")


def kept() -> Mapping[str, tuple[str, ...]]:
    """The killers of each fault, by its name."""
    return {name: tuple(killers) for name, killers in json.loads(FILE.read_text(encoding="utf-8")).items()}


def keep(trials: Iterable[Trial]) -> None:
    """Write down the tests that killed these faults. Entries of other faults and of other checks stay."""
    rows = dict(kept()) if FILE.exists() else {}
    for trial in trials:
        others = [each for each in rows.get(trial.fault, ()) if not each.startswith(tests_of(FAULTS[trial.fault]))]
        rows[trial.fault] = (*([trial.killer] if trial.killer else []), *others)
    made = {name: rows[name] for name in FAULTS if name in rows}
    FILE.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

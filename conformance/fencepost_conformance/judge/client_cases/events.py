"""Judge what clients say on standard output: no partition is used that was not granted, nor by two members at once.

The convention is in ``docs/clients.md``. A client that says nothing is judged by its requests alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from .stage import ClientRun, Unkept

Place = tuple[str, int]
#: how long after another member was assigned a partition a client may still say that it processed a record of it: its
#: output may be late
_SLACK_S: Final = 1.0


def judge_events(runs: Sequence[ClientRun], *, exclusive: bool) -> None:
    """Judge the events of all clients of a case, in their order. Raises ``Unkept``.

    Args:
        runs: the clients.
        exclusive: no partition may be used by two members; false where a client cannot know that it was replaced.
    """
    holds: dict[str, dict[Place, float]] = {run.name: {} for run in runs}
    every = sorted(((said, run) for run in runs for said in run.said), key=lambda each: each[0].at_s)
    speaks = {run.name for run in runs if run.events("assigned")}
    for said, run in every:
        mine = holds[run.name]
        match said.event:
            case "assigned":
                mine.update(dict.fromkeys(_places(said.values), said.at_s))
            case "revoked" | "lost":
                for place in _places(said.values):
                    mine.pop(place, None)
            case "processed" if run.name in speaks:
                place = (str(said.values.get("topic")), int(said.values.get("partition", -1)))
                sent = f"{run.name} says that it processed a record of {place[0]}-{place[1]}"
                if place not in mine:
                    raise Unkept(run.name, sent, "records only of partitions that it was assigned and did not give up")
                for other, theirs in holds.items() if exclusive else ():
                    since = theirs.get(place)
                    if other != run.name and since is not None and mine[place] < since < said.at_s - _SLACK_S:
                        late = round((said.at_s - since) * 1000)
                        text = f"{sent} {late} ms after {other} was assigned that partition"
                        raise Unkept(run.name, text, "one member at a time for each partition")


def _places(values: dict[str, Any]) -> list[Place]:
    rows = values.get("partitions")
    return [(str(row[0]), int(row[1])) for row in rows] if isinstance(rows, list) else []

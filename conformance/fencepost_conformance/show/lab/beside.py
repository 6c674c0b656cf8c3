"""The session under another release, beside the session itself: what differs, message by message, with the rules.

Both are rows of a journal. Rows are paired if they have the same time, lane and kind of event. A pair is compared by
its request, answers, records, timers, group afterwards and state of the client. The cause of the first difference are
the fewest switches that change the step in the same way, as ``judge.diff.explain`` finds them for traces of targets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any, Final, TypeAlias

from fencepost.protocol.events import Request, TimerFired
from fencepost.protocol.profile import SWITCHES, Profile, Switch
from fencepost.protocol.profiles import PROFILES

from ...generate.lab import Lab
from ...generate.lab.journal import Journal, Kind, Row
from ...generate.lab.lab import Coordinator
from ...generate.lab.sides import under_other_release
from ...judge.rulebook import texts
from ..report.holdings import GroupAt
from ..report.names import Names, compact
from ..report.steps import StepDescriber, StepWords
from ..report.words import api_of
from .releases import differences
from .view import counters, strips

#: differences that a view contains
SHOWN: Final = 200

Key: TypeAlias = tuple[int, str, str]


@dataclass(frozen=True, slots=True)
class _Item:
    """A row that is compared. ``parts``: name to lines of text. ``step``: the number of the coordinator's step."""

    row: int
    key: Key
    title: str
    parts: Mapping[str, tuple[str, ...]]
    rules: tuple[str, ...]
    step: int | None


def releases_view(lab: Lab) -> dict[str, Any]:
    """Return what differs under the release ``Start.other``. Each difference has the ``row`` of the session (None: only
    the other release has it), its time, and ``parts``: name, lines here, lines there."""
    side = under_other_release(lab)
    ours, theirs = _items(lab), _items(side.lab)
    pairs = list(_pairs(ours, theirs))
    apart = [(one, other) for one, other in pairs if one is None or other is None or one.parts != other.parts]
    here, there = lab.start.release, PROFILES[lab.start.other]
    return {
        "here": here.name,
        "there": there.name,
        "equal": len(pairs) - len(apart),
        "count": len(apart),
        "differences": [_row(one, other, here, there) for one, other in apart[:SHOWN]],
        "causes": [] if not apart else _causes(lab, side.lab, *apart[0]),
        "skipped": list(side.skipped),
        "sides": [
            {
                "release": each.start.profile,
                "now": lab.now,
                "clients": [{"name": client.plan.name} for client in each.clients],
                "strips": strips(each),
                "counters": counters(each),
            }
            for each in (lab, side.lab)
        ],
    }


# --- what is compared ---


def _items(lab: Lab) -> list[_Item]:
    journal = lab.journal
    steps = journal.steps
    describer = StepDescriber(
        [step.event for step in steps], [step.seen for step in steps], [step.rules for step in steps]
    )
    words = describer.steps()
    found = (_item(number, row, journal, words, describer.names) for number, row in enumerate(journal.rows))
    return [each for each in found if each is not None]


def _item(number: int, row: Row, journal: Journal, words: Sequence[StepWords], names: Names) -> _Item | None:
    if row.step is not None:
        event, step = journal.steps[row.step].event, words[row.step]
        match event:
            case Request():
                kind, title, sent = api_of(event.body), api_of(event.body), step.what.partition(" ")[2]
            case TimerFired():
                kind = title = sent = step.what
            case _:
                kind = title = type(event).__name__
                sent = ""  # the offsets of the log follow from the records
        parts = {
            "event": (sent,),
            "answers": tuple(f"to {each.to}: {each.text}" for each in step.answers),
            "records": () if step.append is None else step.append.records,
            "timers": step.timers,
            "group": tuple(line for group in step.groups for line in _group(group)),
            "error": (step.error,) if step.error else (),
        }
        return _Item(number, (row.at_ms, row.lane, kind), title, parts, row.rules, row.step)
    if row.kind in (Kind.CLIENT, Kind.ALERT):
        text = names.short(row.text)
        return _Item(number, (row.at_ms, row.lane, row.kind), row.lane, {row.kind: (text,)}, row.rules, None)
    return None  # the user's action, or the arrival of an answer


def _group(group: GroupAt) -> list[str]:
    epochs = "".join(f", {name} {value}" for name, value in group.epochs)
    members = [
        f"{each.member} {each.epochs} {each.state}: holds {compact(each.holds)}"
        + (f", gives up {compact(each.giving_up)}" if each.giving_up else "")
        + ("" if each.target is None else f", target {compact(each.target)}")
        for each in group.members
    ]
    return [f"{group.kind} group {group.state}{epochs}", *members, *group.notes]


def _pairs(ours: Sequence[_Item], theirs: Sequence[_Item]) -> list[tuple[_Item | None, _Item | None]]:
    """Return both sides in the order of time, rows with the same key side by side."""
    matcher = SequenceMatcher(None, [each.key for each in ours], [each.key for each in theirs], autojunk=False)
    found: list[tuple[_Item | None, _Item | None]] = []
    for tag, begin, end, other_begin, other_end in matcher.get_opcodes():
        if tag == "equal":
            found += zip(ours[begin:end], theirs[other_begin:other_end], strict=True)
            continue
        alone: list[tuple[_Item | None, _Item | None]] = [(each, None) for each in ours[begin:end]]
        alone += [(None, each) for each in theirs[other_begin:other_end]]
        found += sorted(alone, key=lambda pair: (pair[0] or pair[1]).key[0])  # type: ignore[union-attr]
    return found


# --- what a difference shows ---


def _row(one: _Item | None, other: _Item | None, here: Profile, there: Profile) -> dict[str, Any]:
    item = one or other
    assert item is not None
    left: Mapping[str, tuple[str, ...]] = {} if one is None else one.parts
    right: Mapping[str, tuple[str, ...]] = {} if other is None else other.parts
    both = [*(one.rules if one else ()), *(other.rules if other else ())]
    apart = [rule for rule in both if both.count(rule) == 1] if one and other else []
    return {
        "row": None if one is None else one.row,
        "only": "" if one and other else here.name if one else there.name,
        "at": item.key[0],
        "lane": item.key[1],
        "title": item.title,
        "parts": [
            [name, list(left.get(name, ())), list(right.get(name, ()))]
            for name in item.parts
            if left.get(name, ()) != right.get(name, ())
        ],
        "rules": [[rule, texts.brief(rule)] for rule in dict.fromkeys(apart or both)],
        "differences": differences(both, here, there),
    }


def _causes(lab: Lab, other: Lab, one: _Item | None, two: _Item | None) -> list[dict[str, Any]]:
    """Return the fewest switches that together make the coordinator's first differing step as the other release does;
    none if the sessions part elsewhere."""
    if one is None or two is None or one.step is None or two.step is None:
        return []
    here, there = lab.start.release, other.start.release
    events = [step.event for step in lab.journal.steps[: one.step + 1]]
    wanted = other.journal.steps[two.step].seen
    cited = {*one.rules, *two.rules}

    def make_it(switches: Sequence[Switch]) -> bool:
        changes: dict[str, Any] = {each.name: getattr(there, each.name) for each in switches}
        core = Coordinator(lab.start.settings(), replace(here, **changes))
        try:
            return [core.feed(event) for event in events][-1] == wanted
        except Exception:
            return False  # an event that is impossible after other answers

    apart = [each for each in SWITCHES if getattr(here, each.name) != getattr(there, each.name)]
    apart.sort(key=lambda each: cited.isdisjoint(each.rules))  # likely ones first
    needed = next(([each] for each in apart if make_it([each])), None)
    if needed is None:
        needed = apart if make_it(apart) else []
        for switch in tuple(needed):
            fewer = [each for each in needed if each is not switch]
            if make_it(fewer):
                needed = fewer
    return [_cause(each, (there if getattr(there, each.name) else here).name) for each in needed]


def _cause(switch: Switch, release: str) -> dict[str, Any]:
    rules = [[rule, texts.brief(rule)] for rule in switch.rules]
    return {"release": release, "says": switch.says, "switch": switch.name, "rules": rules}

"""A run's summary as tables for the terminal, and as JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape

from fencepost_model.classic.scala import KAFKA_3_9

from ...common.counting import counted
from ...judge.rows.summary import Summary
from ...judge.verdict import Verdict
from ...targets.registry import build_found, parse_target
from ...traces.wire.settings import assumed_words, settings_json
from ..listing import Listing

_SHOWN = 15
#: the number of characters of a value that a row shows; nearly all sentences are shorter
_LONGEST = 400
#: names of counts
WORDS = {
    "diverged": "ended at known differences",
    "known": "with accepted differences",
    "choices_followed": "choices taken from the target",
}


def counts(summary: Summary, seconds: float) -> dict[str, int | float]:
    """Return the counts of a run, without the verdicts; ``seconds`` is the time it took."""
    return {
        "traces": summary.traces,
        "steps": summary.steps,
        "replies": summary.replies,
        "records": summary.records,
        "timers": summary.timers,
        "diverged": sum(summary.divergences.values()),
        "known": summary.known_traces,
        "choices_followed": summary.followed,
        "steps_a_second": round(summary.steps / max(seconds, 0.001)),
    }


def details(summary: Summary) -> dict[str, Any]:
    """Return the results as JSON data."""
    return {
        "target": summary.job.target,
        "profile": summary.job.profile,
        "model": summary.job.model,
        "protocol": summary.job.protocol.value,
        **build_found(parse_target(summary.job.target), summary.job.profile),
        "stopped": summary.stopped,
        "divergences": dict(sorted(summary.divergences.items())),
        "assumed": {} if summary.known is None else settings_json(summary.known)["assumed"],
        "coverage": summary.coverage(),
        "groups": [
            {
                "key": group.key,
                "traces": group.traces,
                "first": {"seed": group.seed, "event": group.event},
                "left": group.left,
                "right": group.right,
                "known": summary.accepted[group.key].reason if group.key in summary.accepted else None,
            }
            for group in summary.in_order()
        ],
        "failures": [
            {name: getattr(row, name) for name in ("seed", "outcome", "event", "field", "left", "right", "digest")}
            | (
                {"hint": summary.hints.get(row.seed, "")}
                if summary.over_wire
                else {"replay": summary.job.replay(row.seed)}
            )
            for row in summary.failures
        ],
    }


def tables(summary: Summary, *, coverage: bool = True) -> Group:
    """Return coverage, divergences and the first failures."""
    parts: list[RenderableType] = [_coverage(summary)] * coverage
    if summary.divergences:
        parts.append(_divergences(summary))
    if summary.failures:
        parts.append(_failures(summary))
    parts += [f"[yellow]{escape(words)}[/]" for words in asides(summary)]
    return Group(*parts)


def asides(summary: Summary) -> list[str]:
    """Return a line each about a broker's assumed settings, its missing APIs, and settings that explain rejections."""
    assumed = "" if summary.known is None else assumed_words(summary.known)
    older = older_words(summary.job.profile)
    return [words for words in (older, assumed, absent_words(summary.absent), *_hints(summary)) if words]


def older_words(profile: str) -> str:
    """Return a line about the Scala coordinator's profile; empty for any other profile."""
    if profile != KAFKA_3_9.name:
        return ""
    return (
        f"profile {profile}: judged as the older coordinator, in Scala, the default up to Kafka 3.9 (D-01 to "
        "D-26); for a 3.9 with group.coordinator.new.enable=true use --profile kafka-4.0"
    )


def absent_words(absent: Sequence[str]) -> str:
    """Return a line with the APIs that a broker lacks; empty if there are none."""
    return f"the broker does not offer {', '.join(absent)}: not tested" if absent else ""


def _hints(summary: Summary) -> list[str]:
    """Return the settings that would explain rejections, one line for each cause."""
    causes: dict[str, list[int]] = {}
    for seed, hint in sorted(summary.hints.items()):
        causes.setdefault(re.sub(r" up to line \d+", " further", hint), []).append(seed)
    return [
        f"{counted(len(seeds), 'rejected traces')} (first: seed {seeds[0]}) {hint}" for hint, seeds in causes.items()
    ]


def _coverage(summary: Summary) -> Listing:
    covered = summary.coverage()
    listing = Listing(("coverage", "reached", "of", "not reached"), numbers=frozenset(("reached", "of")))
    for kind, counts in covered["kinds"].items():
        if not counts["reached"]:
            continue  # over the wire, only answers and versions can be seen
        missing = [name.removeprefix(kind + " ") for name in covered["unreached"] if name.split()[0] == kind]
        shown = ", ".join(missing[:6]) + (f" and {len(missing) - 6} more" if len(missing) > 6 else "")
        listing.add(kind, str(counts["reached"]), str(counts["reachable"]), shown)
    return listing


def _divergences(summary: Summary) -> Listing:
    listing = Listing(
        ("known difference", "traces"),
        numbers=frozenset(("traces",)),
        caption="A trace ends at a known difference and passes; docs/divergences.md lists them.",
    )
    for name, count in sorted(summary.divergences.items()):
        listing.add(name, f"{count:,}")
    return listing


def _failures(summary: Summary) -> Listing:
    """Return the failures by group."""
    listing = Listing(
        ("what", "traces", "first", *sides_of(summary), "known"),
        title=f"differences in {counted(summary.verdicts[Verdict.FAILED], 'traces')}",
        numbers=frozenset(("traces",)),
    )
    groups = summary.in_order()
    if not summary.over_wire:  # over the wire a seed does not identify a trace
        listing.caption = f"see one: {summary.job.replay(groups[0].seed)}"
    if len(groups) > _SHOWN:
        listing.caption = f"and {counted(len(groups) - _SHOWN, 'groups')} more (--json has all). {listing.caption}"
    for group in groups[:_SHOWN]:
        values = (escape(_start_of(text)) for text in (group.left, group.right))
        known = summary.accepted.get(group.key)
        place = f"{summary.job.name(group.seed)}, {'line' if summary.over_wire else 'event'} {group.event}"
        listing.add(
            escape(group.key), f"{group.traces:,}", place, *values, "" if known is None else escape(known.reason)
        )
    return listing


def _start_of(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def sides_of(summary: Summary) -> tuple[str, str]:
    """Return the titles of a failure's two values. Where the core runs beside Kafka, the field shows whether the model
    rejected a step."""
    if summary.over_wire:
        return summary.job.target, "allowed"
    return "core", "model" if summary.job.target == "core" else f"{summary.job.target}, or the model"

"""A run's summary as tables of a terminal, and as JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table

from ..counting import counted
from ..pipeline.job import Job
from ..pipeline.summary import Summary
from ..targets.registry import build_found, parse_target

_SHOWN = 15


def counts(summary: Summary, seconds: float) -> dict[str, int | float]:
    """What was done, in numbers; ``seconds`` is the time it took."""
    return {
        "traces": summary.traces,
        "steps": summary.steps,
        "replies": summary.replies,
        "records": summary.records,
        "timers": summary.timers,
        "failed": summary.failed,
        "diverged": sum(summary.divergences.values()),
        "undecided": summary.undecided,
        "choices_followed": summary.followed,
        "steps_a_second": round(summary.steps / max(seconds, 0.001)),
    }


def details(summary: Summary) -> dict[str, Any]:
    """What was found, as JSON data."""
    return {
        "target": summary.job.target,
        "profile": summary.job.profile,
        "model": summary.job.model,
        "protocol": summary.job.protocol.value,
        **build_found(parse_target(summary.job.target), summary.job.profile),
        "divergences": dict(sorted(summary.divergences.items())),
        "coverage": summary.coverage(),
        "failures": [
            {name: getattr(row, name) for name in ("seed", "verdict", "event", "field", "left", "right", "digest")}
            | ({} if summary.recorded else {"replay": replay_command(summary.job, row.seed)})
            for row in summary.failures
        ],
    }


def replay_command(job: Job, seed: int) -> str:
    """The command that shows the trace of that seed again."""
    return (
        f"fencepost replay {seed} --target {job.target} --profile {job.profile} "
        f"--protocol {job.protocol} --steps {job.steps}"
    )


def tables(summary: Summary) -> Group:
    """Coverage, divergences and the first failures."""
    parts = [_coverage(summary)]
    if summary.divergences:
        known = Table("divergence", "traces")
        for name, count in sorted(summary.divergences.items()):
            known.add_row(name, f"{count:,}")
        parts.append(known)
    if summary.failures:
        parts.append(_failures(summary))
    return Group(*parts)


def _coverage(summary: Summary) -> Table:
    covered = summary.coverage()
    table = Table("coverage", "reached", "of", "not reached")
    for kind, told in covered["kinds"].items():
        if not told["reached"]:
            continue  # over the wire, only answers and versions can be seen
        missing = [name.removeprefix(kind + " ") for name in covered["unreached"] if name.split()[0] == kind]
        shown = ", ".join(missing[:6]) + (f" and {len(missing) - 6} more" if len(missing) > 6 else "")
        table.add_row(kind, str(told["reached"]), str(told["reachable"]), shown)
    return table


def _failures(summary: Summary) -> Table:
    table = Table(
        "seed", "event", "field", "core", "other", title=f"what differs, in {counted(summary.failed, 'traces')}"
    )
    if not summary.recorded:  # over the wire a seed names no trace
        table.caption = f"see one: {replay_command(summary.job, summary.failures[0].seed)}"
    for row in summary.failures[:_SHOWN]:
        table.add_row(str(row.seed), str(row.event), row.field[:60], row.left[:160], row.right[:160])
    return table

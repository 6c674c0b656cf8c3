"""The trace that a seed or a file name stands for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fencepost.protocol.profiles import PROFILES

from ...common import repository
from ...common.errors import CannotRun
from ...generate.generator import Generated, generate
from ...generate.plan import GroupProtocol
from ...targets.core import Core
from ...traces import itf
from ...traces.files import BrokenTrace, EventTrace, WireTrace, read_traces
from ...traces.observation import Observation


@dataclass(frozen=True, slots=True)
class Loaded:
    """A trace to show, with the observations from its file (None where it has none)."""

    name: str
    trace: Generated
    recorded: tuple[Observation | None, ...]


def load(
    what: str, profile: str, steps: int, protocol: GroupProtocol = GroupProtocol.CLASSIC
) -> list[Loaded | WireTrace | BrokenTrace]:
    """Return the traces of a seed or a file. Raises ``CannotRun`` if there are none."""
    if what.lstrip("-").isdigit():
        made = generate(int(what), PROFILES[profile], steps, protocol, offsets=None)
        return [Loaded(f"seed {what}", made, ())]
    path = Path(what)
    try:
        found = [_itf(path)] if what.endswith(".itf.json") else list(read_traces(path))
    except OSError as reason:
        raise CannotRun(f"{what}: {reason.strerror}; give a seed (a number) or a file of traces") from None
    except itf.NotItf as wrong:
        raise CannotRun(str(wrong)) from None
    return [_run(what, trace) if isinstance(trace, EventTrace) else trace for trace in found]


def _itf(path: Path) -> EventTrace:
    """Return the trace of an ITF file, which may be a counter-example. Raises CannotRun, NotItf, OSError."""
    from ...generate.counter_example import read_counter_example  # noqa: PLC0415 — conform starts without the explorer

    return read_counter_example(path, repository.root() / "spec") or itf.read_itf(path)


def _run(what: str, trace: EventTrace) -> Loaded:
    ours, failure = Core().run_until_raised(trace.settings, trace.profile, trace.events)
    end = len(ours) + (failure is not None)
    made = Generated(trace.seed or 0, trace.settings, trace.profile, trace.events[:end], tuple(ours), failure)
    return Loaded(trace.name or what, made, trace.observations)

"""Another profile under which every failure of a run passes: then the target is most likely of that release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, PROFILES

from ...generate.generator import Generated
from ...targets.core import Core
from ...traces.files import WireTrace
from ...traces.profiles import JUDGED
from ..checker.check import check_trace
from ..verdict import Verdict
from .check import Checker


def profile_of_traces(checker: Checker, traces: Sequence[Generated]) -> str:
    """Return the newest profile under which the checker's target passes all of these traces, or ``""``."""

    def passes(trace: Generated, profile: Profile) -> bool:
        return checker.examine([_under(trace, profile)])[0].outcome.verdict is Verdict.PASSED

    for profile in other_profiles(checker.profile.name, PROFILES):
        if traces and all(passes(trace, profile) for trace in traces):
            return profile.name
    return ""


def other_profiles(judged: str, profiles: Mapping[str, Profile]) -> Iterator[Profile]:
    """Yield the other profiles: Kafka's releases, the newest first, then the profile without known bugs."""
    order = [name for name in reversed(list(profiles)) if name != INTENDED.name]
    yield from (profiles[name] for name in [*order, INTENDED.name] if name != judged)


def _under(trace: Generated, profile: Profile) -> Generated:
    """Return the trace with what the core does under that profile."""
    ours, failure = Core().run_until_raised(trace.settings, profile, trace.events)
    end = len(ours) + (failure is not None)
    return replace(trace, profile=profile, events=trace.events[:end], observations=tuple(ours), failure=failure)


def profile_of_recordings(judged: str, traces: Sequence[WireTrace]) -> str:
    """Return the newest profile under which all of these recordings pass, or ``""``; ``judged``: the one under which
    they failed."""
    for profile in other_profiles(judged, JUDGED):
        if traces and all_pass(traces, profile):
            return profile.name
    return ""


def all_pass(traces: Sequence[WireTrace], profile: Profile) -> bool:
    """Return whether all of these recordings pass under a profile."""
    return all(check_trace(trace, profile=profile).verdict is Verdict.PASSED for trace in traces)

"""The shortest trace of a group: the fewest events that still show its difference, on the two targets themselves."""

from __future__ import annotations

from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings

from ...generate.generator import Generated
from ...targets.jvm.process import ProcessFault
from ..compare.difference import Difference
from ..rows.check import Examined
from ..rows.job import TraceOutcome
from ..shrink.references import Shrinkable
from ..shrink.shrinker import shrink
from .job import Found
from .pair import Cause, Pair
from .run import Runner

#: candidates tried for each group
MOST = 800


class Shortened:
    """Shrinks the trace of one group."""

    def __init__(self, runner: Runner, key: str) -> None:
        self._runner, self._key = runner, key
        self._last: tuple[Settings, Pair] | None = None

    def of(self, seed: int, found: Found) -> tuple[Generated, Pair, Cause] | None:
        """Return the shortest trace found, both sides after it, and its difference. None if the events up to the
        difference do not show it again, so that shrinking cannot start."""
        whole, _ = self._runner.make(seed)
        upto = found.event + 1
        start = Generated(seed, whole.settings, whole.profile, whole.events[:upto], whole.observations[:upto])
        if self._examine(start).difference is None:
            return None
        small = shrink(start, self._examine, most=MOST, kind=lambda found: found.divergence or None, begin=self._begin)
        if small.interrupted:  # only in this process; its children do not report it
            raise KeyboardInterrupt
        pair = self._run(small.trace)
        return small.trace, pair, next(cause for cause in pair.causes if cause.key == self._key)

    def _begin(self, settings: Settings, _: Profile) -> Shrinkable:
        pair = self._runner.pair(settings)
        self._last = settings, pair
        return pair

    def _examine(self, trace: Generated) -> Examined:
        pair = self._run(trace)
        cause = next((each for each in pair.causes if each.key == self._key), None)
        ours = [mine for mine, _ in pair.seen]
        if cause is None:
            return Examined(TraceOutcome.AGREED, pair.steps, None, "", ours, None, 0)
        difference = Difference(cause.event, cause.leaf.path, cause.leaf.left, cause.leaf.right)
        return Examined(TraceOutcome.DIFFERED, cause.event, difference, cause.key, ours, None, 0)

    def _run(self, trace: Generated) -> Pair:
        """Return both sides after the events; a candidate has just been run while it was put together."""
        if self._last is not None and self._last[0] == trace.settings and tuple(self._last[1].events) == trace.events:
            return self._last[1]
        pair = self._runner.pair(trace.settings)
        for event in trace.events:
            try:
                pair.feed(event)
            except ProcessFault:
                raise
            except Exception:
                break  # an impossible event: the candidate ends before it
        return pair

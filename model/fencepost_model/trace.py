"""Following the observed behaviour of a target, one event at a time.

A ``Follower`` keeps every state in which the model can be after the events so far: usually one, more while a choice
that the protocol leaves open has not shown yet. An event that no state can answer as observed is refused. The verdict
says what would have been accepted and which rules decide that. There is no search: each timer and each append is an
event. ``accepts`` judges a step without taking it, for callers that search for unobserved steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import IMPOSSIBLE
from fencepost.protocol.events import Event, Load, Request, TimerKey
from fencepost.protocol.messages import JoinGroupRequest, JoinGroupResponse
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings

from .agree import Mismatch, disagreements
from .classic.coordinator import CoordinatorModel
from .classic.coordinator_state import CoordinatorState, Step
from .classic.draft import InternalError
from .classic.state import Group
from .consumer.observe import ObservedValues, no_matcher
from .consumer.oracle import Matcher
from .deadlines import Deadlines, after_step
from .impossible import impossible
from .observed import Observed

#: How many alternatives a verdict prints.
SHOWN: Final = 4


class Candidate(NamedTuple):
    """A possible state of the target, with the deadlines of its timers."""

    state: CoordinatorState
    deadlines: Deadlines


class Alternative(NamedTuple):
    """A result that the model would have accepted, and how the observation differs from it."""

    step: Step
    mismatches: tuple[Mismatch, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one event.

    - ``ok``: the event can be explained by any of the steps ``taken``.
    - ``alternatives``: otherwise, what the model allows, closest first.
    - ``rules``: those that decide in either case.
    - ``reason``: why the event cannot happen at all; then there are no alternatives. If the target refused it for that
      reason, the event is accepted and nothing is taken.
    """

    ok: bool
    index: int
    alternatives: tuple[Alternative, ...] = ()
    reason: str = ""
    taken: tuple[Step, ...] = ()

    @property
    def rules(self) -> tuple[str, ...]:
        steps = self.taken or tuple(alternative.step for alternative in self.alternatives)
        return tuple(dict.fromkeys(rule for step in steps for rule in step.rules))

    def __str__(self) -> str:
        if self.ok:
            return f"event {self.index}: accepted"
        if self.reason:
            return f"event {self.index}: {self.reason}"
        lines = [f"event {self.index} cannot be explained; rules {', '.join(self.rules) or 'none'}"]
        for alternative in self.alternatives[:SHOWN]:
            choice = f" ({alternative.step.choice})" if alternative.step.choice else ""
            lines.append(f"  the model would accept{choice}:")
            lines += [f"    {m.part}: {m.expected}  instead of  {m.observed}" for m in alternative.mismatches]
        if len(self.alternatives) > SHOWN:
            lines.append(f"  and {len(self.alternatives) - SHOWN} more alternatives")
        return "\n".join(lines)


class Follower:
    """Follow one trace. A refused event leaves the follower unchanged. ``matcher`` compiles regular expressions as
    ``fencepost.protocol.choices.Functions`` requires; without one, none compiles."""

    def __init__(self, settings: Settings, profile: Profile, matcher: Matcher = no_matcher) -> None:
        self.model = CoordinatorModel(settings, profile)
        self.matcher = matcher
        self.candidates: list[Candidate] = [Candidate(self.model.initial(), {})]
        self.index = 0
        self._versions: dict[int, int] = {}
        self._ends: frozenset[int] | None = frozenset()  #: end offsets of the steps that are not replicated

    def feed(self, event: Event, observed: Observed) -> Verdict:
        """Take the event with its observation."""
        verdict, after = self.accepts(event, observed)
        if verdict.ok:
            self.candidates = after
            self.index += 1
            self._note(event, observed)
        return verdict

    def _note(self, event: Event, observed: Observed) -> None:
        state, wrote = self.candidates[0].state, observed.records
        end = state.durable + state.undurable
        if isinstance(event, Load) and end == state.durable:
            self._ends = frozenset()
        elif wrote is None or self._ends is None:
            self._ends = None  # until a load: without observed records the ends of steps are unknown
        else:
            ends = (*(known for known in self._ends if known <= end - len(wrote)), *([end] if wrote else []))
            self._ends = frozenset(known for known in ends if known > state.durable)

    def accepts(self, event: Event, observed: Observed) -> tuple[Verdict, list[Candidate]]:
        """Return the verdict on an event and the states that explain it, without taking the step."""
        if isinstance(event, Request):
            self._versions[event.id] = event.version
        accepted: list[Candidate] = []
        taken: list[Step] = []
        alternatives: list[Alternative] = []
        reason = ""
        seen = ObservedValues(observed.records, observed.consumer_groups, self.matcher)
        for state, deadlines in self.candidates:
            word, why = impossible(state, deadlines, self._ends, event)
            if observed.error in IMPOSSIBLE:
                reason = _refused_wrongly(word, observed)
                if not reason:
                    accepted.append(Candidate(state, deadlines))
                continue
            if word:
                reason = why
                continue
            new_id = fresh_id(event, observed, state)
            try:
                steps = self.model.successors(state, event, new_id, seen)
            except InternalError as broken:
                reason = f"the model has no answer: {broken}"
                continue
            for step in steps:
                changes = after_step(deadlines, event, step)
                mismatches = disagreements(
                    state, event, step, changes, observed, versions=self._versions, variant=self.model.variant
                )
                if mismatches:
                    alternatives.append(Alternative(step, mismatches))
                else:
                    accepted.append(Candidate(step.state, changes.deadlines))
                    taken.append(step)
        if accepted:
            verdict = Verdict(True, self.index, taken=tuple(taken))
            return verdict, accepted if len(accepted) == 1 else _distinct(accepted)
        alternatives.sort(key=lambda alternative: len(alternative.mismatches))
        return Verdict(False, self.index, tuple(alternatives), "" if alternatives else reason), []


def fresh_id(event: Event, observed: Observed, state: CoordinatorState) -> str:
    """Return the member id that the target made for this event if that was observed, otherwise a placeholder.

    It shows in an answer that hands it out, or as a new id in the group.
    """
    if not isinstance(event, Request):
        return ""
    body = event.body
    if not isinstance(body, JoinGroupRequest | ConsumerGroupHeartbeatRequest) or body.member_id:
        return ""
    for reply in observed.replies or ():
        answer = reply.body
        if isinstance(answer, JoinGroupResponse | ConsumerGroupHeartbeatResponse) and reply.request_id == event.id:
            if not answer.member_id:
                break
            return answer.member_id
    group = state.any_group(body.group_id)
    known: set[str] = set() if group is None else {member.member_id for member in group.members}
    if isinstance(group, Group):
        known |= group.pending_join
    for seen in ((observed.groups or {}).get(body.group_id), (observed.consumer_groups or {}).get(body.group_id)):
        fresh = [] if seen is None else [row.member_id for row in seen.members if row.member_id not in known]
        if fresh:
            return fresh[0]
    return f"?{event.id}"


def _refused_wrongly(word: str, observed: Observed) -> str:
    """Return why a target may not have refused an event that way, or an empty string. ``word``: why the event cannot
    happen."""
    if observed.error != word:
        return f"the target refused it ({observed.error}), but {f'the reason is {word}' if word else 'it can happen'}"
    if any(
        (observed.records, observed.replies, observed.timers, observed.groups, observed.consumer_groups, observed.tasks)
    ):
        return f"the target refused it ({observed.error}), but its state changed"
    return ""


def _distinct(candidates: list[Candidate]) -> list[Candidate]:
    kept: dict[tuple[CoordinatorState, frozenset[tuple[TimerKey, int]]], Candidate] = {}
    for candidate in candidates:
        kept.setdefault((candidate.state, frozenset(candidate.deadlines.items())), candidate)
    return list(kept.values())

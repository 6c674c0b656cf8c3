"""Following what a target was observed to do, one event at a time.

A ``Follower`` keeps every state in which the model can be after what it has seen: usually one, more where the protocol
leaves a choice open that has not shown yet. An event that no state can answer as observed is refused, and the verdict
says what would have been accepted and which rules decide there. Nothing is searched for: each timer and each append is
an event. ``accepts`` is what a search for unobserved steps needs, since it judges a step without taking it.
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
from .consumer.observe import Seen, no_matcher
from .consumer.oracle import Matcher
from .deadlines import Deadlines, after_step
from .impossible import impossible
from .observed import Observed

#: How many alternatives a verdict shows in words.
SHOWN: Final = 4


class Candidate(NamedTuple):
    """A state that the target may be in, and when its timers run out."""

    state: CoordinatorState
    deadlines: Deadlines


class Alternative(NamedTuple):
    """A result that the model would have accepted, and how the observation differs from it."""

    step: Step
    mismatches: tuple[Mismatch, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """``ok``: the event can be explained, by any of the steps ``taken``. Otherwise ``alternatives`` is what could have
    been, closest first. ``rules`` are those that decide in either. An event that cannot occur at all has a ``reason``
    and no alternatives; it is accepted, with nothing taken, where the target refused it for just that."""

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
            lines.append(f"  accepted would be{choice}:")
            lines += [f"    {m.part}: {m.expected}  instead of  {m.observed}" for m in alternative.mismatches]
        if len(self.alternatives) > SHOWN:
            lines.append(f"  and {len(self.alternatives) - SHOWN} further from it")
        return "\n".join(lines)


class Follower:
    """Follows one trace. After a refusal the follower stays where it was. ``matcher`` compiles regular expressions as
    ``fencepost.protocol.choices.Functions`` says; without one, none compiles."""

    def __init__(self, settings: Settings, profile: Profile, matcher: Matcher = no_matcher) -> None:
        self.model = CoordinatorModel(settings, profile)
        self.matcher = matcher
        self.candidates: list[Candidate] = [Candidate(self.model.initial(), {})]
        self.index = 0
        self._versions: dict[int, int] = {}
        self._ends: frozenset[int] | None = frozenset()  #: of the records of each step, as far as not replicated

    def feed(self, event: Event, observed: Observed) -> Verdict:
        """Take the event with what was observed of it."""
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
            self._ends = None  # until a load: who does not tell its records does not tell where those of a step end
        else:
            ends = (*(known for known in self._ends if known <= end - len(wrote)), *([end] if wrote else []))
            self._ends = frozenset(known for known in ends if known > state.durable)

    def accepts(self, event: Event, observed: Observed) -> tuple[Verdict, list[Candidate]]:
        """The verdict on an event, and the states that explain it, without going there."""
        if isinstance(event, Request):
            self._versions[event.id] = event.version
        accepted: list[Candidate] = []
        taken: list[Step] = []
        alternatives: list[Alternative] = []
        reason = ""
        seen = Seen(observed.records, observed.consumer_groups, self.matcher)
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
                    state, event, step, changes, observed, versions=self._versions, profile=self.model.profile
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
    """The member id that the target made for this event, as far as it shows; a placeholder otherwise.

    It shows in an answer that hands it out, or as an id in the group that was not there before.
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
    """Why a target may not have refused an event so, or an empty string. ``word``: why the event cannot happen."""
    if observed.error != word:
        return f"it was refused ({observed.error}), and {f'the reason is {word}' if word else 'it can happen'}"
    if any(
        (observed.records, observed.replies, observed.timers, observed.groups, observed.consumer_groups, observed.tasks)
    ):
        return f"it was refused ({observed.error}), and something changed all the same"
    return ""


def _distinct(candidates: list[Candidate]) -> list[Candidate]:
    kept: dict[tuple[CoordinatorState, frozenset[tuple[TimerKey, int]]], Candidate] = {}
    for candidate in candidates:
        kept.setdefault((candidate.state, frozenset(candidate.deadlines.items())), candidate)
    return list(kept.values())

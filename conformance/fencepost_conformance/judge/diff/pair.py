"""Two coordinators side by side, event by event, each with its own state; their differences and the consequences.

The trace is made for the first side; the other gets the same events in its own terms (``translate``). After each step
every group is compared: its view, its timers, its open requests. While both are equal up to the start of their epochs,
the group is *together*, and a difference at the next step is a **cause**. After that the group is *apart*, and its
differences count as **following** from that cause, until both are equal again. A group that stays apart for long is
brought together by a fail-over, after which both load the log of the first side.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fencepost.protocol import events as ev
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.view import GroupView

from ...generate.world import World
from ...targets.ids import kafka_uuid, member_uuid
from ...targets.jvm.process import ProcessFault
from ...traces.observation import Observation
from ..compare.choices import Answer, Call, Place, other_choice, unobserved_choices
from ..compare.difference import Difference
from ..compare.key import key_of
from ..compare.leaves import Leaf, Seen, differing, leaves
from .side import CoreLive, Live, Side, about
from .translate import Translation

#: number of steps that a group may stay apart before both load one log
PATIENCE = 10
_NOTHING = Observation()


@dataclass(frozen=True, slots=True)
class Cause:
    """A difference between groups that were equal. ``event``: its index in the trace, ``own`` in the other side's;
    ``others``: other differences at that step."""

    key: str
    event: int
    own: int
    leaf: Leaf
    others: tuple[str, ...]


@dataclass(slots=True)
class _Apart:
    key: str
    since: int


class Pair:
    """A session for the generator: answers as the first side does, and compares both."""

    def __init__(self, one: Live, other: Live) -> None:
        self.one, self.other = Side(one), Side(other)
        self._translation = Translation(self.one, self.other)
        self._apart: dict[str, _Apart] = {}
        self._parted = False  #: some group has been apart since a log was loaded
        self.events: list[ev.Event] = []
        self.last_id: str | None = None  #: member id that the first side drew at the last event, if any
        self.causes: list[Cause] = []
        self.following: Counter[str] = Counter()  #: number of consequences, by the key of their cause
        self.seen: list[tuple[Observation, Observation]] = []
        self.theirs: list[tuple[ev.Event, Observation]] = []  #: the other side's own events, with their observations
        self.steps = 0  #: number of compared steps
        self._waits_alike = True  #: before this step both sides had equally many unreplicated records
        self.broken = ""  #: exception of the other side; nothing is compared after it

    @property
    def armed(self) -> dict[ev.TimerKey, int]:
        return self.one.live.armed

    @property
    def groups(self) -> dict[str, GroupView]:
        return self.one.live.groups

    @property
    def consumer_groups(self) -> dict[str, ConsumerGroupView]:
        return self.one.live.consumer_groups

    def bring_together(self, world: World) -> None:
        """Make a fail-over if some group has been apart for long enough."""
        if world.owned and any(self.one.handled - apart.since >= PATIENCE for apart in self._apart.values()):
            world.lose(known_epoch=True)
            world.epoch += 1
            world.load(list(world.log))

    def feed(self, event: ev.Event) -> Observation:
        """Feed the event to both sides; returns the first side's observation."""
        drawn = self.one.live.drawn
        self.events.append(event)
        seen = self.one.feed(event) if self.broken else self._feed(event)
        self.last_id = _id_in(seen, self.one.live.drawn - 1) if self.one.live.drawn > drawn else None
        return seen

    def _feed(self, event: ev.Event) -> Observation:
        try:
            self._catch_up(event)
            translated = self._translation.of(event, log_as_it_is=self._parted)
        except ProcessFault:
            raise
        except Exception as raised:
            return self._break(event, raised)
        bases = self.one.bases(), self.other.bases()
        self._waits_alike = self.one.unreplicated == self.other.unreplicated
        drawn = self.one.live.drawn
        self.other.live.drawn = drawn
        trouble: Exception | None = None
        if translated is not None:
            self.other.live.start(translated)
        try:
            mine = self.one.feed(event)
        finally:
            try:
                theirs = _NOTHING if translated is None else self.other.feed(translated)
            except ProcessFault:
                raise
            except Exception as raised:
                trouble = raised
        if trouble is not None:
            self.seen.append((mine, _NOTHING))
            return self._broke(event, trouble, mine)
        if translated is not None:
            mine, theirs = self._with_ids(event, translated, drawn, mine, theirs)
            self._translation.taken(event)
        found = [] if _alike(mine, theirs) and bases[0] == bases[1] else self._leaves(event, bases, mine, theirs)
        if found:
            mine, theirs, found = self._with_choices(event, translated, bases, mine, theirs, found)
        self._translation.step()
        self._parted &= not self.one.loaded
        self.seen.append((mine, theirs))
        if translated is not None:
            self.theirs.append((translated, theirs))
        self.steps += 1
        self._judge(event, mine, theirs, found)
        return mine

    def note_failure(self, event: ev.Event, failure: str) -> None:
        """Note that the first side raised at this event, where the trace ends."""
        leaf = Leaf(about(event), "raised", failure.split(":", maxsplit=1)[0], failure, "(not run)")
        self.causes.append(Cause(key_of(event, leaf), self.one.handled, len(self.theirs), leaf, ()))

    # --- one step ----------------------------------------------------------------------------------------------------

    def _leaves(
        self, event: ev.Event, bases: tuple[dict[str, int], dict[str, int]], mine: Observation, theirs: Observation
    ) -> list[Leaf]:
        if isinstance(event, ev.Load | ev.AppendFailed):  # what is restored, or loaded from a log, did not advance
            bases = self.one.bases(), self.other.bases()
        back = self._translation.back
        theirs = replace(theirs, timers={back(key): at for key, at in theirs.timers.items()})
        armed = {back(key): at for key, at in self.other.live.armed.items()}
        one = Seen(_whole(mine, theirs, self.one.live, self.armed), bases[0], self.one.asked, about(event))
        other = Seen(_whole(theirs, mine, self.other.live, armed), bases[1], self.other.asked, about(event))
        return leaves(one, other)

    def _with_ids(
        self, event: ev.Event, translated: ev.Event, drawn: int, mine: Observation, theirs: Observation
    ) -> tuple[Observation, Observation]:
        """Return the step with the same new member id on both sides, even where one of them first discarded some."""
        of_one, of_other = self.one.live.drawn - drawn, self.other.live.drawn - drawn
        if not of_one or not of_other or of_one == of_other:
            return mine, theirs
        if of_one < of_other:
            instead = self.one.live.redrawn(event, drawn + of_other - of_one)
            self.one.take_back(mine, instead)
            return instead, theirs
        instead = self.other.live.redrawn(translated, drawn + of_one - of_other)
        self.other.take_back(theirs, instead)
        return mine, instead

    def _with_choices(  # noqa: PLR0917 — both sides of a step
        self,
        event: ev.Event,
        translated: ev.Event | None,
        bases: tuple[dict[str, int], dict[str, int]],
        mine: Observation,
        theirs: Observation,
        found: list[Leaf],
    ) -> tuple[Observation, Observation, list[Leaf]]:
        """Return the step with the choices of the side that is not the core, if exactly one is (NOT-10)."""
        one, other = self.one.live, self.other.live
        if translated is None or isinstance(one, CoreLive) is isinstance(other, CoreLive):
            return mine, theirs, found
        side, core, kept = (self.one, one, mine) if isinstance(one, CoreLive) else (self.other, other, theirs)
        assert isinstance(core, CoreLive)
        followed, asked = (theirs, event) if side is self.one else (mine, translated)

        def attempt(given: Mapping[Place, Answer]) -> tuple[Observation, list[Leaf]]:
            nonlocal kept
            instead = core.again(asked, given)
            side.take_back(kept, instead)
            kept = instead
            return instead, self._leaves(event, bases, *((instead, theirs) if side is self.one else (mine, instead)))

        instead, left = _attempted(core, followed, attempt)
        if left:
            instead, left = attempt({})
        return (instead, theirs, left) if side is self.one else (mine, instead, left)

    def _judge(self, event: ev.Event, mine: Observation, theirs: Observation, found: list[Leaf]) -> None:
        """Sort the differences into causes and consequences, and find the groups that are together after the step."""
        index = self.one.handled - 1
        of_group: dict[str, list[Leaf]] = {}
        for leaf in found:
            of_group.setdefault(leaf.group, []).append(leaf)
        for group, its_leaves in of_group.items():
            apart = self._apart.get(group) or (next(iter(self._apart.values()), None) if group == "" else None)
            if apart is not None:
                self.following[apart.key] += len(its_leaves)
                continue
            if not self._waits_alike and self.causes and all(_of_waiting(leaf) for leaf in its_leaves):
                self.following[self.causes[-1].key] += len(its_leaves)
                continue
            for leaf in _primary(its_leaves):
                others = tuple(dict.fromkeys(each.kind for each in its_leaves if each is not leaf))
                self.causes.append(Cause(key_of(event, leaf), index, len(self.theirs) - 1, leaf, others))
        touched = {*of_group, *self._apart}
        if isinstance(event, ev.Load | ev.Unload):
            touched |= {*self.groups, *self.consumer_groups}
        for group in sorted(touched):
            self._look_at(group, index)

    def _look_at(self, group: str, index: int) -> None:
        if not group:
            return
        if self._together(group):
            self._apart.pop(group, None)
        elif group not in self._apart:
            of_this = [cause.key for cause in self.causes if cause.leaf.group == group]
            key = of_this[-1] if of_this else self.causes[-1].key if self.causes else ""
            self._apart[group] = _Apart(key, index)
            self._parted = True

    def _together(self, group: str) -> bool:
        one, other = self.one, self.other
        bases = one.bases().get(group, 0), other.bases().get(group, 0)
        for name in ("groups", "consumer_groups"):
            views = [getattr(side.live, name).get(group) for side in (one, other)]
            if any(not leaf.bookkeeping for leaf in differing(group, name, *views, bases=bases)):
                return False
        return _waiting(one, group) == _waiting(other, group)

    # --- events of the other side alone -------------------------------------------------------------------------------

    def _catch_up(self, event: ev.Event) -> None:
        """Advance time and log of the other side where the first one has nothing to do."""
        if isinstance(event, ev.AppendFailed) or not self._apart:
            return
        one, other = self.one, self.other
        if one.replicated == len(one.log) and other.replicated < len(other.log):
            self._alone(ev.Appended(event.at_ms, offset=len(other.log)))
        for task in sorted(other.tasks - one.tasks, key=lambda task: task.group_id):
            self._alone(ev.TaskDone(event.at_ms, task))
        for key, deadline in sorted(other.live.armed.items(), key=lambda item: item[1]):
            if deadline < event.at_ms and key not in one.live.armed and other.live.armed.get(key) == deadline:
                self._alone(ev.TimerFired(event.at_ms, key))

    def _alone(self, event: ev.Event) -> None:
        seen = self.other.feed(event)
        self.theirs.append((event, seen))
        self._translation.step()
        key = next(iter(self._apart.values())).key
        self.following[key] += len(seen.records) + len(seen.replies)

    # --- a side that raises ------------------------------------------------------------------------------------------

    def _break(self, event: ev.Event, raised: Exception) -> Observation:
        mine = self.one.feed(event)
        self.seen.append((mine, _NOTHING))
        return self._broke(event, raised, mine)

    def _broke(self, event: ev.Event, raised: Exception, mine: Observation) -> Observation:
        self.broken = f"{type(raised).__name__}: {raised}"
        if self._apart:
            self.following[next(iter(self._apart.values())).key] += 1
        else:
            leaf = Leaf(about(event), "raised", type(raised).__name__, "(nothing)", self.broken)
            self.causes.append(Cause(key_of(event, leaf), self.one.handled - 1, len(self.theirs), leaf, ()))
        return mine


def _id_in(seen: Observation, number: int) -> str | None:
    """Return the member id with that random number, as it appears in the observation."""
    found = re.search(f"'([^']*(?:{re.escape(kafka_uuid(number))}|{re.escape(member_uuid(number))}))'", repr(seen))
    return None if found is None else found[1]


def _primary(leaves: list[Leaf]) -> Iterator[Leaf]:
    """Yield the differences of a group at one step that stand for a cause: all in bookkeeping, and of the others the
    most significant one."""
    kinds: set[str] = set()
    main = next((leaf for leaf in leaves if not leaf.bookkeeping), None)
    for leaf in leaves:
        if leaf is main or (leaf.bookkeeping and leaf.path.startswith("records") and leaf.kind not in kinds):
            kinds.add(leaf.kind)
            yield leaf


def _of_waiting(leaf: Leaf) -> bool:
    """Whether a step without records can differ like this because earlier records are not replicated yet (F-RT-16)."""
    return leaf.path == "timers[operation]" or (leaf.path.startswith("replies") and leaf.presence)


_Attempt = Callable[[Mapping[Place, Answer]], tuple[Observation, list[Leaf]]]


def _attempted(core: CoreLive, other: Observation, attempt: _Attempt) -> tuple[Observation, list[Leaf]]:
    """Return the core's last step with other answers to its choices that make it equal to the other's, if there are
    any: first answers that the other shows, then those that nothing shows."""
    shown: dict[Place, Answer] = {}
    done = attempt(shown)
    while done[1]:
        choice = other_choice(core.calls, Difference(0, "", "", ""), other)
        if choice is None or choice[0] in shown:
            break
        shown |= dict([choice])
        done = attempt(shown)

    def agrees(answers: Mapping[Place, Answer]) -> tuple[bool, Sequence[Call]]:
        nonlocal done
        done = attempt({**shown, **answers})
        return not done[1], core.calls

    if done[1] and core.calls:
        unobserved_choices(core.calls, 0, agrees)
    return done


def _alike(mine: Observation, theirs: Observation) -> bool:
    """Whether both are equal; the usual case, decided cheaply."""
    return (
        mine.records == theirs.records
        and mine.replies == theirs.replies
        and mine.timers == theirs.timers
        and mine.groups == theirs.groups
        and mine.consumer_groups == theirs.consumer_groups
        and mine.tasks == theirs.tasks
    )


def _whole(seen: Observation, beside: Observation, live: Live, armed: Mapping[ev.TimerKey, int]) -> Observation:
    """Return the observation with the state of everything that either side changed; ``armed``: this side's timers."""
    return replace(
        seen,
        groups={name: live.groups.get(name) for name in {**seen.groups, **beside.groups}},
        consumer_groups={
            name: live.consumer_groups.get(name) for name in {**seen.consumer_groups, **beside.consumer_groups}
        },
        timers={key: armed.get(key) for key in {**seen.timers, **beside.timers}},
    )


def _waiting(side: Side, group: str) -> tuple[object, ...]:
    """Return what is still open for a group: timers, background tasks, answers."""
    armed = {
        (key.kind, key.member_id, key.operation if key.operation > 0 else min(key.operation, 0) and -1): at
        for key, at in side.live.armed.items()
        if (side.asked.get(key.operation) if key.kind is ev.TimerKind.OPERATION else key.group_id) == group
    }
    waiting = {number for number in side.open if side.asked.get(number) == group}
    return armed, waiting, {task for task in side.tasks if task.group_id == group}

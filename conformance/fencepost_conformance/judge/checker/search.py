"""Search for a run of the model that explains a recorded trace.

A trace shows when a request was sent and when its answer arrived; the coordinator processed it at some time between the
two. The trace does not show timers and the replication of records. So between two lines of the trace the model may take
*hidden steps*: process a request that is under way, fire a timer, make a record durable. The trace is accepted if some
choice of hidden steps makes the model give exactly the answers of the trace.

*Only when needed.* A hidden step can always wait until just before the next answer of the trace: only an answer can
show whether the step has happened, and sending a request only adds possible steps. So the search moves along the lines
and adds each sent request to those under way. Only at an answer that the model has not yet given does it try hidden
steps, until one gives that answer. Of all orders of independent steps it tries only those that end in that answer.

*Most likely first, and never twice.* The search goes deep first. It tries hidden steps in the order of the earliest
time that each can have: for a request, when it was sent; for a timer, its earliest deadline. The trace of a real broker
is usually accepted without going back. The search remembers what it tried (``been``), so it refuses a trace that no run
explains after finitely many steps. It tries requests that commute in one order only (``order``), and requests that
change nothing at one place only (``settled``).

*Later answers.* The search compares each answer of the model at once with that of the trace, even if the trace shows
it many lines later. A wrong one ends that branch. A step after which some later answer is impossible ends it, too
(``foresight``).

*Change of coordinator.* If an answer says that the broker is not, or no longer, the coordinator, or if the broker has
closed connections, the coordinator may have lost the group and loaded it again with its last record (F-SURV-02,
F-SURV-03). Those are two more hidden steps, tried only there.

*Empty groups.* A check for expired offsets deletes a group that is Empty and has no offset and no open transaction
(O-EXP-20, O-EXP-21). The trace does not show when the coordinator checks; only the interval is known. So a deletion is
a hidden step of a second search, made only for a trace that has no explanation without one (``deletions_upto``).

*Time.* The trace shows only between which two lines a timer was armed, so each armed timer has an earliest and a latest
deadline. It may fire once the earliest may have passed. The search cannot go beyond a line that is more than
``slack_ms`` later than the latest. ``tolerance_ms`` is for clocks that differ a little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    LeaveGroupRequest,
    ResponseBody,
)
from fencepost.protocol.profile import Profile
from fencepost.protocol.records import GroupMetadataKey, Record
from fencepost.protocol.settings import Settings
from fencepost_model.classic.group import GroupModel, GroupState, Successor
from fencepost_model.classic.scala import ScalaProfile
from fencepost_model.classic.state import Arrive, Durable, Fire, Group
from fencepost_model.machines import EMPTY

from .answers import seen
from .been import Been, Clock
from .commits import UNVERIFIED, Commit, CommitAnswer, expected
from .coordination import NOT_HERE, is_absent
from .described import described, is_denied, lived_before
from .described import expected as expected_description
from .door import at_the_door, while_loading
from .foresight import Foresight
from .history import NEVER, Answer, Event, History, Listing, Op
from .ids import NewIds
from .listings import expected as expected_listing
from .order import NEW_ID, changes_when_durable, kind, leads, replaced
from .settled import Settles, idle_timers, settled

#: The id of a request that the checker itself adds: a commit affects a member's session like a heartbeat.
_INTERNAL: Final = -2
#: Requests whose answer waits for the records before them (F-RT-24 to 26).
_WAIT_FOR_THE_LOG: Final = (HeartbeatRequest, LeaveGroupRequest, DeleteGroupsRequest)
#: The Scala coordinator's answer about a group that is being deleted (D-11).
_DELETED: Final = CommitAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE)


@dataclass(frozen=True, slots=True)
class Limits:
    """``slack_ms``: how late a timer, an answer or a sent request may be. ``tolerance_ms``: by how much clocks may
    differ.

    ``steps``: the most steps of the model that the search of one group may take. ``second_look``: how many more it may
    take before the group is refused. ``detail``: how many each search for the place and cause of a refusal may take.
    """

    tolerance_ms: int = 20
    slack_ms: int = 3_000
    steps: int = 1_000_000
    second_look: int = 2_000
    detail: int = 20_000


class Config(NamedTuple):
    """The position of a search: the model's state, and what surrounds it.

    ``under_way``: ids of requests that were sent and not yet processed. ``given``: ids of requests that the model has
    answered before the trace shows the answer. ``after``: the last hidden step was not earlier than this. ``logged``:
    the last record of the group, if there is one. ``away``: the coordinator is lost, and not loaded again.
    ``look_from``: the earliest time of the next check for expired offsets, once one has deleted the group; 0 before.
    ``unwritten``: a commit that stored nothing has created the group, so lists and descriptions may not contain it yet
    (O-COMMIT-39).
    """

    state: GroupState
    clocks: tuple[Clock, ...]
    under_way: tuple[int, ...]
    given: frozenset[int]
    after: int
    logged: tuple[Record, ...] = ()
    away: bool = False
    look_from: int = 0
    unwritten: bool = False


class Exhausted(Exception):
    """The search took too many steps; the trace is neither accepted nor refused."""


class Search:
    """One search over the events of one group, the first ``upto`` of them.

    With ``probe`` the search does not compare the answer of the last event; ``answers`` collects the possible answers
    of the model instead, with the rules that decided. ``reduced``: do not try every order of requests (``order``), and
    use later answers (``foresight``). ``deletions_upto``: the position of the first event that has no explanation
    without a deletion of the empty group (O-EXP-20), so that a deletion came before it; None: no deletions.
    """

    def __init__(
        self,
        history: History,
        settings: Settings,
        profile: Profile,
        limits: Limits,
        *,
        upto: int | None = None,
        probe: bool = False,
        reduced: bool = True,
        deletions_upto: int | None = None,
    ) -> None:
        self.model = GroupModel(settings, profile, group_id=history.group_id)
        self.limits = limits
        self.reduced = reduced
        self.events: list[Event] = history.events[:upto]
        self.ops = {event.op.id: event.op for event in self.events}
        self.probe = self.events[-1].op.id if probe else 0
        self.answers: dict[Answer, tuple[str, ...]] = {}
        self.furthest = 0
        self.deletable = False  #: in some visited state, a check for expired offsets could have deleted the group
        self._deletions_upto = NEVER if deletions_upto is None else deletions_upto
        self._deletes = deletions_upto is not None
        self.decided: tuple[str, ...] = ()  #: the rules of the last hidden step
        self.trail: list[tuple[str, ...]] = []  #: the rules of each hidden step from the start to the present position
        self.steps = 0
        last_line = self.events[-1].line if self.events else 0
        #: The answers that the model must give: those in the searched part of the trace.
        self.known: dict[int, Answer] = {
            op.id: op.answer
            for op in self.ops.values()
            if op.answer is not None and op.answer_line <= last_line and op.id != self.probe
        }
        #: The first event by which the broker must be the coordinator; it may be loading until then (C-HB-03).
        self.scala = isinstance(profile, ScalaProfile)
        self.loaded = next(
            (
                number
                for number, event in enumerate(self.events)
                if event.answered
                and event.op.answer is not None
                and not while_loading(event.op.answer, scala=self.scala)
            ),
            len(self.events),
        )
        self.seen_ms = {event.op.id: event.at_ms for event in self.events if event.answered}
        self.ids = NewIds(self.ops.values(), self.known)
        self._coordination = history.coordination
        self._offsets = history.offsets
        self._deletions = _deletions(self.events) if self.scala else ()
        self._lived_before = lived_before(history)
        self.moves = self._moves(history.cuts)
        self._settles = Settles(self.ops.values(), self.known, scala=self.scala, deleted=self._deletes)
        blind = self.scala or not reduced  # generations restart: D-26
        again_ms = self.events[0].at_ms + self._interval_ms if self.events else 0
        # before the first deletion only the answers until then count; after the last one all later ones
        twice = self._deletes and self.events[-1].at_ms >= again_ms - limits.tolerance_ms
        self.foresight = Foresight(self.events, self.known, blind=blind or twice)
        self._foresight_before = self.foresight
        if deletions_upto is not None:
            early = self.events[: deletions_upto + 1]
            answered = {event.op.id for event in early if event.answered}
            known = {number: answer for number, answer in self.known.items() if number in answered}
            self._foresight_before = Foresight(early, known, blind=blind)

    def _moves(self, cuts: Sequence[int]) -> frozenset[int]:
        """The events before which the coordinator may have been lost, since the previous event."""
        found = set()
        line = 0
        for number, event in enumerate(self.events):
            if number > self.loaded and event.answered and event.op.answer is not None:
                absent = is_absent(event.op.answer) and self._may_be_away(event.op)
                if absent or any(line < cut < event.line for cut in cuts):
                    found.add(number)
                line = event.line
        return frozenset(found)

    def _may_be_away(self, op: Op) -> bool:
        over_ms = self.seen_ms.get(op.id, self.events[-1].at_ms)
        return self._coordination.may_be_away(
            op.line, op.answer_line or op.line, op.connection, sent_ms=op.sent_ms, answered_ms=over_ms
        )

    # ---- the walk -----------------------------------------------------------------------------------------------

    def run(self) -> bool:
        """Whether some run explains all events. ``furthest`` is then the number of events; otherwise it is the position
        (from 0) of the event that no run got past. Raises Exhausted."""
        start = Config(self.model.initial(), (), (), frozenset(), 0)
        been = Been()
        stack: list[Iterator[tuple[int, Config]]] = [iter([(0, start)])]
        while stack:
            found = next(stack[-1], None)
            del self.trail[len(stack) - 1 :]
            if found is None:
                stack.pop()
                continue
            self.trail.append(self.decided)
            at, config = self._pass(*found)
            if at > self._deletions_upto and not config.look_from:
                continue
            self.furthest = max(self.furthest, at)
            if at == len(self.events):
                return True
            state, clocks, under_way, given, after, logged, away, look_from, unwritten = config
            # the search never undoes a write (``written``), and only a lost coordinator reads the log
            logged = logged if self.moves else ()
            place = at, state._replace(written=None), under_way, given, logged, away, look_from, unwritten
            if been.before(place, after, clocks):
                continue
            stack.append(self._hidden(at, config))
        return False

    def _pass(self, at: int, config: Config) -> tuple[int, Config]:
        """Move over events that need no hidden step."""
        _, clocks, under_way, given, *_ = config
        moved = False
        while at < len(self.events):
            event = self.events[at]
            if self._overdue(clocks, event.at_ms) is not None:
                break
            if not event.answered:
                under_way = (*under_way, event.op.id)
            elif event.op.id in given:
                given = given - {event.op.id}
            else:
                break
            at += 1
            moved = True
        return at, config._replace(under_way=under_way, given=given) if moved else config

    def _overdue(self, clocks: tuple[Clock, ...], now: int) -> Clock | None:
        late = [clock for clock in clocks if clock.latest + self.limits.slack_ms < now]
        return min(late, key=lambda clock: clock.latest) if late else None

    def _hidden(self, at: int, config: Config) -> Iterator[tuple[int, Config]]:
        """The hidden steps that may come next, the likeliest first."""
        event = self.events[at]
        ready = [self.ops[number] for number in config.under_way if self._may_begin(config, self.ops[number])]
        if self.reduced:
            for op in ready:
                calm = self._settled(at, config, op)
                if calm is not None:
                    yield at, calm
                    return
            idle = idle_timers(config.state)
            for clock in config.clocks:
                if clock.timer in idle and clock.earliest - self.limits.tolerance_ms <= event.at_ms:
                    yield from self._take(at, config, self._step(config.state, Fire(clock.timer)))
                    return
        late = self._overdue(config.clocks, event.at_ms)
        if late is not None:
            yield from self._fire(at, config, late)
        if config.away:
            yield from self._take(at, config._replace(away=False), self.model.loaded(config.logged))
        elif at in self.moves:
            yield from self._lose(at, config)
        if config.state.undurable:
            yield from self._take(at, config, self._step(config.state, Durable(1)))
            timed = changes_when_durable(config.state) or self._some_wait_long(at, config)
            if self.reduced and not timed:
                return  # requests that wait for it get the same answer at any time
        # in the order of the earliest time of each step, which is usually the real order
        next_: list[tuple[int, int, Op | Clock]] = [
            (self._early(op, config.state.group), number, op) for number, op in enumerate(ready)
        ]
        next_ += [
            (clock.earliest, len(next_) + number, clock)
            for number, clock in enumerate(config.clocks)
            if clock is not late and clock.earliest - self.limits.tolerance_ms <= event.at_ms
        ]
        kinds = self._kinds(ready, config.state.group)
        tried: set[str] = set()  # of commuting requests only the first possible one is tried
        for step in _new_ids_by_answer([row[2] for row in sorted(next_, key=lambda row: row[:2])], kinds):
            if not isinstance(step, Op):
                yield from self._fire(at, config, step)
            elif kinds[step.id] not in tried:
                for found in self._begin(at, config, step):
                    tried.add(kinds[step.id])
                    yield found
        if _is_empty(config.state.group) and not self._holds_offsets(event.line):
            yield from self._delete_empty(at, config)
        for op in ready:
            if op.closed_ms < event.at_ms - self.limits.slack_ms:  # the connection is closed: perhaps never read
                yield at, config._replace(under_way=_without(config.under_way, op.id))

    def _kinds(self, ready: Sequence[Op], group: Group | None) -> dict[int, str]:
        """The kind of each request that may be processed next; one that commutes with none is the only one of its
        kind."""
        few = not self.reduced or len(ready) < 2 or (self._deletes and _is_empty(group))
        kinds = {op.id: None if few else kind(op, op.answer, group, ready, self.known) for op in ready}
        return {number: name or f"request {number}" for number, name in kinds.items()}

    def _early(self, op: Op, group: Group | None) -> int:
        """The order in which requests are tried: by the time of sending, but first if the answer says that it came
        first."""
        return -1 if leads(op, op.answer, group) else op.sent_ms

    def _may_begin(self, config: Config, op: Op) -> bool:
        """Whether the request is next on its connection: a broker processes them in the order of sending."""
        before = op.before
        return before is None or before.id not in config.under_way

    def _settled(self, at: int, config: Config, op: Op) -> Config | None:
        """The position after the request has got its answer, if it gets it now and that changes nothing; otherwise
        None.

        The search then need not try the request at any other place: the same steps remain possible. So the time at
        which the request was sent does not delay the next steps either.
        """
        answer = self.known.get(op.id)
        if answer is None or not self._settles.may(op, answer, config.state.group):
            return None
        found = None
        for _, found in self._begin(at, config, op):
            if not settled(config.state, found.state, op.id) or self._gets_another(at, found.state, op.id):
                return None
        return found and found._replace(after=config.after, logged=config.logged)

    def _gets_another(self, at: int, state: GroupState, number: int) -> bool:
        """Whether the request waits for the log with an answer that is not that of the trace, or that would come too
        long before it if the log were written now."""
        waiting = [each.body for each in state.operations if each.id == number and each.body is not None]
        return not all(self._agrees(number, body, self.events[at].at_ms) for body in waiting)

    def _some_wait_long(self, at: int, config: Config) -> bool:
        """Whether the log cannot be written yet because of a request that waits for it, or may have to: its answer
        would come too long before that of the trace."""
        now = self.events[at].at_ms
        waiting = [each.id for each in config.state.operations if each.body is not None]
        waiting += [number for number in config.under_way if isinstance(self.ops[number].body, _WAIT_FOR_THE_LOG)]
        return any(self._too_early(number, now) for number in waiting)

    # ---- hidden steps -------------------------------------------------------------------------------------------

    def _step(self, state: GroupState, step: Arrive | Fire | Durable) -> tuple[Successor, ...]:
        self.steps += 1
        if self.steps > self.limits.steps:
            raise Exhausted(f"no decision after {self.limits.steps} steps of the model")
        return self.model.successors(state, step)

    def _fire(self, at: int, config: Config, clock: Clock) -> Iterator[tuple[int, Config]]:
        results = self._step(config.state, Fire(clock.timer))
        yield from self._take(at, config._replace(after=max(config.after, clock.earliest)), results)

    @property
    def _interval_ms(self) -> int:
        return self.model.settings.offsets_retention_check_interval_ms

    def _delete_empty(self, at: int, config: Config) -> Iterator[tuple[int, Config]]:
        """A check for expired offsets deletes the group, which is empty and has no offsets (O-EXP-20, O-EXP-21). The
        next check comes one interval later. The Scala coordinator may delete the group at any time (D-26)."""
        self.deletable = True
        state = config.state._replace(group=None, delay=None, timers=frozenset())
        if self.scala:
            self.decided = ("D-26",)
            yield at, config._replace(state=state, clocks=())
            return
        begin_ms = max(config.after, config.look_from)
        if self._deletes and begin_ms - self.limits.tolerance_ms <= self.events[at].at_ms:
            self.decided = ("O-EXP-20", "O-EXP-21")
            look_from = begin_ms + self._interval_ms
            yield at, config._replace(state=state, clocks=(), after=begin_ms, logged=(), look_from=look_from)

    def _lose(self, at: int, config: Config) -> Iterator[tuple[int, Config]]:
        """The coordinator is lost; only the log remains. Waiting requests get an error, or their connection is closed
        (F-UNLOAD-01)."""
        waiting = [
            event.op
            for event in self.events[:at]
            if not event.answered
            and event.op.id not in config.under_way
            and event.op.id not in config.given
            and self.seen_ms.get(event.op.id, self.events[at].at_ms) >= self.events[at].at_ms
            and event.op.answer_line >= self.events[at].line
        ]
        op_ids = [op.id for op in waiting if op.id in self.known]
        if all(getattr(self.known[number], "error_code", None) in NOT_HERE for number in op_ids):
            self.decided = ("F-SURV-02",)
            given = config.given.union(op_ids)
            yield at, config._replace(state=self.model.initial(), clocks=(), given=given, away=True)

    def _begin(self, at: int, config: Config, op: Op) -> Iterator[tuple[int, Config]]:
        after = max(config.after, op.sent_ms)
        if after > op.closed_ms + self.limits.slack_ms:
            return  # too long after its connection closed
        config = config._replace(under_way=_without(config.under_way, op.id), after=after)
        if isinstance(op.body, Commit):
            yield from self._commit(at, config, op, op.body)
            return
        if isinstance(op.body, DescribeGroupsRequest | Listing):
            yield from self._describe(at, config, op)
            return
        answer = self.known.get(op.id) if op.id == self.probe else op.answer
        turned_away = at_the_door(
            self.model.settings,
            config.state.group,
            op.version,
            op.body,
            answer,
            away=self._may_be_away(op),
            loading=at <= self.loaded or config.away,
            scala=self.scala,
            deleting=self._deleted_beside(op),
        )
        if turned_away is not None:
            yield from self._turn_away(at, config, op, turned_away)
            return
        if config.away:
            return  # it must wait until the group is loaded again
        for new_id in self.ids.candidates(op, config.state.group):
            arrival = Arrive(op.id, op.version, op.client_id, "", op.body, new_id)
            yield from self._take(at, config, self._step(config.state, arrival), op)

    def _holds_offsets(self, line: int) -> bool:
        return any(begin < line <= end for begin, end in self._offsets)

    def _deleted_beside(self, op: Op) -> bool:
        """Whether a DeleteGroups of the group was under way at the same time (D-11)."""
        last = op.answer_line or NEVER
        return any(begin < last and op.line < end for begin, end in self._deletions)

    def _turn_away(self, at: int, config: Config, op: Op, why: tuple[Answer, str]) -> Iterator[tuple[int, Config]]:
        """The step of an answer that does not change the group."""
        answer, rule = why
        if op.id == self.probe:
            self.answers.setdefault(answer, (rule,))
        elif self.known.get(op.id, answer) == answer:
            self.decided = (rule,)
            yield at, config._replace(given=self._given(config.given, op.id))

    def _commit(self, at: int, config: Config, op: Op, commit: Commit) -> Iterator[tuple[int, Config]]:
        answer = self.known.get(op.id)
        if config.state.group is None and isinstance(answer, CommitAnswer) and answer.error_code in NOT_HERE:
            if not self._may_be_away(op):
                return
            yield from self._turn_away(at, config, op, (answer, "O-COMMIT-06"))
            return
        if config.away:
            return
        if isinstance(answer, CommitAnswer) and self._deleted_beside(op) and answer == _DELETED:
            yield from self._turn_away(at, config, op, (answer, "D-11"))
        error, rule = expected(config.state.group, commit, scala=self.scala)
        if answer == UNVERIFIED:
            error, rule = UNVERIFIED.error_code, "D-24"
        made = error is ErrorCode.NONE or (self.scala and commit.transactional)  # D-24
        for _, let_in in self._turn_away(at, config, op, (CommitAnswer(error), rule)):
            if config.state.group is None and made:  # O-COMMIT-20, O-TXN-03
                stored = not isinstance(answer, CommitAnswer) or answer.stored
                if not stored and not self.model.profile.fault_refused_commit_leaves_group:  # O-COMMIT-39
                    yield at, let_in
                    continue
                yield at, let_in._replace(state=config.state._replace(group=Group()), unwritten=not stored)
            elif rule == "O-COMMIT-28":  # it affects the session like a heartbeat
                beat = HeartbeatRequest(
                    commit.group_id,
                    generation_id=commit.generation_id,
                    member_id=commit.member_id,
                    group_instance_id=commit.group_instance_id,
                )
                yield from self._take(at, let_in, self._step(config.state, Arrive(_INTERNAL, 4, "", "", beat)))
            else:
                yield at, let_in

    def _describe(self, at: int, config: Config, op: Op) -> Iterator[tuple[int, Config]]:
        """The step of a description or a list, which does not change the group. A group whose first record is not
        durable may be absent from it (C-ADM-02, C-ADM-08)."""
        answer, group = self.known.get(op.id), config.state.group
        group_id = self.model.group_id
        away = answer is not None and is_absent(answer) and self._may_be_away(op)
        if away or config.away or self._lived_before or is_denied(answer):
            yield at, config._replace(given=self._given(config.given, op.id))
            return
        rules: tuple[str, ...] = ("C-ADM-05",)
        expected: ResponseBody
        absent: ResponseBody
        seen_: Answer | None = answer
        if isinstance(op.body, Listing):
            expected = expected_listing(group_id, group, op.version, op.body)
            absent = expected_listing(group_id, None, op.version, op.body)
        else:
            expected = expected_description(group_id, group, op.version, scala=self.scala)
            absent = expected_description(group_id, None, op.version, scala=self.scala)
            seen_ = described(answer, op.version) if isinstance(answer, DescribeGroupsResponse) else None
            rules = ("C-ADM-02",) if group is None else ("C-ADM-03", "C-ADM-12")
        if op.id == self.probe:
            self.answers.setdefault(expected, rules)
        elif seen_ in (None, expected) or (self._may_be_unseen(config) and seen_ == absent):
            self.decided = rules[:1]
            yield at, config._replace(given=self._given(config.given, op.id))

    def _may_be_unseen(self, config: Config) -> bool:
        """Whether a read at the committed offset may not see the group (D-10, O-COMMIT-39)."""
        return bool(config.unwritten or config.state.undurable) and not self.scala

    def _given(self, given: frozenset[int], number: int) -> frozenset[int]:
        return given | {number} if number in self.known else given

    def _take(
        self, at: int, config: Config, results: tuple[Successor, ...], op: Op | None = None
    ) -> Iterator[tuple[int, Config]]:
        """The results of a step that agree with every answer of the trace; ``op``: the request that was processed."""
        now = self.events[at].at_ms
        # the search may try a request before others of its kind: the real time may be as late as its answer
        until = max(now, self.seen_ms.get(op.id, now)) if op is not None and self.reduced else now
        for result in results:
            if op is not None and any(number in self.known for number in replaced(op.id, config.state, result)):
                continue  # a replaced request gets no answer, but the trace has one
            given = config.given
            for number, body in result.output.replies:
                if number == self.probe:
                    self._probed(body, result)
                    break
                if not self._agrees(number, body, now):
                    break
                given = self._given(given, number)
            else:
                group = result.state.group
                foresight = self.foresight if config.look_from else self._foresight_before
                if foresight.dead_end(at, config.under_way, config.state.group, group):
                    continue
                if op is not None and op.id not in given and foresight.answered_otherwise(op.id, group):
                    continue
                clocks = self._clocks(config, result, until)
                self.decided = result.rules
                written = tuple(each for each in result.output.records if isinstance(each.key, GroupMetadataKey))
                logged = written[-1:] or config.logged
                yield (
                    at,
                    config._replace(
                        state=result.state,
                        clocks=clocks,
                        given=given,
                        logged=logged,
                        unwritten=config.unwritten and group is not None and not result.output.records,
                    ),
                )

    def _agrees(self, number: int, body: ResponseBody, now: int) -> bool:
        known = self.known.get(number)
        if known is None:
            return True
        if self._too_early(number, now):
            return False
        return seen(self.ops[number].version, body) == known

    def _too_early(self, number: int, now: int) -> bool:
        """Whether an answer that is given now would have arrived long before that of the trace."""
        return number in self.known and self.seen_ms[number] > now + self.limits.slack_ms

    def _probed(self, body: ResponseBody, result: Successor) -> None:
        answer = seen(self.ops[self.probe].version, body)
        self.answers.setdefault(answer, result.rules)

    def _clocks(self, config: Config, result: Successor, until: int) -> tuple[Clock, ...]:
        """The deadlines after a step between ``config.after`` and ``until``."""
        if not result.armed and len(config.clocks) == len(result.state.timers):
            return config.clocks
        timers, armed = result.state.timers, dict(result.armed)
        kept = [clock for clock in config.clocks if clock.timer in timers and clock.timer not in armed]
        kept.extend(
            Clock(timer, config.after + length, until + length) for timer, length in armed.items() if timer in timers
        )
        kept.sort()
        return tuple(kept)


def _new_ids_by_answer(steps: Sequence[Op | Clock], kinds: Mapping[int, str]) -> list[Op | Clock]:
    """The steps, with the JoinGroups that get a member id in the order of their answers (``order``)."""
    joins = [step for step in steps if isinstance(step, Op) and kinds[step.id] == NEW_ID]
    joins.sort(key=lambda op: op.answer_line, reverse=True)
    return [joins.pop() if isinstance(step, Op) and kinds[step.id] == NEW_ID else step for step in steps]


def _is_empty(group: Group | None) -> bool:
    """Whether the group is Empty; a group with only pending ids is (O-EXP-21)."""
    return group is not None and group.state == EMPTY


def _deletions(events: Sequence[Event]) -> tuple[tuple[int, int], ...]:
    """The lines between which each DeleteGroups of the group was under way."""
    asked = [event.op for event in events if not event.answered and isinstance(event.op.body, DeleteGroupsRequest)]
    return tuple([(op.line, op.answer_line or NEVER) for op in asked])


def _without(numbers: tuple[int, ...], number: int) -> tuple[int, ...]:
    return tuple([other for other in numbers if other != number])

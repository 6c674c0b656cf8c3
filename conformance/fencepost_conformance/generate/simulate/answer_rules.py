"""Invariants of a coordinator's answers, over the history of one coordinator (12.1).

A *life* of a group is one incarnation while one broker coordinates it. Generation numbers mean something only within a
life (NOT-08). The rules remember every answer about a generation, and later answers must agree with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from fencepost.member.consumer_protocol import SchemaError, decode_assignment
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Appended, AppendFailed, Event, Load, LoadStarted, Reply, Request, Unload
from fencepost.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.view import GroupState, GroupView
from fencepost_model.promises import JoinAnswerView, SyncAnswerView

from ...traces.observation import Observation
from .broken import demand, demand_promises
from .group_rules import view_of

NONE = ErrorCode.NONE


@dataclass(slots=True)
class Generation:
    """The answers about one generation. ``sent``: the leader's assignments, in the order in which they arrived."""

    first_answer: tuple[str | None, str | None, str] | None = None
    informed: str | None = None  #: the member that got the members list
    sent: list[dict[str, bytes]] = field(default_factory=list)
    offset: int | None = None  #: offset of the assignment's record
    given: dict[str, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class Life:
    generations: dict[int, Generation] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)  #: old member id → id of its replacement
    fenced: set[str] = field(default_factory=set)  #: old member ids whose replacement has been answered

    def of(self, number: int) -> Generation:
        return self.generations.setdefault(number, Generation())

    def now(self, member_id: str) -> str:
        """Return the current id of a static member."""
        while member_id in self.replaced:
            member_id = self.replaced[member_id]
        return member_id


class AnswerRules:
    """Checks every event, given its observation and the views of the groups before and after it.

    ``elsewhere``: requests that reached a consumer group; ``consumer_answer_rules`` checks those.
    """

    def __init__(self, elsewhere: Set[int]) -> None:
        self._elsewhere = elsewhere
        self._lives: dict[str, Life] = {}
        self._open: dict[int, Request] = {}
        self._barred: dict[int, str] = {}  #: heartbeats that must not be answered NONE, and why
        self._loading = False
        self._last = 0
        self._end = 0
        self._replicated = 0

    def observe(
        self, event: Event, seen: Observation, before: Mapping[str, GroupView], after: Mapping[str, GroupView]
    ) -> None:
        match event:
            case LoadStarted():
                self._loading = True
            case Load(records=records):
                self._lives.clear()
                self._loading = False
                self._end = self._replicated = len(records)
            case Unload():
                self._lives.clear()
            case Appended(offset=offset):
                self._replicated = offset
            case AppendFailed():
                self._end -= self._last
                self._forget(self._end)
            case Request(id=number):
                self._open[number] = event
        for name in [name for name in self._lives if name not in after]:
            del self._lives[name]
        if isinstance(event, Request) and event.id not in self._elsewhere:
            self._handled(event, seen, before)
        for name, group in seen.groups.items():
            if group is not None and name in before:
                self._replacements(before[name], group)
        self._last = len(seen.records)
        self._end += self._last
        for reply in seen.replies:
            request = self._open.pop(reply.request_id, None)
            demand(request is not None, "LIV-01", f"a second answer to request {reply.request_id}")
            barred = self._barred.pop(reply.request_id, None)
            if request is None or request.id in self._elsewhere:
                continue
            if barred is not None and reply.body == HeartbeatResponse(NONE):
                rule, text = barred.split(" ", 1)
                demand(False, rule, f"{text}, but its Heartbeat is answered NONE")
            self._answered(request, reply, after)

    def _forget(self, end: int) -> None:
        """Forget the records from ``end`` on, since they are not in the log."""
        for life in self._lives.values():
            for generation in life.generations.values():
                if generation.offset is not None and generation.offset >= end:
                    generation.offset = None
                    generation.sent.clear()

    @property
    def unanswered(self) -> dict[int, Request]:
        return self._open

    def _life(self, name: str) -> Life:
        return self._lives.setdefault(name, Life())

    def _handled(self, event: Request, seen: Observation, before: Mapping[str, GroupView]) -> None:
        """Remember the leader's assignments, when their record is written, and which requests must not succeed."""
        body = event.body
        if isinstance(body, HeartbeatRequest) and not self._loading:  # proves nothing while loading (C-HB-03)
            self._check_later(event.id, body, before.get(body.group_id))
        if not isinstance(body, SyncGroupRequest):
            return
        group = before.get(body.group_id)
        if group is not None and seen.records and group.leader == body.member_id:
            generation = self._life(body.group_id).of(body.generation_id)
            generation.sent.append({entry.member_id: entry.assignment for entry in body.assignments})
            generation.offset = self._end + len(seen.records) - 1

    def _check_later(self, number: int, body: HeartbeatRequest, group: GroupView | None) -> None:
        """Note why a Heartbeat must fail. Its answer may wait for the log, but the state on arrival decides."""
        if group is None or all(member.member_id != body.member_id for member in group.members):
            self._barred[number] = f"INV-FENCE-02 {body.group_id}: {body.member_id} is not a member"
        elif body.generation_id != group.generation_id:
            self._barred[number] = f"C-HB-09 {body.group_id}: generation {body.generation_id}, not the current one"
        elif self._fenced(body.group_id, body.member_id):
            self._barred[number] = f"INV-FENCE-01 {body.group_id}: the replacement of {body.member_id} was answered"
        elif group.state is GroupState.PREPARING_REBALANCE:
            self._barred[number] = f"C-HB-11 {body.group_id}: the group prepares a rebalance"

    def _replacements(self, old: GroupView, new: GroupView) -> None:
        before, after = dict(old.static_members), dict(new.static_members)
        life = self._life(new.group_id)
        ids = {member.member_id for member in new.members}
        for instance, member_id in after.items():
            previous = before.get(instance)
            if previous is not None and previous != member_id and previous not in ids:
                if life.replaced.get(member_id) == previous:  # the append failed, so the old id is back (C-STATIC-06)
                    del life.replaced[member_id]
                else:
                    life.replaced[previous] = member_id
                    life.replaced.pop(member_id, None)

    def _answered(self, request: Request, reply: Reply, after: Mapping[str, GroupView]) -> None:
        match request.body, reply.body:
            case JoinGroupRequest() as join, JoinGroupResponse(error_code=ErrorCode.NONE) as answer:
                self._joined(join, answer, after.get(join.group_id))
            case SyncGroupRequest() as sync, SyncGroupResponse(error_code=ErrorCode.NONE) as answer:
                self._synced(sync, answer, after.get(sync.group_id))

    def _not_fenced(self, name: str, member_id: str, what: str) -> None:
        text = f"{name}: {what} of {member_id} succeeds after its replacement was answered"
        demand(not self._fenced(name, member_id), "INV-FENCE-01", text)

    def _fenced(self, name: str, member_id: str) -> bool:
        life = self._lives.get(name)
        return life is not None and member_id in life.fenced

    def _joined(self, join: JoinGroupRequest, answer: JoinGroupResponse, group: GroupView | None) -> None:
        name = join.group_id
        text = f"{name}: JoinGroup NONE for {answer.member_id} in generation {answer.generation_id}"
        listed = {row.member_id for row in answer.members}
        demand_promises(JoinAnswerView(answer.member_id, listed, None if group is None else view_of(group)), text)
        assert group is not None
        self._not_fenced(name, answer.member_id, "JoinGroup")
        life = self._life(name)
        generation = life.of(answer.generation_id)
        # Returning static members get new ids. Answers before v9 name the previous leader (C-STATIC-05).
        leader = life.now(answer.leader)
        answered = (answer.protocol_type, answer.protocol_name, leader)
        if generation.first_answer is not None:
            type_, protocol, old_leader = generation.first_answer
            # A replaced member that is answered while the group prepares again may see another leader (C-STATIC-17).
            preparing = group.state is GroupState.PREPARING_REBALANCE
            agreed = (
                protocol == answer.protocol_name
                and (
                    None in (type_, answer.protocol_type) or type_ == answer.protocol_type
                )  # answers before v7 have no protocol type
                and (preparing or leader == life.now(old_leader))
            )
            demand(agreed, "INV-JOIN-01", f"{text} says {answered}, earlier answers {generation.first_answer}")
        generation.first_answer = generation.first_answer or answered
        if answer.members:
            informed = answer.member_id if generation.informed is None else life.now(generation.informed)
            demand(
                informed == answer.member_id,
                "INV-JOIN-01",
                f"{text} has the members list, and so had {generation.informed}",
            )
            generation.informed = answer.member_id
        if not join.member_id and join.group_instance_id is not None:
            life.fenced |= {old for old in life.replaced if life.now(old) == answer.member_id}

    def _synced(self, sync: SyncGroupRequest, answer: SyncGroupResponse, group: GroupView | None) -> None:
        name, number, member_id = sync.group_id, sync.generation_id, sync.member_id
        text = f"{name}: SyncGroup NONE for {member_id} in generation {number}"
        demand_promises(SyncAnswerView(number, None if group is None else view_of(group)), text)
        assert group is not None
        demand(group.state is GroupState.STABLE, "INV-SYNC-02", f"{text} while {group.state.value}")
        ids = {member.member_id for member in group.members}
        demand(member_id in ids, "INV-FENCE-02", f"{text}, but the members are {sorted(ids)}")
        self._not_fenced(name, member_id, "SyncGroup")
        life = self._life(name)
        generation = life.of(number)
        if generation.offset is not None:
            # A generation that was loaded has no leader's SyncGroup in this life.
            demand(generation.offset < self._replicated, "INV-SYNC-02", f"{text} before its record is replicated")
            sent = generation.sent[0]
            names = [old for old in sent if life.now(old) == member_id]
            expected = {sent[old] for old in names} or {b""}
            demand(
                answer.assignment in expected, "INV-SYNC-01", f"{text} has an assignment that the leader did not send"
            )
        before = next((data for old, data in generation.given.items() if life.now(old) == member_id), None)
        demand(
            before in (None, answer.assignment), "INV-SYNC-01", f"{text} has another assignment than an earlier answer"
        )
        generation.given[member_id] = answer.assignment
        self._owned_once(text, life, generation)

    def _owned_once(self, text: str, life: Life, generation: Generation) -> None:
        """Check INV-OWN-01, provided that the leader's assignments do not overlap."""
        shares = _shares(generation.sent[0]) if generation.sent else None
        if shares is None or len(set(shares)) != len(shares):
            return
        given = _shares({life.now(member_id): data for member_id, data in generation.given.items()})
        if given is not None:
            demand(len(set(given)) == len(given), "INV-OWN-01", f"{text}: two members were assigned the same partition")


def _shares(assignments: Mapping[str, bytes]) -> list[tuple[str, int]] | None:
    """Return every partition in these assignments, or None if one cannot be decoded."""
    shares: list[tuple[str, int]] = []
    for data in assignments.values():
        if data:
            try:
                shares += decode_assignment(data).partitions
            except SchemaError:
                return None
    return shares

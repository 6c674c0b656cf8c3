"""Read the history of a consumer group, or of a group of both protocols, and find its first impossible answer.

A search, as for classic groups, would have to guess the target assignment, topics and regexes: more possibilities than
can be tried. So this checker does not guess. It keeps what is *certain*, and for how long: who is a member, at which
epoch, with which partitions, and from which time on the member may be gone. Every answer must agree with all that was
certain from its request until the answer itself, by the rules that do not depend on hidden events. The checker then
learns from the answer.

It is sound: if requests overlap, a session may have ended or an answer was lost, then all that they could have changed
is no longer certain, and the checker refuses nothing because of it. It is not complete: an answer that contradicts no
rule here may still be impossible. In return it reads each line once.

A check for expired offsets deletes an empty group. So if a trace is refused, the checker reads it once more, with such
deletions where they are possible (``Looks``).

The part of a trace before the first ConsumerGroupHeartbeat belongs to a classic group, and ``search`` judges it. While
a group may have become classic again, answers about classic members are not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fencepost.member.consumer_protocol import decode_subscription
from fencepost.protocol.consumer_messages import (
    JOIN_EPOCH,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings

from ..commits import Commit
from ..coordination import is_absent
from ..history import Event, History, Listing, OddAnswer, Op
from ..search import Limits
from . import classic, heartbeat, others
from .coverage import Coverage
from .epochs import Epochs
from .group import NOWHERE, Before, Knowledge
from .members import Member, Presence
from .topics import TopicEvent
from .validity import invalid
from .wrong import Wrong


def first_consumer_event(history: History) -> int | None:
    """The position of the first ConsumerGroupHeartbeat; None for a group that is classic throughout."""
    for at, event in enumerate(history.events):
        if isinstance(event.op.body, ConsumerGroupHeartbeatRequest):
            return at
    return None


def watch(
    history: History, topics: Sequence[TopicEvent], settings: Settings, profile: Profile, limits: Limits
) -> tuple[Event, Wrong] | None:
    """The first impossible answer, and why; None if there is none."""
    if profile.old_no_assignment_interval:
        settings = replace(settings, group_consumer_assignment_interval_ms=0)
    known = partial(Knowledge, settings, profile, limits, coordination=history.coordination)
    found = _first_wrong(history, _Watch(known(Epochs(settings, limits)), list(topics)))
    if found is None:
        return None
    event, _ = found
    again_ms = history.events[0].at_ms + settings.offsets_retention_check_interval_ms - limits.tolerance_ms
    looks = Looks(event.line, again_ms, history.offsets)
    return _first_wrong(history, _Watch(known(Epochs(settings, limits)), list(topics), looks))


@dataclass(frozen=True, slots=True)
class Looks:
    """When a check for expired offsets may have deleted the group, if it was empty (O-EXP-20, O-EXP-25).

    ``upto_line``: the first answer that is impossible without a deletion; so a deletion came before it. ``from_ms``:
    the earliest time of the next check. ``held``: the lines between which the group certainly has offsets.
    """

    upto_line: int
    from_ms: int
    held: tuple[tuple[int, int], ...]

    def may_delete(self, line: int, at_ms: int) -> bool:
        """Whether a check may have deleted the group just before this line."""
        possible = line <= self.upto_line or at_ms >= self.from_ms
        return possible and not any(begin < line <= end for begin, end in self.held)


def _first_wrong(history: History, watcher: _Watch) -> tuple[Event, Wrong] | None:
    for event in history.events:
        try:
            watcher.take(event)
        except Wrong as wrong:
            return event, wrong
    return None


def _members_of(op: Op) -> list[str]:
    """The ids of the members that a request is from, or names."""
    body: Any = op.body
    if isinstance(body, LeaveGroupRequest):
        return [row.member_id for row in body.members if row.member_id]
    name = getattr(body, "member_id", "") or getattr(op.answer, "member_id", "")
    if not name and op.answer is None and _joins(op):
        name = f"unseen-{op.id}"  # if the coordinator processed it, its member has an id that no answer shows
    return [name] if name else []


class _Watch:
    def __init__(self, known: Knowledge, topics: list[TopicEvent], looks: Looks | None = None) -> None:
        self.known = known
        self._looks = looks
        self._topics = topics
        self._coverage = Coverage()
        self._removed: dict[int, list[Member]] = {}
        self._open: list[Op] = []  #: requests that are under way
        self._replacing: list[Op] = []  #: requests that may replace the group
        self._voted = False  #: some member has named an assignor

    def take(self, event: Event) -> None:
        known = self.known
        while self._topics and self._topics[0].line < event.line:
            change = self._topics.pop(0)
            known.topics.take(change)
            self._coverage.changed_ms = change.at_ms
            if change.answer is None:
                known.epochs.may_bump(2 * len(change.names) or 1)  # M-EPOCH-03, and M-EPOCH-07 for a regex
        known.move_to(event.at_ms, event.line)
        self._may_begin_anew()
        if event.answered:
            self._answered(event.op)
            known.move_to(event.at_ms, event.line)  # now with the new members of this answer
            self._coverage.answered(known, event.op)
        else:
            self._sent(event.op)

    def _may_begin_anew(self) -> None:
        """Reset the epochs if no member is certainly in the group, and either a request under way may replace the group
        (C-JOIN-10, C-JOIN-15, M-VAL-22) or a check for expired offsets may have deleted it (O-EXP-20)."""
        known = self.known
        over = known.now - known.limits.slack_ms
        self._replacing = [
            op for op in self._replacing if (op.closed_ms > over if op.answer is None else op.answer_line >= known.line)
        ]
        deleted = self._looks is not None and self._looks.may_delete(known.line, known.now)
        if (self._replacing or deleted) and not known.least():
            if deleted:
                known.epochs.may_be_deleted(known.line)
            if self._replacing:
                known.epochs.begin_anew(known.line)
            for asked in self._removed:
                known.before[asked].floor = known.before[asked].seen = 0

    # ---- requests -----------------------------------------------------------------------------------------------

    def _sent(self, op: Op) -> None:
        known = self.known
        body = op.body
        self._coverage.asked(op)
        if isinstance(body, JoinGroupRequest):
            known.classic_seen = True
            known.unreadable = known.unreadable or not all(_is_readable(each.metadata) for each in body.protocols)
        elif isinstance(body, SyncGroupRequest):
            for row in body.assignments:
                known.topics.assigned(row.assignment)
        if isinstance(body, JoinGroupRequest | DeleteGroupsRequest) or (known.classic_seen and _joins(op)):
            self._replacing.append(op)
            self._may_begin_anew()
        if _may_create(op):
            known.deleted_from = NOWHERE
        known.epochs.may_bump(self._bumps(op))
        names = _members_of(op)
        members = [known.members[name] for name in names if name in known.members]
        idle = isinstance(
            body, Commit | ConsumerGroupDescribeRequest | DescribeGroupsRequest | Listing
        )  # changes nothing about a member
        for other in [] if idle else [other for member in members for other in member.open]:
            known.before[other.id].alone = False
        strangers = frozenset(filter(known.surely_out, names))
        residents = frozenset(member.member_id for member in members if known.surely_in(member))
        known.before[op.id] = Before(
            floor=known.epochs.floor(op.sent_ms),
            seen=known.epochs.seen,
            alone=not any(member.open for member in members),
            newcomer=names[:1] != [] and names[0] in strangers,
            surely_in=members != [] and members[0].member_id in residents,
            inside=frozenset(filter(known.is_inside, known.members)),
            most=known.possible(names[0] if names else ""),
            strangers=strangers,
            residents=residents,
            rivals=self._rivals(op),
        )
        removed = self._removed[op.id] = self._may_remove(op)
        for member in removed:
            member.removers += 1
        for name in names:
            member = known.members.setdefault(name, Member(name, presence=Presence.OUT))
            if idle:
                continue
            if op.answer is None:  # the broker may process it for a while after its connection closed
                member.blurred_ms = max(member.blurred_ms, op.closed_ms + known.limits.slack_ms)
                member.exact = False
                member.until_ms = max(member.until_ms, min(op.closed_ms, 1 << 60))
                member.session_ms = member.session_ms or known.settings.group_consumer_session_timeout_ms
                if member.presence is Presence.OUT:
                    member.presence = Presence.PERHAPS
                if isinstance(body, ConsumerGroupHeartbeatRequest):
                    _claims(member, member.instance or body.instance_id)
            member.open.append(op)
            if _joins(op) and member.presence is Presence.OUT:
                _claims(member, getattr(body, "instance_id", None) or getattr(body, "group_instance_id", None))

    def _rivals(self, op: Op) -> list[Op]:
        """The requests under way when this one is sent. Adds this one to the rivals of each of them."""
        over = self.known.now - self.known.limits.slack_ms
        self._open = [each for each in self._open if each.answer is not None or each.closed_ms > over]
        for each in self._open:
            self.known.before[each.id].rivals.append(op)
        rivals = list(self._open)
        self._open.append(op)
        return rivals

    def _bumps(self, op: Op) -> int:
        """How often this request may raise the group's epoch, including the tasks that it triggers."""
        body = op.body
        if isinstance(body, ConsumerGroupHeartbeatRequest):
            member = self.known.members.get(body.member_id)
            names, regex = body.subscribed_topic_names, body.subscribed_topic_regex
            if body.member_epoch < JOIN_EPOCH:
                return 1
            names_change = names is not None and (
                member is None or member.names is None or frozenset(names) != member.names
            )
            names_change = names_change or (names is not None and body.member_epoch == JOIN_EPOCH)
            self._voted = self._voted or body.server_assignor is not None
            voted = self._voted and not self.known.profile.old_vote_keeps_epoch  # M-HB-14; M-HB-15 needs no new vote
            return (
                int(names_change)
                + int(voted)
                + 2 * (regex is not None and (member is None or (regex or None) != member.regex))
            )
        return int(isinstance(body, JoinGroupRequest | LeaveGroupRequest))

    def _may_remove(self, op: Op) -> list[Member]:
        """The other members that this request may remove or replace."""
        body: Any = op.body
        if isinstance(body, DeleteGroupsRequest):
            return []
        if isinstance(body, LeaveGroupRequest):
            instances = {row.group_instance_id for row in body.members} - {None}
        else:
            own = getattr(body, "instance_id", None) or getattr(body, "group_instance_id", None)
            instances = {own} - {None} if _joins(op) else set()
        mine = set(_members_of(op))
        return [
            member
            for member in self.known.members.values()
            if member.member_id not in mine and any(self.known.maps(each, member) for each in instances if each)
        ]

    # ---- answers ------------------------------------------------------------------------------------------------

    def _answered(self, op: Op) -> None:
        known = self.known
        self._open.remove(op)
        for member in self._removed.pop(op.id, ()):
            member.removers -= 1
        for name in _members_of(op):
            there = known.members.get(name)  # none if the group was deleted meanwhile
            if there is not None and op in there.open:
                there.open.remove(op)
        self._judge(op)

    def _judge(self, op: Op) -> None:
        known = self.known
        body: Any = op.body
        answer: Any = op.answer
        if isinstance(answer, OddAnswer):
            raise Wrong(op, "an error code that the API has")
        turned_away = isinstance(body, ConsumerGroupHeartbeatRequest) and invalid(known.settings, op.version, body)
        if is_absent(answer) and not turned_away:
            away = known.coordination.may_be_away(
                op.line, op.answer_line, op.connection, sent_ms=op.sent_ms, answered_ms=known.now
            )
            if not away and not known.may_lack_protocol(op, answer):
                raise Wrong(op, "an answer of the coordinator", "F-RT-02")
            return
        if isinstance(body, ConsumerGroupHeartbeatRequest):
            assert isinstance(answer, ConsumerGroupHeartbeatResponse)
            heartbeat.judge(known, op, body, answer)
        elif isinstance(body, JoinGroupRequest):
            classic.join(known, op, body, answer)
        elif isinstance(body, SyncGroupRequest):
            classic.sync(known, op, body, answer)
        elif isinstance(body, HeartbeatRequest):
            classic.heartbeat(known, op, body, answer)
        elif isinstance(body, LeaveGroupRequest):
            classic.leave(known, op, body, answer)
        elif isinstance(body, Commit):
            others.commit(known, op, body, answer)
        elif isinstance(body, ConsumerGroupDescribeRequest):
            others.describe(known, op, answer)
        elif isinstance(body, DescribeGroupsRequest):
            others.describe_classic(known, op, answer)
        elif isinstance(body, Listing):
            others.listed(known, op, body, answer)
        elif isinstance(body, DeleteGroupsRequest):
            self._deleted(op, answer)

    def _deleted(self, op: Op, answer: Any) -> None:
        if any(row.error_code is ErrorCode.NONE for row in answer.results):
            if self.known.surely_consumer(op):
                raise Wrong(op, "NON_EMPTY_GROUP", "C-ADM-09")
            for member in list(self.known.members.values()):
                if not member.open and member.until_line < op.line:
                    del self.known.members[member.member_id]
                else:  # the request may have come after the deletion
                    member.presence, member.exact = Presence.PERHAPS, False
            self.known.epochs.begin_anew(op.answer_line)
            if not any(map(_may_create, self.known.before[op.id].rivals)):
                self.known.deleted_from = op.answer_line
        elif any(row.error_code is ErrorCode.GROUP_ID_NOT_FOUND for row in answer.results):
            self.known.no_consumer_group(op)


def _may_create(op: Op) -> bool:
    """Whether the request may create a missing group (C-JOIN-10, M-VAL-21, O-COMMIT-20)."""
    return _joins(op) or isinstance(op.body, Commit)


def _is_readable(metadata: bytes) -> bool:
    try:
        decode_subscription(metadata)
    except ValueError:
        return False
    return True


def _claims(member: Member, instance: str | None) -> None:
    member.claims = member.claims or instance not in (None, member.instance)
    member.instance = instance


def _joins(op: Op) -> bool:
    body = op.body
    joins = isinstance(body, ConsumerGroupHeartbeatRequest) and body.member_epoch == JOIN_EPOCH
    return joins or isinstance(body, JoinGroupRequest)

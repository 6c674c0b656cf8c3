"""Judge the client's half of a wire trace: whether each request is one that a member may send."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    RequestBody,
    SyncGroupRequest,
    SyncGroupResponse,
)

from ...traces.convert import wire_request, wire_response
from ...traces.files import WireTrace
from ...traces.lines import API_OF_KEY, DisconnectedLine, ReceivedLine, SentLine
from ..checker.offsets.places import Names, Place, names_of
from ..checker.verdict import Verdict
from ..promises import Breach
from .classic import GRACE_MS, REMOVED, ClassicMember, Since, listed, wrong_assignment
from .consumer import ConsumerMember

_COMMIT: Final = 8
#: a member that sends this many requests of one API within a second does not pause between them (``pace``)
_TOO_MANY: Final = 50
_SECOND_MS: Final = 1_000
#: answers after which a member may not even join under its id; after UNKNOWN_MEMBER_ID to a Heartbeat it may try
_FORGETS: Final = ("FENCED_INSTANCE_ID", "UNKNOWN_MEMBER_ID to JoinGroup")
Member: TypeAlias = ClassicMember | ConsumerMember
Body: TypeAlias = RequestBody | ConsumerGroupHeartbeatRequest


@dataclass(slots=True)
class Reading:
    """Reads a trace line by line. ``used``: the connections of each member. ``latest``: the last member of each
    connection. ``contact``: when each member was last heard of by its coordinator, while it must be heard of.
    ``heartbeats``: whether the times of heartbeats are judged, which needs a trace of one client that ran all the
    time."""

    names: Names
    session_ms: int
    heartbeats: bool
    members: dict[tuple[str, str], Member] = field(default_factory=dict)
    used: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    latest: dict[int, Member] = field(default_factory=dict)
    open: dict[tuple[int, int], tuple[SentLine, Body]] = field(default_factory=dict)
    recent: dict[tuple[int, int], deque[int]] = field(default_factory=dict)
    contact: dict[tuple[str, str], int] = field(default_factory=dict)

    def sent(self, number: int, line: SentLine) -> Iterator[Breach]:
        """Judge a request."""
        if "undecoded" in line.body:
            return
        if line.api_key in API_OF_KEY and self._is_hasty(line):
            name, last = API_OF_KEY[line.api_key], self.latest.get(line.connection)
            may = "a pause between requests that bring nothing new"
            sent = f"sent {name} {_TOO_MANY} times within a second"
            group = str(line.body.get("group_id") or "")
            yield Breach("pace", number, line.at_ms, group, "" if last is None else last.member_id, sent, may)
        if line.api_key == _COMMIT:
            yield from self._commit(number, line)
            return
        try:
            body = wire_request(line)
        except ValidationError:
            return
        if body is not None:
            self.open[line.connection, line.correlation_id] = line, body
        match body:
            case JoinGroupRequest():
                yield from self._join(number, line, body)
            case SyncGroupRequest() | HeartbeatRequest():
                yield from self._as_member(number, line, body)
            case LeaveGroupRequest():
                self._leave(line, body)
            case ConsumerGroupHeartbeatRequest():
                yield from self._beat(number, line, body)

    def _is_hasty(self, line: SentLine) -> bool:
        times = self.recent.setdefault((line.connection, line.api_key), deque(maxlen=_TOO_MANY))
        times.append(line.at_ms)
        if len(times) == _TOO_MANY and times[-1] - times[0] < _SECOND_MS:
            times.clear()
            return True
        return False

    def _join(self, number: int, line: SentLine, body: JoinGroupRequest) -> Iterator[Breach]:
        key = body.group_id, body.member_id
        member = self.members.get(key) if body.member_id else self.latest.get(line.connection)
        if not isinstance(member, ClassicMember) or member.group != body.group_id:
            return
        sent = f"sent JoinGroup v{line.api_version} as {body.member_id or 'a new member'}"
        if not body.member_id:
            # it has reset itself: it owns nothing (K-CB-02)
            self.contact.pop((member.group, member.member_id), None)
            fresh = ClassicMember(body.group_id, "", protocol=member.protocol)
            if wrong := fresh.joins(body, line.at_ms, line.connection):
                text = f"{sent}, saying that it owns {listed(wrong)}"
                yield self._breach("owned partitions", number, line, member, text, "that it owns nothing")
            return
        self._uses(line, member)
        self.contact.pop(key, None)
        gone = member.removed
        if gone is not None and gone.what in _FORGETS and gone.binds(line.at_ms, line.connection):
            may = f"JoinGroup with an empty member id, or nothing: {gone.what} at {gone.at_ms} ms"
            yield self._breach("removed", number, line, member, sent, may)
        usable = member.usable
        if wrong := member.joins(body, line.at_ms, line.connection):
            text = f"{sent}, saying that it owns {listed(wrong)}"
            yield self._breach("owned partitions", number, line, member, text, f"at most {listed(usable or ())}")

    def _as_member(self, number: int, line: SentLine, body: SyncGroupRequest | HeartbeatRequest) -> Iterator[Breach]:
        member = self.members.get((body.group_id, body.member_id))
        if not isinstance(member, ClassicMember):
            return
        name = API_OF_KEY[line.api_key]
        sent = f"sent {name} v{line.api_version} as {body.member_id} in generation {body.generation_id}"
        follows = isinstance(body, SyncGroupRequest)
        if wrong := member.wrong_identity(body.generation_id, line.at_ms, line.connection, follows=follows):
            yield self._breach(wrong[0], number, line, member, sent, wrong[1])
        elif isinstance(body, SyncGroupRequest) and (odd := wrong_assignment(body, member.led)):
            may = "each partition assigned to one member of the list at most"
            yield self._breach("assignment", number, line, member, f"{sent}; {odd}", may)
        self._uses(line, member)
        self._heard(line, member)

    def _leave(self, line: SentLine, body: LeaveGroupRequest) -> None:
        for row in body.members:
            key = body.group_id, row.member_id
            member = self.members.get(key)
            self.contact.pop(key, None)  # also if it leaves by a new connection, as kafka-go
            if member is not None and line.connection in self.used.get(key, ()):  # else an administrator removes it
                member.left = Since(line.at_ms, line.connection, "LeaveGroup")

    def _beat(self, number: int, line: SentLine, body: ConsumerGroupHeartbeatRequest) -> Iterator[Breach]:
        key = body.group_id, body.member_id
        member = self.members.get(key)
        if not isinstance(member, ConsumerMember):
            if body.member_epoch != 0 or not body.member_id:
                return
            member = self.members[key] = ConsumerMember(body.group_id, body.member_id)
        sent = f"sent ConsumerGroupHeartbeat v{line.api_version} as {body.member_id}"
        if body.member_epoch > 0 and line.connection in member.waiting and member.left is None:
            may = f"its answer first: a heartbeat of {member.waiting[line.connection]} ms is not answered"
            yield self._breach("one heartbeat", number, line, member, f"{sent} in epoch {body.member_epoch}", may)
        for promise, what, may in member.beats(body, self.names, line.at_ms, line.connection):
            yield self._breach(promise, number, line, member, f"{sent}, saying {what}", may)
        member.waiting[line.connection] = line.at_ms
        self._uses(line, member)
        if body.member_epoch < 0:
            self.contact.pop(key, None)
        else:
            self._heard(line, member)

    def _commit(self, number: int, line: SentLine) -> Iterator[Breach]:
        asked = line.body
        group, member_id = str(asked.get("group_id") or ""), str(asked.get("member_id") or "")
        epoch: Any = asked.get("generation_id_or_member_epoch", -1)
        committed = set(_committed(asked, self.names))
        sent = f"committed {listed(committed)} (OffsetCommit v{line.api_version})"
        if not member_id:
            last = self.latest.get(line.connection)
            if epoch >= 0:
                known = "" if last is None or last.left is None else f"; it left at {last.left.at_ms} ms"
                may = f"its member id with generation {epoch}, or generation -1 without one{known}"
                text = f"{sent} in generation {epoch} without a member id"
                yield self._breach("commit identity", number, line, last, text, may, group)
            return
        member = self.members.get((group, member_id))
        if member is None or epoch < 0:
            return
        word = "generation" if isinstance(member, ClassicMember) else "epoch"
        sent = f"{sent} as {member_id} in {word} {epoch}"
        if wrong := member.wrong_identity(epoch, line.at_ms, line.connection):
            yield self._breach(wrong[0], number, line, member, sent, wrong[1])
        elif places := member.not_owned(committed, line.at_ms, line.connection):
            may = f"commits of {listed(member.usable or ())}, not of {listed(places)}"
            yield self._breach("commit of owned partitions", number, line, member, sent, may)
        if isinstance(member, ClassicMember):
            self._heard(line, member)

    def received(self, line: ReceivedLine) -> None:
        """Note an answer."""
        asked, body = self.open.pop((line.connection, line.correlation_id), (None, None))
        if asked is None or body is None:
            return
        try:
            answer = None if "undecoded" in line.body else wire_response(line)
        except ValidationError:
            answer = None
        at, connection = line.at_ms, line.connection
        match body, answer:
            case JoinGroupRequest(), JoinGroupResponse():
                self._joined(body, answer, at, connection)
            case SyncGroupRequest() | HeartbeatRequest(), SyncGroupResponse() | HeartbeatResponse():
                member = self.members.get((body.group_id, body.member_id))
                if isinstance(member, ClassicMember) and body.generation_id == member.generation:
                    if isinstance(answer, SyncGroupResponse) and answer.error_code is ErrorCode.NONE:
                        member.synced(answer, at, connection)
                    self._note_error(member, answer.error_code, at, connection)
            case ConsumerGroupHeartbeatRequest(), ConsumerGroupHeartbeatResponse():
                self._answered(body, answer, at, connection)

    def _joined(self, body: JoinGroupRequest, answer: JoinGroupResponse, at: int, connection: int) -> None:
        key = body.group_id, answer.member_id or body.member_id
        if answer.error_code is ErrorCode.NONE:
            member = self.members.get(key)
            if not isinstance(member, ClassicMember):
                member = self.members[key] = ClassicMember(*key)
            member.joined(body, answer, at, connection)
            self.latest[connection] = member
            self.used.setdefault(key, set()).add(connection)
            self.contact[key] = at
        elif body.member_id and isinstance(member := self.members.get((body.group_id, body.member_id)), ClassicMember):
            self._note_error(member, answer.error_code, at, connection)
            known = member.removed is not None and member.removed.what in _FORGETS
            if answer.error_code is ErrorCode.UNKNOWN_MEMBER_ID and not known:
                member.removed = Since(at, connection, "UNKNOWN_MEMBER_ID to JoinGroup")

    def _answered(
        self, body: ConsumerGroupHeartbeatRequest, answer: ConsumerGroupHeartbeatResponse, at: int, connection: int
    ) -> None:
        key = body.group_id, body.member_id or answer.member_id or ""
        member = self.members.get(key)
        if member is None and body.member_epoch == 0 and answer.error_code is ErrorCode.NONE:
            member = self.members[key] = ConsumerMember(*key)  # version 0: the coordinator gives the id
        if isinstance(member, ConsumerMember):
            member.waiting.pop(connection, None)
            member.hears(body, answer, self.names, at, connection)
            if member.removed is not None:
                self.contact.pop(key, None)

    def _note_error(self, member: ClassicMember, code: ErrorCode, at: int, connection: int) -> None:
        if code in REMOVED:
            member.out(code, at, connection)
            self.contact.pop((member.group, member.member_id), None)

    def disconnected(self, line: DisconnectedLine) -> None:
        """Note the end of a connection: what is open on it gets no answer."""
        for member in self.members.values():
            if isinstance(member, ConsumerMember):
                member.waiting.pop(line.connection, None)

    def late(self, number: int, at_ms: int) -> Iterator[Breach]:
        """Return the members whose heartbeats are late, each once."""
        for key, last in list(self.contact.items()) if self.heartbeats else ():
            member = self.members[key]
            session_ms = member.session_ms if isinstance(member, ClassicMember) else self.session_ms
            if at_ms - last > session_ms + GRACE_MS and not getattr(member, "waiting", None):
                del self.contact[key]
                sent = f"sent no heartbeat for {at_ms - last} ms"
                may = f"a heartbeat within its session timeout of {session_ms} ms"
                yield Breach("heartbeats", number, at_ms, member.group, member.member_id, sent, may)

    def _uses(self, line: SentLine, member: Member) -> None:
        self.used.setdefault((member.group, member.member_id), set()).add(line.connection)
        self.latest[line.connection] = member

    def _heard(self, line: SentLine, member: Member) -> None:
        key = member.group, member.member_id
        if key in self.contact or isinstance(member, ConsumerMember):
            self.contact[key] = line.at_ms

    def _breach(  # noqa: PLR0917
        self, promise: str, number: int, line: SentLine, member: Member | None, sent: str, may: str, group: str = ""
    ) -> Breach:
        of = (group, "") if member is None else (member.group, member.member_id)
        return Breach(promise, number, line.at_ms, *of, sent, may)


def breaches(trace: WireTrace, *, heartbeats: bool = False, until_ms: int | None = None) -> list[Breach]:
    """As ``judged``, without the number of members."""
    return judged(trace, heartbeats=heartbeats, until_ms=until_ms)[0]


def judged(trace: WireTrace, *, heartbeats: bool = False, until_ms: int | None = None) -> tuple[list[Breach], int]:
    """Return the requests that break a promise, in their order, and the number of members that the trace shows from
    their join on. ``Breach.number`` counts the lines behind the header.

    Args:
        trace: of any number of clients.
        heartbeats: also judge whether heartbeats come in time; only for one client that was running all the time.
        until_ms: the end of that time, in the trace's clock.
    """
    reading = Reading(names_of(trace), trace.settings.group_consumer_session_timeout_ms, heartbeats)
    found: list[Breach] = []
    ends = False
    for number, line in enumerate(trace.lines, 1):
        if not ends:
            found += reading.late(number, line.at_ms if until_ms is None else min(line.at_ms, until_ms))
        ends = until_ms is not None and line.at_ms >= until_ms
        if isinstance(line, SentLine):
            found += reading.sent(number, line)
        elif isinstance(line, ReceivedLine):
            reading.received(line)
        elif isinstance(line, DisconnectedLine):
            reading.disconnected(line)
    if until_ms is not None and not ends:
        found += reading.late(len(trace.lines), until_ms)
    return found, len(reading.members)


def with_breaches(trace: WireTrace, verdict: Verdict) -> Verdict:
    """Return the verdict about a trace with the breaches of its clients, by lines of the file. After an answer that is
    impossible nothing is said about the clients of that group."""
    refused = {refusal.group_id for refusal in verdict.refusals}
    found, members = judged(trace)
    lines = trace.numbers or range(len(trace.lines) + 1)
    kept = [replace(each, number=lines[each.number]) for each in found if each.group not in refused]
    return replace(verdict, breaches=tuple(kept), members=members)


def _committed(body: Any, names: Names) -> Iterator[Place]:
    for topic in body.get("topics") or ():
        for row in topic.get("partitions") or ():
            yield names.place(topic, row["partition_index"])

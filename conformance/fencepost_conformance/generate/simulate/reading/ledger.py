"""An independent account of what one consumer may do: its positions, the records that it returns, and its commits.

The ledger sees the application's calls, the membership, requests with their answers, and the reader's commands. It
derives a position for each partition, and compares it with the reader's own; how the reader gets there does not matter.
The rules are those of sections 8.6, 8.7 and 8.8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fencepost.member.events import LookupFailed, Poll, Send, Subscribe, Unsubscribe
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from fencepost.protocol.partitions import TopicPartition
from fencepost_consumer import Client, Reader, Reset
from fencepost_consumer import events as ev
from fencepost_consumer.broker import (
    EpochEnd,
    FetchedPartition,
    FetchFrom,
    FetchRequest,
    FetchResponse,
    ListedOffset,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    Record,
)
from fencepost_consumer.membership import Membership, Phase
from fencepost_consumer.partition import FetchState, Leader

from ..broken import demand

_PASSING = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


@dataclass
class Place:
    """The state of one partition.

    ``at``: the position, or None if there is none yet. ``epoch``: leader epoch of the last record read. ``basis``: the
    leader epoch under which the position was found or confirmed. ``may``: positions that answers allow now, by their
    origin. ``answers``: fetched data, with the fetch offset and the order of arrival. ``waiting``: the answer that must
    be returned next; ``moved``: the partition was paused since."""

    at: int | None = None
    epoch: int | None = None
    basis: int | None = None
    order: int = 0  #: of the answer that was returned last
    reported_in: int | None = None  #: the leader epoch in which the truncation was reported
    wants: Reset | None = None  #: a reset that the application has asked for
    may: dict[str, tuple[int, int | None]] | None = None
    lost: bool = False  #: an answer allows the reader to drop the position
    answers: list[tuple[int, int, FetchedPartition]] | None = None
    waiting: tuple[int, int, FetchedPartition] | None = None
    moved: bool = False
    paused: bool = False
    out: frozenset[int] = frozenset()  #: offsets that a leader reported as out of range
    failing: bool = False  #: a fetch failed and no poll has reported it yet

    def allow(self, origin: str, offset: int, epoch: int | None) -> None:
        self.may = {**(self.may or {}), origin: (offset, epoch)}


def name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


class Ledger:
    """Checks every step: call ``before`` ahead of the event, and ``after`` behind it."""

    def __init__(self, reader: Reader) -> None:
        settings = reader.settings
        self.settings, self.client = settings, settings.client
        self.membership = Membership()
        self.topics: frozenset[str] | None = None
        self.places: dict[TopicPartition, Place] = {}
        self.leaders: dict[TopicPartition, Leader] = {}
        self.sent: dict[int, tuple[int | None, object, tuple[str, int]]] = {}
        self.arrivals = 0
        #: answers for revoked partitions: they count if the partition comes back before their turn (K-FETCH-01)
        self.away: dict[TopicPartition, list[tuple[int, int, FetchedPartition]]] = {}
        self.handed = 0
        self.allowed: list[dict[TopicPartition, int]] = []  #: offsets that may be committed: the positions at each call
        self.was: dict[TopicPartition, int] | None = None  #: positions before this step
        self.due: int | None = None  #: time of the next automatic commit; None if unknown
        self.blind = False
        self.asking = False  #: a call of the classic consumer waits
        self.called: list[int] = []  #: asynchronous commits whose callback has not run, in order
        self.ended: dict[str, ErrorCode | None] = {}  #: answers by the label of the commit; None: no answer came

    # --- what is known ---

    def fetchable(self, partition: TopicPartition) -> bool:
        place = self.places.get(partition)
        return place is not None and not place.paused and self.open(partition)

    @property
    def generation(self) -> tuple[str, int]:
        """The identity of offset look-ups: a classic member in a stable generation, else ("", -1)."""
        nobody = self.client is Client.CONSUMER or self.membership.phase is not Phase.STABLE
        return ("", -1) if nobody else self.membership.identity

    def open(self, partition: TopicPartition) -> bool:
        marked = self.membership.pending_revocation | self.membership.pending_callback
        return partition not in marked and (self.topics is None or partition.topic in self.topics)

    def positions(self, reader: Reader) -> dict[TopicPartition, int]:
        """Return the positions that may be committed: the validated ones."""
        found = {}
        for partition, place in self.places.items():
            state = reader.partitions.get(partition)
            if place.at is not None and state is not None and state.state is FetchState.FETCHING:
                found[partition] = place.at
        return found

    # --- before a step ---

    def before(self, event: ev.ReaderEvent, reader: Reader) -> None:
        """Apply the parts of the event that count whatever the reader does."""
        for place in self.places.values():
            if place.at is not None and place.may is not None:
                place.may = {origin: found for origin, found in place.may.items() if origin == "truncation"}
        if self.was is None:
            self._restart(event.at_ms)
        self.was = self.positions(reader)
        self.allowed.append(self.was)
        self.asking = self.client is Client.CLASSIC and reader.waiting is not None
        match event:
            case Subscribe(topics=topics):
                self.topics = topics
                for partition, place in self.places.items():
                    if self.client is Client.CONSUMER and partition.topic not in topics:
                        place.waiting = None  # K-SUB-03: its fetched data is dropped at once
            case Unsubscribe():
                self.topics, self.places = None, {}
            case ev.MembershipChanged(membership=membership):
                self._membership(membership)
            case ev.Pause(partitions=partitions) | ev.Resume(partitions=partitions):
                for each in partitions:
                    self.places[each].paused = isinstance(event, ev.Pause)
                    self.places[each].moved = True
            case ev.Seek(partition=partition, offset=offset, leader_epoch=epoch):
                self.places[partition].may = {"seek": (offset, epoch)}
                self.places[partition].wants = None
            case ev.SeekToEnd(partitions=partitions, to=to):
                for each in partitions or tuple(self.places):
                    self.places[each].lost, self.places[each].wants, self.places[each].may = True, to, None
            case ev.CommitAsync(callback=callback, offsets=offsets):
                if callback is not None:
                    self.called.append(callback)
                self._explicit(offsets)
            case ev.CommitSync(offsets=offsets):
                self._explicit(offsets)
            case ev.CommitWanted(partitions=wanted):
                self.allowed.append({each: at for each, at in self.allowed[-1].items() if each in wanted})
                self.allowed[-2:-1] = []
            case ev.LeadersChanged(leaders=leaders):
                self.leaders = dict(leaders)
                for partition, place in self.places.items():
                    if place.epoch is None:  # nothing to confirm
                        place.basis = self.leaders.get(partition, Leader()).epoch
            case ev.AssignmentAdopted():
                self._restart(event.at_ms)
            case LookupFailed():
                self._lose_sight()
            case ev.Arrived(request_id=request_id, body=body):
                self._arrived(request_id, body)
            case ev.NeverArrived(request_id=request_id):
                self._never(request_id)

    def _explicit(self, offsets: ev.Offsets | None) -> None:
        if offsets is not None:
            self.allowed.append({each: offset.offset for each, offset in offsets})

    def _membership(self, membership: Membership) -> None:
        self.membership = membership
        places = {each: self.places.get(each) or Place(answers=self.away.pop(each, None)) for each in membership.owned}
        self.places = places

    def _restart(self, now: int) -> None:
        if not self.blind:
            self.due = now + self.settings.auto_commit_interval_ms

    def _never(self, request_id: int) -> None:
        _, body, _ = self.sent.pop(request_id, (None, None, ("", -1)))
        if isinstance(body, OffsetCommitRequest):
            self._ended(body, None)

    def coordinator_lost(self) -> None:
        """Nothing that was sent to the coordinator will be answered."""
        for request_id, (node, _, _) in tuple(self.sent.items()):
            if node is None:
                self._never(request_id)

    def _elsewhere(self) -> None:
        """A broker reported that it is not the coordinator; only the new consumer still reads its other answers."""
        if self.client is not Client.CONSUMER:
            self.coordinator_lost()

    def _ended(self, body: OffsetCommitRequest, error: ErrorCode | None) -> None:
        for topic in body.topics:
            for each in topic.partitions:
                self.ended[each.committed_metadata or ""] = error
        if error is None or error in _PASSING:
            self._lose_sight()

    def _lose_sight(self) -> None:
        """Forget when the next automatic commit is due: after some failures it comes sooner."""
        self.due, self.blind = None, True

    def _arrived(self, request_id: int, body: object) -> None:
        _, asked, whose = self.sent.pop(request_id, (None, None, ("", -1)))
        match asked, body:
            case OffsetCommitRequest(), OffsetCommitResponse():
                error = body.topics[0].partitions[0].error_code
                self._ended(asked, error)
                if error in _PASSING and error.name not in (
                    "COORDINATOR_LOAD_IN_PROGRESS",
                    "UNKNOWN_TOPIC_OR_PARTITION",
                ):
                    self._elsewhere()
            case OffsetFetchRequest(), OffsetFetchResponse():
                if body.groups[0].error_code is ErrorCode.NOT_COORDINATOR:
                    self._elsewhere()
                self._committed(body, whose)
            case ListOffsetsRequest(), ListOffsetsResponse():
                for timestamp, listed in zip(dict(asked.timestamps).values(), body.partitions, strict=True):
                    self._listed(timestamp, listed)
            case OffsetForLeaderEpochRequest(), OffsetForLeaderEpochResponse():
                for question, end in zip(asked.partitions, body.partitions, strict=True):
                    self._validated(question.current_leader_epoch, end)
            case FetchRequest(), FetchResponse():
                starts = {each.partition: each for each in asked.partitions}
                for fetched in body.partitions:
                    self._fetched(starts[fetched.partition], fetched)

    def _committed(self, body: OffsetFetchResponse, whose: tuple[str, int]) -> None:
        for topic in body.groups[0].topics:
            for each in topic.partitions:
                place = self.places.get(TopicPartition(topic.name, each.partition_index))
                if place is None or place.at is not None or each.error_code is not ErrorCode.NONE:
                    continue
                if each.committed_offset >= 0 and place.wants is None:
                    epoch = each.committed_leader_epoch
                    origin = f"committed {each.committed_offset} for {whose}"
                    place.allow(origin, each.committed_offset, epoch if epoch >= 0 else None)

    def _listed(self, timestamp: int, listed: ListedOffset) -> None:
        place = self.places.get(listed.partition)
        if place is None or place.at is not None or listed.error_code is not ErrorCode.NONE:
            return
        wants = place.wants or self.settings.reset.reset
        if {-1: Reset.LATEST, -2: Reset.EARLIEST}.get(timestamp, Reset.BY_DURATION) is wants:
            place.allow("reset", listed.offset, None)

    def _validated(self, leader_epoch: int, end: EpochEnd) -> None:
        place = self.places.get(end.partition)
        if place is None or place.at is None or end.error_code is not ErrorCode.NONE:
            return
        if end.end_offset < 0:
            place.lost = True
        elif end.end_offset < place.at:
            place.allow("truncation", end.end_offset, end.leader_epoch)
            place.reported_in = leader_epoch
        else:
            place.basis = leader_epoch

    def _fetched(self, asked: FetchFrom, fetched: FetchedPartition) -> None:
        place = self.places.get(asked.partition)
        if place is None:
            if self.client is not Client.KAFKA_PYTHON and fetched.error_code is ErrorCode.NONE:
                self.arrivals += 1
                self.away.setdefault(asked.partition, []).append((self.arrivals, asked.offset, fetched))
            return
        if fetched.error_code is not ErrorCode.NONE:
            place.failing = True
            if fetched.error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
                place.out |= {asked.offset}
            return
        self.arrivals += 1
        entry = (self.arrivals, asked.offset, fetched)
        place.answers = [*(place.answers or ()), entry]
        place.moved = place.paused or (place.moved and place.waiting is not None)
        place.waiting = entry if asked.offset == place.at else None

    # --- after a step ---

    def after(self, event: ev.ReaderEvent, commands: Iterable[ev.ReaderCommand], reader: Reader) -> None:
        """Check the reader's actions against what it may do."""
        listed = list(commands)
        good = any(isinstance(each, ev.PollReturned) and each.problem is None for each in listed)
        checked = isinstance(event, Poll) and good
        for command in listed:
            if isinstance(command, ev.PollReturned):
                self._returned(command, reader)
        for partition, place in self.places.items():
            self._hold(partition, place, reader)
        for command in listed:
            match command:
                case Send(request_id=request_id, body=body):
                    self.sent[request_id] = (None, body, self.generation)
                    self._sent(body)
                case ev.SendToLeader(node=node, request_id=request_id, body=body):
                    self._sent_to(node, body, checked=checked)
                    self.sent[request_id] = (node, body, ("", -1))
                case ev.CommitCallback():
                    self._callback(command)
        self.allowed = [each for each in self.allowed if each][-400:]
        if not reader.closed:
            demand(list(reader.partitions) == [] or set(reader.partitions) == set(self.places), "K-SUB-02", "assigned")

    def _hold(self, partition: TopicPartition, place: Place, reader: Reader) -> None:
        """Check that the reader's position is the ledger's, or one that an answer allows."""
        position = reader.partitions[partition].position
        at = None if position is None else position.offset
        if at is None:
            lost = place.at is None or place.lost or place.at in place.out
            demand(lost, "K-POS-06", f"{name(partition)} has lost its position {place.at}")
            if place.at is not None:
                place.at = place.epoch = place.waiting = None
            place.lost = False
            return
        may = dict(place.may or {})
        if at != place.at or "seek" in may:
            # K-POS-08: a look-up from another generation does not count, except for a call that waited for it
            mine = "" if self.asking else f" for {self.generation}"
            origins = [
                origin
                for origin, (offset, _) in may.items()
                if offset == at and (not origin.startswith("committed") or origin.endswith(mine))
            ]
            rule = "K-POS-05" if "seek" in may else "K-POS-07" if "truncation" in may else "K-POS-03"
            text = f"{name(partition)} went from {place.at} to {at}; allowed: {may}"
            demand(bool(origins), rule, text)
            place.at, place.epoch = at, may[origins[0]][1]
            if origins[0] == "truncation":
                place.basis = place.reported_in
            else:
                place.basis = self.leaders.get(partition, Leader()).epoch
                if place.epoch is not None:
                    place.basis = None  # to be confirmed
            place.waiting = None
            place.may, place.wants, place.lost = None, None, False

    def _returned(self, poll: ev.PollReturned, reader: Reader) -> None:
        """Check the records that a poll returns (K-FETCH-02)."""
        count = sum(len(records) for _, records in poll.records)
        demand(count <= self.settings.max_poll_records, "K-POLL-03", f"{count} records in one poll")
        before = -1
        for partition, records in poll.records:
            demand(partition in self.places, "K-SUB-02", f"records of {name(partition)}, which is not assigned")
            place = self.places[partition]
            rule = "K-SUB-05" if place.paused else "K-SUB-03"
            demand(self.fetchable(partition), rule, f"records of {name(partition)}, which must not be returned now")
            if place.at is None:
                self._begin(place, records)
            fitting = [
                order
                for order, _, fetched in place.answers or ()
                if place.at is not None and self._rest(fetched, place.at)[: len(records)] == records
            ]
            demand(bool(fitting), "K-POS-06", f"{name(partition)} at {place.at} returned {[r.offset for r in records]}")
            order = next((each for each in fitting if each > before), fitting[-1])  # the same data may have come twice
            demand(place.moved or order > before, "K-FETCH-02", f"{name(partition)} is returned too late")
            before, place.order = before if place.moved else order, order
            self.handed += len(records)
            place.at, place.epoch, place.lost = records[-1].offset + 1, records[-1].leader_epoch, False
        for partition, place in self.places.items():
            self._follow(partition, place, reader)
        if poll.problem is None and (self.client is not Client.KAFKA_PYTHON or self.membership.settled):
            nothing = not poll.records and not poll.advanced
            self._left_out(self.settings.max_poll_records - count, self.positions(reader), nothing=nothing)

    def _begin(self, place: Place, records: tuple[Record, ...]) -> None:
        """Set a position that was found in a poll; buffered records at it can be returned at once."""
        for offset, epoch in (place.may or {}).values():
            for _, _, fetched in place.answers or ():
                if self._rest(fetched, offset)[: len(records)] == records:
                    place.at, place.epoch = offset, epoch

    def _rest(self, fetched: FetchedPartition, at: int) -> tuple[Record, ...]:
        return tuple(each for each in fetched.records if each.offset >= at)

    def _follow(self, partition: TopicPartition, place: Place, reader: Reader) -> None:
        """Follow the reader over offsets without records behind the last record of an answer."""
        state = reader.partitions.get(partition)
        if state is None or state.position is None or place.at is None or state.position.offset <= place.at:
            return
        ends = [fetched.next_offset for _, _, fetched in place.answers or () if not self._rest(fetched, place.at)]
        if state.position.offset in ends and not place.may:
            place.at = state.position.offset

    def _left_out(self, room: int, valid: Mapping[TopicPartition, int], *, nothing: bool) -> None:
        """Check that a poll leaves nothing out: it returns buffered records while there is room (K-POLL-03)."""
        failing = any(place.failing for place in self.places.values())
        for partition, place in self.places.items():
            place.failing = place.failing and not nothing  # it waits behind the records
            if place.waiting is None:
                continue
            order, start, fetched = place.waiting
            read = partition in valid and self.fetchable(partition) and (place.at == start or place.order == order)
            if place.paused and self.client is not Client.KAFKA_PYTHON:
                continue
            if not read or room > 0:
                if read and not failing and place.at is not None and place.basis is not None:
                    left = self._rest(fetched, place.at)
                    demand(not left or place.moved, "K-POLL-03", f"{name(partition)} at {place.at} was left out")
                place.waiting = None

    # --- requests ---

    def _sent_to(self, node: int, body: object, *, checked: bool) -> None:
        """``checked``: a poll has just compared the positions with the current leaders. Otherwise the new consumer's
        background fetches by the result of the last poll, when a search for positions has ended (N-POLL-03)."""
        if not isinstance(body, FetchRequest):
            return
        flying = [each for to, each, _ in self.sent.values() if to == node and isinstance(each, FetchRequest)]
        demand(not flying, "K-FETCH-01", f"two fetches to broker {node} at once")
        for each in body.partitions:
            demand(self.fetchable(each.partition), "K-SUB-03", f"{name(each.partition)} must not be fetched now")
            place = self.places[each.partition]
            demand(place.at == each.offset, "K-FETCH-01", f"fetched from {each.offset}, read up to {place.at}")
            leader = self.leaders.get(each.partition, Leader())
            looked = self.client is Client.CLASSIC and self.membership.settled
            looked |= self.client is Client.CONSUMER and checked
            confirmed = place.epoch is None or place.basis is None or place.basis == leader.epoch
            demand(
                confirmed or not looked,
                "K-POS-07",
                f"{name(each.partition)} is read from a leader that has not confirmed epoch {place.epoch}",
            )

    def _sent(self, body: object) -> None:
        match body:
            case OffsetFetchRequest():
                demand(body.require_stable, "K-OFF-01", "the request allows unstable offsets")
            case OffsetCommitRequest():
                self._commit(body)

    def _commit(self, body: OffsetCommitRequest) -> None:
        said = {
            TopicPartition(topic.name, each.partition_index): each.committed_offset
            for topic in body.topics
            for each in topic.partitions
        }
        demand(said in self.allowed, "K-OFF-05", f"{said} is committed, but the positions were {self.allowed[-3:]}")
        identity = (body.member_id, body.generation_id_or_member_epoch)
        rule = "N-CMT-01" if self.client is Client.CONSUMER else "K-OFF-02"
        demand(identity == self.membership.identity, rule, f"{identity} commits, but is {self.membership.identity}")

    def automatic(self, event: ev.ReaderEvent, commands: Iterable[ev.ReaderCommand], reader: Reader) -> None:
        """A poll that gets so far sends an automatic commit that is due (K-OFF-04)."""
        waits = self.client is Client.CONSUMER or not self.membership.settled or self.due is None
        if waits or not isinstance(event, Poll) or not self.settings.auto_commit or event.at_ms < (self.due or 0):
            return
        sent = any(isinstance(each, Send) and isinstance(each.body, OffsetCommitRequest) for each in commands)
        if any(isinstance(each, ev.PollReturned) and each.problem is not None for each in commands):
            self._lose_sight()  # the error may have come before or after
            return
        self._restart(event.at_ms)
        if reader.coordinator.node is not None and self.was and self.membership.phase is Phase.STABLE:
            demand(sent, "K-OFF-04", "an automatic commit was due, but none was sent")

    # --- commits ---

    def _callback(self, command: ev.CommitCallback) -> None:
        """Callbacks run in the order of the calls, and report the broker's answer (K-OFF-18)."""
        text = f"callback {command.callback} of {self.called}"
        demand(self.called[:1] == [command.callback], "K-OFF-18", text)
        self.called.pop(0)
        label = command.offsets[0][1].metadata
        if label not in self.ended:
            return
        error, problem = self.ended[label], command.problem
        demand((error is ErrorCode.NONE) == (problem is None), "K-OFF-18", f"answered {error}, reported {problem}")
        if problem is not None and (error is None or error in _PASSING):
            demand(
                problem.kind is ev.ProblemKind.RETRIABLE_COMMIT, "K-OFF-18", f"{error} is reported as {problem.kind}"
            )

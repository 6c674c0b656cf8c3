"""A consumer in a cluster of two brokers and a coordinator. A random generator, or Hypothesis, makes the choices.

All kinds of events happen: records appear and disappear, leaders change and lose records, requests are answered late,
wrongly or never, rebalances take partitions away, and the application makes any call. In the end the cluster is healthy
for a while, and the consumer must have read everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

from fencepost.member.events import (
    CoordinatorFound,
    CoordinatorLost,
    Disconnect,
    FindCoordinator,
    LookupFailed,
    Poll,
    RequestMetadata,
    Send,
    Subscribe,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from fencepost.protocol.partitions import TopicPartition
from fencepost_consumer import Client, Reader, ReaderSettings, Reset, ResetPolicy, step
from fencepost_consumer import events as ev
from fencepost_consumer.broker import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from fencepost_consumer.membership import Membership, Phase
from fencepost_consumer.partition import FetchState, Leader

from ..broken import demand
from .ledger import Ledger
from .logs import Log, failed

PARTITIONS: Final = (*(TopicPartition("t", number) for number in range(3)), TopicPartition("u", 0))
STEPS: Final = 120
_QUIET_TURNS: Final = 30
_ENDED = (ev.ProblemKind.NO_OFFSET, ev.ProblemKind.OUT_OF_RANGE, ev.ProblemKind.TRUNCATION)
_COMMIT_ERRORS = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.OFFSET_METADATA_TOO_LARGE,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.STALE_MEMBER_EPOCH,
)
_FETCH_ERRORS = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.OFFSET_OUT_OF_RANGE)
#: Events; repetition sets their frequency.
_HAPPENS = (
    *("poll",) * 20,
    *("answer",) * 28,
    *("time", "append", "leaders") * 4,
    *("answer badly", "lose", "skip", "move", "cut", "expire", "assign", "assign", "mark", "phase", "coordinator"),
    *("async",) * 5,
    *("pause", "resume", "seek", "seek to end", "sync", "wanted", "adopted", "wakeup", "position", "lag"),
    *("others commit", "subscribe", "committed", "rejoin"),
)

Choose = Callable[[Sequence[Any]], Any]


class World:
    """The cluster. ``choose`` picks one of several options and makes the run deterministic."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.client: Client = choose(tuple(Client))
        reset = ResetPolicy(choose((Reset.EARLIEST, Reset.EARLIEST, Reset.LATEST, Reset.NONE)))
        settings = ReaderSettings(
            "g",
            client=self.client,
            reset=reset,
            max_poll_records=choose((3, 7, 500)),
            auto_commit=choose((True, False)),
            auto_commit_interval_ms=500,
        )
        self.reader = Reader(settings)
        self.ledger = Ledger(self.reader)
        self.now = 1_000
        self.steps = 0
        self.logs = {each: Log(each, Leader(1 + each.partition % 2, 0)) for each in PARTITIONS}
        self.committed: dict[TopicPartition, tuple[int, int | None]] = {}
        self.requests: list[Send | ev.SendToLeader] = []
        self.looking = self.metadata_wanted = False
        self.membership = Membership((), member_id="m", epoch=1, phase=Phase.STABLE)
        self.commits = 0
        self.thrown: set[ev.ProblemKind] = set()
        for log in self.logs.values():
            log.append(choose((0, 3, 6)))
        self.do(Subscribe(self.now, frozenset({"t", "u"})))
        self.publish_leaders()
        self.do(CoordinatorFound(self.now, node=9))
        self.own(tuple(each for each in PARTITIONS if choose((True, True, False))))

    # --- steps ---

    def do(self, event: ev.ReaderEvent) -> tuple[ev.ReaderCommand, ...]:
        """Run one step and let the ledger check it."""
        self.steps += 1
        self.ledger.before(event, self.reader)
        if isinstance(event, CoordinatorLost):
            self.ledger.coordinator_lost()
        self.reader, commands = step(self.reader, event)
        for command in commands:
            match command:
                case Send() | ev.SendToLeader():
                    self.requests.append(command)
                case FindCoordinator():
                    self.looking = True
                case Disconnect():
                    self.drop()
                case RequestMetadata():
                    self.metadata_wanted = True
                case ev.PollReturned(problem=ev.Problem(kind=kind)) | ev.CallReturned(problem=ev.Problem(kind=kind)):
                    self.thrown.add(kind)
        self.ledger.after(event, commands, self.reader)
        self.ledger.automatic(event, commands, self.reader)
        return commands

    def drop(self) -> None:
        """Lose the connection to the coordinator, with all requests on it."""
        self.requests = [each for each in self.requests if isinstance(each, ev.SendToLeader)]

    def own(self, partitions: tuple[TopicPartition, ...], **changes: Any) -> None:
        """Change the membership."""
        marks = {"pending_revocation": frozenset(), "pending_callback": frozenset(), "settled": True}
        self.membership = replace(self.membership, owned=partitions, **{**marks, **changes})
        self.do(ev.MembershipChanged(self.now, self.membership))

    def publish_leaders(self) -> None:
        """Deliver the current metadata."""
        self.metadata_wanted = False
        self.do(ev.LeadersChanged(self.now, tuple((each, log.leader) for each, log in self.logs.items())))

    # --- what happens ---

    def happen(self) -> None:
        """Let one of the possible events happen."""
        what = self.choose(_HAPPENS)
        calls = self.reader.waiting is None
        owned = tuple(self.reader.partitions)
        one = self.choose(owned) if owned else None
        log = self.logs[self.choose(PARTITIONS)]
        match what:
            case "poll" if calls:
                self.do(Poll(self.now))
            case "answer" | "answer badly" | "lose" if self.requests:
                self.answer(self.pick(), what)
            case "time":
                self.wait(self.choose((10, 100, 600)))
            case "append":
                log.append(self.choose((1, 2, 6)))
            case "skip":
                log.skip()
            case "move":
                log.move()
            case "cut":
                log.cut(self.choose((1, 3)))
            case "expire":
                log.expire(self.choose((1, 5)))
            case "leaders":
                self.publish_leaders()
            case "coordinator":
                self.coordinator()
            case "assign" | "mark" | "phase" | "rejoin":
                self.rebalance(what)
            case "others commit":
                self.committed[log.partition] = (self.choose((log.start, log.end)), log.leader.epoch)
            case "wakeup":
                self.do(ev.Wakeup(self.now))
            case "wanted":
                wanted = frozenset(each for each in owned if self.choose((True, False)))
                self.commits += 1
                self.do(ev.CommitWanted(self.now, commit_id=self.commits, partitions=wanted))
            case "adopted":
                self.do(ev.AssignmentAdopted(self.now))
            case _ if calls and one is not None:
                self.call(what, one)

    def call(self, what: str, one: TopicPartition) -> None:
        """Make an application call about a partition."""
        log = self.logs[one]
        match what:
            case "pause":
                self.do(ev.Pause(self.now, (one,)))
            case "resume":
                self.do(ev.Resume(self.now, (one,)))
            case "seek":
                offset = self.choose((log.start, log.end, (log.start + log.end) // 2))
                epoch = self.choose((None, log.leader.epoch))
                self.do(ev.Seek(self.now, one, offset, epoch))
            case "seek to end":
                self.do(ev.SeekToEnd(self.now, (one,), self.choose((Reset.EARLIEST, Reset.LATEST))))
            case "async" | "sync":
                self.commits += 1
                label = f"#{self.commits}"
                offsets = ((one, ev.OffsetAndMetadata(self.choose((log.start, log.end)), metadata=label)),)
                if what == "async":
                    self.do(ev.CommitAsync(self.now, offsets, self.commits))
                else:
                    self.do(ev.CommitSync(self.now, self.choose((offsets, None)), 400))
            case "position":
                self.do(ev.AskPosition(self.now, one, 400))
            case "committed":
                self.do(ev.AskCommitted(self.now, (one,), 400))
            case "lag":
                self.do(ev.AskLag(self.now, one))
            case "subscribe":
                self.do(Subscribe(self.now, self.choose((frozenset({"t"}), frozenset({"t", "u"})))))

    def rebalance(self, what: str) -> None:
        """Change the membership: a new generation adds or removes partitions, or a rebalance is in progress."""
        owned = self.membership.owned
        match what:
            case "assign":
                self.membership = replace(self.membership, epoch=self.membership.epoch + 1, phase=Phase.STABLE)
                self.own(tuple(each for each in PARTITIONS if self.choose((True, True, False))))
            case "mark":
                marked = frozenset(each for each in owned if self.choose((True, False)))
                which = self.choose(("pending_revocation", "pending_callback"))
                self.own(owned, **{which: marked}, settled=False)
            case "phase" if self.client is not Client.CONSUMER:
                phase = self.choose((Phase.PREPARING, Phase.COMPLETING, Phase.OUT))
                self.own(owned, phase=phase, settled=False)
            case _:
                self.membership = replace(self.membership, epoch=self.membership.epoch + 1, phase=Phase.STABLE)
                self.own(owned)

    def coordinator(self) -> None:
        """Find the coordinator if the consumer looks for it, else lose it."""
        if self.looking:
            self.looking = False
            found = self.choose((True, True, False))
            self.do(CoordinatorFound(self.now, node=9) if found else LookupFailed(self.now, None))
        elif self.reader.coordinator.node is not None:
            self.drop()
            self.do(CoordinatorLost(self.now))

    def wait(self, delay_ms: int) -> None:
        """Let time pass, and fire timers."""
        end = self.now + delay_ms
        while self.reader.deadlines and min(self.reader.deadlines.values()) <= end:
            timer = min(self.reader.deadlines, key=lambda each: self.reader.deadlines[each])
            self.now = max(self.now, self.reader.deadlines[timer])
            self.do(ev.ReaderTimerFired(self.now, timer))
        self.now = end

    # --- answers ---

    def pick(self) -> Send | ev.SendToLeader:
        """Pick a request to answer; on one connection they are answered in order."""
        nodes = dict.fromkeys(each.node if isinstance(each, ev.SendToLeader) else None for each in self.requests)
        chosen = self.choose(tuple(nodes))
        return next(
            each for each in self.requests if (each.node if isinstance(each, ev.SendToLeader) else None) == chosen
        )

    def answer(self, request: Send | ev.SendToLeader, how: str = "answer") -> None:
        """Answer correctly, with an error or never."""
        self.requests.remove(request)
        if how == "lose":
            if isinstance(request, Send):
                self.drop()
                self.ledger.coordinator_lost()
            self.do(ev.NeverArrived(self.now, request_id=request.request_id))
            return
        body = self.reply(request.body, bad=how == "answer badly")
        self.do(ev.Arrived(self.now, request_id=request.request_id, body=body))

    def reply(self, body: object, *, bad: bool) -> Any:
        """Return a broker's answer; ``bad``: with an error, if the request has one."""
        match body:
            case OffsetCommitRequest():
                return self.commit(body, self.choose(_COMMIT_ERRORS) if bad else ErrorCode.NONE)
            case OffsetFetchRequest():
                return self.offsets(body, bad=bad)
            case ListOffsetsRequest():
                return ListOffsetsResponse(
                    tuple(self.logs[each].list(timestamp) for each, timestamp in body.timestamps)
                )
            case OffsetForLeaderEpochRequest():
                return OffsetForLeaderEpochResponse(
                    tuple(
                        replace(self.logs[each.partition].epoch_end(each), error_code=error)
                        for each in body.partitions
                        for error in (self.logs[each.partition].wrong_leader(each.current_leader_epoch),)
                    )
                )
            case FetchRequest():
                return FetchResponse(tuple(self.fetched(each, bad=bad) for each in body.partitions))
        raise AssertionError(body)

    def fetched(self, each: Any, *, bad: bool) -> Any:
        """Read the log, or return an error if the request names another leader epoch."""
        log = self.logs[each.partition]
        answer, error = log.fetch(each), log.wrong_leader(each.current_leader_epoch)
        if bad and self.choose((True, False)):
            error = self.choose(_FETCH_ERRORS)
        return answer if error is ErrorCode.NONE else failed(answer, error)

    def commit(self, body: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
        """Store a commit, unless it fails."""
        topics = []
        for topic in body.topics:
            rows = []
            for each in topic.partitions:
                rows.append(OffsetCommitResponsePartition(each.partition_index, error))
                if error is ErrorCode.NONE:
                    epoch = each.committed_leader_epoch
                    self.committed[TopicPartition(topic.name, each.partition_index)] = (
                        each.committed_offset,
                        epoch if epoch >= 0 else None,
                    )
            topics.append(OffsetCommitResponseTopic(name=topic.name, partitions=tuple(rows)))
        return OffsetCommitResponse(tuple(topics))

    def offsets(self, body: OffsetFetchRequest, *, bad: bool) -> OffsetFetchResponse:
        """Return committed offsets, unless they are unstable or the coordinator has moved."""
        if bad and self.choose((True, False)):
            group = OffsetFetchResponseGroup("g", error_code=ErrorCode.NOT_COORDINATOR)
            return OffsetFetchResponse((group,))
        topics = []
        for topic in body.groups[0].topics or ():
            rows = []
            for number in topic.partition_indexes:
                offset, epoch = self.committed.get(TopicPartition(topic.name, number), (-1, None))
                error = ErrorCode.UNSTABLE_OFFSET_COMMIT if bad else ErrorCode.NONE
                rows.append(
                    OffsetFetchResponsePartition(
                        number,
                        committed_offset=-1 if bad else offset,
                        committed_leader_epoch=-1 if epoch is None else epoch,
                        error_code=error,
                    )
                )
            topics.append(OffsetFetchResponseTopic(name=topic.name, partitions=tuple(rows)))
        return OffsetFetchResponse((OffsetFetchResponseGroup("g", topics=tuple(topics)),))

    # --- the end ---

    def settle(self) -> None:
        """Stop all faults: the reader gets to the end of every log, and every commit is answered (like LIV-05)."""
        self.membership = replace(self.membership, phase=Phase.STABLE)
        self.own(self.membership.owned)
        self.publish_leaders()
        for _ in range(_QUIET_TURNS):
            while self.requests:
                self.answer(self.requests[0])
            if self.looking:
                self.looking = False
                self.do(CoordinatorFound(self.now, node=9))
            if self.metadata_wanted:
                self.publish_leaders()
            self.wait(400)
            if self.reader.waiting is None:
                paused = tuple(each for each, state in self.reader.partitions.items() if state.paused)
                if paused:
                    self.do(ev.Resume(self.now, paused))
                if "u" not in self.reader.topics:
                    self.do(Subscribe(self.now, frozenset({"t", "u"})))
                self.do(Poll(self.now))
        if self.reader.settings.reset.reset is Reset.NONE:
            return
        for partition, state in self.reader.partitions.items():
            at, end = self.reader.position(partition), self.logs[partition].end
            what = f"{partition.topic}-{partition.partition} stays at {at}, {state.state.value}; its log ends at {end}"
            demand(at is not None and (at >= end), "K-POLL-01", what)
            demand(state.state is FetchState.FETCHING, "K-POLL-01", what)
        demand(not self.ledger.called, "K-OFF-18", f"callbacks {self.ledger.called} have not run")


def walk(seed: int) -> World:
    """Run one random walk to its quiet end; raises ``Broken``."""
    world = World(Random(f"reading {seed}").choice)
    for _ in range(STEPS):
        world.happen()
    world.settle()
    return world

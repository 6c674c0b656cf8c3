"""Random offset requests to groups of every kind, each step compared with the book (``offset_ledger``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from fencepost.coordinator import consumer_view, initial_state, replay, step, view
from fencepost.log import left
from fencepost.protocol import events as ev
from fencepost.protocol import offset_messages as o
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.embedded import Subscription, encode_subscription
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    JoinGroupRequest,
    LeaveGroupMember,
    LeaveGroupRequest,
    Protocol,
    RequestBody,
    ResponseBody,
    SyncGroupAssignment,
    SyncGroupRequest,
)
from fencepost.protocol.offset_records import OffsetCommitKey
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupState, GroupView

from ...generate.carried import as_carried
from ...generate.edge_moves import units
from ...generate.simulate.broken import demand
from ...targets.ids import MemberIds
from ...targets.java_order import JavaOrder
from .offset_ledger import Book, book, check_answer, check_store, group_error, reads, subscribes, too_old

SETTINGS: Final = Settings(
    group_initial_rebalance_delay_ms=0,
    group_consumer_assignment_interval_ms=0,
    offset_metadata_max_bytes=3,
    offsets_retention_ms=20_000,
    offsets_retention_check_interval_ms=5_000,
)
STEPS: Final = 70
_A, _B, _AGAIN = (bytes(15) + bytes([number]) for number in (1, 2, 3))
_IMAGES: Final = (
    (ev.Topic("a", _A, 3), ev.Topic("b", _B, 1)),
    (ev.Topic("a", _A, 3), ev.Topic("b", _B, 1)),
    (ev.Topic("a", _AGAIN, 3), ev.Topic("b", _B, 1)),
    (ev.Topic("b", _B, 1),),
)
_SESSION = 1_800_000
_EXPIRY = ev.TimerKey(ev.TimerKind.EXPIRY)
_SIMPLE, _CLASSIC, _CONSUMER = "simple", "classic", "consumer"
_COMMITS = (o.OffsetCommitRequest, o.TxnOffsetCommitRequest)


class Play:
    """A coordinator, the log behind it, and the expected results of its answers."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(f"offsets {seed}")
        self.state = initial_state(SETTINGS, INTENDED)
        self.choices = JavaOrder(MemberIds())
        self.log: list[Record] = []
        self.now = self.number = self.images = self.steps = 0
        self.emptied: dict[str, int] = {}
        self.begun: dict[str, GroupView] = {}  #: classic groups at the beginning of their generation
        self.ids: dict[str, bytes] = {}
        self.fetches: dict[int, tuple[bool, Book]] = {}
        self.feed(ev.Load(0, leader_epoch=1, records=()))
        self.image(_IMAGES[0])

    def image(self, topics: Sequence[ev.Topic]) -> None:
        """Create and delete topics; offsets of deleted ones are removed too (O-EXP-23)."""
        kept, gone = book(self.log), {row.topic_id: row.name for row in self.state.topics.by_id.values()}
        for row in topics:
            gone.pop(row.topic_id, None)
        lost = {
            where
            for where, entry in [*kept.committed.items(), *((each[0], e) for each, e in kept.pending.items())]
            if where[1] in gone.values() and gone.get(entry.value.topic_id, where[1]) == where[1]
            if entry.value.topic_id == o.ZERO_ID or gone.get(entry.value.topic_id) == where[1]
        }
        self.images += 1
        outcome = self.feed(ev.TopicsChanged(self.now, tuple(topics), version=self.images))
        self.ids = {row.name: row.topic_id for row in topics}
        demand(
            _tombstones(outcome.records) == lost, "O-EXP-23", f"for {gone} {_tombstones(outcome.records)} were removed"
        )

    def feed(self, event: ev.Event) -> ev.Outcome:
        before = self.state
        self.state, outcome = step(before, event, self.choices)
        self.steps += 1
        if isinstance(event, ev.AppendFailed):
            del self.log[before.base :]
        self.log += outcome.records
        for name in self.state.groups:
            group = view(self.state, name)
            if group is None or group.state is not GroupState.EMPTY or group.protocol_type is None:
                self.emptied.pop(name, None)
            else:
                self.emptied.setdefault(name, self.now)
            known = self.begun.get(name)
            if group is None:
                self.begun.pop(name, None)
            elif known is None or isinstance(event, ev.Load) or known.generation_id != group.generation_id:
                self.begun[name] = group
        check_store(self.state, book(self.log), "INV-REPLAY-01")
        for reply in outcome.replies:
            if isinstance(reply.body, o.OffsetFetchResponse):
                stable, kept = self.fetches.pop(reply.request_id)
                for answer in reply.body.groups:
                    check_answer(kept, True, answer, stable=stable)
        return outcome

    def ask(self, version: int, body: RequestBody, **more: object) -> tuple[ResponseBody | None, ev.Outcome]:
        """Return the answer, None if it waits for the log, and the outcome of the request."""
        self.number += 1
        request = ev.Request(
            self.now,
            id=self.number,
            version=version,
            client_id="c",
            client_host="/h",
            body=body,
            **more,  # type: ignore[arg-type]
        )
        outcome = self.feed(request)
        return next((each.body for each in outcome.replies if each.request_id == self.number), None), outcome

    # Next steps

    def commit(self) -> None:
        """Send a commit, plain or within a transaction, from a client that may commit or not."""
        rng = self.rng
        group_id, member_id, epoch, instance = self.somebody()
        plain = rng.random() < 0.6
        version = rng.choice([4, 8, 9, 9, 9, 10] if plain else [1, 5, 5, 6])
        by_id = version >= (10 if plain else 6)
        topics = []
        for name in rng.sample(["a", "b", "x"], rng.choice([1, 1, 2])):
            parts = tuple(
                o.OffsetCommitRequestPartition(
                    number,
                    committed_offset=rng.randrange(100),
                    committed_metadata=rng.choice([None, "", "abc", "abcd"]),
                )
                for number in rng.sample(range(3), rng.choice([1, 1, 2]))
            )
            topic_id = self.ids.get(name, bytes(15) + b"\x09")
            topics.append(
                o.OffsetCommitRequestTopic(topic_id=topic_id, partitions=parts)
                if by_id
                else o.OffsetCommitRequestTopic(name=name, partitions=parts)
            )
        body: o.OffsetCommitRequest | o.TxnOffsetCommitRequest
        if plain:
            body = o.OffsetCommitRequest(
                group_id,
                generation_id_or_member_epoch=epoch,
                member_id=member_id,
                group_instance_id=instance,
                retention_time_ms=rng.choice([-1, -1, 2_000]),
                topics=tuple(topics),
            )
        else:
            body = o.TxnOffsetCommitRequest(
                group_id,
                transactional_id="t",
                producer_id=rng.randrange(3),
                producer_epoch=0,
                generation_id=epoch,
                member_id=member_id,
                group_instance_id=instance,
                topics=tuple(topics),
            )
        denied = frozenset({"b"} if rng.random() < 0.1 else ())
        self._commit(version, as_carried(body, version), by_id, denied)

    def _commit(
        self, version: int, body: o.OffsetCommitRequest | o.TxnOffsetCommitRequest, by_id: bool, denied: frozenset[str]
    ) -> None:
        names = {topic_id: name for name, topic_id in self.ids.items()}
        wanted: dict[tuple[str, int], ErrorCode] = {}
        known: list[o.OffsetCommitRequestTopic] = []
        for topic in body.topics:
            name = names.get(topic.topic_id, "") if by_id else topic.name
            error: ErrorCode | None = None
            if by_id and not name:
                error = ErrorCode.UNKNOWN_TOPIC_ID
            elif name in denied:
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            there = []
            for each in topic.partitions:
                count = self.state.topics.by_name[name].partitions if name in self.ids else 0
                missing = None if each.partition_index < count else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                code = error or missing
                if code is not None:
                    wanted[name or str(topic.topic_id), each.partition_index] = code
                else:
                    there.append(each)
            if there:
                known.append(o.OffsetCommitRequestTopic(name=name, topic_id=self.ids[name], partitions=tuple(there)))
        asked = replace(body, topics=tuple(known))
        refused = group_error(self.state, asked, version, self.ids) if known else None
        for topic in known:
            for each in topic.partitions:
                long = units(each.committed_metadata or "") > SETTINGS.offset_metadata_max_bytes
                wanted[topic.name, each.partition_index] = refused or (
                    ErrorCode.OFFSET_METADATA_TOO_LARGE if long else ErrorCode.NONE
                )
        answer, outcome = self.ask(version, body, denied_topics=denied)
        rule = "O-COMMIT-07" if isinstance(body, o.OffsetCommitRequest) else "O-TXN-05"
        taken = {(where[0], where[1]) for where, error in wanted.items() if error is ErrorCode.NONE}
        if answer is not None:
            assert isinstance(answer, o.OffsetCommitResponse | o.TxnOffsetCommitResponse)
            answered = {
                ((names.get(topic.topic_id) or str(topic.topic_id)) if by_id else topic.name, row.partition_index): (
                    row.error_code
                )
                for topic in answer.topics
                for row in topic.partitions
            }
            demand(answered == wanted, rule, f"{body} is answered {answered} instead of {wanted}")
            demand(not taken or not outcome.records, "O-COMMIT-11", "a commit is answered before it is replicated")
        else:
            demand(refused is None, rule, f"{body} is not rejected with {refused}")
        keys = {
            (key.topic, key.partition) for record in outcome.records if isinstance(key := record.key, OffsetCommitKey)
        }
        demand(keys == taken, rule, f"{body} writes {keys} instead of {taken}")
        for record in outcome.records:
            producer = record.producer.producer_id if record.producer is not None else None
            whose = body.producer_id if isinstance(body, o.TxnOffsetCommitRequest) else None
            demand(producer == whose, "O-TXN-07", f"a record of {producer} for a commit of {whose}")

    def somebody(self) -> tuple[str, str, int, str | None]:
        """Return a group, and a client that commits to it, mostly one that may."""
        rng = self.rng
        group_id = rng.choice([_SIMPLE, _CLASSIC, _CONSUMER, _CONSUMER])
        group, other = view(self.state, group_id), consumer_view(self.state, group_id)
        members: list[tuple[str, int, str | None]] = [("", -1, None)]
        if group is not None:
            members += [(each.member_id, group.generation_id, each.group_instance_id) for each in group.members] * 3
        if other is not None:
            members += [(each.member_id, each.member_epoch, None) for each in other.members] * 3
        member_id, epoch, instance = rng.choice(members)
        if rng.random() < 0.3:
            epoch += rng.choice([-1, -1, 1])
        if rng.random() < 0.1:
            member_id = rng.choice(["", "stranger"])
        if rng.random() < 0.1:
            instance = rng.choice([None, "i", "j"])
        return group_id, member_id, epoch, instance

    def end(self) -> None:
        """End a transaction."""
        rng = self.rng
        body = o.WriteTxnMarkerRequest(
            producer_id=rng.randrange(3), producer_epoch=0, coordinator_epoch=0, committed=rng.random() < 0.6
        )
        self.ask(2, body)

    def fetch(self) -> None:
        """Fetch offsets of the newest state or of the replicated one."""
        rng = self.rng
        stable, everything = rng.random() < 0.5, rng.random() < 0.3
        wanted = tuple(o.OffsetFetchRequestTopic(name=name, partition_indexes=(0, 1, 2)) for name in ("a", "b"))
        group_id = rng.choice([_SIMPLE, _CLASSIC, _CONSUMER])
        body = o.OffsetFetchRequest(
            (o.OffsetFetchRequestGroup(group_id, topics=None if everything else wanted),), require_stable=stable
        )
        kept = book(self.log if stable else self.log[: self.state.committed])
        self.fetches[self.number + 1] = stable, kept
        answer, _ = self.ask(9, body)
        waits = stable and self.state.committed < self.state.end
        demand((answer is None) == waits, "O-FETCH-08", f"a fetch waits: {answer is None}, expected: {waits}")
        if isinstance(answer, o.OffsetFetchResponse) and everything:
            check_answer(kept, False, answer.groups[0], stable=stable)

    def delete(self) -> None:
        """Delete offsets, by name or with their group."""
        rng, kept = self.rng, book(self.log)
        group_id = rng.choice([_SIMPLE, _CLASSIC, _CONSUMER])
        group, other = view(self.state, group_id), consumer_view(self.state, group_id)
        there = group is not None or other is not None
        if rng.random() < 0.3:
            answer, outcome = self.ask(2, DeleteGroupsRequest((group_id,)))
            empty = (other is not None and not other.members) or (group is not None and group.state is GroupState.EMPTY)
            gone = kept.of(group_id) if empty else set()
            demand(_tombstones(outcome.records) == gone, "O-DEL-09", f"with {group_id} {outcome.records} were removed")
            demand((group_id in self.state.groups) == (there and not empty), "C-ADM-09", f"{group_id} exists")
            assert answer is None or isinstance(answer, DeleteGroupsResponse)
            return
        name = rng.choice(["a", "b"])
        topic = o.OffsetDeleteRequestTopic(name=name, partition_indexes=(0, 1))
        _, outcome = self.ask(0, o.OffsetDeleteRequest(group_id, (topic,)))
        kept_back = (other is not None and subscribes(other, name)) or (
            group is not None and group.state is not GroupState.EMPTY and reads(self.begun[group_id], name)
        )
        gone = {where for where in kept.of(group_id) if where[1] == name and where[2] < 2}
        missing = name not in self.ids or not there or kept_back
        gone = set() if missing else {where for where in gone if name == "a" or where[2] == 0}
        if group is not None and group.state not in (GroupState.EMPTY, GroupState.STABLE):
            return  # its subscription is that of its generation, which no view shows
        written = _tombstones(outcome.records)
        demand(written == gone, "O-DEL-06", f"{name} of {group_id} is deleted: {written} instead of {gone}")

    def expire(self) -> None:
        """Let the coordinator expire offsets, sooner or later."""
        due = next(armed.due for armed in self.state.timers.values() if armed.key == _EXPIRY)
        self.now = max(self.now, due) + self.rng.choice([0, 0, 6_000, 15_000])
        gone, groups = too_old(self.state, book(self.log), self.now, self.emptied, self.begun)
        before = set(self.state.groups)
        outcome = self.feed(ev.TimerFired(self.now, _EXPIRY))
        went = _tombstones(outcome.records)
        demand(went == gone, "INV-COMMIT-04", f"{went} expired instead of {gone}")
        left = before - set(self.state.groups)
        demand(left == groups, "O-EXP-20", f"groups {left} were removed instead of {groups}")
        again = next((armed.due for armed in self.state.timers.values() if armed.key == _EXPIRY), None)
        expected = self.now + SETTINGS.offsets_retention_check_interval_ms
        demand(again == expected, "O-EXP-26", f"the next expiry is at {again} instead of {expected}")

    def heartbeat(self) -> None:
        """Let a member of the consumer group join, stay or leave."""
        rng, group = self.rng, consumer_view(self.state, _CONSUMER)
        name = rng.choice(["m1", "m2"])
        member = next((each for each in group.members if each.member_id == name), None) if group is not None else None
        if member is None:
            self.ask(
                1,
                ConsumerGroupHeartbeatRequest(
                    _CONSUMER,
                    member_id=name,
                    member_epoch=0,
                    rebalance_timeout_ms=_SESSION,
                    subscribed_topic_names=rng.choice([("a",), ("a", "b")]),
                    topic_partitions=(),
                ),
            )
        else:
            leaves = rng.random() < 0.15
            epoch = -1 if leaves else member.member_epoch
            self.ask(1, ConsumerGroupHeartbeatRequest(_CONSUMER, member_id=name, member_epoch=epoch))

    def rebalance(self) -> None:
        """Let static members of the classic group join, sync or leave."""
        rng, group = self.rng, view(self.state, _CLASSIC)
        stays = group is not None and bool(group.members)
        if group is not None and stays and group.state is GroupState.COMPLETING_REBALANCE:
            leader = group.leader or ""
            shares = tuple(SyncGroupAssignment(each.member_id, b"") for each in group.members)
            body: RequestBody = SyncGroupRequest(
                _CLASSIC,
                generation_id=group.generation_id,
                member_id=leader,
                group_instance_id=next(each.group_instance_id for each in group.members if each.member_id == leader),
                protocol_type="consumer",
                protocol_name="range",
                assignments=shares,
            )
            self.ask(5, body)
        elif group is not None and stays and rng.random() < 0.3:
            self.ask(5, LeaveGroupRequest(_CLASSIC, (LeaveGroupMember("", group_instance_id="i"),)))
        else:
            topics = rng.choice([("a",), ("b",), ("a", "b")])
            self.ask(
                9,
                JoinGroupRequest(
                    _CLASSIC,
                    session_timeout_ms=_SESSION,
                    rebalance_timeout_ms=_SESSION,
                    member_id="",
                    group_instance_id=rng.choice(["i", "i", "j"]),
                    protocol_type="consumer",
                    protocols=(Protocol("range", encode_subscription(Subscription(topics))),),
                ),
            )

    def replicate(self) -> None:
        if self.state.ends:
            self.feed(ev.Appended(self.now, offset=self.rng.choice(self.state.ends)))

    def fail(self) -> None:
        if self.state.base < self.state.end:
            self.feed(ev.AppendFailed(self.now, ErrorCode.NOT_ENOUGH_REPLICAS))

    def change_topics(self) -> None:
        self.image(self.rng.choice(_IMAGES))

    def reload(self) -> None:
        """Lose and win the partition; the log may be compacted meanwhile."""
        log = left(self.log) if self.rng.random() < 0.5 else list(self.log)
        self.fetches.clear()
        self.state, _ = step(self.state, ev.Unload(self.now, leader_epoch=None), self.choices)
        if self.rng.random() < 0.5:  # no coordinator sees that topics are deleted now
            topics = self.rng.choice(_IMAGES)
            self.images += 1
            changed = ev.TopicsChanged(self.now, topics, version=self.images)
            self.state, _ = step(self.state, changed, self.choices)
            self.ids = {row.name: row.topic_id for row in topics}
        self.log = log
        self.feed(ev.Load(self.now, leader_epoch=2, records=tuple(log)))

    def wake(self) -> None:
        """End join phases and sessions that are due."""
        armed = [each for each in self.state.timers.values() if each.key.group_id and each.due <= self.now]
        for each in sorted(armed, key=lambda each: each.due)[:1]:
            self.feed(ev.TimerFired(self.now, each.key))

    def one(self) -> None:
        """Let one more thing happen, now or a little later."""
        self.now += self.rng.choice([0, 0, 0, 500])
        self.rng.choice(_MOVES)(self)


_MOVES: Final[tuple[Callable[[Play], None], ...]] = (
    *[Play.commit] * 12,
    *[Play.replicate] * 5,
    *[Play.fetch] * 4,
    *[Play.heartbeat] * 4,
    *[Play.rebalance] * 5,
    *[Play.wake] * 4,
    *[Play.end] * 3,
    *[Play.delete] * 2,
    *[Play.expire] * 2,
    Play.fail,
    Play.change_topics,
    Play.reload,
)


def check_offsets(seed: int, steps: int = STEPS) -> int:
    """Play a random stream. Returns the number of steps; raises ``Broken`` if one of them broke a rule."""
    play = Play(seed)
    for _ in range(steps):
        play.one()
    kept = book(play.log)
    whole = replay(initial_state(SETTINGS, INTENDED), play.log)
    check_store(whole, kept, "INV-REPLAY-01")
    less = left(play.log)
    check_store(replay(initial_state(SETTINGS, INTENDED), less), book(less), "F-REPLAY-14")
    _same(book(less), kept)
    for state in (play.state, whole):
        lost = {where[0] for where in (*kept.committed, *kept.unstable)} - set(state.groups)
        demand(not lost, "F-REPLAY-04", f"{lost} have offsets but are not groups")
    return play.steps


def _same(one: Book, other: Book) -> None:
    assert {where: entry.value for where, entry in one.committed.items()} == {
        where: entry.value for where, entry in other.committed.items()
    }, "a compacted log has other contents"


def _tombstones(records: Sequence[Record]) -> set[tuple[str, str, int]]:
    return {
        (record.key.group, record.key.topic, record.key.partition)
        for record in records
        if isinstance(record.key, OffsetCommitKey) and record.value is None
    }

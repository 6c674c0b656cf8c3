"""Random schedules of a consumer that reads and commits: its application's calls, and the answers to its requests.

The core takes a schedule while it is made. An application call may last for many events, until it is answered or times
out. As in the schedules of a classic member, a poll does not wait. A poll during a back-off is postponed to its end,
because the Java consumer sleeps through a back-off inside ``poll``.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from fencepost.member.consumer import ConsumerMember, ConsumerSettings
from fencepost.member.events import (
    Answered,
    Close,
    Poll,
    Send,
    Unsubscribe,
)
from fencepost.member.settings import MemberSettings
from fencepost.member.state import Member
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.profile import Profile
from fencepost_consumer.broker import (
    FetchRequest,
    LeaderResponse,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)
from fencepost_consumer.consumer import Consumer, ConsumerCommand, ConsumerEvent, consumer_of, step
from fencepost_consumer.events import (
    Arrived,
    AskCommitted,
    AskLag,
    AskPosition,
    Assign,
    CommitAsync,
    CommitSync,
    LeadersChanged,
    NeverArrived,
    OffsetAndMetadata,
    Offsets,
    Pause,
    ReaderTimer,
    ReaderTimerFired,
    Refused,
    Resume,
    Seek,
    SeekToEnd,
    SendToLeader,
    Wakeup,
)
from fencepost_consumer.partition import Leader
from fencepost_consumer.settings import Client, ReaderSettings, Reset, reset_policy
from fencepost_consumer.state import Mode, Reader, SentEnd

from .reading_answers import Answers, name
from .reading_outcomes import kind, listed, loosely, outcome
from .schedule import ASSIGNORS, Schedule, looked_up

#: longer than any schedule
HOURS_MS = 100_000_000
#: name to number and partitions
TOPICS = {"a": (1, 2), "b": (2, 2)}
PARTITIONS = tuple(TopicPartition(name, index) for name, (_, count) in TOPICS.items() for index in range(count))
_E = ErrorCode


def in_hash_order(partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    """Sort partitions as a small set of them in Java: Kafka's consumer forgets the order of assignment."""
    return tuple(sorted(partitions, key=lambda each: (31 * (31 + each.partition) + ord(each.topic)) % 16))


class Maker(Answers):
    """Makes a schedule; ``in_group``: the partitions come from the consumer's group."""

    def __init__(self, seed: int, profile: Profile, client: Client, *, in_group: bool = False) -> None:
        self.dice = dice = random.Random(f"reading {'in a group ' * in_group}{seed}")
        self.old = client is Client.CLASSIC
        group: dict[str, Any] = {
            "group_id": "g",
            "group_instance_id": dice.choice((None, None, "i")),
            "max_poll_interval_ms": HOURS_MS if in_group else 300_000,
            "request_timeout_ms": dice.choice((2_000, 30_000)),
            "retry_backoff_ms": 100,
            "retry_backoff_max_ms": 1_000,
            "auto_commit": dice.random() < 0.5,
        }
        member: dict[str, Any] = {"session_timeout_ms": 45_000, "heartbeat_interval_ms": 3_000}
        if in_group:
            member = {"session_timeout_ms": HOURS_MS, "heartbeat_interval_ms": HOURS_MS // 2}
        assignor = dice.choice(("range", "cooperative-sticky")) if in_group else "range"
        reading: dict[str, Any] = {
            "max_poll_records": dice.choice((1, 3, 500)),
            "auto_commit_interval_ms": dice.choice((500, 5_000)),
            "default_api_timeout_ms": 60_000,
            "metadata_max_age_ms": 300_000,
        }
        reset = dice.choice(("earliest", "latest", "none", "by_duration:PT1H"))
        stable = dice.random() < 0.3
        epochs = dice.random() < 0.85
        self.leaders = {
            each: (dice.randrange(2), dice.randrange(1, 4) if epochs else -1) for each in PARTITIONS
        }  # broker and epoch by partition; broker -1: no leader
        options = {
            **group, **member, **reading, "reading": True, "reset": reset, "assignor": assignor,
            "isolation": "read_committed" if stable else "read_uncommitted", "leaders": self._led(),
            "in_group": in_group,
        }  # fmt: skip
        self.made = Schedule(options, TOPICS)
        settings = ReaderSettings(
            **group, **reading, reset=reset_policy(reset), read_committed=stable, client=client, profile=profile
        )
        if self.old:
            half: Member | ConsumerMember = Member(
                MemberSettings(**group, **member, assignors=(ASSIGNORS[assignor](),), profile=profile)
            )
        else:
            half = ConsumerMember(ConsumerSettings(**group, profile=profile), "m")
        self.consumer: Consumer = consumer_of(half, Reader(settings))
        self.now = 1_000_000
        self.bodies: dict[int, Any] = {}
        self.callbacks = 0

    @property
    def reader(self) -> Reader:
        return self.consumer.reader

    def make(self, length: int) -> Schedule:
        self._metadata()
        while len(self.made.events) < length and not (self.reader.closed and self.reader.waiting is None):
            self._one()
        return self.made

    def _led(self) -> dict[str, Any]:
        return {name(each): list(leader) for each, leader in self.leaders.items()}

    def _ids(self) -> tuple[tuple[str, bytes], ...]:
        """Return the topic ids in metadata; none for the old consumer, which ignores them."""
        return () if self.old else tuple((each, bytes([number] * 16)) for each, (number, _) in TOPICS.items())

    # --- steps ---

    def _do(self, event: ConsumerEvent, entry: dict[str, Any]) -> None:
        first = len(self.made.events)
        self.made.events.append({**entry, "at": self.now})
        commands: tuple[ConsumerCommand, ...] = ()
        refused = None
        before = self.reader.partitions.keys()
        try:
            self.consumer, commands = step(self.consumer, event)
        except Refused as refusal:
            refused = refusal.exception
        while (due := self._due_too(event)) is not None:
            self.consumer, more = step(self.consumer, due)
            commands += more
        following = self._after(event, commands)
        for then in following:
            self.consumer, more = step(self.consumer, then)
            self._after(then, more)
            commands += more
        if self.reader.partitions.keys() != before and not self.reader.closed:  # new metadata arrive at once
            following = self._news()
            for then in following:
                self.consumer, more = step(self.consumer, then)
                commands += more
        if following:
            self.made.events[first]["metadata"] = True
        for each in commands:
            if isinstance(each, Send | SendToLeader):
                self.bodies[each.request_id] = each.body
        expected = outcome(first, self.consumer, commands, refused)
        self.made.outcomes.append(expected if self.old else loosely(expected))

    def _news(self) -> tuple[ConsumerEvent, ...]:
        """Return the current metadata."""
        return (LeadersChanged(self.now, known(self.leaders), self._ids()),)

    def _due(self) -> list[ConsumerEvent]:
        """Return the timers that are due."""
        return [ReaderTimerFired(self.now, timer) for timer, at in self.reader.deadlines.items() if at <= self.now]

    def _due_too(self, event: ConsumerEvent) -> ConsumerEvent | None:
        """Return another timer that is due after this event and fires within it, or None."""
        del event
        return None

    def _after(self, event: ConsumerEvent, commands: tuple[ConsumerCommand, ...]) -> tuple[ConsumerEvent, ...]:
        """Return the follow-up events of a step within the same event."""
        del event, commands
        return ()

    # --- what happens ---

    def _one(self) -> None:
        reader, dice = self.reader, self.dice
        self.now += dice.choice((0, 0, 1, 20))
        due = self._due()
        if due:
            self._do(due[0], {"kind": "timer"})
        elif self._turn_of_member():
            return
        elif self._sleeps():
            self.now = min(reader.deadlines.values())
        elif reader.coordinator.looking_up and dice.random() < 0.5:
            self._look_up()
        elif reader.sent and dice.random() < 0.5:
            self._network(dice.choice(list(reader.sent)))
        elif dice.random() < 0.06:
            self._metadata()
        elif reader.waiting is not None:
            timers = [
                at
                for timer, at in reader.deadlines.items()
                if self.old or (timer is ReaderTimer.RETRY and at < self.now + HOURS_MS // 2)
            ]
            if dice.random() < 0.2 and timers:
                self.now = min(timers)
            elif dice.random() < 0.1 and self.old:
                self._do(Wakeup(self.now), {"kind": "wakeup"})
        else:
            self._application()

    def _turn_of_member(self) -> bool:
        """Whether an event of the member alone happened."""
        return False

    def _close(self) -> None:
        self._do(Close(self.now), {"kind": "close", "timeout": self.reader.settings.request_timeout_ms})

    def _sleeps(self) -> bool:
        """Whether the waiting call sleeps through a back-off, during which Java's network stands still."""
        reader = self.reader
        if reader.waiting is None or not self.old:
            return False
        times = [each.retry_at for each in reader.commits if each.number == reader.waiting.commit]
        times += [lookup.retry_at for lookup in reader.lookups.values()]
        times += [reader.coordinator.retry_at]
        return any(at is not None and at > self.now for at in times)

    def _look_up(self) -> None:
        self._do(*looked_up(self.dice, self.now, 0.85))

    def _metadata(self) -> None:
        """Move, lose or find leaders. Sometimes the metadata are old; ``truth`` is the answer to the next request."""
        dice = self.dice
        leaders = {}
        for each, (node, epoch) in self.leaders.items():
            if dice.random() < 0.3:
                later = epoch if epoch < 0 else epoch + dice.choice((0, 1, 1, 2))
                self.leaders[each] = leaders[each] = dice.choice((0, 1, 0, 1, -1)), later
            elif dice.random() < 0.1 and epoch > 0 and each.topic in self.reader.watched_topics:
                leaders[each] = dice.randrange(2), epoch - 1
            else:
                leaders[each] = node, epoch
        shown = {name(each): list(leader) for each, leader in leaders.items()}
        self._do(
            LeadersChanged(self.now, known(leaders), self._ids()),
            {"kind": "metadata", "leaders": shown, "truth": self._led()},
        )

    # --- the application ---

    def _application(self) -> None:
        dice, reader = self.dice, self.reader
        if self.old:
            waits = [lookup.retry_at for lookup in reader.lookups.values()] + [reader.coordinator.retry_at]
            self.now = max([self.now, *(at for at in waits if at is not None)])
        chance = dice.random()
        if reader.mode is Mode.NONE and chance < 0.8:
            self._assign()
        elif chance < 0.5:
            self._poll()
        elif chance < 0.68:
            self._commit()
        elif chance < 0.74:
            self._seek()
        elif chance < 0.80:
            paused = dice.random() < 0.5
            several = self._some()
            entry = {"kind": "pause" if paused else "resume", "partitions": [name(each) for each in several]}
            self._do((Pause if paused else Resume)(self.now, several), entry)
        elif chance < 0.84:
            several = self._some() if dice.random() < 0.8 else ()
            to = dice.choice((Reset.EARLIEST, Reset.LATEST))
            entry = {"kind": "seek_to", "partitions": [name(each) for each in several], "to": to.value}
            self._do(SeekToEnd(self.now, several, to), entry)
        elif chance < 0.95:
            self._ask()
        elif chance < 0.97:
            self._assign()
        elif chance < 0.98:
            self._do(Wakeup(self.now), {"kind": "wakeup"})
        elif chance < 0.99 and reader.mode is not Mode.NONE:
            self._do(Unsubscribe(self.now), {"kind": "unsubscribe"})
        elif dice.random() < (0.3 if self.old else 0.5):
            self._close()

    def _assign(self) -> None:
        several = in_hash_order(each for each in PARTITIONS if self.dice.random() < 0.6) or PARTITIONS[:1]
        self._do(Assign(self.now, several), {"kind": "assign", "partitions": [name(each) for each in several]})

    def _poll(self) -> None:
        self._do(Poll(self.now), {"kind": "poll"})

    def _some(self) -> tuple[TopicPartition, ...]:
        """Draw assigned partitions; sometimes the first is not assigned, and Kafka then handles none of them."""
        chosen = [each for each in self.reader.partitions if self.dice.random() < 0.5]
        if self.dice.random() < 0.04:
            chosen.insert(0, self.dice.choice(PARTITIONS))
        return tuple(dict.fromkeys(chosen)) or tuple(self.reader.partitions)[:1] or PARTITIONS[:1]

    def _seek(self) -> None:
        dice = self.dice
        partition = self._some()[0]
        offset = -1 if dice.random() < 0.02 else dice.randrange(20)
        epoch = dice.choice((None, None, 0, 1, 2, 3, 4))
        if partition not in self.reader.partitions:  # Kafka would use the epoch before it rejects the seek
            epoch = None
        entry = {"kind": "seek", "partition": name(partition), "offset": offset, "epoch": epoch}
        self._do(Seek(self.now, partition, offset, epoch), entry)

    def _commit(self) -> None:
        dice = self.dice
        named: Offsets | None = None
        if dice.random() < 0.4:
            chosen = [each for each in PARTITIONS if dice.random() < 0.4]
            named = tuple(
                (
                    each,
                    OffsetAndMetadata(
                        dice.randrange(20),
                        dice.choice((None, None, 1, 3)),
                        dice.choice(("", "m")),
                    ),
                )
                for each in chosen
            )
        offsets = named and [[name(each), at.offset, at.leader_epoch, at.metadata] for each, at in named]
        fields: dict[str, Any] = {"offsets": None if named is None else list(offsets or ())}
        if dice.random() < 0.5 and (self.old or not self.reader.wakeup):
            timeout = dice.choice((150, 1_000, 60_000)) if self.old else 3_600_000
            self._do(CommitSync(self.now, named, timeout), {"kind": "commit_sync", "timeout": timeout, **fields})
        else:
            self.callbacks += 1
            label = None if dice.random() < 0.1 else self.callbacks
            self._do(CommitAsync(self.now, named, label), {"kind": "commit_async", "callback": label, **fields})

    def _ask(self) -> None:
        dice = self.dice
        several = self._some()
        timeout = dice.choice((150, 1_000, 60_000)) if self.old else 3_600_000
        fields: dict[str, Any] = {"partition": name(several[0]), "timeout": timeout}
        chance = dice.random()
        if chance < 0.3 and (self.old or not self.reader.wakeup):
            fields = {"kind": "committed", "partitions": [name(each) for each in several], "timeout": timeout}
            self._do(AskCommitted(self.now, several, timeout), fields)
        elif chance < 0.6:
            self._do(AskPosition(self.now, several[0], timeout), {"kind": "position", **fields})
        else:
            self._do(AskLag(self.now, several[0]), {"kind": "lag", **fields})

    # --- answers ---

    def _network(self, number: int) -> None:
        dice, reader = self.dice, self.reader
        lost = dice.random() < 0.05
        if lost and kind(reader.sent[number])[1] is None:  # with all requests to the coordinator, the oldest first
            number = min(each for each, sent in reader.sent.items() if kind(sent)[1] is None)
        request_id = 2 * number + 1
        if lost:
            self._do(NeverArrived(self.now, request_id=request_id), {"kind": "lost", "of": self._placed(number)})
        else:
            self._answer(number)

    def _placed(self, number: int) -> list[Any]:
        """Describe a request: its kind, its broker and its place among those that wait. Offset requests also have their
        partitions, since Kafka may send them in the order of a hash table."""
        sent = self.reader.sent

        def what(number: int) -> tuple[str, str | None, list[str]]:
            return *kind(sent[number]), sorted(name(each) for each in listed(sent[number]))

        place = [each for each in sent if what(each) == what(number)].index(number)
        named, node, partitions = what(number)
        return [named, str(node).replace("None", "null"), place, *([partitions] if partitions else [])]

    def _answer(self, number: int) -> None:
        reader = self.reader
        request_id = 2 * number + 1
        asked = self.bodies[request_id]
        entry: dict[str, Any] = {"of": self._placed(number), "kind": "answer"}
        body: Any
        match asked:
            case OffsetCommitRequest():
                body = self._committed(asked, entry)
            case OffsetFetchRequest():
                body = self._offsets(asked, entry)
            case ListOffsetsRequest(timestamps=timestamps):
                end = isinstance(reader.sent[number], SentEnd)
                body = self._listed([each for each, _ in timestamps], entry, end=end)
            case OffsetForLeaderEpochRequest(partitions=partitions):
                body = self._ends([each.partition for each in partitions], entry)
            case FetchRequest():
                body = self._fetched(asked, entry)
        if isinstance(body, OffsetCommitResponse | OffsetFetchResponse):
            self._do(Answered(self.now, request_id=request_id, body=body), entry)
        else:
            answered: LeaderResponse = body
            self._do(Arrived(self.now, request_id=request_id, body=answered), entry)


def known(leaders: dict[TopicPartition, tuple[int, int]]) -> tuple[tuple[TopicPartition, Leader], ...]:
    """Return the leaders in the form of metadata."""
    return tuple(
        (each, Leader(None if node < 0 else node, None if epoch < 0 else epoch))
        for each, (node, epoch) in leaders.items()
    )


def schedule(seed: int, length: int, profile: Profile) -> Schedule:
    """Return a classic consumer's schedule of that seed, about ``length`` events, with the core's outcomes."""
    return Maker(seed, profile, Client.CLASSIC).make(length)


def consumer_schedule(seed: int, length: int, profile: Profile) -> Schedule:
    """Return such a schedule of a KIP-848 consumer."""
    return Maker(seed, profile, Client.CONSUMER).make(length)

"""A custom host that calls ``step()`` directly: a file for a log, a dictionary of timers, and a clock.

Run it with ``python examples/sansio.py``. It needs only Fencepost, and uses no threads and no waits: the clock is a
number, so a minute of a group takes a moment. Two workers share six partitions. Their host dies during a write, and
leaves half a record behind. The next host loads the complete records, and the workers continue without a rebalance.
Then one worker stops sending heartbeats, and the other gets its partitions.
"""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from fencepost import (
    INTENDED,
    Appended,
    ErrorCode,
    Event,
    Load,
    RandomChoices,
    Request,
    Settings,
    TimerFired,
    Topic,
    TopicsChanged,
    initial_state,
    step,
)
from fencepost.codec import Codec
from fencepost.events import SetTimer, TimerKey
from fencepost.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, TopicPartitions
from fencepost.protocol.messages import ResponseBody
from fencepost.records import Record

GROUP, TOPIC = "orders", Topic("orders", b"orders-topic-id!", partitions=6)
CODEC = Codec()  # the bytes that Kafka stores


class Log:
    """Records in a file: the length and bytes of the key, then of the value. Length -1 stands for no value."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def append(self, record: Record) -> None:
        key, value = CODEC.encode(record)
        with self.path.open("ab") as file:
            for part in (key, value):
                file.write((-1 if part is None else len(part)).to_bytes(4, "big", signed=True) + (part or b""))

    def load(self) -> tuple[Record, ...]:
        """Return all complete records. Half a record at the end was never acknowledged, and is truncated."""
        data, at, whole, records = self.path.read_bytes(), 0, 0, []
        while at < len(data):
            parts: list[bytes | None] = []
            for _ in range(2):
                size = int.from_bytes(data[at : at + 4], "big", signed=True)
                at += 4 + max(size, 0)
                parts.append(None if size < 0 else data[at - size : at])
            if at > len(data):
                break
            record = CODEC.loaded(*parts)
            records += [record] if record is not None else []
            whole = at
        self.path.write_bytes(data[:whole])
        return tuple(records)


@dataclass
class Host:
    """The log, the timers and the clock around ``step()``. ``now`` is in ms."""

    log: Log
    leader_epoch: int
    now: int
    timers: dict[TimerKey, int] = field(default_factory=dict)
    answers: dict[int, ResponseBody] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state, self.choices = initial_state(Settings(), INTENDED), RandomChoices()
        records = self.log.load()
        self.written = len(records)
        self.handle(Load(self.now, leader_epoch=self.leader_epoch, records=records))
        self.handle(TopicsChanged(self.now, (TOPIC,)))

    def handle(self, event: Event) -> None:
        """Run one step, then set its timers, keep its answers, and append its records."""
        self.state, outcome = step(self.state, event, self.choices)
        for timer in outcome.timers:
            self.timers.pop(timer.key, None)
            if isinstance(timer, SetTimer):
                self.timers[timer.key] = self.now + timer.delay_ms
        self.answers |= {reply.request_id: reply.body for reply in outcome.replies}
        for record in outcome.records:
            self.log.append(record)
        if outcome.records:  # on disk now: Appended returns the answers that waited for it
            self.written += len(outcome.records)
            self.handle(Appended(self.now, offset=self.written))

    def until(self, at_ms: int) -> None:
        """Advance the clock. Due timers fire in the order of their deadlines."""
        while self.timers and min(self.timers.values()) <= at_ms:
            key = min(self.timers, key=lambda each: self.timers[each])
            self.now = max(self.now, self.timers.pop(key))
            self.handle(TimerFired(self.now, key))
        self.now = at_ms

    def ask(self, worker: str, body: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        number = self.now
        self.handle(Request(number, id=number, version=1, client_id=worker, client_host="/here", body=body))
        answer = self.answers.pop(number)
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        return answer


@dataclass
class Worker:
    """A member of the group: its epoch, and the partitions that it owns."""

    name: str
    epoch: int = 0
    owned: tuple[TopicPartitions, ...] = ()

    def beat(self, host: Host) -> None:
        answer = host.ask(
            self.name,
            ConsumerGroupHeartbeatRequest(
                GROUP,
                member_id=self.name,
                member_epoch=self.epoch,
                rebalance_timeout_ms=-1 if self.epoch else 10_000,  # -1 and None: unchanged
                subscribed_topic_names=None if self.epoch else (TOPIC.name,),
                topic_partitions=self.owned,
            ),
        )
        if answer.error_code is not ErrorCode.NONE:
            raise SystemExit(f"{self.name}: {answer.error_code.name} {answer.error_message}")
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = answer.assignment
            numbers = sorted(number for row in self.owned for number in row.partitions)
            print(f"{host.now / 1000:6.1f} s: epoch {self.epoch}: {self.name} works on {numbers}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Log(Path(folder, "records"))
        host = Host(log, leader_epoch=1, now=0)
        ada, bob = Worker("ada"), Worker("bob")
        for second in range(90):
            for place, worker in enumerate((ada, bob)):
                host.until(second * 1000 + place)
                if second % 5 == 0 and not (worker is bob and second > 30):
                    worker.beat(host)
            if second == 20:
                with log.path.open("ab") as file:
                    file.write(b"\0\0\0\x20 half a rec")
                print(f"{host.now / 1000:6.1f} s: the host dies; its log has {log.path.stat().st_size} bytes")
                host = Host(log, leader_epoch=2, now=host.now + 1)
                print(f"{host.now / 1000:6.1f} s: the next host has loaded {host.written} records")


main()

"""Three brokers gain and lose partitions and replicate their logs: every acknowledged offset is present in the end."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost import host
from fencepost import log as lg
from fencepost.aio.choices import RandomChoices
from fencepost.coordinator import initial_state, offsets_view, replay
from fencepost.protocol import offset_messages as o
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Appended, AppendFailed, Load, Reply, Request, TopicsChanged, Unload
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings
from fencepost.sharding import partition_for

from .test_host import TOPIC, commit

PARTS, BROKERS = 2, 3
NAMES = ("a", "b", "c")


class Cluster:
    """Brokers, logs and elections.

    - ``leads``: the elected leader of each partition.
    - ``thinks``: the epoch in which a broker believes that it leads a partition, and the ends of its log and its
      coordinator when it was loaded (F-CONS-07).
    """

    def __init__(self) -> None:
        self.choices = RandomChoices()
        self.brokers = [host.initial_broker(PARTS, Settings(), INTENDED) for _ in range(BROKERS)]
        self.logs = {(one, part): lg.PartitionLog() for one in range(BROKERS) for part in range(PARTS)}
        self.leads = dict.fromkeys(range(PARTS), 0)
        self.epochs = dict.fromkeys(range(PARTS), 0)
        self.thinks: dict[tuple[int, int], tuple[int, int, int]] = {}
        self.sent: dict[int, tuple[str, int]] = {}
        self.acknowledged: dict[str, int] = {}
        for one in range(BROKERS):
            self.feed(one, TopicsChanged(0, (TOPIC,), version=1))
        for part in range(PARTS):
            self.elect(part, 0)

    def feed(self, one: int, event: host.OnPartition | Request | TopicsChanged) -> None:
        self.brokers[one], served = host.step(self.brokers[one], event, self.choices)
        self.take_replies(served.replies)
        for part, outcome in served.parts:
            if outcome.records:
                where = (one, part)
                try:
                    self.logs[where] = lg.append(self.logs[where], outcome.records, self.thinks[where][0])
                except lg.FencedEpoch:
                    self.feed(one, host.OnPartition(part, AppendFailed(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)))

    def take_replies(self, replies: tuple[Reply, ...]) -> None:
        for reply in replies:
            assert isinstance(reply.body, o.OffsetCommitResponse)
            group, value = self.sent.pop(reply.request_id)
            if reply.body.topics[0].partitions[0].error_code is ErrorCode.NONE:
                self.acknowledged[group] = max(value, self.acknowledged.get(group, 0))

    def send(self, number: int, group: str, one: int) -> None:
        self.sent[number] = (group, number)
        body = commit(group, number)
        self.feed(one, Request(0, id=number, version=9, client_id="", client_host="", body=body))

    def elect(self, part: int, one: int) -> None:
        """Elect a follower with the longest log, or the leader again; the old leader does not learn it."""
        old, new = self.logs[self.leads[part], part], self.logs[one, part]
        ends = [lg.parting(self.logs[each, part], old) for each in range(BROKERS) if each != self.leads[part]]
        if lg.parting(new, old) < max(ends):
            return
        self.epochs[part] += 1
        self.leads[part] = one
        epoch = self.epochs[part]
        log = self.logs[one, part] = lg.lead(new, epoch)
        self.resign(part, one)
        self.thinks[one, part] = (epoch, log.end, len(log.records))
        self.feed(one, host.OnPartition(part, Load(0, leader_epoch=epoch, records=log.records)))

    def resign(self, part: int, one: int) -> None:
        if self.thinks.pop((one, part), None) is not None:
            self.feed(one, host.OnPartition(part, Unload(0, leader_epoch=None)))

    def fetch(self, part: int, one: int, most: int | None) -> None:
        leader = self.leads[part]
        if one != leader:
            self.resign(part, one)
            self.logs[one, part] = lg.catch_up(self.logs[one, part], self.logs[leader, part], most)

    def replicate(self, part: int) -> None:
        """Replicate with one follower; the other one is not in sync."""
        leader = self.leads[part]
        log = self.logs[leader, part]
        ends = [lg.parting(self.logs[one, part], log) for one in range(BROKERS) if one != leader]
        log = self.logs[leader, part] = lg.replicated(log, lg.high_watermark(log, (max(ends),)))
        _, end, length = self.thinks[leader, part]
        if log.committed > end:
            self.feed(leader, host.OnPartition(part, Appended(0, offset=length + log.committed - end)))

    def settle(self) -> None:
        for part in range(PARTS):
            for one in range(BROKERS):
                self.fetch(part, one, None)
            self.replicate(part)
            for one in range(BROKERS):
                self.fetch(part, one, None)


@settings(max_examples=60)
@given(st.data())
def test_acknowledged_offsets_survive_and_all_copies_agree(data: st.DataObject) -> None:
    """In any order of elections, with compaction in between (F-SURV-01, F-CONS-07, F-LOAD-01)."""
    cluster = Cluster()
    for number in range(1, data.draw(st.integers(1, 60))):
        what = data.draw(st.sampled_from(["send"] * 3 + ["fetch"] * 3 + ["replicate"] * 2 + ["elect", "compact"]))
        part, one = data.draw(st.integers(0, PARTS - 1)), data.draw(st.integers(0, BROKERS - 1))
        if what == "send":
            group = data.draw(st.sampled_from(NAMES))
            leader = cluster.leads[partition_for(group, PARTS)]
            cluster.send(number, group, data.draw(st.sampled_from([leader, leader, one])))
        elif what == "fetch":
            cluster.fetch(part, one, data.draw(st.sampled_from([0, 1, None])))
        elif what == "replicate":
            cluster.replicate(part)
        elif what == "elect":
            cluster.elect(part, one)
        else:
            cluster.logs[one, part] = lg.compact(cluster.logs[one, part], number, retention_ms=3)
    cluster.settle()
    assert not cluster.sent, "a request is never answered"
    found = []
    for one in range(BROKERS):
        stored: dict[str, int] = {}
        for part in range(PARTS):
            state = replay(initial_state(Settings(), INTENDED), cluster.logs[one, part].records)
            stored.update({each.group_id: each.offset for each in offsets_view(state).committed})
        for group, value in cluster.acknowledged.items():
            assert stored.get(group, 0) >= value
        found.append(stored)
    assert found[0] == found[1] == found[2]

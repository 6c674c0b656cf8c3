"""Write log segments of ``__consumer_offsets``: ``python -m tools.offsets_log FOLDER [--records N] [--groups N]``.

Half of the groups are classic, half are consumer groups. Members come and go, partitions move, and the groups commit,
a few in transactions. The records break no rule. The same options write the same bytes. Memory depends on the number
of groups only.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

from fencepost.codec import Codec
from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.consumer_records import (
    AssignedPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.embedded import Assignment, Subscription, encode_assignment, encode_subscription
from fencepost.protocol.offset_records import ControlKey, ControlValue, OffsetCommitKey, OffsetCommitValue, Producer
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue, Record
from fencepost.sharding import partition_for
from fencepost_server.data.encoding import encode_batch

#: Kafka's number of partitions of the topic, and the size of its segments in bytes
PARTITIONS: Final = 50
SEGMENT_BYTES: Final = 104_857_600
_BEGIN_MS: Final = 1_700_000_000_000
#: of 1,000 steps of a group: changes of its members, and commits in a transaction
_CHANGES: Final = 30
_TRANSACTIONS: Final = 20
_MOST_MEMBERS: Final = 6
_COORDINATOR_EPOCH: Final = 1

#: The records of one batch, of one producer if they are in a transaction.
Step = list[Record]


@dataclass(slots=True)
class Group:
    """A group with its members and their partitions of one topic. ``offsets``: the committed ones by partition."""

    name: str
    consumer: bool
    offsets: list[int]
    epoch: int = 0
    names: count[int] = field(default_factory=count)
    held: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def topic(self) -> str:
        return f"topic-{self.name}"

    @property
    def topic_id(self) -> bytes:
        return sha256(self.topic.encode()).digest()[:16]


def steps(group: Group, draw: Random, at_ms: int) -> Iterator[Step]:
    """Yield what the group writes next: a change of its members, or a commit."""
    if not group.held or draw.randrange(1_000) < _CHANGES:
        left = [each for each in group.held if draw.random() < 0.3]
        came = draw.randint(0 if len(group.held) > len(left) else 1, max(_MOST_MEMBERS - len(group.held), 1))
        joined = [f"member-{next(group.names)}-of-{group.name}" for _ in range(came)]
        group.epoch += 1
        yield from (_epoch if group.consumer else _generation)(group, left, joined, at_ms)
        return
    producer = Producer(draw.randrange(1, 1_000), 0) if draw.randrange(1_000) < _TRANSACTIONS else None
    yield list(_commit(group, draw, at_ms, producer))
    if producer is not None:
        yield [Record(ControlKey(True), ControlValue(_COORDINATOR_EPOCH), producer)]


def _commit(group: Group, draw: Random, at_ms: int, producer: Producer | None) -> Iterator[Record]:
    topic, topic_id = group.topic, group.topic_id
    further = draw.randrange(1_000) or -50  # now and then a consumer is reset
    for partition, before in enumerate(group.offsets):
        offset = group.offsets[partition] = max(before + further, 0)
        value = OffsetCommitValue(offset, commit_timestamp=at_ms, topic_id=topic_id)
        yield Record(OffsetCommitKey(group.name, topic, partition), value, producer)


def _shares(group: Group, members: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the partitions of each member."""
    return {each: tuple(range(place, len(group.offsets), len(members))) for place, each in enumerate(members)}


def _generation(group: Group, left: Sequence[str], joined: Sequence[str], at_ms: int) -> Iterator[Step]:
    members = [each for each in group.held if each not in left] + [*joined]
    group.held = _shares(group, members)
    subscription = encode_subscription(Subscription((group.topic,)))
    rows = tuple(
        GroupMetadataMember(
            name,
            group_instance_id=None,
            client_id="generated",
            client_host="/127.0.0.1",
            rebalance_timeout=300_000,
            session_timeout=45_000,
            subscription=subscription,
            assignment=encode_assignment(Assignment(tuple(TopicPartition(group.topic, number) for number in places))),
        )
        for name, places in group.held.items()
    )
    value = GroupMetadataValue(
        "consumer",
        generation=group.epoch,
        protocol="range",
        leader=members[0],
        current_state_timestamp=at_ms - 100,
        members=rows,
    )
    yield [Record(GroupMetadataKey(group.name), value)]


def _epoch(group: Group, left: Sequence[str], joined: Sequence[str], at_ms: int) -> Iterator[Step]:
    name, before = group.name, group.held
    for member in left:
        yield [
            Record(ConsumerGroupCurrentMemberAssignmentKey(name, member), None),
            Record(ConsumerGroupTargetAssignmentMemberKey(name, member), None),
            Record(ConsumerGroupMemberMetadataKey(name, member), None),
        ]
    members = [each for each in before if each not in left] + [*joined]
    target = _shares(group, members)
    step: Step = [
        Record(
            ConsumerGroupMemberMetadataKey(name, member),
            ConsumerGroupMemberMetadataValue(
                instance_id=None,
                rack_id=None,
                client_id="generated",
                client_host="/127.0.0.1",
                subscribed_topic_names=(group.topic,),
                subscribed_topic_regex="",
                rebalance_timeout_ms=300_000,
                server_assignor=None,
            ),
        )
        for member in joined
    ]
    step.append(Record(ConsumerGroupMetadataKey(name), ConsumerGroupMetadataValue(group.epoch, metadata_hash=1)))
    step += [
        Record(
            ConsumerGroupTargetAssignmentMemberKey(name, member),
            ConsumerGroupTargetAssignmentMemberValue((TopicPartitions(group.topic_id, places),) if places else ()),
        )
        for member, places in target.items()
    ]
    epoch = ConsumerGroupTargetAssignmentMetadataValue(group.epoch, assignment_timestamp=at_ms)
    yield [*step, Record(ConsumerGroupTargetAssignmentMetadataKey(name), epoch)]
    kept = {
        member: tuple(each for each in places if each in before.get(member, ())) for member, places in target.items()
    }
    for member, places in kept.items():
        yield [_current(group, member, places, stable=places == target[member])]
    for member, places in target.items():
        if kept[member] != places:
            yield [_current(group, member, places, stable=True)]
    group.held = target


def _current(group: Group, member: str, places: tuple[int, ...], *, stable: bool) -> Record:
    state = MemberState.STABLE if stable else MemberState.UNRELEASED_PARTITIONS
    epochs = (group.epoch,) * len(places)
    rows = (AssignedPartitions(group.topic_id, places, assignment_epochs=epochs),) if places else ()
    value = ConsumerGroupCurrentMemberAssignmentValue(
        group.epoch,
        previous_member_epoch=group.epoch - 1,
        state=state.value,
        assigned_partitions=rows,
        partitions_pending_revocation=(),
    )
    return Record(ConsumerGroupCurrentMemberAssignmentKey(group.name, member), value)


def groups_of(number: int, draw: Random) -> dict[int, list[Group]]:
    """Return groups by the partition of the topic that has their records."""
    found: dict[int, list[Group]] = {index: [] for index in range(PARTITIONS)}
    for place in range(number):
        name = f"group-{place:05}"
        group = Group(name, bool(place % 2), [0] * draw.choice((1, 3, 6, 12, 24)))
        found[partition_for(name, PARTITIONS)].append(group)
    return {index: groups for index, groups in found.items() if groups}


def batches(groups: Sequence[Group], records: int, draw: Random) -> Iterator[tuple[int, bytes]]:
    """Yield the batches of a partition with ``records`` records or, with the last step, a few more; and their base."""
    codec, end, at_ms = Codec(), 0, _BEGIN_MS
    while end < records:
        at_ms += draw.randrange(500)
        for step in steps(draw.choice(groups), draw, at_ms):
            rows = [(end + place, *each) for place, each in enumerate(codec.encoded_all(step))]
            producer, control = step[0].producer, isinstance(step[0].key, ControlKey)
            yield end, encode_batch(rows, at_ms, producer=producer, control=control)
            end += len(rows)


def write(folder: Path, found: Iterable[tuple[int, bytes]]) -> int:
    """Write batches as segments; return their size in bytes."""
    folder.mkdir(parents=True)
    size, file = 0, None
    try:
        for base, data in found:
            if file is None or file.tell() + len(data) > SEGMENT_BYTES:
                if file is not None:
                    file.close()
                file = (folder / f"{base:020}.log").open("wb")
            file.write(data)
            size += len(data)
    finally:
        if file is not None:
            file.close()
    return size


def generate(folder: Path, records: int, groups: int, seed: int) -> int:
    """Write the segments of all partitions, as in a broker's data folder; return their size in bytes."""
    found = groups_of(groups, Random(seed))
    size = 0
    for index, some in found.items():
        draw = Random(f"{seed} {index}")
        size += write(folder / f"__consumer_offsets-{index}", batches(some, -(-records // len(found)), draw))
    return size


def main(words: Sequence[str]) -> int:
    """Write the segments that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tools.offsets_log", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a folder that does not exist yet")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(words)
    if options.folder.exists():
        parser.error(f"{options.folder} exists already; name a new folder")
    if options.records < 1 or options.groups < 1:
        parser.error("--records and --groups must be >= 1")
    size = generate(options.folder, options.records, options.groups, options.seed)
    print(f"{options.folder}: {size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

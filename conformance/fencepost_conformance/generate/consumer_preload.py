"""Consumer groups of an earlier coordinator, as the log has them when a trace's first coordinator loads it.

Most are whole and consistent. Some are as another release or a strong compaction left them: without hash, timestamps or
assignment epochs, with a PartitionMetadata record, with a member that is revoking, with an unknown state.
"""

from __future__ import annotations

from random import Random

from fencepost.protocol import consumer_records as r
from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.records import Record

from .consumer_clients import ConsumerClient, ConsumerPhase
from .plan import Plan
from .topics import Topics


def preloaded(rng: Random, plan: Plan, clients: list[ConsumerClient], topics: Topics) -> list[Record]:
    """Return the records of some groups; their members are clients that continue as if nothing had happened."""
    records: list[Record] = []
    for group in plan.groups:
        if rng.random() < 0.3:
            continue
        inside = [client for client in clients if client.plan.group_id == group and rng.random() < 0.8]
        used: set[str | None] = set()
        members = []
        for client in inside:
            if client.plan.instance_id is None or client.plan.instance_id not in used:
                used.add(client.plan.instance_id)
                members.append(client)
        records += _group(rng, group, members, topics)
    return records


def _group(rng: Random, group: str, members: list[ConsumerClient], topics: Topics) -> list[Record]:
    epoch = rng.choice((1, 7, 1_000))
    old_release = rng.random() < 0.4
    shares = _shares(members, topics)
    records: list[Record] = []
    for n, client in enumerate(members):
        client.member_id, client.epoch, client.phase = f"old-{n}", epoch, ConsumerPhase.IN
        client.owned = dict(shares[n])
        records.append(_member(group, client))
    if rng.random() < 0.3:
        table = tuple(r.TopicMetadata(t.topic_id, t.name, t.partitions) for t in topics.image()[:2])
        records.append(Record(r.ConsumerGroupPartitionMetadataKey(group), r.ConsumerGroupPartitionMetadataValue(table)))
    hash_ = 0 if old_release else rng.choice((0, 12_345))
    ahead = rng.choice((0, 0, 1))
    records.append(
        Record(r.ConsumerGroupMetadataKey(group), r.ConsumerGroupMetadataValue(epoch + ahead, metadata_hash=hash_))
    )
    for n, client in enumerate(members):
        target = tuple(TopicPartitions(topic, shares[n][topic]) for topic in sorted(shares[n]))
        records.append(
            Record(
                r.ConsumerGroupTargetAssignmentMemberKey(group, client.member_id),
                r.ConsumerGroupTargetAssignmentMemberValue(target),
            )
        )
    records.append(
        Record(
            r.ConsumerGroupTargetAssignmentMetadataKey(group),
            r.ConsumerGroupTargetAssignmentMetadataValue(
                epoch, assignment_timestamp=0 if old_release else rng.choice((0, 0, 1))
            ),
        )
    )
    for n, client in enumerate(members):
        if rng.random() < 0.95:
            records.append(_current(rng, group, client, shares[n], epoch, old_release=old_release))
        if client.regex and rng.random() < 0.5:
            names = tuple(sorted(topics.now)[:2])
            records.append(
                Record(
                    r.ConsumerGroupRegularExpressionKey(group, client.regex),
                    r.ConsumerGroupRegularExpressionValue(names, version=topics.version, timestamp=0),
                )
            )
    return records


def _shares(members: list[ConsumerClient], topics: Topics) -> list[dict[bytes, tuple[int, ...]]]:
    """Distribute the partitions of the topics that each names, one by one."""
    shares: list[dict[bytes, tuple[int, ...]]] = [{} for _ in members]
    for topic in topics.image():
        takers = [n for n, client in enumerate(members) if topic.name in (client.names or ())]
        for partition in range(topic.partitions if takers else 0):
            share = shares[takers[partition % len(takers)]]
            share[topic.topic_id] = (*share.get(topic.topic_id, ()), partition)
    return shares


def _member(group: str, client: ConsumerClient) -> Record:
    plan = client.plan
    value = r.ConsumerGroupMemberMetadataValue(
        instance_id=plan.instance_id,
        rack_id=plan.rack_id,
        client_id=plan.client_id,
        client_host=plan.client_host,
        subscribed_topic_names=tuple(sorted(client.names or ())),
        subscribed_topic_regex=client.regex or "",
        rebalance_timeout_ms=plan.rebalance_timeout_ms,
        server_assignor=plan.assignor,
    )
    return Record(r.ConsumerGroupMemberMetadataKey(group, client.member_id), value)


def _current(
    rng: Random,
    group: str,
    client: ConsumerClient,
    share: dict[bytes, tuple[int, ...]],
    epoch: int,
    *,
    old_release: bool,
) -> Record:
    def written(held: dict[bytes, tuple[int, ...]]) -> tuple[r.AssignedPartitions, ...]:
        return tuple(
            r.AssignedPartitions(
                topic, held[topic], assignment_epochs=None if old_release else (epoch,) * len(held[topic])
            )
            for topic in sorted(held)
        )

    state, kept, pending = MemberState.STABLE.value, share, {}
    draw = rng.random()
    if draw < 0.15 and share:  # revoking a topic
        first, *rest = sorted(share)
        state, kept, pending = (
            MemberState.UNREVOKED_PARTITIONS.value,
            {t: share[t] for t in rest},
            {first: share[first]},
        )
    elif draw < 0.22:
        state = MemberState.UNRELEASED_PARTITIONS.value
    elif draw < 0.28:
        state = 99  # M-MS-04
    client.assigned = dict(kept)
    member_epoch = rng.choice((epoch, epoch, epoch, epoch - 1))
    client.epoch = member_epoch
    value = r.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch,
        previous_member_epoch=rng.choice((member_epoch, max(member_epoch - 1, -1))),
        state=state,
        assigned_partitions=written(kept),
        partitions_pending_revocation=written(pending),
    )
    return Record(r.ConsumerGroupCurrentMemberAssignmentKey(group, client.member_id), value)

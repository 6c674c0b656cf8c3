"""Converts the harness's view of a consumer group to the shared types (G-DATA-20…33)."""

from __future__ import annotations

from typing import Any

from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.consumer_records import AssignedPartitions, ClassicMemberMetadata
from fencepost.protocol.consumer_view import (
    ConsumerGroupState,
    ConsumerGroupView,
    ConsumerMemberView,
    MemberState,
    ResolvedRegex,
    SubscriptionType,
)
from fencepost.protocol.messages import Protocol

from .text_form import text_to_bytes, text_to_id

_STATES = {state.value: state for state in ConsumerGroupState}
_MEMBER_STATES = {state.value: state for state in MemberState}
_TYPES = {kind.value: kind for kind in SubscriptionType}


def consumer_view(group: str, row: list[Any]) -> ConsumerGroupView:
    state, epoch, hash_, assigned_epoch, at, kind, members, statics, target, epochs, regexes, deadline, legacy = row
    return ConsumerGroupView(
        group_id=group,
        state=_STATES[state.capitalize()],
        group_epoch=epoch,
        metadata_hash=hash_,
        assignment_epoch=assigned_epoch,
        assignment_timestamp=at,
        subscription_type=_TYPES[kind.capitalize()],
        members=tuple(sorted([_member(member) for member in members], key=lambda member: member.member_id)),
        static_members=tuple(sorted([(instance, member) for instance, member in statics])),
        target=tuple(sorted([(member, _topics(topics)) for member, topics in target])),
        partition_epochs=tuple(sorted([(text_to_id(topic), partition, held) for topic, partition, held in epochs])),
        regexes=tuple(
            sorted(
                [
                    ResolvedRegex(regex, tuple(sorted(topics)), version=version, timestamp=at)
                    for regex, topics, version, at in regexes
                ],
                key=lambda resolved: resolved.regex,
            )
        ),
        refresh_deadline=None if deadline is None else (deadline[0], deadline[1]),
        legacy_metadata=bool(legacy),
    )


def _topics(rows: list[Any]) -> tuple[TopicPartitions, ...]:
    found = [TopicPartitions(text_to_id(topic), tuple(partitions)) for topic, partitions in rows]
    return tuple(sorted(found, key=lambda row: row.topic_id))


def _held(rows: list[Any]) -> tuple[AssignedPartitions, ...]:
    found = [
        AssignedPartitions(
            text_to_id(topic), tuple(partitions), assignment_epochs=None if epochs is None else tuple(epochs)
        )
        for topic, partitions, epochs in rows
    ]
    return tuple(sorted(found, key=lambda row: row.topic_id))


def _member(row: list[Any]) -> ConsumerMemberView:
    (
        member_id,
        instance,
        rack,
        client,
        host,
        rebalance,
        names,
        regex,
        assignor,
        epoch,
        previous,
        state,
        assigned,
        pending,
        classic,
    ) = row
    return ConsumerMemberView(
        member_id=member_id,
        instance_id=instance,
        rack_id=rack,
        client_id=client,
        client_host=host,
        rebalance_timeout_ms=rebalance,
        subscribed_topic_names=tuple(sorted(names)),
        subscribed_topic_regex=regex or "",
        server_assignor=assignor,
        member_epoch=epoch,
        previous_member_epoch=previous,
        state=_MEMBER_STATES[state],
        assigned=_held(assigned),
        pending_revocation=_held(pending),
        classic=None if classic is None else _classic(*classic),
    )


def _classic(session_timeout_ms: int, protocols: list[str]) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(
        session_timeout_ms,
        tuple(Protocol(protocols[i], text_to_bytes(protocols[i + 1])) for i in range(0, len(protocols), 2)),
    )

"""Records exactly as Kafka's own JSON converters write and read them, without reordering or omission."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

from fencepost.codec.table import BY_KEY
from fencepost.protocol import consumer_records as r
from fencepost.protocol.offset_messages import ZERO_ID
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue, Record

from ..text_form import id_to_text

JsonObject = dict[str, Any]


def as_json(record: Record) -> tuple[int, JsonObject, JsonObject | None]:
    """Return the type of a record, its key, and its value with the fields of all versions."""
    key, value = record.key, record.value
    return BY_KEY[type(key)].number, _key(key), None if value is None else _VALUES[type(value)](value)


def filled(number: int, value: JsonObject | None) -> JsonObject | None:
    """Return a value in Kafka's form with its omitted fields: those that the version or the release lacks, and tagged
    ones with their default. The racks of PartitionMetadata are dropped (F-REC-04)."""
    if value is None:
        return None
    whole = {**_MISSING.get(number, {}), **value}
    for name, missing in _MISSING_IN_ROWS.get(number, {}).items():
        whole[name] = [{**missing, **row} for row in whole[name]]
    if number == 4:
        whole["topics"] = [{**row, "partitionMetadata": []} for row in whole["topics"]]
    if number == 8:
        for name in ("assignedPartitions", "partitionsPendingRevocation"):  # F-REC-08: null counts as an empty list
            whole[name] = [{**row, "assignmentEpochs": row["assignmentEpochs"] or []} for row in whole[name]]
    return whole


_EPOCHS: Final[JsonObject] = {"assignmentEpochs": []}
_OFFSET: Final[JsonObject] = {"leaderEpoch": -1, "expireTimestamp": -1, "topicId": id_to_text(ZERO_ID)}
#: The value of an omitted field, by type.
_MISSING: Final[Mapping[int, JsonObject]] = {
    0: _OFFSET,
    1: _OFFSET,
    2: {"currentStateTimestamp": -1},
    3: {"metadataHash": 0},
    5: {"classicMemberMetadata": {"sessionTimeoutMs": 0, "supportedProtocols": []}},  # F-REC-05
    6: {"assignmentTimestamp": 0},
}
_MISSING_IN_ROWS: Final[Mapping[int, Mapping[str, JsonObject]]] = {
    2: {"members": {"rebalanceTimeout": -1, "groupInstanceId": None}},
    8: {"assignedPartitions": _EPOCHS, "partitionsPendingRevocation": _EPOCHS},
}


def _key(key: Any) -> JsonObject:
    if isinstance(key, OffsetCommitKey):
        return {"group": key.group, "topic": key.topic, "partition": key.partition}
    if isinstance(key, GroupMetadataKey):
        return {"group": key.group}
    return {_KEY_NAMES[field]: getattr(key, field) for field in key.__slots__}


_KEY_NAMES: Final = {"group": "groupId", "member_id": "memberId", "regular_expression": "regularExpression"}


def _bytes(data: bytes) -> str:
    return b64encode(data).decode()


def _offset(value: OffsetCommitValue) -> JsonObject:
    return {
        "offset": value.offset,
        "leaderEpoch": value.leader_epoch,
        "metadata": value.metadata,
        "commitTimestamp": value.commit_timestamp,
        "expireTimestamp": value.expire_timestamp,
        "topicId": id_to_text(value.topic_id),
    }


def _group(value: GroupMetadataValue) -> JsonObject:
    return {
        "protocolType": value.protocol_type,
        "generation": value.generation,
        "protocol": value.protocol,
        "leader": value.leader,
        "currentStateTimestamp": value.current_state_timestamp,
        "members": [_group_member(member) for member in value.members],
    }


def _group_member(member: GroupMetadataMember) -> JsonObject:
    return {
        "memberId": member.member_id,
        "groupInstanceId": member.group_instance_id,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "rebalanceTimeout": member.rebalance_timeout,
        "sessionTimeout": member.session_timeout,
        "subscription": _bytes(member.subscription),
        "assignment": _bytes(member.assignment),
    }


def _member(value: r.ConsumerGroupMemberMetadataValue) -> JsonObject:
    classic = value.classic_member_metadata
    return {
        "instanceId": value.instance_id,
        "rackId": value.rack_id,
        "clientId": value.client_id,
        "clientHost": value.client_host,
        "subscribedTopicNames": list(value.subscribed_topic_names),
        "subscribedTopicRegex": value.subscribed_topic_regex,
        "rebalanceTimeoutMs": value.rebalance_timeout_ms,
        "serverAssignor": value.server_assignor,
        "classicMemberMetadata": classic  # F-REC-05: if omitted it would be an empty object, so null is explicit
        and {
            "sessionTimeoutMs": classic.session_timeout_ms,
            "supportedProtocols": [
                {"name": row.name, "metadata": _bytes(row.metadata)} for row in classic.supported_protocols
            ],
        },
    }


def _topics(value: r.ConsumerGroupPartitionMetadataValue) -> JsonObject:
    return {
        "topics": [
            {
                "topicId": id_to_text(row.topic_id),
                "topicName": row.topic_name,
                "numPartitions": row.num_partitions,
                "partitionMetadata": [],
            }
            for row in value.topics
        ]
    }


def _assigned(rows: tuple[r.AssignedPartitions, ...]) -> list[JsonObject]:
    return [
        {
            "topicId": id_to_text(row.topic_id),
            "partitions": list(row.partitions),
            "assignmentEpochs": list(row.assignment_epochs or ()),
        }
        for row in rows
    ]


def _target(value: r.ConsumerGroupTargetAssignmentMemberValue) -> JsonObject:
    rows = value.topic_partitions
    return {
        "topicPartitions": [{"topicId": id_to_text(row.topic_id), "partitions": list(row.partitions)} for row in rows]
    }


_VALUES: Final[Mapping[type, Callable[[Any], JsonObject]]] = {
    OffsetCommitValue: _offset,
    GroupMetadataValue: _group,
    r.ConsumerGroupMetadataValue: lambda value: {"epoch": value.epoch, "metadataHash": value.metadata_hash},
    r.ConsumerGroupPartitionMetadataValue: _topics,
    r.ConsumerGroupMemberMetadataValue: _member,
    r.ConsumerGroupTargetAssignmentMetadataValue: lambda value: {
        "assignmentEpoch": value.assignment_epoch,
        "assignmentTimestamp": value.assignment_timestamp,
    },
    r.ConsumerGroupTargetAssignmentMemberValue: _target,
    r.ConsumerGroupCurrentMemberAssignmentValue: lambda value: {
        "memberEpoch": value.member_epoch,
        "previousMemberEpoch": value.previous_member_epoch,
        "state": value.state,
        "assignedPartitions": _assigned(value.assigned_partitions),
        "partitionsPendingRevocation": _assigned(value.partitions_pending_revocation),
    },
    r.ConsumerGroupRegularExpressionValue: lambda value: {
        "topics": list(value.topics),
        "version": value.version,
        "timestamp": value.timestamp,
    },
}

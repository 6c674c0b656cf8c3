"""Records of consumer groups as Kafka's own JSON converters write and read them (F-REC-03…08, 16).

Lists come out in the order that this project keeps records in: topics by id, partitions and names ascending.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, NamedTuple

from fencepost.protocol import consumer_records as r
from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.messages import Protocol
from fencepost.protocol.records import RecordKey, RecordValue

from .text_form import id_to_text, text_to_id


class _Kind(NamedTuple):
    key: Callable[..., RecordKey]
    read: Callable[[dict[str, Any]], RecordValue]
    write: Callable[[Any], dict[str, Any]]


def _topics_by_id(rows: list[dict[str, Any]]) -> tuple[TopicPartitions, ...]:
    found = [TopicPartitions(text_to_id(row["topicId"]), tuple(sorted(row["partitions"]))) for row in rows]
    return tuple(sorted(found, key=lambda row: row.topic_id))


def _assigned(rows: list[dict[str, Any]]) -> tuple[r.AssignedPartitions, ...]:
    found = []
    for row in rows:
        epochs = row.get("assignmentEpochs")
        if epochs is None:
            found.append(r.AssignedPartitions(text_to_id(row["topicId"]), tuple(sorted(row["partitions"]))))
        else:
            pairs = sorted(zip(row["partitions"], epochs, strict=True))
            found.append(
                r.AssignedPartitions(
                    text_to_id(row["topicId"]), tuple(p for p, _ in pairs), assignment_epochs=tuple(e for _, e in pairs)
                )
            )
    return tuple(sorted(found, key=lambda row: row.topic_id))


def _written(rows: tuple[r.AssignedPartitions, ...]) -> list[dict[str, Any]]:
    told = []
    for row in rows:
        one: dict[str, Any] = {"topicId": id_to_text(row.topic_id), "partitions": row.partitions}
        if row.assignment_epochs is not None:
            one["assignmentEpochs"] = row.assignment_epochs
        told.append(one)
    return told


def _read_member(value: dict[str, Any]) -> r.ConsumerGroupMemberMetadataValue:
    classic = value.get("classicMemberMetadata")
    return r.ConsumerGroupMemberMetadataValue(
        instance_id=value["instanceId"],
        rack_id=value["rackId"],
        client_id=value["clientId"],
        client_host=value["clientHost"],
        subscribed_topic_names=tuple(sorted(value["subscribedTopicNames"])),
        subscribed_topic_regex=value["subscribedTopicRegex"],
        rebalance_timeout_ms=value["rebalanceTimeoutMs"],
        server_assignor=value["serverAssignor"],
        classic_member_metadata=None
        if classic is None
        else r.ClassicMemberMetadata(
            classic["sessionTimeoutMs"],
            tuple(Protocol(row["name"], b64decode(row["metadata"])) for row in classic["supportedProtocols"]),
        ),
    )


def _write_member(value: r.ConsumerGroupMemberMetadataValue) -> dict[str, Any]:
    told: dict[str, Any] = {
        "instanceId": value.instance_id,
        "rackId": value.rack_id,
        "clientId": value.client_id,
        "clientHost": value.client_host,
        "subscribedTopicNames": value.subscribed_topic_names,
        "subscribedTopicRegex": value.subscribed_topic_regex,
        "rebalanceTimeoutMs": value.rebalance_timeout_ms,
        "serverAssignor": value.server_assignor,
    }
    classic = value.classic_member_metadata
    told["classicMemberMetadata"] = classic and {  # F-REC-05: left out would be an empty one, null must be said
        "sessionTimeoutMs": classic.session_timeout_ms,
        "supportedProtocols": [
            {"name": row.name, "metadata": b64encode(row.metadata).decode()} for row in classic.supported_protocols
        ],
    }
    return told


def _read_metadata(value: dict[str, Any]) -> r.ConsumerGroupPartitionMetadataValue:
    rows = [r.TopicMetadata(text_to_id(t["topicId"]), t["topicName"], t["numPartitions"]) for t in value["topics"]]
    return r.ConsumerGroupPartitionMetadataValue(tuple(sorted(rows, key=lambda row: row.topic_name)))


def _write_metadata(value: r.ConsumerGroupPartitionMetadataValue) -> dict[str, Any]:
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


_KINDS: dict[int, _Kind] = {
    3: _Kind(
        r.ConsumerGroupMetadataKey,
        lambda value: r.ConsumerGroupMetadataValue(value["epoch"], metadata_hash=value.get("metadataHash", 0)),
        lambda value: {"epoch": value.epoch, "metadataHash": value.metadata_hash},
    ),
    4: _Kind(r.ConsumerGroupPartitionMetadataKey, _read_metadata, _write_metadata),
    5: _Kind(r.ConsumerGroupMemberMetadataKey, _read_member, _write_member),
    6: _Kind(
        r.ConsumerGroupTargetAssignmentMetadataKey,
        lambda value: r.ConsumerGroupTargetAssignmentMetadataValue(
            value["assignmentEpoch"], assignment_timestamp=value.get("assignmentTimestamp", 0)
        ),
        lambda value: {"assignmentEpoch": value.assignment_epoch, "assignmentTimestamp": value.assignment_timestamp},
    ),
    7: _Kind(
        r.ConsumerGroupTargetAssignmentMemberKey,
        lambda value: r.ConsumerGroupTargetAssignmentMemberValue(_topics_by_id(value["topicPartitions"])),
        lambda value: {
            "topicPartitions": [
                {"topicId": id_to_text(row.topic_id), "partitions": row.partitions} for row in value.topic_partitions
            ]
        },
    ),
    8: _Kind(
        r.ConsumerGroupCurrentMemberAssignmentKey,
        lambda value: r.ConsumerGroupCurrentMemberAssignmentValue(
            value["memberEpoch"],
            previous_member_epoch=value["previousMemberEpoch"],
            state=value["state"],
            assigned_partitions=_assigned(value["assignedPartitions"]),
            partitions_pending_revocation=_assigned(value["partitionsPendingRevocation"]),
        ),
        lambda value: {
            "memberEpoch": value.member_epoch,
            "previousMemberEpoch": value.previous_member_epoch,
            "state": value.state,
            "assignedPartitions": _written(value.assigned_partitions),
            "partitionsPendingRevocation": _written(value.partitions_pending_revocation),
        },
    ),
    16: _Kind(
        r.ConsumerGroupRegularExpressionKey,
        lambda value: r.ConsumerGroupRegularExpressionValue(
            tuple(sorted(value["topics"])), version=value["version"], timestamp=value["timestamp"]
        ),
        lambda value: {"topics": value.topics, "version": value.version, "timestamp": value.timestamp},
    ),
}
_TYPE_OF = {kind.key: number for number, kind in _KINDS.items()}


def known(number: int) -> bool:
    return number in _KINDS


def read(number: int, key: list[str], value: dict[str, Any] | None) -> tuple[RecordKey, RecordValue | None]:
    """Key and value of a record of this type, from their JSON."""
    kind = _KINDS[number]
    return kind.key(*key), None if value is None else kind.read(value)


def write(key: Any, value: RecordValue | None) -> list[Any]:
    """Type, the strings of the key, and the JSON of the value. Raises ``KeyError`` for another kind of record."""
    number = _TYPE_OF[type(key)]
    parts = [getattr(key, name) for name in key.__slots__]
    return [number, parts, None if value is None else _KINDS[number].write(value)]

"""The APIs that create, grow and delete topics, and describe and change settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypedDict
from uuid import uuid4

from kio.schema.errors import ErrorCode as Code

from fencepost.protocol.kafka_names import GROUP_SETTINGS, broker_rows, group_config, group_rows
from fencepost.protocol.settings import Settings
from fencepost_server.apis.call import Call, Values, rows, uuid_bytes
from fencepost_server.apis.metadata import cluster_right
from fencepost_server.apis.requests import (
    ConfigChange,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribedResource,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
    NewTopic,
)
from fencepost_server.data.producers import Refused
from fencepost_server.data.topics import Topic, name_fault
from fencepost_server.security.acl import Operation, Resource

TOPIC, BROKER, GROUP = 2, 4, 32
_SET, _DELETE = 0, 1
#: the resource types with settings in Kafka: topics, brokers, their loggers, client metrics, groups
_RESOURCES: Final = frozenset({2, 4, 8, 16, 32})
#: Kafka's ``num.partitions``
_USUAL_PARTITIONS: Final = 1
_STRING, _INT, _LONG, _LIST = 2, 3, 5, 7
_TYPES: Final = {"group.consumer.assignors": _LIST, "cleanup.policy": _LIST, "retention.ms": _LONG}
_DYNAMIC_TOPIC, _STATIC_BROKER, _DEFAULT, _DYNAMIC_GROUP = 1, 4, 5, 8
_BY_ID_SINCE: Final = 6
#: earlier versions of ListConfigResources list client metrics only
_KINDS_SINCE: Final = 1


class _Error(TypedDict, total=False):
    error_code: Code
    error_message: str | None


class _NamedResult(_Error, total=False):
    name: str


class _CreatedTopic(_NamedResult, total=False):
    """``topic_config_error_code``: why the numbers and settings are missing."""

    topic_id: bytes
    num_partitions: int
    replication_factor: int
    configs: Sequence[Values]
    topic_config_error_code: Code


class _DeletedTopic(_Error, total=False):
    name: str | None
    topic_id: bytes


class _Resource(_Error, total=False):
    """A resource that has settings: its type, by Kafka's number, and its name."""

    resource_type: int
    resource_name: str


class _Setting(TypedDict):
    name: str
    value: str
    config_type: int
    read_only: bool
    is_default: bool
    config_source: int


async def create_topics(call: Call, request: CreateTopicsRequest) -> Values:
    """Create topics. The answer has an error code for each."""
    names = [str(each.name) for each in request.topics]
    answers: list[_CreatedTopic] = []
    for each in request.topics:
        name = str(each.name)
        answer: _CreatedTopic = {"name": name, "num_partitions": -1, "replication_factor": -1, "configs": []}
        try:
            if names.count(name) > 1:
                raise Refused(Code.invalid_request, "Duplicate topic name.")
            if not cluster_right(call, Operation.CREATE) and not call.may(Operation.CREATE, Resource.TOPIC, name):
                raise Refused(Code.topic_authorization_failed, "Authorization failed.")
            topic = await _create(call, each, validate_only=request.validate_only)
            answer["topic_id"] = uuid4().bytes if topic is None else topic.topic_id
            if call.may(Operation.DESCRIBE_CONFIGS, Resource.TOPIC, name):
                answer.update({"num_partitions": _partitions(each), "replication_factor": 1})
            else:  # these numbers require the right to describe settings (KIP-525)
                answer["topic_config_error_code"] = Code.topic_authorization_failed
        except Refused as refused:
            answer["error_code"], answer["error_message"] = refused.code, str(refused) or None
        answers.append(answer)
    return {"topics": [row for at, row in enumerate(answers) if row["name"] not in names[:at]]}


def _partitions(row: NewTopic) -> int:
    if row.assignments:
        return len(row.assignments)
    return _USUAL_PARTITIONS if row.num_partitions == -1 else int(row.num_partitions)


async def _create(call: Call, row: NewTopic, *, validate_only: bool) -> Topic | None:
    node = call.node
    partitions = _partitions(row)
    node.topics.check_name(str(row.name))
    if any(each.value is None for each in row.configs):
        raise Refused(Code.invalid_config, "Null value not supported for topic configs")
    if row.assignments:
        if row.num_partitions != -1 or row.replication_factor != -1:
            raise Refused(
                Code.invalid_request,
                "A manual partition assignment was specified, but numPartitions or replicationFactor was not -1.",
            )
        if sorted(int(each.partition_index) for each in row.assignments) != list(range(partitions)):
            raise Refused(Code.invalid_replica_assignment, "partition numbers must start at 0 and have no gaps")
        if any([int(one) for one in each.broker_ids] != [node.options.node_id] for each in row.assignments):
            words = f"the replica must be node {node.options.node_id}, the only one"
            raise Refused(Code.invalid_replica_assignment, words)
    elif row.replication_factor not in (-1, 1):
        if row.replication_factor > 1:  # Kafka finds that there are too few brokers when it places the replicas
            node.topics.check(str(row.name), partitions)
        raise Refused(
            Code.invalid_replication_factor,
            f"replication factor must be 1, since there is one node (got {row.replication_factor})",
        )
    config = {str(each.name): each.value for each in row.configs if each.value is not None}
    node.topics.check(str(row.name), partitions)
    return None if validate_only else await node.create_topic(str(row.name), partitions, config)


_NEITHER: Final = "Neither topic name nor id were specified."
_BOTH: Final = "You may not specify both topic name and topic id."


async def delete_topics(call: Call, request: DeleteTopicsRequest) -> Values:
    """Delete topics with all their data, and the offsets that were committed for them."""
    node = call.node
    asked: list[tuple[str | None, bytes]] = (
        [(each.name, uuid_bytes(each.topic_id)) for each in request.topics]
        if call.version >= _BY_ID_SINCE
        else [(str(name), bytes(16)) for name in request.topic_names]
    )
    answers: list[_DeletedTopic] = []
    ids = {
        node.topics.by_id[topic_id].name for name, topic_id in asked if name is None and topic_id in node.topics.by_id
    }

    def may(operation: Operation, called: str) -> bool:
        return cluster_right(call, Operation.DELETE) or call.may(operation, Resource.TOPIC, called)

    twice = {
        name
        for name, topic_id in asked
        if name in ids and topic_id == bytes(16) and may(Operation.DELETE, name) and may(Operation.DESCRIBE, name)
    }
    for name, topic_id in asked:
        if (name is None) is (topic_id == bytes(16)):
            words = _NEITHER if name is None else _BOTH
            error_fields: _Error = {"error_code": Code.invalid_request, "error_message": words}
            answers.append({"name": name, "topic_id": topic_id, **error_fields})
    asked = [(name, topic_id) for name, topic_id in asked if (name is None) is not (topic_id == bytes(16))]
    for name, topic_id in dict.fromkeys(asked):
        topic = node.topics.by_id.get(topic_id) if name is None else node.topics.by_name.get(name)
        answer: _DeletedTopic = {"name": name, "topic_id": topic_id}
        if topic is not None and topic.name in twice:
            if name is None:  # one row for the name and the id
                words = "The provided topic name maps to an ID that was already supplied."
                wrong: _Error = {"error_code": Code.invalid_request, "error_message": words}
                answers.append({"name": topic.name, "topic_id": topic.topic_id, **wrong})
            continue
        if asked.count((name, topic_id)) > 1:
            words = "Duplicate topic name." if name is not None else "Duplicate topic id."
            answers.append({**answer, "error_code": Code.invalid_request, "error_message": words})
            continue
        if name is not None and not may(Operation.DESCRIBE, name):
            answer["error_code"] = Code.topic_authorization_failed
        elif topic is not None and not may(Operation.DELETE, topic.name):
            shown = topic.name if may(Operation.DESCRIBE, topic.name) else None
            answer["name"], answer["error_code"] = shown, Code.topic_authorization_failed
        elif topic is None:
            answer["error_code"] = Code.unknown_topic_id if name is None else Code.unknown_topic_or_partition
            answer["error_message"] = "This server does not host this topic-partition." if name is not None else None
        else:
            answer["name"], answer["topic_id"] = topic.name, topic.topic_id
            await node.delete_topic(topic)
        answers.append(answer)
    return {"responses": answers}


async def create_partitions(call: Call, request: CreatePartitionsRequest) -> Values:
    """Add partitions to topics."""
    node = call.node
    answers = []
    names = [str(each.name) for each in request.topics]
    for at, each in enumerate(request.topics):
        name = names[at]
        if name in names[:at]:
            continue  # the first entry has the answer for all entries of this name
        answer: _NamedResult = {"name": name}
        topic = node.topics.by_name.get(name)
        try:
            if names.count(name) > 1:
                raise Refused(Code.invalid_request, "Duplicate topic name.")
            if not call.may(Operation.ALTER, Resource.TOPIC, name):
                raise Refused(Code.topic_authorization_failed, "Authorization failed.")
            if topic is None:
                raise Refused(Code.unknown_topic_or_partition, "This server does not host this topic-partition.")
            node.topics.check_growth(topic, int(each.count))
            if each.assignments is not None and len(each.assignments) != each.count - len(topic.logs):
                words = f"there must be {each.count - len(topic.logs)} assignments (got {len(each.assignments)})"
                raise Refused(Code.invalid_replica_assignment, words)
            if any([int(one) for one in row.broker_ids] != [node.options.node_id] for row in rows(each.assignments)):
                words = f"the replica must be node {node.options.node_id}, the only one"
                raise Refused(Code.invalid_replica_assignment, words)
            await node.grow_topic(topic, int(each.count), validate_only=request.validate_only)
        except Refused as refused:
            answer["error_code"], answer["error_message"] = refused.code, str(refused) or None
        answers.append(answer)
    return {"results": answers}


async def describe_configs(call: Call, request: DescribeConfigsRequest) -> Values:
    """Describe the settings of this node, of topics and of groups."""
    if any(int(each.resource_type) not in _RESOURCES for each in request.resources):  # the whole request fails
        rows = [
            {"resource_type": each.resource_type, "resource_name": each.resource_name} for each in request.resources
        ]
        return {"results": [{**row, "error_code": Code.invalid_request} for row in rows]}
    await call.node.open_offsets(str(each.resource_name) for each in request.resources)
    return {"results": [_described(call, each) for each in request.resources]}


def _described(call: Call, resource: DescribedResource) -> Values:
    kind, name = int(resource.resource_type), str(resource.resource_name)
    keys = resource.configuration_keys
    answer: _Resource = {"resource_type": kind, "resource_name": name}
    node = call.node
    found: list[_Setting] = []
    if kind == BROKER:
        if not cluster_right(call, Operation.DESCRIBE_CONFIGS):
            return {**answer, "error_code": Code.cluster_authorization_failed}
        if name not in ("", str(node.options.node_id)):
            return {
                **answer,
                "error_code": Code.invalid_request,
                "error_message": f"this is node {node.options.node_id}",
            }
        usual = dict(broker_rows(Settings()))
        found = [
            _row(each, value, _DEFAULT if usual[each] == value else _STATIC_BROKER, read_only=True)
            for each, value in broker_rows(node.settings)
            if name
        ]
    elif kind == TOPIC:
        if not call.may(Operation.DESCRIBE_CONFIGS, Resource.TOPIC, name):
            return {**answer, "error_code": Code.topic_authorization_failed}
        topic = node.topic(name)
        if name_fault(name):
            return {**answer, "error_code": Code.invalid_topic_exception, "error_message": name_fault(name)}
        if topic is None:
            return {**answer, "error_code": Code.unknown_topic_or_partition}
        found = [_row(each, value, _DYNAMIC_TOPIC) for each, value in topic.config.items()]
    elif kind == GROUP:
        if not call.may(Operation.DESCRIBE_CONFIGS, Resource.GROUP, name):
            return {**answer, "error_code": Code.group_authorization_failed}
        if not name:
            return {**answer, "error_code": Code.invalid_request, "error_message": "Group name cannot be empty."}
        given = node.group_configs.get(name, {})
        found = [
            _row(each, given.get(each, value), _DYNAMIC_GROUP if each in given else _DEFAULT)
            for each, value in group_rows(node.settings)
        ]
    else:
        return {**answer, "error_code": Code.invalid_request, "error_message": f"Unsupported resource type: {kind}"}
    return {**answer, "configs": [row for row in found if not keys or row["name"] in keys]}


def _row(name: str, value: str, source: int, *, read_only: bool = False) -> _Setting:
    return {
        "name": name,
        "value": value,
        "config_type": _TYPES.get(name, _INT if value.lstrip("-").isdecimal() else _STRING),
        "read_only": read_only,
        "is_default": source == _DEFAULT,
        "config_source": source,
    }


async def incremental_alter_configs(call: Call, request: IncrementalAlterConfigsRequest) -> Values:
    """Change settings of groups and topics. Those of topics are stored, but have no effect."""
    answers = []
    asked = [(int(each.resource_type), str(each.resource_name)) for each in request.resources]
    for each, (kind, name) in zip(request.resources, asked, strict=True):
        answer: _Resource = {"resource_type": kind, "resource_name": name}
        try:
            if asked.count((kind, name)) > 1:
                raise Refused(Code.invalid_request, "Each resource must appear at most once.")
            keys = [str(row.name) for row in each.configs]
            if len(set(keys)) < len(keys):
                raise Refused(Code.invalid_request, "Error due to duplicate config keys")
            if any(row.config_operation != _DELETE and row.value is None for row in each.configs):
                raise Refused(Code.invalid_request, "Null value not supported for: a setting that is not deleted")
            await _alter(call, kind, name, each.configs, validate_only=request.validate_only)
        except Refused as refused:
            answer["error_code"], answer["error_message"] = refused.code, str(refused) or None
        answers.append(answer)
    return {"responses": answers}


async def _alter(call: Call, kind: int, name: str, changes: Sequence[ConfigChange], *, validate_only: bool) -> None:
    node = call.node
    topic = node.topics.by_name.get(name) if kind == TOPIC else None
    if kind == GROUP:
        if not call.may(Operation.ALTER_CONFIGS, Resource.GROUP, name):
            raise Refused(Code.group_authorization_failed, "Authorization failed.")
        if any(int(each.config_operation) not in (_SET, _DELETE) for each in changes):
            raise Refused(Code.invalid_config, "append and subtract need a list; no group setting is one")
        if not name:
            raise Refused(Code.invalid_request, "Default group resources are not allowed.")
        config = dict(node.group_configs.get(name, {}))
    elif kind == TOPIC:
        if not call.may(Operation.ALTER_CONFIGS, Resource.TOPIC, name):
            raise Refused(Code.topic_authorization_failed, "Authorization failed.")
        if not name:
            raise Refused(Code.invalid_request, "Default topic resources are not allowed.")
        if name_fault(name):
            raise Refused(Code.invalid_topic_exception, name_fault(name))
        if topic is None:
            raise Refused(Code.unknown_topic_or_partition, "This server does not host this topic-partition.")
        config = dict(topic.config)
    else:
        raise Refused(Code.invalid_request, f"Unsupported resource type: {kind}")
    for each in changes:
        key = str(each.name)
        if kind == GROUP and each.config_operation != _DELETE and key not in GROUP_SETTINGS:
            raise Refused(Code.invalid_config, f"Unknown group config name: {key}")
        if each.config_operation == _SET and each.value is not None:
            config[key] = each.value.strip()
        elif each.config_operation == _DELETE:
            config.pop(key, None)
        else:
            raise Refused(Code.invalid_config, f"Can't {each.config_operation} the value of {key}")
    if kind == GROUP:
        try:
            group_config(node.settings, config)
        except ValueError as wrong:
            raise Refused(Code.invalid_config, str(wrong)) from None
        if not validate_only:
            await node.configure_group(name, config)
    elif topic is not None and not validate_only:
        await node.configure_topic(topic, config)


async def list_config_resources(call: Call, request: ListConfigResourcesRequest) -> Values:
    """List the groups, nodes and topics that may have settings."""
    node = call.node
    if not cluster_right(call, Operation.DESCRIBE_CONFIGS):
        return {"error_code": Code.cluster_authorization_failed}
    if call.version < _KINDS_SINCE:  # client metrics only, which this server does not have
        return {}
    kinds = {int(each) for each in request.resource_types}
    if not kinds <= _RESOURCES:
        return {"error_code": Code.unsupported_version}
    kinds = kinds or {TOPIC, BROKER, GROUP}
    found: list[_Resource] = []
    if GROUP in kinds:
        found += [{"resource_type": GROUP, "resource_name": name} for name in node.group_configs]
    if BROKER in kinds:
        found.append({"resource_type": BROKER, "resource_name": str(node.options.node_id)})
    if TOPIC in kinds:
        found += [{"resource_type": TOPIC, "resource_name": name} for name in node.topics.by_name]
    return {"config_resources": found}

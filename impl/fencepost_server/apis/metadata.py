"""The APIs that describe versions, brokers and topics."""

from __future__ import annotations

import re
from typing import Final
from uuid import UUID

from kio.schema.errors import ErrorCode as Code

from fencepost_server.apis.call import NOT_ASKED, Call, Values, optional, uuid_bytes
from fencepost_server.apis.requests import ApiVersionsRequest, DescribeTopicPartitionsRequest, MetadataRequest
from fencepost_server.data.producers import Refused
from fencepost_server.data.topics import INTERNAL, Topic, name_fault
from fencepost_server.security.acl import CLUSTER_NAME, Operation, Resource

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_NAMED_SINCE: Final = 3
_NODE_SINCE: Final = 5
#: v0 has no null, so an empty list asks for all topics
_NULL_SINCE: Final = 1
_NO_ID: Final = bytes(16)
_NO_UUID: Final[UUID | None] = None
_NOBODY: Final = -1
#: the endpoint types of DescribeCluster
_BROKERS, _CONTROLLERS = 1, 2

#: The features of Kafka 4.4 that this server has: KIP-848, and transactions of version 2.
FEATURES: Final = (("group.version", 1), ("transaction.version", 2), ("metadata.version", 33))


async def api_versions(call: Call, request: ApiVersionsRequest) -> Values:
    """Return the supported APIs and versions. An invalid client name or version gets an error."""
    node = call.node
    if call.version >= _NAMED_SINCE:
        name, version = request.client_software_name, request.client_software_version
        if not _SOFTWARE.fullmatch(name) or not _SOFTWARE.fullmatch(version):
            return {"error_code": Code.invalid_request}
        call.session.client_software = f"{name} {version}"
    if call.version >= _NODE_SINCE and request.cluster_id is not None and request.node_id != -1:
        meant = request.cluster_id, request.node_id
        if meant != (node.options.cluster_id, node.options.node_id):
            return {"error_code": Code.rebootstrap_required}
    call.session.versions_known = True
    return {
        "api_keys": node.announced,
        "finalized_features_epoch": 0,
        "supported_features": [
            {"name": name, "min_version": int(name == "metadata.version"), "max_version": level}
            for name, level in FEATURES
            if call.version > _NAMED_SINCE or name == "metadata.version"
        ],
        "finalized_features": [
            {"name": name, "max_version_level": level, "min_version_level": level} for name, level in FEATURES
        ],
    }


async def metadata(call: Call, request: MetadataRequest) -> Values:
    """Return the nodes and the requested topics."""
    node = call.node
    asked = request.topics
    rows: list[Values] = []
    rights = optional(request, "include_topic_authorized_operations", False)
    may_create = optional(request, "allow_auto_topic_creation", True)
    if asked is None or (call.version < _NULL_SINCE and not asked):
        denied = call.all_topics_denied(Operation.DESCRIBE)
        rows = [_topic(call, topic, rights=rights) for topic in node.topics if topic.name not in denied]
        internal = None if node.offsets is None else node.offsets.topic
        if internal is not None and call.may(Operation.DESCRIBE, Resource.TOPIC, internal.name):
            rows.append(_topic(call, internal, rights=rights))
    else:
        requested = [(each.name, uuid_bytes(optional(each, "topic_id", _NO_UUID))) for each in asked]
        await node.open_offsets(name or topic_id for name, topic_id in requested)
        for name, topic_id in dict.fromkeys(requested):
            rows.append(await _asked(call, name, topic_id, may_create=may_create, rights=rights))
    return {
        "brokers": [
            {"node_id": each.node_id, "host": each.host, "port": each.port} for each in node.brokers(call.session)
        ],
        "cluster_id": node.options.cluster_id,
        "controller_id": _NOBODY if node.leader_id is None else node.leader_id,
        "topics": rows,
        "cluster_authorized_operations": _cluster_rights(call, request),
    }


async def _asked(call: Call, name: str | None, topic_id: bytes, *, may_create: bool, rights: bool) -> Values:
    node = call.node
    if name is None or topic_id != _NO_ID:
        topic = node.topic(topic_id)
        if topic is None:
            return {"name": None, "topic_id": topic_id, "error_code": Code.unknown_topic_id}
        if not call.may(Operation.DESCRIBE, Resource.TOPIC, topic.name):  # the name stays hidden
            return {"name": None, "topic_id": topic_id, "error_code": Code.topic_authorization_failed}
        return _topic(call, topic, rights=rights)
    if not call.may(Operation.DESCRIBE, Resource.TOPIC, name):
        return {"name": name, "error_code": Code.topic_authorization_failed}
    topic = node.topic(name)
    if topic is not None:
        return _topic(call, topic, rights=rights)
    allowed = {"topic_authorized_operations": call.rights(Resource.TOPIC, name, asked=rights)}
    if name_fault(name):
        return {"name": name, "error_code": Code.invalid_topic_exception, **allowed}
    if may_create and node.leads and node.options.auto_create and call.may(Operation.CREATE, Resource.TOPIC, name):
        try:
            return _topic(call, await node.create_topic(name, node.options.auto_create), rights=rights)
        except Refused as refused:
            return {"name": name, "error_code": refused.code}
    return {"name": name, "error_code": Code.unknown_topic_or_partition, **allowed}


def _topic(call: Call, topic: Topic, first: int = 0, last: int | None = None, *, rights: bool) -> Values:
    """Return the row of a topic, with its partitions from ``first`` up to ``last``. While no node leads, they have
    LEADER_NOT_AVAILABLE, which clients retry."""
    node = call.node
    node_id = _NOBODY if node.leader_id is None else node.leader_id
    code = Code.leader_not_available if node.leader_id is None else Code.none
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.name in INTERNAL,
        "partitions": [
            {
                "error_code": code,
                "partition_index": log.index,
                "leader_id": node_id,
                "leader_epoch": node.leader_epoch,
                "replica_nodes": (node_id,),
                "isr_nodes": (node_id,),
                "eligible_leader_replicas": (),
                "last_known_elr": (),
            }
            for log in topic.logs[first:last]
        ],
        "topic_authorized_operations": call.rights(Resource.TOPIC, topic.name, asked=rights),
    }


async def describe_cluster(call: Call, request: object) -> Values:
    """Return the live nodes, and the one that leads."""
    node = call.node
    endpoint = optional(request, "endpoint_type", _BROKERS)
    if endpoint != _BROKERS:
        code = Code.mismatched_endpoint_type if endpoint == _CONTROLLERS else Code.unsupported_endpoint_type
        return {"error_code": code, "error_message": "this node is a broker, not a controller", "endpoint_type": 1}
    return {
        "endpoint_type": endpoint,
        "cluster_id": node.options.cluster_id,
        "controller_id": _NOBODY if node.leader_id is None else node.leader_id,
        "brokers": [
            {"broker_id": each.node_id, "host": each.host, "port": each.port} for each in node.brokers(call.session)
        ],
        "cluster_authorized_operations": _cluster_rights(call, request),
    }


async def describe_topic_partitions(call: Call, request: DescribeTopicPartitionsRequest) -> Values:
    """Return topics in pages, for newer admin clients."""
    node = call.node
    names = sorted({str(each.name) for each in request.topics} or set(node.topics.by_name))
    await node.open_offsets(names)
    listed_all = not request.topics
    cursor = request.cursor
    start = (str(cursor.topic_name), int(cursor.partition_index)) if cursor is not None else ("", 0)
    if start[1] < 0 or (cursor is not None and not listed_all and start[0] not in names):
        wrong = [{"name": each.name, "error_code": Code.invalid_request} for each in request.topics]
        return {"topics": [{**row, "topic_authorized_operations": NOT_ASKED} for row in wrong]}
    left = min(max(int(request.response_partition_limit), 1), 2_000)
    rows: list[Values] = []
    following = None
    names = [name for name in names if name >= start[0]]
    denied = call.denied(Operation.DESCRIBE, Resource.TOPIC, names)
    for name in names:
        if name in denied:
            continue
        if not name:  # Kafka fails with an internal error
            wrong = [{"name": each.name, "error_code": Code.unknown_server_error} for each in request.topics]
            return {"topics": [{**row, "topic_authorized_operations": NOT_ASKED} for row in wrong]}
        if left == 0:
            following = {"topic_name": name, "partition_index": 0}
            break
        topic = node.topic(name)
        if topic is None:
            code = Code.invalid_topic_exception if name_fault(name) else Code.unknown_topic_or_partition
            rights = call.rights(Resource.TOPIC, name)
            rows.append({"name": name, "error_code": code, "topic_authorized_operations": rights})
            continue
        first = start[1] if name == start[0] else 0
        last = max(min(first + left, len(topic.logs)), first)
        rows.append(_topic(call, topic, first, last, rights=True))
        left -= last - first
        if last < len(topic.logs):
            following = {"topic_name": name, "partition_index": last}
            break
    if not listed_all:  # after the rows of the page, whatever their names
        rows += [{"name": name, "error_code": Code.topic_authorization_failed} for name in sorted(denied)]
    return {"topics": rows, "next_cursor": following}


def _cluster_rights(call: Call, request: object) -> int:
    """Return the client's rights to the cluster; none if it may not describe the cluster."""
    asked = optional(request, "include_cluster_authorized_operations", False)
    if asked and not cluster_right(call, Operation.DESCRIBE):
        return 0
    return call.rights(Resource.CLUSTER, CLUSTER_NAME, asked=asked)


def cluster_right(call: Call, operation: Operation) -> bool:
    """Return whether the client has a right to the cluster."""
    return call.may(operation, Resource.CLUSTER, CLUSTER_NAME)

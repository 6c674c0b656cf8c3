"""The APIs of groups and offsets: the coordinator's answers, as messages of the requested version."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import fields, replace
from typing import Final, TypeAlias

from kio.schema.errors import ErrorCode as Code

from fencepost.host import lookup
from fencepost.protocol import consumer_messages as c
from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as o
from fencepost.protocol.errors import ErrorCode
from fencepost.sharding import partition_for
from fencepost.wire.convert import to_request
from fencepost_server.apis.call import Answer, Call, Values, optional
from fencepost_server.apis.requests import FindCoordinatorRequest
from fencepost_server.data.producers import Refused
from fencepost_server.security.acl import Operation, Resource

#: The newest version that the coordinator knows, where Kafka has a later one that only adds a message, always null
#: here.
_SAME_AS: Final[dict[type, int]] = {m.DeleteGroupsRequest: 2}
#: From this version on, a protocol name may be null (G-WIRE-20).
_NULL_PROTOCOL_SINCE: Final = 7
#: Earlier versions of OffsetFetch ask for a single group.
_SEVERAL_GROUPS_SINCE: Final = 8
#: From this version on, TxnOffsetCommit adds its partition to the transaction (KIP-890).
_IMPLICIT_SINCE: Final = 5
#: From this version of TxnOffsetCommit on, a client knows the code TRANSACTION_ABORTABLE.
_ABORTABLE_SINCE: Final = 4
#: From this version of TxnOffsetCommit on, requests give topics by id.
_BY_ID_SINCE: Final = 6

_RIGHTS: Final[dict[str, Operation]] = {
    "join_group": Operation.READ,
    "sync_group": Operation.READ,
    "heartbeat": Operation.READ,
    "leave_group": Operation.READ,
    "consumer_group_heartbeat": Operation.READ,
    "offset_commit": Operation.READ,
    "txn_offset_commit": Operation.READ,
    "offset_fetch": Operation.DESCRIBE,
    "describe_groups": Operation.DESCRIBE,
    "consumer_group_describe": Operation.DESCRIBE,
    "delete_groups": Operation.DELETE,
    "offset_delete": Operation.DELETE,
}
#: The APIs that name topics, with the right that each requires (M-VAL-02, O-COMMIT-02, O-FETCH-01).
_TOPIC_RIGHTS: Final[dict[str, Operation]] = {
    "consumer_group_heartbeat": Operation.DESCRIBE,
    "consumer_group_describe": Operation.DESCRIBE,
    "offset_commit": Operation.READ,
    "txn_offset_commit": Operation.READ,
    "offset_delete": Operation.READ,
    "offset_fetch": Operation.DESCRIBE,
}

_DescribedGroup: TypeAlias = m.DescribedGroup | c.DescribedConsumerGroup


async def coordinated(call: Call, request: object) -> Answer:
    """Handle a request of any API that the group coordinator answers."""
    api = call.header.api
    body = to_request(api, request)
    if isinstance(body, o.TxnOffsetCommitRequest):
        await _in_transaction(call, body)
    answer = await _ask(call, api, body)
    if isinstance(body, o.TxnOffsetCommitRequest) and isinstance(answer, o.TxnOffsetCommitResponse):
        _note_commit(call, body, answer)
    if isinstance(answer, m.ListGroupsResponse) and not call.node.acl.open:
        listed = answer.groups
        if not call.may(Operation.DESCRIBE, Resource.CLUSTER, "kafka-cluster"):
            denied = call.denied(Operation.DESCRIBE, Resource.GROUP, [row.group_id for row in listed])
            listed = tuple(row for row in listed if row.group_id not in denied)
        return m.ListGroupsResponse(answer.error_code, listed)
    if optional(request, "include_authorized_operations", False):
        assert isinstance(answer, m.DescribeGroupsResponse | c.ConsumerGroupDescribeResponse)
        return {"groups": [{**_fields(row), "authorized_operations": _rights(call, row)} for row in answer.groups]}
    return in_version(answer, call.version)


def _rights(call: Call, row: _DescribedGroup) -> int:
    """Return the client's rights to a described group; ``NOT_ASKED`` if its row has an error."""
    return call.rights(Resource.GROUP, row.group_id, asked=row.error_code is ErrorCode.NONE)


def in_version(answer: m.ResponseBody, version: int) -> m.ResponseBody | o.OffsetFetchResponseGroup:
    """Return the answer as its message has it in ``version``."""
    if isinstance(answer, m.JoinGroupResponse) and version >= _NULL_PROTOCOL_SINCE and not answer.protocol_name:
        return replace(answer, protocol_name=None)
    if isinstance(answer, o.OffsetFetchResponse) and version < _SEVERAL_GROUPS_SINCE:
        return answer.groups[0]
    return answer


async def _ask(call: Call, api: str, body: m.RequestBody) -> m.ResponseBody:
    right, topic_right = _RIGHTS.get(api), _TOPIC_RIGHTS.get(api)
    return await call.node.groups.request(
        body,
        version=min(call.version, _SAME_AS.get(type(body), call.version)),
        client_id=call.header.client_id or "",
        client_host=call.client_host,
        denied=frozenset() if right is None else call.denied(right, Resource.GROUP, _groups(body)),
        denied_topics=frozenset()
        if topic_right is None or call.node.acl.open
        else call.all_topics_denied(topic_right) | call.denied(topic_right, Resource.TOPIC, _topics(body)),
    )


async def _in_transaction(call: Call, body: o.TxnOffsetCommitRequest) -> None:
    """Check the right to the transactional id, its producer, and that the partition of the offsets topic is in its
    transaction; the request of a newer client adds the partition (O-TXN-01). Raises ``Answered`` with the error."""
    node = call.node
    if not call.may(Operation.WRITE, Resource.TRANSACTIONAL_ID, body.transactional_id):
        raise _refused(call, body, Code.transactional_id_authorization_failed, everywhere=True)
    if not call.may(Operation.READ, Resource.GROUP, body.group_id):
        raise _refused(call, body, Code.group_authorization_failed, everywhere=True)
    known = node.transactions.known.get(body.transactional_id)
    partition = partition_for(body.group_id, node.groups.partitions)
    if all(_fault(call, topic, each.partition_index) for topic in body.topics for each in topic.partitions):
        raise _refused(call, body, Code.none)
    if not body.group_id:
        raise _refused(call, body, Code.invalid_group_id)
    try:
        if node.offset_producers.ongoing(partition, body.producer_id, body.producer_epoch):
            return
        if not body.transactional_id:
            raise Refused(Code.invalid_request, "the transactional id is empty")
        if call.version >= _IMPLICIT_SINCE:
            known = node.transactions.check(body.transactional_id, body.producer_id, body.producer_epoch, fencing=False)
            await node.transactions.add(known, offsets=[partition], version=2)
            return
        if known is None or known.producer_id != body.producer_id:
            raise Refused(Code.invalid_producer_id_mapping, "the producer id does not belong to the transactional id")
        if known.producer_epoch != body.producer_epoch:
            raise Refused(Code.invalid_producer_epoch, "the producer epoch is not the current one")
        if partition not in known.offsets or known.state.ending:
            code = Code.transaction_abortable if call.version >= _ABORTABLE_SINCE else Code.invalid_txn_state
            raise Refused(code, "the group's offsets are not in the transaction")
    except Refused as refused:
        raise _refused(call, body, refused.code) from None


def _note_commit(call: Call, body: o.TxnOffsetCommitRequest, answer: o.TxnOffsetCommitResponse) -> None:
    """Note the producer if an offset was stored."""
    if any(each.error_code is ErrorCode.NONE for topic in answer.topics for each in topic.partitions):
        place = partition_for(body.group_id, call.node.groups.partitions)
        call.node.offset_producers.committed(place, body.producer_id, body.producer_epoch)


def _fault(call: Call, row: o.OffsetCommitRequestTopic, index: int) -> Code:
    """Return the error of committing an offset for the partition; ``none`` if the client may."""
    topics = call.node.topics
    topic = topics.by_name.get(row.name) if row.name else topics.by_id.get(row.topic_id)
    name = row.name or (topic.name if topic is not None else "")
    if name and not call.may(Operation.READ, Resource.TOPIC, name):
        return Code.topic_authorization_failed
    if topic is None:
        return Code.unknown_topic_id if call.version >= _BY_ID_SINCE else Code.unknown_topic_or_partition
    return Code.none if 0 <= index < len(topic.logs) else Code.unknown_topic_or_partition


def _refused(call: Call, body: o.TxnOffsetCommitRequest, code: Code, *, everywhere: bool = False) -> Answered:
    """The answer with the same error for each partition that exists and may be read; others have their own error.
    ``everywhere``: the same error for all partitions."""
    return Answered(
        {
            "topics": [
                {
                    "name": topic.name,
                    "topic_id": topic.topic_id,
                    "partitions": [
                        {
                            "partition_index": each.partition_index,
                            "error_code": code if everywhere else _fault(call, topic, each.partition_index) or code,
                        }
                        for each in topic.partitions
                    ],
                }
                for topic in body.topics
            ]
        }
    )


class Answered(Exception):
    """The answer to a request that is not handled further, raised with its values."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.values = values


def _fields(message: _DescribedGroup | lookup.FoundCoordinator) -> Values:
    return {field.name: getattr(message, field.name) for field in fields(message)}


def _groups(body: m.RequestBody) -> Iterable[str]:
    if isinstance(body, m.DescribeGroupsRequest):
        return body.groups
    if isinstance(body, m.DeleteGroupsRequest):
        return body.groups_names
    if isinstance(body, c.ConsumerGroupDescribeRequest):
        return body.group_ids
    if isinstance(body, o.OffsetFetchRequest):
        return [group.group_id for group in body.groups]
    return [optional(body, "group_id", "")]


def _topics(body: m.RequestBody) -> Iterable[str]:
    """The topic names of a request; such topics may not exist."""
    if isinstance(body, c.ConsumerGroupHeartbeatRequest):
        return body.subscribed_topic_names or ()
    if isinstance(body, o.OffsetFetchRequest):
        return [topic.name for group in body.groups for topic in group.topics or ()]
    return [topic.name for topic in getattr(body, "topics", ())]


async def find_coordinator(call: Call, request: FindCoordinatorRequest) -> Values:
    """Return the coordinator of groups or transactional ids: the node that leads (F-FIND-01 to 06)."""
    node, version = call.node, call.version
    batched = version >= lookup.BATCHED
    keys = tuple(request.coordinator_keys) if batched else (request.key,)
    kind = int(optional(request, "key_type", lookup.KeyType.GROUP))
    leader = node.leader(call.session)
    if kind == lookup.KeyType.GROUP:
        leaders = {} if leader is None else dict.fromkeys(range(node.groups.partitions), leader)
        asked = lookup.FindCoordinatorRequest(tuple(map(str, keys)))
        denied = call.denied(Operation.DESCRIBE, Resource.GROUP, keys)
        found = lookup.find_coordinator(asked, version, leaders, node.groups.partitions, denied).coordinators
    elif kind == lookup.KeyType.TRANSACTION:
        denied = call.denied(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, keys)
        found = tuple(_of_transactions(key, leader, denied) for key in keys)
    else:
        found = tuple(lookup.FoundCoordinator(key, error_code=ErrorCode.INVALID_REQUEST) for key in keys)
    answers = [_found(row) for row in found]
    return {"coordinators": answers} if batched else answers[0]


def _of_transactions(key: str, leader: lookup.Endpoint | None, denied: AbstractSet[str]) -> lookup.FoundCoordinator:
    if key in denied:
        return lookup.FoundCoordinator(key, error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if leader is None:
        return lookup.FoundCoordinator(key, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return lookup.FoundCoordinator(key, node_id=leader.node_id, host=leader.host, port=leader.port)


def _found(row: lookup.FoundCoordinator) -> Values:
    """Return a row with the name of its error as a message."""
    words = Code(row.error_code).name.replace("_", " ") if row.error_code else None
    return {**_fields(row), "error_message": words}

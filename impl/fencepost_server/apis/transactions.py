"""The APIs of transactional producers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kio.schema.errors import ErrorCode as Code

from fencepost.sharding import partition_for
from fencepost.wire.convert import milliseconds
from fencepost_server.apis.call import Call, Values, optional
from fencepost_server.apis.metadata import cluster_right
from fencepost_server.apis.requests import (
    AddedTopic,
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
)
from fencepost_server.data.producers import Refused
from fencepost_server.security.acl import Operation, Resource
from fencepost_server.transactions.state import State

#: From these versions on, a client knows the code PRODUCER_FENCED.
_FENCED_SINCE: Final = {"init_producer_id": 4, "add_partitions_to_txn": 2, "add_offsets_to_txn": 2, "end_txn": 2}
_BATCHED_SINCE: Final = 4
_BUMPING_SINCE: Final = 5


def _knows_fenced(call: Call) -> bool:
    return call.version >= _FENCED_SINCE[call.header.api]


async def init_producer_id(call: Call, request: InitProducerIdRequest) -> Values:
    """Return a producer id: a new one for an idempotent producer, or that of the transactional id, with an epoch that
    fences earlier producers."""
    name = request.transactional_id
    if name is not None and not call.may(Operation.WRITE, Resource.TRANSACTIONAL_ID, name):
        return _no_producer(Code.transactional_id_authorization_failed)
    if name is None and not _may_be_idempotent(call):
        return _no_producer(Code.cluster_authorization_failed)
    given_id, given_epoch = optional(request, "producer_id", -1), optional(request, "producer_epoch", -1)
    if (given_id == -1) is not (given_epoch == -1):
        return _no_producer(Code.invalid_request)
    try:
        producer_id, epoch = await call.node.transactions.init_producer(
            name,
            milliseconds(request.transaction_timeout),
            int(given_id),
            int(given_epoch),
            fencing=_knows_fenced(call),
        )
    except Refused as refused:
        return _no_producer(refused.code)
    return {"producer_id": producer_id, "producer_epoch": epoch}


def _may_be_idempotent(call: Call) -> bool:
    """Return whether the client may have a producer id without a transactional id: the right to write to any topic is
    enough (KIP-679)."""
    acl, session = call.node.acl, call.session
    return cluster_right(call, Operation.IDEMPOTENT_WRITE) or acl.allows_any(
        session.principal, session.peer_host, Operation.WRITE, Resource.TOPIC
    )


def _no_producer(code: Code) -> Values:
    return {"error_code": code, "producer_id": -1, "producer_epoch": -1}


async def add_partitions_to_txn(call: Call, request: AddPartitionsToTxnRequest) -> Values:
    """Add partitions to a transaction before it writes to them."""
    if call.version < _BATCHED_SINCE:
        topics = request.v3_and_below_topics
        rows = await _add(
            call,
            str(request.v3_and_below_transactional_id),
            int(request.v3_and_below_producer_id),
            int(request.v3_and_below_producer_epoch),
            topics,
            verify_only=False,
        )
        return {"results_by_topic_v3_and_below": rows}
    if not cluster_right(call, Operation.CLUSTER_ACTION):  # only brokers send these versions
        return {"error_code": Code.cluster_authorization_failed}
    return {
        "results_by_transaction": [
            {
                "transactional_id": each.transactional_id,
                "topic_results": await _add(
                    call,
                    str(each.transactional_id),
                    int(each.producer_id),
                    int(each.producer_epoch),
                    each.topics,
                    verify_only=each.verify_only,
                ),
            }
            for each in request.transactions
        ]
    }


async def _add(
    call: Call, name: str, producer_id: int, epoch: int, topics: Iterable[AddedTopic], *, verify_only: bool
) -> list[Values]:
    node = call.node
    wanted = [(str(row.name), int(index)) for row in topics for index in row.partitions]
    codes: dict[tuple[str, int], Code] = {}
    checked = call.version < _BATCHED_SINCE  # in later versions a broker has checked the producer's rights
    if checked and not call.may(Operation.WRITE, Resource.TRANSACTIONAL_ID, name):
        codes = dict.fromkeys(wanted, Code.transactional_id_authorization_failed)
    else:
        for topic, index in wanted:
            if checked and not call.may(Operation.WRITE, Resource.TOPIC, topic):
                codes[topic, index] = Code.topic_authorization_failed
            elif node.topics.partition(topic, index) is None:
                codes[topic, index] = Code.unknown_topic_or_partition
        if codes:
            codes = {each: codes.get(each, Code.operation_not_attempted) for each in wanted}
        else:
            try:
                known = node.transactions.check(name, producer_id, epoch, fencing=_knows_fenced(call))
                if not verify_only:
                    await node.transactions.add(known, wanted)
                elif known.state.ending:
                    codes = dict.fromkeys(wanted, Code.concurrent_transactions)
                else:
                    there = known.partitions if known.state is State.ONGOING else ()
                    codes = {each: Code.transaction_abortable for each in wanted if each not in there}
            except Refused as refused:
                codes = dict.fromkeys(wanted, refused.code)
    return [
        {
            "name": row.name,
            "results_by_partition": [
                {"partition_index": index, "partition_error_code": codes.get((str(row.name), int(index)), Code.none)}
                for index in row.partitions
            ],
        }
        for row in topics
    ]


async def add_offsets_to_txn(call: Call, request: AddOffsetsToTxnRequest) -> Values:
    """Add the partition of a group's offsets to a transaction."""
    name, group = str(request.transactional_id), str(request.group_id)
    if not call.may(Operation.WRITE, Resource.TRANSACTIONAL_ID, name):
        return {"error_code": Code.transactional_id_authorization_failed}
    if not call.may(Operation.READ, Resource.GROUP, group):
        return {"error_code": Code.group_authorization_failed}
    transactions = call.node.transactions
    try:
        known = transactions.check(
            name, int(request.producer_id), int(request.producer_epoch), fencing=_knows_fenced(call)
        )
        await transactions.add(known, offsets=[partition_for(group, call.node.groups.partitions)])
    except Refused as refused:
        return {"error_code": refused.code}
    return {}


async def end_txn(call: Call, request: EndTxnRequest) -> Values:
    """Commit or abort a transaction. The answer comes when every partition has its marker."""
    name = str(request.transactional_id)
    if not call.may(Operation.WRITE, Resource.TRANSACTIONAL_ID, name):
        return {"error_code": Code.transactional_id_authorization_failed}
    bumping = call.version >= _BUMPING_SINCE
    try:
        producer_id, epoch = await call.node.transactions.end(
            name,
            int(request.producer_id),
            int(request.producer_epoch),
            committed=bool(request.committed),
            version=2 if bumping else 1,
            fencing=_knows_fenced(call),
        )
    except Refused as refused:
        return {"error_code": refused.code}
    return {"producer_id": producer_id, "producer_epoch": epoch}

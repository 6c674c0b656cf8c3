"""Renamings under which the closed system looks the same.

Clients with the same instance id (all dynamic ones, for example) differ only in name. Member ids do not, as they are
handed out in order and the first one leads. Partitions differ only in name if a leader may assign in any way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import permutations, product
from typing import Any, cast

from fencepost.protocol.messages import Protocol
from fencepost.protocol.records import Record

from ..classic.group import GroupState
from ..classic.state import Assigned, Operation, Replaced
from ..explore.interface import Permutation, Value
from .config import Config
from .coordinator import existing
from .values import (
    Endpoint,
    JoinReply,
    JoinRequest,
    Metadata,
    Partitions,
    Reply,
    Request,
    SyncRequest,
    decode_metadata,
    decode_partitions,
    encode_metadata,
    encode_partitions,
)

Names = Mapping[str, str]


def renamings(config: Config, group: int, log: int, first_endpoint: int) -> Iterator[Permutation]:
    """Yield all renamings except the identity. ``group``, ``log`` and ``first_endpoint`` are component numbers."""
    count = len(config.clients)
    own = tuple(range(count))
    alike = [
        order
        for order in permutations(own)
        if all(config.instance(new) == config.instance(old) for new, old in enumerate(order))
    ]
    dealt = permutations(config.partitions) if config.assignor == "any" else iter([config.partitions])
    for order, partitions in product(alike, list(dealt)):
        names = dict(zip(config.partitions, partitions, strict=True))
        if order == own and partitions == config.partitions:
            continue
        requests = {old + 1: new + 1 for new, old in enumerate(order)}
        source = (*range(first_endpoint), *(first_endpoint + old for old in order))
        yield Permutation(source, partial(_rename, (group, log, first_endpoint), requests, names))


def _rename(
    kinds: tuple[int, int, int], requests: Mapping[int, int], names: Names, component: int, value: Any
) -> Value:
    group, log, first_endpoint = kinds
    if component == group:
        return _group(value, requests, names)
    if component == log:
        return cast(
            Value,
            value._replace(
                replicated=_record(value.replicated, names), open=tuple(_record(each, names) for each in value.open)
            ),
        )
    return _endpoint(value, names) if component >= first_endpoint else cast(Value, value)


def _partitions(partitions: Partitions, names: Names) -> Partitions:
    return frozenset(names[each] for each in partitions)


def _bytes(assignment: bytes, names: Names) -> bytes:
    return encode_partitions(_partitions(decode_partitions(assignment), names))


def _metadata(metadata: Metadata, names: Names) -> Metadata:
    return metadata._replace(owned=_partitions(metadata.owned, names))


def _metadata_bytes(metadata: bytes, names: Names) -> bytes:
    return encode_metadata(_metadata(decode_metadata(metadata), names))


def _protocols(protocols: tuple[Protocol, ...], names: Names) -> tuple[Protocol, ...]:
    return tuple(replace(each, metadata=_metadata_bytes(each.metadata, names)) for each in protocols)


def _group(state: GroupState, requests: Mapping[int, int], names: Names) -> GroupState:
    group = existing(state)

    def future(request: int | None) -> int | None:
        return requests.get(request, request) if request is not None else None

    members = tuple(
        member._replace(
            join=future(member.join),
            sync=future(member.sync),
            protocols=_protocols(member.protocols, names),
            assignment=_bytes(member.assignment, names),
        )
        for member in group.members
    )
    operations = tuple(_operation(each, requests, names) for each in state.operations)
    return state._replace(group=group._replace(members=members), operations=operations)


def _operation(operation: Operation, requests: Mapping[int, int], names: Names) -> Operation:
    callback = operation.callback
    if isinstance(callback, Assigned):
        assignments = tuple((member, _bytes(assigned, names)) for member, assigned in callback.assignments)
        callback = callback._replace(assignments=assignments)
    elif isinstance(callback, Replaced):
        callback = callback._replace(
            old_protocols=_protocols(callback.old_protocols, names),
            new_protocols=_protocols(callback.new_protocols, names),
        )
    return operation._replace(id=requests.get(operation.id, operation.id), callback=callback)


def _record(record: Record, names: Names) -> Record:
    value = record.group_metadata
    if value is None:
        return record
    members = tuple(
        replace(
            member,
            subscription=_metadata_bytes(member.subscription, names),
            assignment=_bytes(member.assignment, names),
        )
        for member in value.members
    )
    return replace(record, value=replace(value, members=members))


def _endpoint(endpoint: Endpoint, names: Names) -> Endpoint:
    client = endpoint.client._replace(owned=_partitions(endpoint.client.owned, names))
    return Endpoint(
        client,
        frozenset(_request(each, names) for each in endpoint.requests),
        frozenset(_reply(each, names) for each in endpoint.replies),
    )


def _request(request: Request, names: Names) -> Request:
    if isinstance(request, JoinRequest):
        return request._replace(metadata=_metadata(request.metadata, names))
    if isinstance(request, SyncRequest):
        assignment = frozenset((member, _partitions(each, names)) for member, each in request.assignment)
        return request._replace(assignment=assignment)
    return request


def _reply(reply: Reply, names: Names) -> Reply:
    if isinstance(reply, JoinReply):
        return reply._replace(members=frozenset((member, _metadata(each, names)) for member, each in reply.members))
    return reply._replace(assignment=_partitions(reply.assignment, names))

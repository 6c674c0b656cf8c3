"""The generation inside a JoinGroup's subscriptions, which belongs to the owned partitions (versions 2 and 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fencepost.protocol import embedded
from fencepost.protocol.messages import JoinGroupRequest


def with_generations(body: JoinGroupRequest, moved: Callable[[int], int]) -> JoinGroupRequest:
    """Return the request with each such generation changed by ``moved``; unreadable bytes stay."""
    protocols = tuple(replace(each, metadata=_moved(each.metadata, moved)) for each in body.protocols)
    return body if protocols == body.protocols else replace(body, protocols=protocols)


def _moved(metadata: bytes, moved: Callable[[int], int]) -> bytes:
    try:
        subscription = embedded.decode_subscription(metadata)
    except embedded.SchemaError:
        return metadata
    if subscription.generation_id == embedded.NO_GENERATION:
        return metadata
    generation = moved(subscription.generation_id)
    if generation == subscription.generation_id:
        return metadata
    return embedded.encode_subscription(replace(subscription, generation_id=generation), embedded.version_of(metadata))

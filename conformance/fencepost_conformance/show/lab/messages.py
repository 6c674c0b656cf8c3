"""A message in words: those of the reports, and the offsets of OffsetCommit and OffsetFetch."""

from __future__ import annotations

from typing import TypeGuard

from fencepost.protocol import offset_messages as o
from fencepost.protocol.messages import RequestBody, ResponseBody

from ..report.names import Names
from ..report.words import answer_brief, answer_words, api_of, body_words, errors_in, request_brief


def is_request(body: RequestBody | ResponseBody) -> TypeGuard[RequestBody]:
    return type(body).__name__.endswith("Request")


def is_answer(body: RequestBody | ResponseBody) -> TypeGuard[ResponseBody]:
    return not is_request(body)


def has_error(body: RequestBody | ResponseBody) -> bool:
    """Whether the message is an answer with an error code."""
    return is_answer(body) and bool(errors_in(body))


def brief(body: RequestBody | ResponseBody, names: Names) -> str:
    """Return the message in a few words, for an arrow."""
    offsets = _offsets(body)
    if offsets is not None and not has_error(body):
        return f"{api_of(body)} {offsets}"
    if is_request(body):
        return request_brief(body, names)
    assert is_answer(body)
    return f"{api_of(body)}: {answer_brief(body, names)}"


def words(body: RequestBody | ResponseBody, names: Names) -> str:
    """Return the message in words, with all that matters."""
    offsets = _offsets(body)
    if offsets is not None and not has_error(body):
        return offsets
    if is_request(body):
        return body_words(body, names)
    assert is_answer(body)
    return answer_words(body, names)


def _offsets(body: RequestBody | ResponseBody) -> str | None:
    """Return the offsets in the message, by partition; None if it is about something else."""
    if isinstance(body, o.OffsetCommitRequest):
        rows = [(each.partition_index, each.committed_offset) for topic in body.topics for each in topic.partitions]
        return ", ".join(f"{partition} at {offset}" for partition, offset in rows)
    if isinstance(body, o.OffsetCommitResponse):
        return "done"
    if isinstance(body, o.OffsetFetchRequest):
        asked = [
            str(number) for group in body.groups for topic in group.topics or () for number in topic.partition_indexes
        ]
        return f"of {', '.join(asked)}"
    if isinstance(body, o.OffsetFetchResponse):
        found = [each for group in body.groups for topic in group.topics for each in topic.partitions]
        return ", ".join(
            f"{each.partition_index} {'none' if each.committed_offset < 0 else f'at {each.committed_offset}'}"
            for each in found
        )
    return None

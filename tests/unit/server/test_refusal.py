"""An error reaches the answer to every API in every announced version, in each row of the request."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as Code

from fencepost.wire.fill import fill
from fencepost.wire.frames import (
    MalformedFrame,
    read_response,
    request_schema,
    response_schema,
    write_response,
)
from fencepost.wire.shape import Field, shape
from fencepost_server.apis.refusal import refusal
from fencepost_server.apis.table import TABLE, Api

SAMPLES: dict[str, Any] = {"string": "x", "bytes": b"x", "uuid": bytes(15) + b"\7", "bool": False, "records": b""}
VERSIONS = [(api, version) for api in TABLE.values() for version in range(max(api.low, api.least), api.high + 1)]


def sample(field: Field, rows: int) -> Any:
    one = values(field.entity, rows) if field.entity else SAMPLES.get(field.kafka_type, 1)
    return [one] * rows if field.array else one


def values(schema: Any, rows: int) -> dict[str, Any]:
    """Return a value with every field filled, and so many rows in every array."""
    return {field.name: sample(field, rows) for field in shape(schema)}


def codes(answer: Any) -> list[Code]:
    """Return every error code in an answer."""
    if isinstance(answer, Code):
        return [answer]
    if is_dataclass(answer):
        return [code for field in fields(answer) for code in codes(getattr(answer, field.name))]
    return [code for each in answer for code in codes(each)] if isinstance(answer, tuple | list) else []


def answer_of(api: Api, version: int, rows: int, code: Code = Code.coordinator_load_in_progress) -> Any:
    request = fill(request_schema(api.name, version), values(request_schema(api.name, version), rows))
    header: Any = SimpleNamespace(api=api.name, api_version=version)
    made = fill(response_schema(api.name, version), refusal(header, request, code))
    return read_response(api.name, version, write_response(1, made))


@pytest.mark.parametrize(("api", "version"), VERSIONS, ids=lambda each: getattr(each, "name", each))
def test_an_error_reaches_the_answer(api: Api, version: int) -> None:
    said = codes(answer_of(api, version, rows=2))
    assert set(said) - {Code.none} == {Code.coordinator_load_in_progress}
    top = any(field.name == "error_code" for field in shape(response_schema(api.name, version)))
    assert said.count(Code.coordinator_load_in_progress) >= (1 if top else 2)


@pytest.mark.parametrize("version", [each for api, each in VERSIONS if api.name == "offset_fetch"])
def test_an_unstable_offset_is_an_error_of_its_partition(version: int) -> None:
    """In no version is it the error of the request or of the group (O-FETCH-08)."""
    (api,) = [each for each in TABLE.values() if each.name == "offset_fetch"]
    answer = answer_of(api, version, 2, Code.unstable_offset_commit)
    groups = answer.groups if version >= 8 else [answer]
    rows = [row for group in groups for topic in group.topics for row in topic.partitions]
    assert len(rows) == (8 if version >= 8 else 4)
    assert {row.error_code for row in rows} == {Code.unstable_offset_commit}
    tops = [each.error_code for each in groups if hasattr(each, "error_code")]
    assert set(tops) <= {Code.none}


def test_an_answer_without_a_row_closes_the_connection() -> None:
    """Otherwise it would look like a success."""
    for name, version in (("offset_fetch", 8), ("metadata", 9), ("describe_groups", 5)):
        (api,) = [each for each in TABLE.values() if each.name == name]
        with pytest.raises(MalformedFrame, match="has no error code"):
            answer_of(api, version, rows=0)

"""A trace can hold every message of the group APIs in every version: a field that a version lacks has its default."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.index import schema_name_map

from fencepost.wire.convert import GROUP_APIS, plain, to_request, to_response
from fencepost.wire.fill import fill
from fencepost.wire.frames import API_KEYS, request_schema, response_schema
from fencepost.wire.later import LATER
from fencepost.wire.shape import shape
from fencepost_conformance.traces.convert import wire_request, wire_response
from fencepost_conformance.traces.lines import ReceivedLine, SentLine

VERSIONS = [
    (api, version)
    for api in GROUP_APIS
    for version in sorted({*schema_name_map[api], *(number for name, number, _ in LATER if name == api)})
]


def filled(schema: Any) -> dict[str, Any]:
    """Return a message with one row in every list, and defaults elsewhere."""
    return {
        field.name: [filled(field.entity)] if field.array else filled(field.entity)
        for field in shape(schema)
        if field.entity
    }


@pytest.mark.parametrize(("api", "version"), VERSIONS)
@pytest.mark.parametrize("rows", [True, False])
def test_a_trace_can_hold_it(api: str, version: int, *, rows: bool) -> None:
    where: dict[str, Any] = {
        "at_ms": 0,
        "connection": 1,
        "correlation_id": 1,
        "api_key": API_KEYS[api],
        "api_version": version,
    }
    asked, answers = request_schema(api, version), response_schema(api, version)
    request = plain(to_request(api, fill(asked, filled(asked) if rows else {})))
    answer = plain(to_response(api, fill(answers, filled(answers) if rows else {})))
    assert wire_request(SentLine(**where, body=request)) is not None
    assert wire_response(ReceivedLine(**where, body=answer)) is not None

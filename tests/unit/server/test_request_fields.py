"""The fields that handlers declare (``apis/requests.py``) are in kio's messages, in each supported version."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

import pytest

from fencepost.wire.frames import request_schema
from fencepost_server.apis import requests
from fencepost_server.apis.table import TABLE, Api

#: Fields that only some of an API's versions have, with these. A handler must check the version before it reads one.
PARTLY = {
    "produce": {"topic_data.name": range(3, 13), "topic_data.topic_id": range(13, 14)},
    "fetch": {"topics.topic": range(4, 13), "topics.topic_id": range(13, 19)},
    "find_coordinator": {"key": range(4), "coordinator_keys": range(4, 7)},
    "api_versions": {
        "client_software_name": range(3, 6),
        "client_software_version": range(3, 6),
        "cluster_id": range(5, 6),
        "node_id": range(5, 6),
    },
    "delete_topics": {"topics": range(6, 7), "topic_names": range(1, 6)},
    "add_partitions_to_txn": {
        "v3_and_below_transactional_id": range(4),
        "v3_and_below_producer_id": range(4),
        "v3_and_below_producer_epoch": range(4),
        "v3_and_below_topics": range(4),
        "transactions": range(4, 6),
    },
    "list_config_resources": {"resource_types": range(1, 2)},
}


def declared(api: Api) -> type | None:
    name = "".join(word.capitalize() for word in api.name.split("_"))
    return getattr(requests, f"{name}Request", None)


def row_of(hint: Any) -> type | None:
    """Return the class of a row in a type, as ``Sequence[Row] | None``."""
    if isinstance(hint, type) and (is_dataclass(hint) or hint.__module__ == requests.__name__):
        return hint
    return next((found for each in get_args(hint) if (found := row_of(each)) is not None), None)


def present(protocol: type, message: type, path: str = "") -> Iterator[str]:
    """Yield the paths of the declared fields that a message has."""
    there = {each.name for each in fields(message)}  # type: ignore[arg-type]
    hints = get_type_hints(message)
    for name, hint in get_type_hints(protocol).items():
        if name in there:
            yield f"{path}{name}"
            row, of_message = row_of(hint), row_of(hints[name])
            if row is not None:
                assert of_message is not None, f"{path}{name} has no rows"
                yield from present(row, of_message, f"{path}{name}.")


def paths(protocol: type, path: str = "") -> Iterator[str]:
    for name, hint in get_type_hints(protocol).items():
        yield f"{path}{name}"
        row = row_of(hint)
        if row is not None:
            yield from paths(row, f"{path}{name}.")


DECLARED = [api for api in TABLE.values() if declared(api) is not None]


def test_most_handlers_declare_their_fields() -> None:
    """The others are the group coordinator's, which converts its requests, and DescribeCluster."""
    assert len(DECLARED) == 21


@pytest.mark.parametrize("api", DECLARED, ids=lambda api: api.name)
def test_a_declared_field_is_in_every_version_that_may_read_it(api: Api) -> None:
    protocol = declared(api)
    assert protocol is not None
    versions = range(max(api.low, api.least), api.high + 1)
    found: dict[str, set[int]] = defaultdict(set)
    for version in versions:
        for path in present(protocol, request_schema(api.name, version)):
            found[path].add(version)
    partly = PARTLY.get(api.name, {})
    for path in paths(protocol):
        wanted = next((partly[each] for each in partly if path == each or path.startswith(f"{each}.")), versions)
        assert found[path] == set(wanted), path

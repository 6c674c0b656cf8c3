"""Normalize the answers of a script, so that two brokers can be compared.

``TABLE`` lists all fields that are not compared as they are, with the reason. Any other difference is reported.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, Final
from uuid import UUID

from fencepost_server.data.batches import HEADER_BYTES, read_header

from .script import CONTROL, OWN, Run
from .settings import TOPIC_KEYS
from .world import NO_TOPIC_ID


class How(StrEnum):
    """How a field is normalized."""

    DROP = "it is not compared"
    NAME = "each value is replaced by the number of its first place"
    SORT = "its rows are sorted"
    OWN_ROWS = "only rows with names of the script are compared"
    MERGE = "rows of one topic are merged"
    DENIED_LAST = "rows of topics that the caller may not describe are moved behind the others"
    ABORTABLE = "INVALID_TXN_STATE and TRANSACTION_ABORTABLE count as equal if scripts are played together"
    NEEDED = "aborted transactions that begin behind the last batch of the answer are left out"
    HAD = "settings that serve does not have are left out"
    SINCE = "a time is counted from the beginning of the run; that of a marker is not compared"
    BATCHES = "complete batches are compared, by the fields of their headers"
    MARKERS = "the coordinator epoch of a transaction marker is not compared"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table. ``api``: kio's name of an API, or empty for all. ``field``: kio's name, at any depth."""

    api: str
    field: str
    how: How
    why: str


TABLE: Final = (
    Row("", "host", How.DROP, "an address"),
    Row("", "port", How.DROP, "an address"),
    Row("", "node_id", How.DROP, "a broker's own number"),
    Row("", "throttle_time_ms", How.DROP, "a broker may throttle when it is busy"),
    Row("", "error_message", How.DROP, "the words are a broker's own; the code is compared"),
    Row("", "topic_id", How.NAME, "drawn by the broker"),
    Row("", "producer_id", How.NAME, "drawn by the broker"),
    Row("", "leader", How.NAME, "drawn by the broker"),
    Row("offset_fetch", "groups", How.SORT, "Kafka asks the partitions of the offsets topic one by one"),
    Row("offset_fetch", "topics", How.SORT, "Kafka fills them from a hash table if all are asked for"),
    Row("offset_fetch", "partitions", How.SORT, "Kafka fills them from a hash table if all are asked for"),
    Row("", "cluster_id", How.NAME, "drawn by the broker"),
    Row("", "member_id", How.NAME, "drawn by the broker"),
    Row("", "records", How.BATCHES, "Kafka ends an answer where its size is reached, within a batch"),
    Row("", "records", How.MARKERS, "it counts the starts of the coordinator"),
    Row("produce", "record_errors", How.DROP, "serve refuses whole batches, and names no records (docs/serving.md)"),
    Row("create_topics", "configs", How.DROP, "serve has no list of the settings of a topic (docs/serving.md)"),
    Row("create_topics", "topics", How.SORT, "Kafka puts refused rows first"),
    Row("create_partitions", "results", How.SORT, "Kafka puts refused rows first"),
    Row("delete_topics", "responses", How.SORT, "Kafka shuffles them"),
    Row("metadata", "topics", How.OWN_ROWS, "other scripts have topics too"),
    Row("metadata", "topics", How.SORT, "Kafka fills them from a hash table"),
    Row("describe_topic_partitions", "topics", How.OWN_ROWS, "other scripts have topics too"),
    Row("describe_topic_partitions", "topics", How.DENIED_LAST, "Kafka fills these from a hash table"),
    Row("list_offsets", "topics", How.SORT, "Kafka fills them from a hash table"),
    Row("list_offsets", "partitions", How.SORT, "Kafka puts refused rows first"),
    Row("produce", "responses", How.SORT, "Kafka fills them from a hash table"),
    Row("produce", "partition_responses", How.SORT, "Kafka puts refused rows first"),
    Row("txn_offset_commit", "topics", How.SORT, "Kafka puts refused rows first"),
    Row("txn_offset_commit", "topics", How.MERGE, "Kafka has another row of a topic for its refused partitions"),
    Row("txn_offset_commit", "partitions", How.SORT, "Kafka puts refused rows first"),
    Row("produce", "error_code", How.ABORTABLE, "Kafka checks several requests in the version of one"),
    Row("txn_offset_commit", "error_code", How.ABORTABLE, "Kafka checks several requests in the version of one"),
    Row("fetch", "responses", How.SORT, "Kafka puts refused rows first"),
    Row("fetch", "responses", How.MERGE, "Kafka has another row of a topic for its refused partitions"),
    Row("fetch", "partitions", How.SORT, "Kafka puts refused rows first"),
    Row("fetch", "partitions", How.NEEDED, "Kafka names some of them, up to an entry of its index"),
    Row("fetch", "aborted_transactions", How.SORT, "their order means nothing to a consumer"),
    Row("delete_records", "topics", How.SORT, "Kafka fills them from a hash table"),
    Row("delete_records", "partitions", How.SORT, "Kafka fills them from a hash table"),
    Row("offset_for_leader_epoch", "topics", How.SORT, "Kafka puts refused rows first"),
    Row("offset_for_leader_epoch", "partitions", How.SORT, "Kafka puts refused rows first"),
    Row("add_partitions_to_txn", "results_by_transaction", How.SORT, "Kafka fills them from a hash table"),
    Row("add_partitions_to_txn", "results_by_topic_v3_and_below", How.SORT, "Kafka fills them from a hash table"),
    Row("add_partitions_to_txn", "topic_results", How.SORT, "Kafka fills them from a hash table"),
    Row("add_partitions_to_txn", "results_by_partition", How.SORT, "Kafka fills them from a hash table"),
    Row("describe_groups", "groups", How.SORT, "Kafka asks the partitions of the offsets topic one by one"),
    Row("consumer_group_describe", "groups", How.SORT, "Kafka asks the partitions of the offsets topic one by one"),
    Row("list_offsets", "timestamp", How.SINCE, "runs begin at different times"),
    Row("produce", "log_append_time", How.SINCE, "runs begin at different times"),
    Row("fetch", "session_id", How.NAME, "drawn by the broker"),
    Row("list_config_resources", "config_resources", How.OWN_ROWS, "other scripts have settings too"),
    Row("list_config_resources", "config_resources", How.SORT, "Kafka fills them from a hash table"),
    Row("api_versions", "api_keys", How.DROP, "Kafka has APIs that serve does not have"),
    Row("api_versions", "supported_features", How.DROP, "Kafka has features that serve does not have"),
    Row("api_versions", "finalized_features", How.DROP, "Kafka has features that serve does not have"),
    Row("api_versions", "finalized_features_epoch", How.DROP, "it counts the changes of a broker"),
    Row("list_groups", "groups", How.OWN_ROWS, "other scripts have groups too"),
    Row("list_groups", "groups", How.SORT, "Kafka fills them from a hash table"),
    Row("delete_groups", "results", How.SORT, "Kafka fills them from a hash table"),
    Row("incremental_alter_configs", "responses", How.SORT, "Kafka fills them from a hash table"),
    Row("describe_configs", "results", How.SORT, "Kafka puts refused rows first"),
    Row("describe_configs", "configs", How.SORT, "Kafka fills them from a hash table"),
    Row("describe_configs", "configs", How.HAD, "serve has no settings of other groups, and no defaults of topics"),
    Row("describe_configs", "synonyms", How.DROP, "serve has none (docs/serving.md)"),
    Row("describe_configs", "documentation", How.DROP, "the words are a broker's own"),
)  # fmt: skip

_NAMES_OF_ROWS: Final = ("name", "resource_name", "group_id")
#: fields that identify rows
_KEYS: Final = ("name", "topic", "topic_id", "transactional_id", "group_id", "resource_type", "resource_name",
                "partition_index", "partition", "index")  # fmt: skip
#: prefixes of the settings of groups that serve does not have
_NOT_HERE: Final = ("share.", "streams.", "errors.")
_OF_TOPIC: Final = 1
_NO_SESSION: Final = 0
_DENIED: Final = 29
#: the length of a marker's record, and the place of the coordinator epoch in it
_MARKER_BYTES, _EPOCH = 17, 12
_INVALID_TXN_STATE, _TRANSACTION_ABORTABLE = 48, 120
#: values of random fields that mean "none"
_NOBODY: Final = (None, "", -1, "None", "00000000-0000-0000-0000-000000000000")
#: the prefix of topic ids that the scripts make up
_MADE_UP: Final = str(UUID(bytes=NO_TOPIC_ID))[:23]
#: a time that is at most this far from the beginning of a run belongs to the run
_OF_MARKERS_MS: Final = 300_000
_RUN_MS: Final = 2 * 24 * 3_600_000


class Normal:
    """Normalizes the answers to one run of a script, one after the other. ``alone``: no other script is played at the
    same time."""

    def __init__(self, run: Run, *, alone: bool = False) -> None:
        self._run = run
        self._alone = alone
        self._names: dict[Any, str] = {}

    def of(self, api: str, answer: Any) -> Any:
        """The normalized answer."""
        return self._value(api, "", answer)

    def _value(self, api: str, field: str, value: Any) -> Any:
        hows = _hows(api, field)
        if isinstance(value, dict):
            return {key: self._value(api, key, item) for key, item in value.items() if How.DROP not in _hows(api, key)}
        if isinstance(value, list):
            if How.OWN_ROWS in hows:
                value = [row for row in value if self._is_own(row)]
            if How.HAD in hows:
                value = [row for row in value if not _is_foreign(row)]
            if How.MERGE in hows:
                value = _merged(value)
            if How.DENIED_LAST in hows:
                denied = [row for row in value if row["error_code"] == _DENIED]
                value = [row for row in value if row not in denied] + sorted(denied, key=_place)
            if How.SORT in hows:  # before any value is replaced by the number of its place
                value = sorted(value, key=_stable_place)
            rows = [self._value(api, field, item) for item in value]
            if How.NEEDED in hows:
                rows = [_needed(row) for row in rows]
            return sorted(rows, key=_place) if How.SORT in hows else rows
        if How.BATCHES in hows:
            return self._batches(base64.urlsafe_b64decode(value)) if value else []
        if How.NAME in hows:
            return self._named(value, field)
        if How.SINCE in hows:
            return self._since(value)
        if How.ABORTABLE in hows and not self._alone and value == _INVALID_TXN_STATE:
            return _TRANSACTION_ABORTABLE
        if isinstance(value, str) and value.startswith(self._run.prefix):
            return OWN + value[len(self._run.prefix) :]
        return value

    def _is_own(self, row: Any) -> bool:
        names = [row[key] for key in _NAMES_OF_ROWS if key in row]
        return not names or names[0] is None or names[0].startswith(self._run.prefix)

    def _named(self, value: Any, field: str = "") -> Any:
        if value in _NOBODY or (field == "session_id" and value == _NO_SESSION):
            return value
        if str(value).startswith(_MADE_UP):
            return value
        if str(value) in self._run.ids:
            return self._run.ids[str(value)]
        return self._names.setdefault(str(value), f"<{len(self._names)}>")

    def _since(self, value: Any) -> Any:
        if isinstance(value, str):
            value = round(datetime.fromisoformat(value).timestamp() * 1_000)
        if isinstance(value, int) and _OF_MARKERS_MS < value - self._run.began_ms < 4 * _OF_MARKERS_MS:
            return "when a marker was written"
        if isinstance(value, int) and abs(value - self._run.began_ms) < _RUN_MS:
            return f"began {value - self._run.began_ms:+d} ms"
        return value

    def _batches(self, data: bytes) -> list[dict[str, Any]]:
        found, at = [], 0
        while at + HEADER_BYTES <= len(data):
            end = at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")
            if end > len(data):
                break
            one = data[at:end]
            head = read_header(one)
            control = bool(head.attributes & CONTROL)
            row = {
                "offsets": [head.base, head.last],
                "leader_epoch": int.from_bytes(one[12:16], "big"),
                "magic": one[16],
                "attributes": head.attributes,
                "producer_id": self._named(head.producer_id),
                "producer_epoch": head.producer_epoch,
                "base_sequence": head.base_sequence,
                "count": head.count,
                # the time of a marker differs between brokers; the record in it is compared by its type
                "times": None if control else [self._since(head.base_timestamp), self._since(head.max_timestamp)],
                "records": _marker(one[HEADER_BYTES:]).hex() if control else zlib.crc32(one[HEADER_BYTES:]),
            }
            found.append(row)
            at = end
        return found


def _marker(record: bytes) -> bytes:
    """The record of a transaction marker, with coordinator epoch 0."""
    return record[:_EPOCH] + bytes(4) + record[_EPOCH + 4 :] if len(record) == _MARKER_BYTES else record


def _place(row: Any) -> tuple[str, ...]:
    """The key by which rows are sorted: the name first."""
    return (*[str(row[key]) for key in _KEYS if key in row], repr(row)) if isinstance(row, dict) else (repr(row),)


def _stable_place(row: Any) -> tuple[str, ...]:
    """As ``_place``, without random values of a broker."""
    return tuple(str(row[key]) for key in _KEYS if key in row and key != "topic_id") if isinstance(row, dict) else ()


def _merged(rows: list[Any]) -> list[Any]:
    found: dict[Any, Any] = {}
    for row in rows:
        key = tuple(row.get(each) for each in ("name", "topic", "topic_id"))
        found[key] = {**row, "partitions": [*found.get(key, {"partitions": ()})["partitions"], *row["partitions"]]}
    return list(found.values())


def _needed(row: Any) -> Any:
    """A partition of an answer to Fetch, with only the aborted transactions of its batches."""
    if not row["aborted_transactions"]:
        return row
    last = max((batch["offsets"][1] for batch in row["records"]), default=-1)
    return {**row, "aborted_transactions": [one for one in row["aborted_transactions"] if one["first_offset"] <= last]}


def _is_foreign(row: Any) -> bool:
    """Whether this is a setting of share or streams groups, or a default of a topic."""
    return row["name"].startswith(_NOT_HERE) or (row["config_source"] != _OF_TOPIC and row["name"] in TOPIC_KEYS)


@cache
def _hows(api: str, field: str) -> frozenset[How]:
    return frozenset(row.how for row in TABLE if row.api in ("", api) and row.field == field)

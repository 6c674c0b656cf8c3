"""Whether the broker rejected exactly the commits whose metadata is too long (O-COMMIT-08).

Kafka counts the characters of a Java string: UTF-16 units, and not bytes. Other errors of a partition come from the
broker or the group before they check the length, and say nothing about it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.settings import Settings

from ....traces.files import WireTrace
from ..difference import Difference
from ..instead import Instead
from ..verdict import Refusal
from . import reading
from .reading import Exchange

_NAMES: Final = {reading.OFFSET_COMMIT: "OffsetCommit", reading.TXN_OFFSET_COMMIT: "TxnOffsetCommit"}
_FIELD: Final = "offset_metadata_max_bytes"


def wrong_lengths(trace: WireTrace, settings: Settings, assumed: Collection[str] = ()) -> Iterator[Refusal]:
    """The first wrong partition of each answer to a commit, plain or in a transaction.

    Args:
        assumed: the fields of the settings that the trace does not show.
    """
    for each in reading.exchanges(trace):
        if each.api not in _NAMES or each.answer is None:
            continue
        lengths = _lengths(each)
        for topic in each.answer.get("topics") or ():
            wrong = next((row for row in _rows(topic, lengths) if _is_wrong(*row, settings)), None)
            if wrong is not None:
                yield _refusal(each, topic, *wrong, settings, reported=_FIELD not in assumed)
                break


def _lengths(each: Exchange) -> dict[tuple[str, int], int | None]:
    """The length of the metadata of each partition, -1 for null; None if the request names the partition twice."""
    found: dict[tuple[str, int], int | None] = {}
    for topic in each.ask.get("topics") or ():
        for row in topic.get("partitions") or ():
            key, text = (_topic(topic), row["partition_index"]), row.get("committed_metadata")
            found[key] = None if key in found else _units(text)
    return found


def _units(text: str | None) -> int:
    return -1 if text is None else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _topic(topic: Mapping[str, Any]) -> str:
    return str(topic.get("topic_id") or topic.get("name") or "")


def _rows(
    topic: Mapping[str, Any], lengths: Mapping[tuple[str, int], int | None]
) -> Iterator[tuple[int, int, int | None]]:
    """For each partition of an answer: its number, its error and the length of the metadata."""
    for row in topic.get("partitions") or ():
        number = row["partition_index"]
        yield number, row["error_code"], lengths.get((_topic(topic), number))


def _is_wrong(_: int, code: int, length: int | None, settings: Settings) -> bool:
    if length is None or code not in (E.NONE, E.OFFSET_METADATA_TOO_LARGE):
        return False
    too_long = length >= 0 and length > settings.offset_metadata_max_bytes
    return (code == E.OFFSET_METADATA_TOO_LARGE) is not too_long


def _refusal(  # noqa: PLR0917
    each: Exchange,
    topic: Mapping[str, Any],
    number: int,
    code: int,
    length: int | None,
    settings: Settings,
    *,
    reported: bool,
) -> Refusal:
    assert length is not None
    limit, group_id = settings.offset_metadata_max_bytes, str(each.ask["group_id"])
    expected = E.NONE if code else E.OFFSET_METADATA_TOO_LARGE
    of = f"group {group_id!r} for {_topic(topic)}-{number}"
    size = "null" if length < 0 else f"{length} UTF-16 units long"
    why = f"the metadata is {size} and offset.metadata.max.bytes is {limit}"
    difference = Difference(_NAMES[each.api], each.version, of, "error_code", E(code).name, expected.name, why)
    seen = f"{_NAMES[each.api]} v{each.version} was answered {E(code).name} for {_topic(topic)}-{number}"
    instead = None if reported or length < 0 else Instead(((_FIELD, length - 1 if code else length),))
    return Refusal(group_id, each.end, each.end_ms, seen, (expected.name,), ("O-COMMIT-08",), instead, difference)

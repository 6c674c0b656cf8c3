"""The names of Kafka's APIs."""

from __future__ import annotations

from typing import Final

from .lines import EVENT_APIS

#: names of APIs apart from groups and offsets
_OTHERS: Final = {
    3: "Metadata",
    10: "FindCoordinator",
    19: "CreateTopics",
    20: "DeleteTopics",
    22: "InitProducerId",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    37: "CreatePartitions",
}


_NAMES: Final = {key: name for name, (key, *_) in EVENT_APIS.items()} | _OTHERS


def api_name(key: int) -> str:
    """Return Kafka's name of an API, such as ``JoinGroup``; the number for one that is not used here."""
    return _NAMES.get(key, str(key))

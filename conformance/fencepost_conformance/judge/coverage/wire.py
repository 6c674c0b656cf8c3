"""The features that can be seen from outside a broker: the versions that it offers, and its error codes.

States, timers, records and the deciding rules are inside it, so a run over the wire does not show them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.settings import Settings

from ...generate.plan import GroupProtocol
from ...traces.api_names import api_name
from ...traces.files import WireTrace
from ...traces.lines import ReceivedLine, SentLine
from .catalogue import FEATURES, PLACE

#: errors that no behaviour of a client causes
_REASONS: Final = {
    "NOT_COORDINATOR": "answered by a broker that does not lead the group's partition (F-RT-01)",
    "COORDINATOR_LOAD_IN_PROGRESS": "answered while the coordinator loads, before the traces begin (F-RT-02)",
    "GROUP_AUTHORIZATION_FAILED": "needs an authorizer that denies",
    "TOPIC_AUTHORIZATION_FAILED": "needs an authorizer that denies",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "needs an authorizer that denies",
    "COORDINATOR_NOT_AVAILABLE": "needs a partition that cannot be written",
    "UNKNOWN_SERVER_ERROR": "needs an internal error of the broker",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "needs replicas that fall behind",
}
_OFF: Final = "needs a broker on which the consumer protocol is off"
_CLASSIC_MEMBERS: Final = "needs a classic group with members"
_CONSUMER_MEMBERS: Final = "needs a consumer group with members"
_BOTH: Final = "needs a member of the classic protocol in a consumer group"
#: errors of one API that no client of the protocol causes
_OF_PROTOCOL: Final[dict[GroupProtocol, dict[str, str]]] = {
    GroupProtocol.CLASSIC: {
        "error OffsetCommit STALE_MEMBER_EPOCH": _CONSUMER_MEMBERS,
        "error OffsetCommit UNSUPPORTED_VERSION": _CONSUMER_MEMBERS,
        "error TxnOffsetCommit STALE_MEMBER_EPOCH": _CONSUMER_MEMBERS,
        "error OffsetFetch UNKNOWN_MEMBER_ID": _CONSUMER_MEMBERS,
        "error OffsetFetch STALE_MEMBER_EPOCH": _CONSUMER_MEMBERS,
        "error OffsetFetch ILLEGAL_GENERATION": _BOTH,
    },
    GroupProtocol.CONSUMER: {
        "error ConsumerGroupHeartbeat UNSUPPORTED_VERSION": _OFF,
        "error ConsumerGroupDescribe UNSUPPORTED_VERSION": _OFF,
        "error OffsetCommit FENCED_INSTANCE_ID": _CLASSIC_MEMBERS,
        "error OffsetCommit REBALANCE_IN_PROGRESS": _CLASSIC_MEMBERS,
        "error TxnOffsetCommit FENCED_INSTANCE_ID": _CLASSIC_MEMBERS,
        "error OffsetFetch ILLEGAL_GENERATION": _BOTH,
        "error OffsetDelete NON_EMPTY_GROUP": _CLASSIC_MEMBERS,
    },
    GroupProtocol.MIXED: {
        "error ConsumerGroupHeartbeat UNSUPPORTED_VERSION": _OFF,
        "error ConsumerGroupDescribe UNSUPPORTED_VERSION": _OFF,
        "error OffsetDelete NON_EMPTY_GROUP": "needs a classic group of another protocol type than consumer",
    },
}
#: a group size that the clients of a trace cannot reach
_LARGE: Final = 100


#: the first version of an API with this error, if that is not its oldest version
_SINCE: Final = {
    "error JoinGroup FENCED_INSTANCE_ID": 5,
    "error JoinGroup MEMBER_ID_REQUIRED": 4,
    "error SyncGroup FENCED_INSTANCE_ID": 3,
    "error Heartbeat FENCED_INSTANCE_ID": 3,
    "error LeaveGroup FENCED_INSTANCE_ID": 3,
    "error DescribeGroups GROUP_ID_NOT_FOUND": 6,
    "error OffsetCommit FENCED_INSTANCE_ID": 7,
    "error OffsetCommit GROUP_ID_NOT_FOUND": 9,
    "error OffsetCommit STALE_MEMBER_EPOCH": 9,
    "error OffsetCommit UNKNOWN_TOPIC_ID": 10,
    "error OffsetFetch UNSTABLE_OFFSET_COMMIT": 7,
    "error OffsetFetch UNKNOWN_MEMBER_ID": 9,
    "error OffsetFetch STALE_MEMBER_EPOCH": 9,
    "error OffsetFetch ILLEGAL_GENERATION": 9,
    "error OffsetFetch UNKNOWN_TOPIC_ID": 10,
    "error TxnOffsetCommit ILLEGAL_GENERATION": 3,
    "error TxnOffsetCommit UNKNOWN_MEMBER_ID": 3,
    "error TxnOffsetCommit FENCED_INSTANCE_ID": 3,
    "error TxnOffsetCommit UNKNOWN_TOPIC_ID": 6,
    "error TxnOffsetCommit GROUP_ID_NOT_FOUND": 6,
    "error TxnOffsetCommit STALE_MEMBER_EPOCH": 6,
}


def visible(versions: Mapping[str, tuple[int, int]]) -> tuple[str, ...]:
    """Return the features that a run can see; ``versions``: the first and last version of each API that it uses."""
    found = []
    for name in FEATURES:
        kind, _, rest = name.partition(" ")
        api, _, value = rest.partition(" ")
        if api not in versions:
            continue
        first, last = versions[api]
        if (kind == "error" and last >= _SINCE.get(name, 0)) or (kind == "version" and first <= int(value) <= last):
            found.append(name)
    return tuple(found)


def reasons(features: tuple[str, ...], protocol: GroupProtocol, settings: Settings | None = None) -> dict[str, str]:
    """Return why such a feature need not be reached, as far as that is known. ``settings``: the broker's."""
    known = dict(_OF_PROTOCOL[protocol])
    for api, setting in (("JoinGroup", "group_max_size"), ("ConsumerGroupHeartbeat", "group_consumer_max_size")):
        if settings is None or getattr(settings, setting) > _LARGE:
            option = setting.replace("_", ".")
            known[f"error {api} GROUP_MAX_SIZE_REACHED"] = f"needs a small {option} (--setting {option}=3)"
    for name in features:
        error = name.rpartition(" ")[2]
        if name.startswith("error ") and error in _REASONS:
            known[name] = _REASONS[error]
    return {name: known[name] for name in features if name in known}


def reached(trace: WireTrace) -> Iterator[str]:
    """Yield the features that a trace shows."""
    for line in trace.lines:
        if "undecoded" in getattr(line, "body", ()):
            continue
        if isinstance(line, SentLine):
            names = {f"version {api_name(line.api_key)} {line.api_version}"}
        elif isinstance(line, ReceivedLine):
            api = api_name(line.api_key)
            names = {f"error {api} {ErrorCode(code).name}" for code in _codes(line.body) if code in _CODES}
        else:
            continue
        yield from names & PLACE.keys()


_CODES: Final = frozenset(map(int, ErrorCode))


def _codes(body: Any) -> Iterator[int]:
    """Yield every error code in an answer."""
    if isinstance(body, dict):
        code = body.get("error_code")
        if isinstance(code, int):
            yield code
        body = list(body.values())
    if isinstance(body, list):
        for inner in body:
            yield from _codes(inner)

"""All features that a trace can reach, by name, each with a fixed place in the bitmap; and reasons for unreachable
ones."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.protocol.consumer_view import ConsumerGroupState, MemberState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKind
from fencepost.protocol.messages import VERSIONS
from fencepost.protocol.profile import Profile
from fencepost.protocol.view import GroupState

from ...generate.plan import GroupProtocol
from .rules import CLASSIC_CANNOT_OCCUR, RULES, UNREACHED_RULES
from .rules_consumer import CONSUMER_CANNOT_OCCUR, CONSUMER_RULES, UNREACHED_CONSUMER_RULES
from .rules_of_group import MIXED_RULES, UNREACHED_MIXED_RULES
from .rules_offsets import OFFSET_RULES

_STATES = tuple(state.value for state in GroupState)
_TRANSITIONS = {
    "Empty": ("PreparingRebalance", "Dead"),
    "PreparingRebalance": ("Empty", "CompletingRebalance", "Dead"),
    "CompletingRebalance": ("PreparingRebalance", "Stable", "Dead"),
    "Stable": ("PreparingRebalance", "Dead"),
}  # C-ST-10…16

#: records of consumer groups, by the names of their keys
RECORDS = (
    "ConsumerGroupMetadata", "ConsumerGroupPartitionMetadata", "ConsumerGroupMemberMetadata",
    "ConsumerGroupTargetAssignmentMetadata", "ConsumerGroupTargetAssignmentMember",
    "ConsumerGroupCurrentMemberAssignment", "ConsumerGroupRegularExpression",
)  # fmt: skip
_COMMON = ("NONE", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "GROUP_AUTHORIZATION_FAILED")
_MAPPED = ("COORDINATOR_NOT_AVAILABLE", "UNKNOWN_SERVER_ERROR", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")
_ERRORS: dict[str, tuple[str, ...]] = {
    "JoinGroup": (
        *_COMMON, *_MAPPED, "INVALID_GROUP_ID", "INVALID_SESSION_TIMEOUT", "UNKNOWN_MEMBER_ID", "MEMBER_ID_REQUIRED",
        "INCONSISTENT_GROUP_PROTOCOL", "FENCED_INSTANCE_ID", "GROUP_MAX_SIZE_REACHED",
    ),
    "SyncGroup": (
        *_COMMON, *_MAPPED, "INVALID_GROUP_ID", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "ILLEGAL_GENERATION",
        "INCONSISTENT_GROUP_PROTOCOL", "REBALANCE_IN_PROGRESS",
    ),
    "Heartbeat": (
        "NONE", "NOT_COORDINATOR", "GROUP_AUTHORIZATION_FAILED", "COORDINATOR_NOT_AVAILABLE", "INVALID_GROUP_ID",
        "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS",
    ),
    "LeaveGroup": (*_COMMON, *_MAPPED, "INVALID_GROUP_ID", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID"),
    "DescribeGroups": (*_COMMON, "GROUP_ID_NOT_FOUND"),
    "ListGroups": ("NONE", "COORDINATOR_LOAD_IN_PROGRESS"),
    "DeleteGroups": (*_COMMON, *_MAPPED, "NON_EMPTY_GROUP", "GROUP_ID_NOT_FOUND"),
}  # fmt: skip
_CONSUMER_ERRORS: dict[str, tuple[str, ...]] = {
    "ConsumerGroupHeartbeat": (
        *_COMMON,
        *_MAPPED,
        "TOPIC_AUTHORIZATION_FAILED",
        "UNSUPPORTED_VERSION",
        "INVALID_REQUEST",
        "UNSUPPORTED_ASSIGNOR",
        "GROUP_ID_NOT_FOUND",
        "GROUP_MAX_SIZE_REACHED",
        "UNKNOWN_MEMBER_ID",
        "FENCED_MEMBER_EPOCH",
        "FENCED_INSTANCE_ID",
        "UNRELEASED_INSTANCE_ID",
        "INVALID_REGULAR_EXPRESSION",
    ),
    "ConsumerGroupDescribe": (*_COMMON, "TOPIC_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION", "GROUP_ID_NOT_FOUND"),
    **{api: _ERRORS[api] for api in ("DescribeGroups", "ListGroups", "DeleteGroups")},
}
_OFFSET_ERRORS: dict[str, tuple[str, ...]] = {
    "OffsetCommit": (
        *_COMMON, "COORDINATOR_NOT_AVAILABLE", "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_ID",
        "UNKNOWN_TOPIC_OR_PARTITION", "OFFSET_METADATA_TOO_LARGE", "GROUP_ID_NOT_FOUND", "ILLEGAL_GENERATION",
        "UNKNOWN_MEMBER_ID",
    ),
    "TxnOffsetCommit": (
        *_COMMON, "COORDINATOR_NOT_AVAILABLE", "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_OR_PARTITION",
        "OFFSET_METADATA_TOO_LARGE", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID",
    ),
    "OffsetFetch": (*_COMMON, "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_ID", "UNSTABLE_OFFSET_COMMIT"),
    "OffsetDelete": (
        *_COMMON, "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_GROUP_ID", "GROUP_ID_NOT_FOUND",
        "NON_EMPTY_GROUP", "GROUP_SUBSCRIBED_TO_TOPIC",
    ),
    "WriteTxnMarker": ("NONE", "NOT_LEADER_OR_FOLLOWER"),
}  # fmt: skip
_EVENTS = (
    "Request", "TimerFired", "Appended", "AppendFailed", "LoadStarted", "Load", "LoadFailed", "Unload",
)  # fmt: skip
_CONSUMER_EVENTS = (*_EVENTS, "TaskDone", "TopicsChanged", "GroupConfigChanged")
_TIMERS = (TimerKind.JOIN, TimerKind.SYNC, TimerKind.SESSION, TimerKind.OPERATION)
_CONSUMER_TIMERS = (TimerKind.CONSUMER_SESSION, TimerKind.CONSUMER_REBALANCE, TimerKind.OPERATION)
_MIXED_TIMERS = (TimerKind.CONSUMER_JOIN, TimerKind.CONSUMER_SYNC)
_CONSUMER_STATES = tuple(state.value for state in ConsumerGroupState)
#: every state is computed from the group's data, so any may follow any (M-ST-06)
_CONSUMER_TRANSITIONS = tuple(
    (source, target)
    for source in _CONSUMER_STATES
    for target in _CONSUMER_STATES
    if source != target and "Dead" not in (source, target)
)
_MEMBER_TRANSITIONS = tuple(
    (source.name, target.name)
    for source in MemberState
    for target in MemberState
    if source is not target and target is not MemberState.UNKNOWN
)


def _of_versions(errors: dict[str, tuple[str, ...]]) -> Iterable[str]:
    for api, codes in errors.items():
        yield from (f"error {api} {code}" for code in codes)
    for message, (first, last) in VERSIONS.items():
        api = message.__name__.removesuffix("Request")
        if api in errors:
            yield from (f"version {api} {version}" for version in range(first, last + 1))
    yield from (f"append fails {ErrorCode(code).name}" for code in (3, 4, 6, 7, 10, 18, 19, 20, 56))


def _of_timers(kinds: Iterable[TimerKind]) -> Iterable[str]:
    for kind in kinds:
        yield from (f"timer {kind.name} {what}" for what in ("set", "moved", "cancelled", "fired"))


def _classic_features() -> Iterable[str]:
    yield from (f"event {name}" for name in _EVENTS)
    yield from (f"state {name}" for name in _STATES)
    yield from (f"transition {source} → {target}" for source, targets in _TRANSITIONS.items() for target in targets)
    yield from ("record GroupMetadata", "tombstone GroupMetadata")
    yield from _of_versions(_ERRORS)
    yield from _of_timers(_TIMERS)
    yield from (f"rule {rule}" for rule in sorted((*RULES, *UNREACHED_RULES)))
    yield from _offset_features()


def _offset_features() -> Iterable[str]:
    """Yield the features that groups of every kind also have."""
    yield "event TopicsChanged"
    yield from ("record OffsetCommit", "tombstone OffsetCommit", "record Control")
    for api, codes in _OFFSET_ERRORS.items():
        yield from (f"error {api} {code}" for code in codes)
    yield from (f"timer EXPIRY {what}" for what in ("set", "fired", "cancelled"))
    yield from (f"rule {rule}" for rule in OFFSET_RULES)


def _consumer_features() -> Iterable[str]:
    yield from (f"event {name}" for name in _CONSUMER_EVENTS)
    yield from (f"consumer-state {name}" for name in _CONSUMER_STATES)
    yield from (f"consumer-transition {source} → {target}" for source, target in _CONSUMER_TRANSITIONS)
    yield from (f"member-state {state.name}" for state in MemberState)
    yield from (f"member-transition {source} → {target}" for source, target in _MEMBER_TRANSITIONS)
    yield from (f"record {name}" for name in RECORDS)
    yield from (f"tombstone {name}" for name in RECORDS)
    yield from _of_versions(_CONSUMER_ERRORS)
    yield from _of_timers(_CONSUMER_TIMERS)
    yield from (f"rule {rule}" for rule in sorted((*CONSUMER_RULES, *UNREACHED_CONSUMER_RULES)))
    yield from _offset_features()


def _mixed_features() -> Iterable[str]:
    """Yield the additional features of mixed groups."""
    yield from (f"conversion {state} → consumer" for state in _STATES)
    yield from (f"conversion consumer → {state}" for state in _STATES)
    yield from (f"conversion Empty consumer → {state}" for state in _STATES)
    yield from _of_timers(_MIXED_TIMERS)
    yield from (f"rule {rule}" for rule in sorted((*MIXED_RULES, *UNREACHED_MIXED_RULES)))


#: the features for traces of each protocol
OF_PROTOCOL: dict[GroupProtocol, tuple[str, ...]] = {
    GroupProtocol.CLASSIC: tuple(_classic_features()),
    GroupProtocol.CONSUMER: tuple(_consumer_features()),
    GroupProtocol.MIXED: tuple(dict.fromkeys([*_classic_features(), *_consumer_features(), *_mixed_features()])),
}
#: features that traces of events can reach
INSIDE = frozenset(OF_PROTOCOL[GroupProtocol.MIXED])
#: features that only show over the wire: more about offsets, and transactions
WIRE_ERRORS: dict[str, tuple[str, ...]] = {
    "OffsetCommit": ("FENCED_INSTANCE_ID", "REBALANCE_IN_PROGRESS", "STALE_MEMBER_EPOCH", "UNSUPPORTED_VERSION"),
    "TxnOffsetCommit": ("FENCED_INSTANCE_ID", "UNKNOWN_TOPIC_ID", "GROUP_ID_NOT_FOUND", "STALE_MEMBER_EPOCH"),
    "OffsetFetch": ("UNKNOWN_MEMBER_ID", "STALE_MEMBER_EPOCH", "ILLEGAL_GENERATION"),
    "InitProducerId": ("NONE",),
    "AddOffsetsToTxn": ("NONE",),
    "EndTxn": ("NONE",),
}
#: APIs whose versions only show over the wire, with the first version and the last
_WIRE_VERSIONS = {
    "OffsetCommit": (2, 10), "OffsetFetch": (1, 10), "OffsetDelete": (0, 0), "TxnOffsetCommit": (0, 6),
    "InitProducerId": (0, 6), "AddOffsetsToTxn": (0, 4), "EndTxn": (0, 5),
}  # fmt: skip


def _wire_features() -> Iterable[str]:
    for api, codes in WIRE_ERRORS.items():
        yield from (f"error {api} {code}" for code in codes)
    for api, (first, last) in _WIRE_VERSIONS.items():
        yield from (f"version {api} {version}" for version in range(first, last + 1))


FEATURES: tuple[str, ...] = (*OF_PROTOCOL[GroupProtocol.MIXED], *_wire_features())
PLACE: dict[str, int] = {name: place for place, name in enumerate(FEATURES)}

_REASONS: dict[str, str] = {
    "state Dead": "a group is Dead only while the partition is unloaded, when no request and no view reaches it",
    **{
        f"transition {source} → Dead": "happens inside Unload, after which the group is gone (C-ST-16)"
        for source in _TRANSITIONS
    },
    "consumer-state Dead": "a name only; nothing computes it (M-ST-05)",
    "record ConsumerGroupPartitionMetadata": "written by Kafka 4.0 only (V-34)",
    **{
        f"member-transition UNKNOWN → {state}": "comes from a log that another program wrote (M-MS-04); rare"
        for state in ("UNREVOKED_PARTITIONS",)
    },
    "rule X-SYNC-07": "needs a SyncGroup that is repeated after an upgrade without a bump, by a member whose first "
    "protocol has unreadable bytes; rare",
    "timer CONSUMER_JOIN moved": "armed only where none is running (X-TMR-02)",
    **dict.fromkeys(
        ("conversion Dead → consumer", "conversion consumer → Dead", "conversion Empty consumer → Dead"),
        "a group is Dead only while the partition is unloaded",
    ),
    **dict.fromkeys(
        ("conversion consumer → Empty", "conversion consumer → CompletingRebalance"),
        "a downgrade leaves the group Stable, or begins a rebalance (X-DOWN-03, X-DOWN-06)",
    ),
    **dict.fromkeys(
        ("conversion Empty consumer → CompletingRebalance", "conversion Empty consumer → Stable"),
        "the classic group that replaces it is a new one (C-JOIN-10)",
    ),
    **{
        f"rule {rule}": reason
        for rule, reason in (UNREACHED_RULES | UNREACHED_CONSUMER_RULES | UNREACHED_MIXED_RULES).items()
    },
}
#: rules that cannot occur in any trace, with the reason; no evidence may count for them
CANNOT_OCCUR: dict[str, str] = {
    **CLASSIC_CANNOT_OCCUR,
    **CONSUMER_CANNOT_OCCUR,
    "O-COMMIT-23": CLASSIC_CANNOT_OCCUR["C-ST-05"],
}
#: rules of groups of one kind that need the other kind
_ONLY_MIXED = {f"rule {rule}" for rule in MIXED_RULES if not rule.startswith("X-")}
#: rules of offsets that need a group of one kind with members
_OF_KIND: dict[GroupProtocol, dict[str, str]] = {
    GroupProtocol.CLASSIC: dict.fromkeys(
        (
            *(f"rule O-COMMIT-{number}" for number in (29, 30, 31, 32, 33)),
            *("rule O-TXN-05", "rule O-FETCH-05", "rule O-FETCH-11"),
        ),
        "of consumer groups",
    ),
    GroupProtocol.CONSUMER: dict.fromkeys(
        (
            *(f"rule O-COMMIT-{number}" for number in (25, 26, 27, 28)),
            "rule O-DEL-04",
            "error OffsetDelete NON_EMPTY_GROUP",
        ),
        "of classic groups with members",
    ),
    GroupProtocol.MIXED: {},
}
#: rules of the other kind that also show in a simple group, which has only offsets (O-COMMIT-20)
_BY_SIMPLE_GROUPS = frozenset({"rule M-VAL-22"})
#: why traces of that protocol do not reach a feature, or need not
REASONS: dict[GroupProtocol, dict[str, str]] = {
    protocol: {
        name: reason
        for name, reason in _REASONS.items()
        if name in features
        and not (protocol is GroupProtocol.MIXED and name in _ONLY_MIXED)
        and not (protocol is GroupProtocol.CONSUMER and name in _BY_SIMPLE_GROUPS)
    }
    | _OF_KIND[protocol]
    for protocol, features in OF_PROTOCOL.items()
}


#: rules that decide only where a switch has this value, with the reason
_OF_RELEASES: dict[str, tuple[str, bool, str]] = {
    "rule M-STATIC-13": ("fault_relabelled_instance_stays", True, "the mapping goes with the name (V-123)"),
    "rule M-VAL-28": ("old_full_group_refuses_statics", True, "a returning member is not counted (V-120)"),
    "rule M-HB-14": ("old_vote_keeps_epoch", False, "before 4.4 a vote does not bump the epoch (V-121)"),
    "rule M-LEAVE-08": ("old_emptied_group_keeps_target_epoch", False, "not before 4.4 (V-122)"),
}


def reasons_of(protocol: GroupProtocol, profile: Profile) -> dict[str, str]:
    """Return why traces of that protocol under the profile do not reach a feature, or need not."""
    features = OF_PROTOCOL[protocol]
    return REASONS[protocol] | {
        name: reason
        for name, (switch, wanted, reason) in _OF_RELEASES.items()
        if name in features and getattr(profile, switch) is not wanted
    }


def bitmap(reached: Iterable[str]) -> bytes:
    """Return the features as bits, place 0 first. Names outside the catalogue raise ``KeyError``."""
    bits = bytearray((len(FEATURES) + 7) // 8)
    for name in reached:
        place = PLACE[name]
        bits[place >> 3] |= 1 << (place & 7)
    return bytes(bits)


def places(bits: bytes) -> list[int]:
    """Return the places whose bit is set, in order."""
    return [place for place in range(len(FEATURES)) if bits[place >> 3] >> (place & 7) & 1]


def names(bits: bytes) -> list[str]:
    """Return the features of a bitmap in catalogue order."""
    return [FEATURES[place] for place in places(bits)]


def union(bitmaps: Iterable[bytes]) -> bytes:
    """Return the features that any of them reached."""
    total = 0
    for bits in bitmaps:
        total |= int.from_bytes(bits, "little")
    return total.to_bytes((len(FEATURES) + 7) // 8, "little")

"""Clauses for refusals: why the checker expected another answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.messages import JoinGroupRequest, SyncGroupRequest

from .history import Op

#: By rule: what the request, or the state of the group, calls for.
_RULES: Final = {
    "C-JOIN-04": "the group id is empty",
    "C-SYNC-03": "the group id is empty",
    "C-HB-02": "the group id is empty",
    "C-LEAVE-02": "the group id is empty",
    "C-JOIN-05": "the session timeout is outside the broker's bounds",
    "C-SYNC-01": "the request names no protocol type or no protocol",
    "C-ADM-02": "there is no classic group of this name",
    "C-ADM-03": "the group is in another state",
    "C-ADM-09": "the group has members",
    "F-RT-02": "the broker is the coordinator, and nothing shows that it was lost",
    "INV-KIP-01": "another member holds the partition",
    "INV-KIP-04": "epochs never go back",
    "INV-KIP-05": "only partitions that exist are assigned",
    "M-DESC-01": "the answers to members show other values",
    "M-EPOCH-01": "the group had fewer changes",
    "M-FENCE-01": "the member is not in the group",
    "M-HB-10": "the answer repeats the member id and the heartbeat interval of the settings",
    "M-REC-03": "the member still has to revoke partitions",
    "M-REC-04": "the member has revoked what it had to",
    "M-REC-10": "the member still owns what it has to revoke",
    "M-REC-22": "a newer target assignment was due",
    "M-RSP-01": "an assignment is sent for a full request or a change, and only then",
    "M-RSP-04": "the member leaves",
    "M-STATIC-02": "another member holds the instance id",
    "M-TGT-01": "a newer target assignment was due",
    "M-TMR-02": "the time to revoke is over",
    "M-VAL-01": "the consumer protocol is disabled",
    "M-VAL-05": "the group id is empty",
    "M-VAL-06": "the instance id is empty",
    "M-VAL-07": "the rack id is empty",
    "M-VAL-09": "the member id is empty",
    "M-VAL-10": "a joining member must give a rebalance timeout",
    "M-VAL-11": "a joining member must own no partitions",
    "M-VAL-12": "a joining member must subscribe",
    "M-VAL-13": "epoch -2 needs an instance id",
    "M-VAL-14": "the epoch is below -2",
    "M-VAL-15": "the broker does not have the assignor",
    "M-VAL-25": "the group is full",
    "O-COMMIT-30": "the member is not in the group",
    "O-COMMIT-32": "the epoch is not the member's",
    "O-COMMIT-33": "the epoch is the member's",
    "X-JOIN-05": "a new dynamic member gets its id first",
    "X-JOIN-15": "members of the classic protocol have no leader in a consumer group",
    "X-SYNC-06": "the answer repeats the protocol of the request",
}
#: By the field, if no rule has a clause.
_FIELDS: Final = {
    "heartbeat_interval_ms": "it is the interval in the settings",
    "assignment": "the leader assigned it",
    "generation_id": "each rebalance raises the generation by one",
    "leader": "the member that joins first leads, and stays the leader",
    "members": "the leader's answer lists all members, and no other does",
    "protocol_name": "the group chose the protocol",
    "protocol_type": "it is the group's protocol type",
    "member_id": "the answer repeats the member id of the request",
}
_FIRST: Final = frozenset({"heartbeat_interval_ms", "member_id"})
#: By the error that was seen where NONE was expected.
_NO_ERRORS: Final = {
    E.UNKNOWN_MEMBER_ID: "the member is in the group",
    E.FENCED_INSTANCE_ID: "no other member has the instance id",
    E.ILLEGAL_GENERATION: "the group is in the generation of the request",
    E.REBALANCE_IN_PROGRESS: "the group is not rebalancing",
    E.MEMBER_ID_REQUIRED: "the member has an id, or needs none",
    E.INCONSISTENT_GROUP_PROTOCOL: "the protocols fit those of the group",
    E.GROUP_MAX_SIZE_REACHED: "the group is not full",
    E.INVALID_GROUP_ID: "the group id is valid",
    E.GROUP_ID_NOT_FOUND: "the group exists",
    E.NON_EMPTY_GROUP: "the group has no members",
    E.FENCED_MEMBER_EPOCH: "the epoch is the member's",
    E.STALE_MEMBER_EPOCH: "the epoch is the member's",
    E.UNRELEASED_INSTANCE_ID: "no other member holds the instance id",
    E.INVALID_REQUEST: "the request is valid",
    E.INVALID_REGULAR_EXPRESSION: "the request has no regular expression",
    E.UNKNOWN_SERVER_ERROR: "nothing in the request or the group makes the coordinator fail",
    E.NOT_COORDINATOR: "the broker is the coordinator, and nothing shows that it was lost",
    E.COORDINATOR_NOT_AVAILABLE: "the broker is the coordinator, and nothing shows that it was lost",
    E.COORDINATOR_LOAD_IN_PROGRESS: "the broker is the coordinator, and nothing shows that it was lost",
}
#: By the error that was expected.
_ERRORS: Final = {
    E.UNKNOWN_MEMBER_ID: "the member is not in the group",
    E.FENCED_INSTANCE_ID: "another member has the instance id",
    E.ILLEGAL_GENERATION: "the group is in another generation",
    E.REBALANCE_IN_PROGRESS: "the group is rebalancing",
    E.MEMBER_ID_REQUIRED: "a new member gets its id first",
    E.INCONSISTENT_GROUP_PROTOCOL: "the protocols do not fit those of the group",
    E.GROUP_MAX_SIZE_REACHED: "the group is full",
    E.INVALID_GROUP_ID: "the group id is empty",
    E.GROUP_ID_NOT_FOUND: "there is no such group",
    E.NON_EMPTY_GROUP: "the group has members",
    E.FENCED_MEMBER_EPOCH: "the epoch is not the member's",
    E.UNRELEASED_INSTANCE_ID: "another member holds the instance id",
}


def because(op: Op, field: str, seen: Any, expected: Any, rules: Iterable[str]) -> str:
    """The clause for a field that has the value ``seen`` and not the one ``expected``; empty if none fits."""
    error = getattr(op.answer, "error_code", None)
    last = field.rpartition(".")[2]
    by_rule = next((_RULES[each] for each in rules if each in _RULES), "")
    if last == "error_code":
        if expected is E.NONE:
            return _NO_ERRORS.get(seen, by_rule)
        return by_rule if by_rule and seen is not E.NONE else _ERRORS.get(expected, by_rule)
    if last == "member_id" and expected != getattr(op.body, "member_id", None):
        return by_rule
    if error is not None and error is not E.NONE and last not in _FIRST:
        return "the request was rejected"
    if last in _FIRST or (not by_rule and isinstance(op.body, JoinGroupRequest | SyncGroupRequest)):
        return _FIELDS.get(last, "")
    return by_rule

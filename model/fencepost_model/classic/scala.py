"""The older group coordinator, written in Scala, Kafka's default up to 3.9 (D-01 to D-27).

Only the model of classic groups covers it, in order to check brokers. The core does not, so it is not a switch of
``Profile``. The functions below are in the table of ``switches``. They take the place of the rules of which a client
can see that the two coordinators differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Final

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    LeaveGroupMember,
    LeaveGroupMemberResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import KAFKA_4_0

from ..machines import COMPLETING, PREPARING, STABLE
from .draft import Draft
from .live import leave_one
from .rebalance import maybe_complete_join_phase, prepare_rebalance
from .state import Arrive


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalaProfile(Profile):
    """The switches of a profile, for the Scala coordinator."""

    scala: bool = True


_OF_4_0: Final = {each.name: getattr(KAFKA_4_0, each.name) for each in fields(Profile)}

KAFKA_3_9: Final[Profile] = replace(
    ScalaProfile(**_OF_4_0),
    name="kafka-3.9",
    fault_refusal_leaves_join_phase=False,  # D-18
    fault_parked_fail_early=False,  # D-21
)


def is_initial_delay(otherwise: Callable[[Draft], bool], d: Draft) -> bool:
    """Return whether the group is in its first generation (D-04)."""
    return d.generation == 0


def answer_stable_sync(
    otherwise: Callable[[Draft, Arrive, SyncGroupRequest], None], d: Draft, request: Arrive, body: SyncGroupRequest
) -> None:
    """Answer, and extend the session (D-02)."""
    otherwise(d, request, body)
    d.arm_session(d.members[body.member_id])


def has_other_protocol(otherwise: Callable[[Draft, SyncGroupRequest], bool], d: Draft, body: SyncGroupRequest) -> bool:
    """Compare what the request names with what the group does not have yet, too (D-03)."""
    if (d.protocol_type is None and body.protocol_type) or (d.protocol_name is None and body.protocol_name):
        d.rule("D-03")
        return True
    return otherwise(d, body)


def remove_members(
    otherwise: Callable[[Draft, LeaveGroupRequest], tuple[LeaveGroupMemberResponse, ...]],
    d: Draft,
    body: LeaveGroupRequest,
) -> tuple[LeaveGroupMemberResponse, ...]:
    """Update the group after each member that leaves (D-06)."""
    return tuple([_remove(d, entry) for entry in body.members])


def _remove(d: Draft, entry: LeaveGroupMember) -> LeaveGroupMemberResponse:
    """Remove one member. A pending id starts no rebalance (D-07)."""
    pending = entry.member_id in d.pending_join
    error = leave_one(d, entry)
    if error is ErrorCode.NONE and d.state in (STABLE, COMPLETING) and not pending:
        d.rule("C-LEAVE-21", "D-07")
        prepare_rebalance(d, "member_left")
    elif error is ErrorCode.NONE and d.state == PREPARING:
        d.rule("C-LEAVE-22", "D-07")
        maybe_complete_join_phase(d)
    return LeaveGroupMemberResponse(entry.member_id, group_instance_id=entry.group_instance_id, error_code=error)

"""Hand-made runs for cases that one in a thousand random ones reaches: the core takes them, the model must follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fencepost.protocol.events import Appended, Event, Load, Request, TimerFired, TimerKey, TimerKind, Unload
from fencepost.protocol.messages import JoinGroupRequest, Protocol, RequestBody, SyncGroupAssignment, SyncGroupRequest

from ...targets.ids import member_id

_VERSIONS: Final = {JoinGroupRequest: 9, SyncGroupRequest: 5}


def _ask(number: int, at_ms: int, body: RequestBody) -> Request:
    return Request(
        at_ms, id=number, version=_VERSIONS[type(body)], client_id="client", client_host="/127.0.0.1", body=body
    )


def _join(number: int, at_ms: int, member: str = "", instance: str | None = None, metadata: bytes = b"") -> Request:
    body = JoinGroupRequest(
        "g",
        session_timeout_ms=100_000,
        rebalance_timeout_ms=60_000,
        member_id=member,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=(Protocol("range", metadata),),
    )
    return _ask(number, at_ms, body)


def _returns_before_the_sync_timer() -> Sequence[Event]:
    """A static member that never synced is replaced; the sync timer fires while the replacement's record is open."""
    leader, absent = member_id("client", 0), member_id("static", 1)
    shares = (SyncGroupAssignment(leader, b"1"), SyncGroupAssignment(absent, b"2"))
    delay = TimerKey(TimerKind.JOIN, "g")
    return (
        Load(0, leader_epoch=1, records=()),
        _join(1, 1),
        Appended(2, offset=1),
        _join(2, 3, leader),
        _join(3, 4, instance="static"),
        TimerFired(3_003, delay),
        TimerFired(6_003, delay),
        _ask(
            4,
            6_004,
            SyncGroupRequest(
                "g",
                generation_id=1,
                member_id=leader,
                protocol_type="consumer",
                protocol_name="range",
                assignments=shares,
            ),
        ),
        Appended(6_005, offset=2),
        _join(5, 66_002, instance="static"),
        TimerFired(66_003, TimerKey(TimerKind.SYNC, "g")),
        Appended(66_004, offset=3),
    )


def _lost_while_one_that_returned_syncs() -> Sequence[Event]:
    """A static member has come back and its record is open; the partition is lost while it waits in the SyncGroup of
    the next round."""
    *begun, _, _, _ = _returns_before_the_sync_timer()
    leader, again = member_id("client", 0), member_id("static", 2)
    return (
        *begun,
        _join(5, 6_006, instance="static"),
        _join(6, 6_007, leader, metadata=b"other"),
        _ask(
            7,
            6_008,
            SyncGroupRequest(
                "g",
                generation_id=2,
                member_id=again,
                group_instance_id="static",
                protocol_type="consumer",
                protocol_name="range",
            ),
        ),
        Unload(6_009, leader_epoch=None),
    )


#: name → the events; member ids are those that ``JavaOrder(MemberIds())`` makes
SCENES: Final[Mapping[str, Sequence[Event]]] = {
    "a static member returns before the sync timer": _returns_before_the_sync_timer(),
    "the partition is lost while a static member that returned syncs": _lost_while_one_that_returned_syncs(),
}

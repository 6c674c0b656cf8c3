"""Each error that a request may meet once, and that passes: the client works afterwards, or closes."""

from __future__ import annotations

from typing import Final, NamedTuple

from fencepost.protocol.errors import ErrorCode
from fencepost_server.faults import Fault

from ...cases.answers import NotSupported
from ..case import client_case
from ..stage import Stage


class _Trouble(NamedTuple):
    """The ``nth`` request of an API is answered with each of these codes; ``nth`` 0: the first ``times`` requests.
    ``api``: by Kafka's name, and ``kio`` by that of the server's faults."""

    protocol: str
    api: str
    kio: str
    nth: int
    codes: tuple[ErrorCode, ...]
    rules: tuple[str, ...]
    times: int = 1


#: a request after which the client only closes
LEAVE: Final = "LeaveGroup"
_LOADS, _ABSENT, _MOVED = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR,
)  # fmt: skip
_COORDINATOR: Final = (_LOADS, _ABSENT, _MOVED)
_REBALANCE: Final = ErrorCode.REBALANCE_IN_PROGRESS
_TROUBLES: Final = (
    _Trouble("classic", "FindCoordinator", "find_coordinator", 1, (_ABSENT,), ("K-FIND-01",)),
    # as long as Kafka creates the topic of offsets
    _Trouble("classic", "FindCoordinator", "find_coordinator", 0, (_ABSENT,), ("K-FIND-01",), times=4),
    _Trouble("classic", "JoinGroup", "join_group", 1, _COORDINATOR, ("K-ERR-02", "K-ERR-03")),
    _Trouble("classic", "JoinGroup", "join_group", 2, (_MOVED, _REBALANCE), ("K-ERR-03", "K-ERR-06")),
    _Trouble("classic", "SyncGroup", "sync_group", 1, (_ABSENT, _MOVED, _REBALANCE), ("K-ERR-03", "K-ERR-06")),
    _Trouble("classic", "Heartbeat", "heartbeat", 2, (_ABSENT, _MOVED, _REBALANCE), ("K-ERR-03", "K-ERR-06")),
    _Trouble("classic", "OffsetFetch", "offset_fetch", 1, (*_COORDINATOR, ErrorCode.UNSTABLE_OFFSET_COMMIT),
             ("K-OFF-01", "K-OFF-10", "K-OFF-11")),
    _Trouble("classic", "OffsetCommit", "offset_commit", 2, (*_COORDINATOR, _REBALANCE),
             ("K-OFF-10", "K-OFF-11", "K-OFF-12")),
    _Trouble("consumer", "ConsumerGroupHeartbeat", "consumer_group_heartbeat", 1, _COORDINATOR,
             ("N-ERR-01", "N-ERR-03")),
    _Trouble("consumer", "ConsumerGroupHeartbeat", "consumer_group_heartbeat", 4, _COORDINATOR,
             ("N-ERR-01", "N-ERR-03", "N-HB-04")),
    _Trouble("consumer", "OffsetFetch", "offset_fetch", 1,
             (*_COORDINATOR, ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.STALE_MEMBER_EPOCH), ("N-CMT-04", "K-OFF-01")),
    _Trouble("consumer", "OffsetCommit", "offset_commit", 2, (*_COORDINATOR, ErrorCode.STALE_MEMBER_EPOCH),
             ("N-CMT-02", "N-CMT-06")),
    # twice from here on, since some clients drop the connection of the first without reading its answer
    _Trouble("classic", "FindCoordinator", "find_coordinator", 0, (_LOADS,), ("K-FIND-01",), times=2),
    _Trouble("classic", "JoinGroup", "join_group", 2, (ErrorCode.UNKNOWN_MEMBER_ID,), ("K-ERR-04", "K-ERR-14")),
    _Trouble("classic", "SyncGroup", "sync_group", 1, (ErrorCode.ILLEGAL_GENERATION,), ("K-ERR-05", "K-ERR-14")),
    _Trouble("classic", "OffsetCommit", "offset_commit", 2, (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,), ("K-OFF-10",)),
    _Trouble("classic", LEAVE, "leave_group", 1,
             (*_COORDINATOR, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.INVALID_GROUP_ID,
              ErrorCode.GROUP_AUTHORIZATION_FAILED), ("K-LEAVE-04",)),
    _Trouble("consumer", "FindCoordinator", "find_coordinator", 0, (_ABSENT, _LOADS), ("K-FIND-01",), times=2),
    _Trouble("consumer", "OffsetCommit", "offset_commit", 2, (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,), ("N-CMT-06",)),
)  # fmt: skip


#: group protocol, API and code of each case here
COVERED: Final[set[tuple[str, str, ErrorCode]]] = set()


def _register() -> None:
    number = 0
    for trouble in _TROUBLES:
        for code in trouble.codes:
            number += 1
            _case(number, trouble, code)


def _case(number: int, trouble: _Trouble, code: ErrorCode) -> None:
    COVERED.add((trouble.protocol, trouble.api, code))
    which = ("", "first", "second", "third", "fourth")[trouble.nth]
    what = f"The {which} {trouble.api}" if trouble.nth else f"Each of the first {trouble.times} requests {trouble.api}"
    text = f"{what} of a member of a {trouble.protocol} group is answered {code.name}. " + (
        "The client closes nevertheless."
        if trouble.api == LEAVE
        else "The client tries again, and reads and commits the partitions that it is assigned."
    )

    @client_case(f"client.error.{number}", *trouble.rules, text=text)
    async def play(stage: Stage) -> None:
        nth, code_name = trouble.nth or None, code.name
        await stage.broker(Fault(do="error", api=trouble.kio, nth=nth, times=trouble.times, code=code_name))
        client = await stage.start(protocol=trouble.protocol)
        if trouble.api == LEAVE:
            await client.settled()
            return
        if (trouble.api, trouble.nth) == ("JoinGroup", 2):
            await client.until(lambda: client.refusals(code) or client.assignment(), "a second JoinGroup", reached=True)
            if not client.refusals(code):
                (first, *_) = client.sent("JoinGroup")
                raise NotSupported(f"the client joins with one JoinGroup (v{first.api_version})")
        await client.troubled(code)
        await client.settled()
        await stage.works(client)


_register()

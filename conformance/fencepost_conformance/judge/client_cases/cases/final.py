"""Errors that a retry does not fix, as a sweep: each code that Kafka can answer to a request of a client.

``ANSWERS`` has all codes by request, with the rules that say what Kafka's own client does. The cases of ``errors`` and
those in ``ELSEWHERE`` play some of them; each other one becomes a case of ``client.final``. Numbers follow the order of
the table, so new codes are appended.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from fencepost.protocol.errors import ErrorCode as E
from fencepost_server.faults import Fault

from ...cases.answers import NotSupported
from ..case import client_case
from ..stage import RECORDS, ClientRun, Stage, Unkept
from .errors import COVERED


class _Request(NamedTuple):
    """The ``nth`` request of an API in a group of this protocol; 0: each of the first two, since some clients drop the
    connection of the first without reading its answer. ``kio``: the API's name in the server's faults."""

    protocol: str
    api: str
    kio: str
    nth: int
    codes: tuple[E, ...]
    rules: tuple[str, ...]


_COORDINATOR: Final = (E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR)
_GROUP: Final = (E.GROUP_AUTHORIZATION_FAILED, E.INVALID_GROUP_ID, E.UNKNOWN_SERVER_ERROR)
_MEMBER: Final = (E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.REBALANCE_IN_PROGRESS, E.FENCED_INSTANCE_ID)
_COMMIT: Final = (
    E.OFFSET_METADATA_TOO_LARGE, E.INVALID_COMMIT_OFFSET_SIZE, E.TOPIC_AUTHORIZATION_FAILED,
    E.UNKNOWN_TOPIC_OR_PARTITION, E.UNKNOWN_TOPIC_ID, E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
)  # fmt: skip
_UNWRITTEN: Final = E.NOT_ENOUGH_REPLICAS_AFTER_APPEND
#: every code that Kafka can answer to a request of a client, by group protocol and request
ANSWERS: Final = (
    _Request("classic", "FindCoordinator", "find_coordinator", 0,
             (*_COORDINATOR[:2], E.GROUP_AUTHORIZATION_FAILED, E.INVALID_REQUEST, E.UNKNOWN_SERVER_ERROR),
             ("K-FIND-01",)),
    _Request("classic", "JoinGroup", "join_group", 1,
             (*_COORDINATOR, *_GROUP, E.INCONSISTENT_GROUP_PROTOCOL, E.INVALID_SESSION_TIMEOUT,
              E.GROUP_MAX_SIZE_REACHED, E.UNSUPPORTED_VERSION, E.FENCED_INSTANCE_ID, E.UNKNOWN_MEMBER_ID,
              E.REBALANCE_IN_PROGRESS, _UNWRITTEN), ("K-ERR-08", "K-ERR-09", "K-ERR-10", "K-ERR-11")),
    _Request("classic", "SyncGroup", "sync_group", 1,
             (*_COORDINATOR, *_GROUP, *_MEMBER, E.INCONSISTENT_GROUP_PROTOCOL, _UNWRITTEN),
             ("K-ERR-02", "K-ERR-08", "K-ERR-09", "K-ERR-11")),
    _Request("classic", "Heartbeat", "heartbeat", 2, (*_COORDINATOR[1:], *_GROUP, *_MEMBER), ("K-ERR-08", "K-ERR-11")),
    _Request("classic", "LeaveGroup", "leave_group", 1,
             (*_COORDINATOR, E.UNKNOWN_MEMBER_ID, E.INVALID_GROUP_ID, E.GROUP_AUTHORIZATION_FAILED), ("K-LEAVE-04",)),
    _Request("classic", "OffsetFetch", "offset_fetch", 1,
             (*_COORDINATOR, *_GROUP, E.UNSTABLE_OFFSET_COMMIT, E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION),
             ("K-OFF-01",)),
    _Request("classic", "OffsetCommit", "offset_commit", 2, (*_COORDINATOR, *_GROUP, *_MEMBER, *_COMMIT),
             ("K-OFF-14", "K-OFF-15", "K-OFF-16")),
    _Request("consumer", "FindCoordinator", "find_coordinator", 0,
             (*_COORDINATOR[:2], E.GROUP_AUTHORIZATION_FAILED, E.INVALID_REQUEST, E.UNKNOWN_SERVER_ERROR),
             ("K-FIND-01",)),
    _Request("consumer", "ConsumerGroupHeartbeat", "consumer_group_heartbeat", 1,
             (*_COORDINATOR, E.GROUP_AUTHORIZATION_FAILED, E.INVALID_REQUEST, E.UNKNOWN_SERVER_ERROR,
              E.GROUP_MAX_SIZE_REACHED, E.UNSUPPORTED_ASSIGNOR, E.UNRELEASED_INSTANCE_ID, E.INVALID_REGULAR_EXPRESSION,
              E.UNSUPPORTED_VERSION, E.TOPIC_AUTHORIZATION_FAILED, _UNWRITTEN), ("N-ERR-04", "N-ERR-05", "N-ERR-07")),
    _Request("consumer", "ConsumerGroupHeartbeat", "consumer_group_heartbeat", 4,
             (*_COORDINATOR, E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH, E.FENCED_INSTANCE_ID,
              E.GROUP_AUTHORIZATION_FAILED, E.INVALID_REQUEST, E.UNKNOWN_SERVER_ERROR, E.GROUP_ID_NOT_FOUND,
              E.TOPIC_AUTHORIZATION_FAILED), ("N-ERR-04", "N-ERR-05", "N-ERR-07")),
    _Request("consumer", "OffsetFetch", "offset_fetch", 1,
             (*_COORDINATOR, *_GROUP, E.UNSTABLE_OFFSET_COMMIT, E.STALE_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID),
             ("N-CMT-04",)),
    _Request("consumer", "OffsetCommit", "offset_commit", 2,
             (*_COORDINATOR, *_GROUP, E.UNKNOWN_MEMBER_ID, E.STALE_MEMBER_EPOCH, E.GROUP_ID_NOT_FOUND, *_COMMIT),
             ("N-CMT-03", "K-OFF-15")),
)  # fmt: skip
#: codes whose cases have another family, since the client must join again or stop
ELSEWHERE: Final = {
    ("classic", "SyncGroup", E.UNKNOWN_MEMBER_ID): "client.rejoin.6",
    ("classic", "Heartbeat", E.UNKNOWN_MEMBER_ID): "client.rejoin.1",
    ("classic", "Heartbeat", E.ILLEGAL_GENERATION): "client.rejoin.2",
    ("classic", "Heartbeat", E.FENCED_INSTANCE_ID): "client.fence.1",
    ("classic", "OffsetCommit", E.UNKNOWN_MEMBER_ID): "client.rejoin.7",
    ("classic", "OffsetCommit", E.ILLEGAL_GENERATION): "client.commit.3",
    ("consumer", "ConsumerGroupHeartbeat", E.UNKNOWN_MEMBER_ID): "client.rejoin.5",
    ("consumer", "ConsumerGroupHeartbeat", E.FENCED_MEMBER_EPOCH): "client.rejoin.4",
    ("consumer", "ConsumerGroupHeartbeat", E.FENCED_INSTANCE_ID): "client.fence.2",
}
#: the first version of an API whose requests Kafka answers with a code
SINCE: Final = {
    ("JoinGroup", E.FENCED_INSTANCE_ID): 5,
    ("SyncGroup", E.FENCED_INSTANCE_ID): 3,
    ("OffsetFetch", E.UNKNOWN_MEMBER_ID): 9,
    ("OffsetFetch", E.ILLEGAL_GENERATION): 9,
    ("OffsetCommit", E.FENCED_INSTANCE_ID): 7,
    ("OffsetCommit", E.GROUP_ID_NOT_FOUND): 9,
    ("OffsetCommit", E.UNKNOWN_TOPIC_ID): 10,
    ("ConsumerGroupHeartbeat", E.INVALID_REGULAR_EXPRESSION): 1,
}
#: codes that only a static member is answered
_STATIC: Final = frozenset({E.FENCED_INSTANCE_ID, E.UNRELEASED_INSTANCE_ID})


def _register() -> None:
    number = 0
    for request in ANSWERS:
        for code in request.codes:
            key = request.protocol, request.api, code
            if key not in COVERED and key not in ELSEWHERE:
                number += 1
                _case(number, request, code)


def _case(number: int, request: _Request, code: E) -> None:
    which = {0: "Each of the first two requests", 1: "The first", 2: "The second", 4: "The fourth"}[request.nth]
    static = "static " if code in _STATIC else ""
    text = (
        f"{which} {request.api} of a {static}member of a {request.protocol} group is answered {code.name}. "
        "The client reads and commits new records, reports the error to the application, or ends. It does not wait in "
        "silence."
    )

    @client_case(f"client.final.{number}", *request.rules, text=text, heartbeats=False, leaves=False)
    async def play(stage: Stage) -> None:
        nth, times = (request.nth, None) if request.nth else (None, 2)
        await stage.broker(Fault(do="error", api=request.kio, nth=nth, times=times, code=code.name))
        options = ("--instance-id", "one") if static else ()
        client = await stage.start(*options, protocol=request.protocol)
        answer = await client.troubled(code)
        _require_version(answer.api_version, request.api, code)
        refused = client.began_s + answer.at_ms / 1000
        await stage.write()

        def continues() -> bool:
            return any(offset > RECORDS for offset in client.last_committed().values())

        def reports() -> bool:
            return any(each.event == "error" and each.at_s > refused for each in client.said)

        def logs() -> bool:
            return any(each.at_s > refused and is_named(code, each.line) for each in client.process.errors)

        def copes() -> bool:
            return continues() or reports()

        expected = f"a commit of new records, an error event, a log line with {code.name}, or its end"
        await client.until(lambda: copes() or logs(), expected, may_end=True)
        if not copes():  # a client may log the error before it reports it
            await client.comes(copes, stage.session_s)
        if not copes() and client.process.ended is None:
            stage.remark = f"{client.name} shows {code.name} on standard error only, not to the application"
        await client.rests(0.2 * stage.session_s, may_end=True)
        _ends_in_order(client)


def is_named(code: E, line: str) -> bool:
    """Return whether a log line names an error: by Kafka's name in any spelling, or by its number, as in
    ``[Error 30]``."""
    letters = re.sub(r"[^a-z0-9]", "", line.lower())
    number = rf"\b(?:error|code)\W{{0,3}}{int(code)}\b"
    return code.name.lower().replace("_", "") in letters or re.search(number, line, re.IGNORECASE) is not None


def _require_version(used: int, api: str, code: E) -> None:
    since = SINCE.get((api, code), 0)
    if used < since:
        raise NotSupported(f"the client sends {api} v{used}; Kafka answers {code.name} from v{since} on")


def _ends_in_order(client: ClientRun) -> None:
    status = client.process.ended
    if status is not None and status < 0:
        raise Unkept(client.name, f"{client.name} was ended by signal {-status}", "that a client ends by itself")


_register()

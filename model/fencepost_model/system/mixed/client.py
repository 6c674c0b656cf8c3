"""The clients (contract, part three): those of the other two closed systems, in one lane.

A process speaks one protocol from start to end. Its steps are in ``..client`` and ``..consumer.client``. This module
passes them a lane in their form and takes the result back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from .. import client as classic
from .. import values
from ..config import Config
from ..consumer import client as consumer
from ..consumer import state
from ..consumer.config import ConsumerConfig
from ..consumer.state import AWAY, Beat
from ..values import JoinReply, LeaveRequest, SyncReply
from .state import Lane, Reply, Request

DOWN: Final = Lane()
WAITING: Final = ("joining", "syncing")


def is_down(lane: Lane) -> bool:
    return lane.classic.state == lane.consumer.state == "down"


def waits(lane: Lane) -> bool:
    return lane.classic.state in WAITING or lane.consumer.waiting


def expecting(lane: Lane, is_parked: bool) -> bool:
    """Return whether an answer to the client may still come."""
    return is_parked or bool(lane.replies) or any(request.awaited for request in lane.requests)


def held_ids(lane: Lane) -> frozenset[str]:
    """Return the member ids that the client or an answer to it has. A timer of one of them fires early."""
    ids = {reply.member_id for reply in lane.replies if isinstance(reply, JoinReply)}
    return frozenset(ids | {lane.classic.member_id, lane.consumer.member_id}) - {""}


# ---- steps of the two protocols --------------------------------------------------------------------------------------


def _classic(lane: Lane) -> values.Lane:
    messages: Any = (lane.requests, lane.replies)  # messages of the other protocol are only kept
    return values.Lane(lane.classic, *messages)


def _with_classic(lane: Lane, after: values.Lane) -> Lane:
    return Lane(after.client, lane.consumer, after.requests, after.replies)


def send_join(config: Config, lane: Lane) -> Lane | None:
    after = classic.send_join(config, _classic(lane))
    return None if after is None else _with_classic(lane, after)


def get_reply(config: Config, lane: Lane, reply: Reply) -> Iterator[Lane]:
    """Yield the lanes that may follow this reply."""
    if isinstance(reply, JoinReply | SyncReply):
        for after in classic.get_reply(config, _classic(lane), reply):
            yield _with_classic(lane, after)
    else:
        yield lane._replace(consumer=consumer.get_reply(lane.consumer, reply), replies=lane.replies - {reply})


def get_heartbeat_reply(lane: Lane, error: str) -> Lane:
    return lane._replace(classic=classic.get_heartbeat_reply(lane.classic, error))


def next_beat(config: ConsumerConfig, lane: Lane) -> Beat | None:
    """Return the heartbeat that the client would send if there were news."""
    client = lane.consumer
    if client.state not in consumer.RUNNING or client.waiting:
        return None
    return consumer.next_beat(config, client)


def has_settled(client: state.Client) -> bool:
    """Return whether the client has nothing to report (N-HB-02…05)."""
    return client.state == "member" and not client.unsure and not client.unacknowledged


def send_beat(lane: Lane, beat: Beat) -> Lane:
    return lane._replace(consumer=consumer.sent(lane.consumer), requests=lane.requests | {beat})


def reconcile(lane: Lane) -> Iterator[Lane]:
    if lane.consumer.reconciling:
        yield lane._replace(consumer=consumer.reconciled(lane.consumer))


# ---- starting, stopping, giving up -----------------------------------------------------------------------------------


def start_classic(lane: Lane) -> Lane:
    return lane._replace(classic=classic.UNJOINED)


def start_consumer(lane: Lane, member_id: str, instance: str) -> Lane:
    return lane._replace(consumer=consumer.starting(member_id, instance))


def _deaf(lane: Lane, more: Iterable[Request] = ()) -> Lane:
    """Stop waiting; requests in flight stay in flight."""
    requests: set[Request] = {request._replace(awaited=False) for request in lane.requests}
    return lane._replace(requests=frozenset(requests | {*more}), replies=frozenset())


def give_up(lane: Lane, _: str = "") -> Lane | None:
    """Give up waiting (K-ERR-13, N-ERR-06)."""
    if not waits(lane):
        return None
    after = _deaf(lane)
    if lane.classic.state in WAITING:
        after = after._replace(classic=lane.classic._replace(state="unjoined"))
    if lane.consumer.waiting:
        after = after._replace(consumer=consumer.silence(lane.consumer))
    return after


def crash(lane: Lane, _: str) -> Lane | None:
    return _deaf(lane)._replace(classic=DOWN.classic, consumer=DOWN.consumer) if lane.process.runs else None


def leave(lane: Lane, instance: str) -> Lane | None:
    """Send a leave request and end, if the client has one to send (K-LEAVE-01, N-TR-07, N-HB-09)."""
    farewell: Request
    if lane.consumer.state in consumer.RUNNING:
        farewell = consumer.leaving(lane.consumer, AWAY if instance else -1)
    elif lane.classic.member_id and not instance:
        farewell = LeaveRequest("LeaveGroup", False, lane.classic.member_id)
    else:
        return None
    return _deaf(lane, [farewell])._replace(classic=DOWN.classic, consumer=DOWN.consumer)


STOPS: Final[dict[str, Callable[[Lane, str], Lane | None]]] = {
    "ClientCrashes": crash,
    "ClientLeaves": leave,
    "ClientGivesUp": give_up,
}


def deliverable(reorder: bool, lane: Lane) -> tuple[Request, ...]:
    """Return the requests that the coordinator may get next. An older, unheard one cannot be overtaken unless
    ``reorder``."""
    late = not all(request.awaited for request in lane.requests)
    may_come = [each for each in lane.requests if reorder or not each.awaited or not late]
    return tuple(sorted(may_come, key=repr))

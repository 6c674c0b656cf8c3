"""The clients (contract, part three): those of the other two closed systems, in one endpoint.

A process speaks one protocol from start to end. Its steps are in ``..client`` and ``..consumer.client``. This module
passes them an endpoint in their form and takes the result back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from .. import client as classic
from .. import environment, values
from ..config import Config
from ..consumer import client as consumer
from ..consumer import state
from ..consumer.config import ConsumerConfig
from ..consumer.state import AWAY, Heartbeat
from ..environment import stop_listening
from ..values import JoinReply, LeaveRequest, SyncReply
from .state import Endpoint, Reply, Request

DOWN: Final = Endpoint()
WAITING: Final = ("joining", "syncing")


def is_down(endpoint: Endpoint) -> bool:
    return endpoint.classic.state == endpoint.consumer.state == "down"


def waits(endpoint: Endpoint) -> bool:
    return endpoint.classic.state in WAITING or endpoint.consumer.waiting


def held_ids(endpoint: Endpoint) -> frozenset[str]:
    """Return the member ids that the client or an answer to it has. A timer of one of them fires early."""
    ids = {reply.member_id for reply in endpoint.replies if isinstance(reply, JoinReply)}
    return frozenset(ids | {endpoint.classic.member_id, endpoint.consumer.member_id}) - {""}


# ---- steps of the two protocols --------------------------------------------------------------------------------------


def _classic(endpoint: Endpoint) -> values.Endpoint:
    messages: Any = (endpoint.requests, endpoint.replies)  # messages of the other protocol are only kept
    return values.Endpoint(endpoint.classic, *messages)


def _with_classic(endpoint: Endpoint, after: values.Endpoint) -> Endpoint:
    return Endpoint(after.client, endpoint.consumer, after.requests, after.replies)


def send_join(config: Config, endpoint: Endpoint) -> Endpoint | None:
    after = classic.send_join(config, _classic(endpoint))
    return None if after is None else _with_classic(endpoint, after)


def get_reply(config: Config, endpoint: Endpoint, reply: Reply) -> Iterator[Endpoint]:
    """Yield the endpoints that may follow this reply."""
    if isinstance(reply, JoinReply | SyncReply):
        for after in classic.get_reply(config, _classic(endpoint), reply):
            yield _with_classic(endpoint, after)
    else:
        yield endpoint._replace(
            consumer=consumer.get_reply(endpoint.consumer, reply), replies=endpoint.replies - {reply}
        )


def get_heartbeat_reply(endpoint: Endpoint, error: str) -> Endpoint:
    return endpoint._replace(classic=classic.get_heartbeat_reply(endpoint.classic, error))


def next_heartbeat(config: ConsumerConfig, endpoint: Endpoint) -> Heartbeat | None:
    """Return the heartbeat that the client would send if there were news."""
    client = endpoint.consumer
    if client.state not in consumer.RUNNING or client.waiting:
        return None
    return consumer.next_heartbeat(config, client)


def has_nothing_to_report(client: state.Client) -> bool:
    """Return whether the client has nothing to report (N-HB-02…05)."""
    return client.state == "member" and not client.unsure and not client.unacknowledged


def send_heartbeat(endpoint: Endpoint, heartbeat: Heartbeat) -> Endpoint:
    return endpoint._replace(
        consumer=consumer.after_sending(endpoint.consumer), requests=endpoint.requests | {heartbeat}
    )


def reconcile(endpoint: Endpoint) -> Iterator[Endpoint]:
    if endpoint.consumer.reconciling:
        yield endpoint._replace(consumer=consumer.after_callbacks(endpoint.consumer))


# ---- starting, stopping, giving up -----------------------------------------------------------------------------------


def start_classic(endpoint: Endpoint) -> Endpoint:
    return endpoint._replace(classic=classic.UNJOINED)


def start_consumer(endpoint: Endpoint, member_id: str, instance: str) -> Endpoint:
    return endpoint._replace(consumer=consumer.joining_client(member_id, instance))


def give_up(endpoint: Endpoint, _: str = "") -> Endpoint | None:
    """Give up waiting (K-ERR-13, N-ERR-06)."""
    if not waits(endpoint):
        return None
    after = stop_listening(endpoint)
    if endpoint.classic.state in WAITING:
        after = after._replace(classic=endpoint.classic._replace(state="unjoined"))
    if endpoint.consumer.waiting:
        after = after._replace(consumer=consumer.after_no_answer(endpoint.consumer))
    return after


def crash(endpoint: Endpoint, _: str) -> Endpoint | None:
    return (
        stop_listening(endpoint)._replace(classic=DOWN.classic, consumer=DOWN.consumer)
        if endpoint.process.runs
        else None
    )


def leave(endpoint: Endpoint, instance: str) -> Endpoint | None:
    """Send a leave request and end, if the client has one to send (K-LEAVE-01, N-TR-07, N-HB-09)."""
    leave_request: Request
    if endpoint.consumer.state in consumer.RUNNING:
        leave_request = consumer.leaving(endpoint.consumer, AWAY if instance else -1)
    elif endpoint.classic.member_id and not instance:
        leave_request = LeaveRequest("LeaveGroup", False, endpoint.classic.member_id)
    else:
        return None
    return stop_listening(endpoint, leave_request)._replace(classic=DOWN.classic, consumer=DOWN.consumer)


STOPS: Final[dict[str, Callable[[Endpoint, str], Endpoint | None]]] = {
    "ClientCrashes": crash,
    "ClientLeaves": leave,
    "ClientGivesUp": give_up,
}


def deliverable(reorder: bool, endpoint: Endpoint) -> tuple[Request, ...]:
    """Return the requests that the coordinator may get next."""
    return environment.deliverable(endpoint.requests, reorder)

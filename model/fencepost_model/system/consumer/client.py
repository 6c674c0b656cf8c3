"""The member's side (contract, part two): pure functions of a client and its endpoint."""

from __future__ import annotations

from typing import Final

from .. import environment
from .config import ConsumerConfig
from .state import AWAY, NO_PARTITIONS, Client, Endpoint, Heartbeat, Partitions, Reply

STOPPED: Final = Client("stopped")
RUNNING: Final = ("joining", "member")


def joining_client(member_id: str, instance: str) -> Client:
    """Return a client that starts to join (N-TR-01, N-TR-15)."""
    return Client("joining", member_id, instance)


def reported_partitions(config: ConsumerConfig, client: Client) -> Partitions:
    """Return the partitions that the client reports as owned (N-HB-05); with ``reports_pending_partitions`` also those
    about to be taken."""
    return client.owned | client.assigned if config.reports_pending_partitions and client.reconciling else client.owned


def next_heartbeat(config: ConsumerConfig, client: Client) -> Heartbeat:
    """Return the next heartbeat (N-HB-02…05)."""
    full = client.state == "joining" or client.unsure
    owned: Partitions | None = None
    if client.state == "joining":
        owned = NO_PARTITIONS
    elif client.unsure or client.unacknowledged:
        owned = reported_partitions(config, client)
    return Heartbeat(True, client.member_id, client.instance, client.epoch, owned, full)


def after_sending(client: Client) -> Client:
    """Return the client after sending: an assignment is acknowledged when the request is built (N-TR-05)."""
    return client._replace(waiting=True, unsure=False, unacknowledged=False)


def after_callbacks(client: Client) -> Client:
    """Return the client after its callbacks, with the new assignment in force (N-REC-06…08, INV-CL-05)."""
    return client._replace(owned=client.assigned, reconciling=False, unacknowledged=True)


def after_no_answer(client: Client) -> Client:
    """Return the client after a lost answer: it does not know whether its request was handled (N-ERR-01, N-ERR-06,
    N-HB-04)."""
    return client._replace(waiting=False, unsure=client.state == "member")


def get_reply(client: Client, reply: Reply) -> Client:
    """Return the client after an answer (N-TR-02…06, N-ERR-01…05)."""
    match reply.error:
        case "NONE":
            assignment = reply.assignment
            news = assignment is not None and (client.state == "joining" or assignment != client.assigned)
            return client._replace(
                state="member",
                epoch=reply.epoch,
                waiting=False,
                assigned=client.assigned if assignment is None else assignment,
                reconciling=client.reconciling or news,
            )
        case "FENCED_MEMBER_EPOCH" | "UNKNOWN_MEMBER_ID":
            return joining_client(client.member_id, client.instance)
        case "FENCED_INSTANCE_ID" | "UNRELEASED_INSTANCE_ID" | "GROUP_ID_NOT_FOUND" | "UNKNOWN_SERVER_ERROR":
            return STOPPED
        case "NOT_COORDINATOR" | "COORDINATOR_NOT_AVAILABLE" | "COORDINATOR_LOAD_IN_PROGRESS":
            return after_no_answer(client)
        case other:
            raise ValueError(f"no client expects {other} here")


def stop_listening(endpoint: Endpoint, client: Client, *more: Heartbeat) -> Endpoint:
    """Stop waiting; requests in flight stay in flight."""
    return environment.stop_listening(endpoint, *more)._replace(client=client)


def leaving(client: Client, epoch: int) -> Heartbeat:
    return Heartbeat(False, client.member_id, client.instance, epoch, None, False)


def give_up(endpoint: Endpoint, _: str) -> Endpoint | None:
    return stop_listening(endpoint, after_no_answer(endpoint.client)) if endpoint.client.waiting else None


def crash(endpoint: Endpoint, _: str) -> Endpoint | None:
    return stop_listening(endpoint, Client()) if endpoint.client.state in RUNNING else None


def leave(endpoint: Endpoint, _: str) -> Endpoint | None:
    """Leave: a dynamic member permanently, a static one for a while (N-TR-07, N-HB-09)."""
    client = endpoint.client
    return (
        stop_listening(endpoint, Client(), leaving(client, AWAY if client.instance else -1))
        if client.state in RUNNING
        else None
    )


def leave_permanently(endpoint: Endpoint, _: str) -> Endpoint | None:
    """Leave permanently as a static member (N-HB-09)."""
    client = endpoint.client
    return (
        stop_listening(endpoint, Client(), leaving(client, -1)) if client.state in RUNNING and client.instance else None
    )


def change_instance(endpoint: Endpoint, new: str) -> Endpoint | None:
    """Change the instance id under the same member id (M-STATIC-01)."""
    client = endpoint.client
    if client.state not in RUNNING or new in ("", client.instance):
        return None
    return stop_listening(endpoint, joining_client(client.member_id, new))

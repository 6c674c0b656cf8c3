"""The client's steps (contract, section 4): pure functions of an endpoint.

This module contains only what the client does between messages; what the coordinator does is in the group machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from . import environment
from .assign import assignments
from .config import Config
from .values import (
    NO_PARTITIONS,
    Client,
    Endpoint,
    JoinReply,
    JoinRequest,
    LeaveRequest,
    Metadata,
    Request,
    SyncReply,
    SyncRequest,
)

STOPPED: Final = Client("stopped")
UNJOINED: Final = Client("unjoined")


def reset(client: Client, *, keep_id: bool = False) -> Client:
    """Return the client without its partitions (K-ERR-04), and if it keeps its member id, K-ERR-05."""
    return UNJOINED._replace(member_id=client.member_id if keep_id else "")


def has_its_generation(client: Client) -> bool:
    """Return whether the client would send a commit: it carries the generation of the assignment, or is not sent
    (K-OFF-02)."""
    return client.state in ("stable", "unjoined") and client.generation == client.owned_generation


def join_request(config: Config, client: Client) -> JoinRequest:
    """Return the JoinGroup that the client sends or has sent."""
    generation = client.generation if config.metadata_has_generation else -1
    return JoinRequest("JoinGroup", True, client.member_id, Metadata(client.owned, generation))


def after_join_prepare(config: Config, client: Client) -> Client:
    """Return the client after it prepared a join: an eager one, or one without a generation, gives up its partitions
    (K-CB-02…04)."""
    if not config.cooperative or client.generation == -1:
        return client._replace(owned=NO_PARTITIONS, owned_generation=-1)
    return client


def send_join(config: Config, endpoint: Endpoint) -> Endpoint | None:
    """Prepare a join and send JoinGroup."""
    if endpoint.client.state != "unjoined":
        return None
    client = after_join_prepare(config, endpoint.client)
    sent = join_request(config, client)
    return endpoint._replace(client=client._replace(state="joining"), requests=endpoint.requests | {sent})


def get_reply(config: Config, endpoint: Endpoint, reply: JoinReply | SyncReply) -> Iterator[Endpoint]:
    """Yield the endpoints that may follow this reply; several only if the leader may choose its assignment."""
    endpoint = endpoint._replace(replies=endpoint.replies - {reply})
    if isinstance(reply, JoinReply):
        yield from _join_reply(config, endpoint, reply)
    else:
        yield endpoint._replace(client=_sync_reply(config, endpoint.client, reply))


def _join_reply(config: Config, endpoint: Endpoint, reply: JoinReply) -> Iterator[Endpoint]:
    client = endpoint.client
    match reply.error:
        case "NONE":
            client = client._replace(state="syncing", member_id=reply.member_id, generation=reply.generation)
            # The leader assigns, unless the response lets it skip the assignment (K-ERR-01, K-JOIN-11).
            leads = reply.member_id == reply.leader and not reply.skip_assignment
            for assignment in (
                assignments(config, reply.members) if leads else [frozenset[tuple[str, frozenset[str]]]()]
            ):
                request = SyncRequest("SyncGroup", True, reply.member_id, reply.generation, assignment)
                yield endpoint._replace(client=client, requests=endpoint.requests | {request})
        case "MEMBER_ID_REQUIRED":  # keep the given id, and join with it at once (K-ERR-07)
            yield endpoint._replace(client=client._replace(state="unjoined", member_id=reply.member_id, generation=-1))
        case "UNKNOWN_MEMBER_ID":  # join as a new member (K-ERR-04)
            yield endpoint._replace(client=reset(client))
        case (
            "NOT_COORDINATOR" | "COORDINATOR_NOT_AVAILABLE" | "REBALANCE_IN_PROGRESS"
        ):  # join again (K-ERR-03, K-ERR-06)
            yield endpoint._replace(client=client._replace(state="unjoined"))
        case (
            "FENCED_INSTANCE_ID" | "INCONSISTENT_GROUP_PROTOCOL" | "GROUP_MAX_SIZE_REACHED"
        ):  # the client ends (K-ERR-08…10)
            yield endpoint._replace(client=STOPPED)
        case other:
            raise ValueError(f"no client expects {other} to JoinGroup here")


def _sync_reply(config: Config, client: Client, reply: SyncReply) -> Client:
    match reply.error:
        case "NONE":
            lost = client.owned - reply.assignment
            return client._replace(
                # A second rebalance gives the revoked partitions to others (K-CB-06, C-REJ-06).
                state="unjoined" if config.cooperative and lost else "stable",
                owned=reply.assignment,
                owned_generation=client.generation if reply.assignment else -1,
            )
        case "REBALANCE_IN_PROGRESS" | "NOT_COORDINATOR" | "COORDINATOR_NOT_AVAILABLE":
            return client._replace(state="unjoined")
        case other:
            return _fenced(client, other, "SyncGroup")


def _fenced(client: Client, error: str, api: str) -> Client:
    """Return the client after an error that ends its membership or its process (K-ERR-04, K-ERR-05, K-ERR-08)."""
    match error:
        case "UNKNOWN_MEMBER_ID":
            return reset(client)
        case "ILLEGAL_GENERATION":
            return reset(client, keep_id=True)
        case "FENCED_INSTANCE_ID":
            return STOPPED
        case other:
            raise ValueError(f"no client expects {other} to {api} here")


def get_heartbeat_reply(client: Client, error: str) -> Client:
    """Return a stable client after the answer to its heartbeat (K-HB)."""
    match error:
        case "NONE":
            return client
        case "REBALANCE_IN_PROGRESS":
            return client._replace(state="unjoined")
        case other:
            return _fenced(client, other, "Heartbeat")


def give_up(endpoint: Endpoint) -> Endpoint | None:
    """Give up a request without an answer (K-ERR-13)."""
    if endpoint.client.state not in ("joining", "syncing"):
        return None
    return environment.stop_listening(endpoint)._replace(client=endpoint.client._replace(state="unjoined"))


def crash(endpoint: Endpoint) -> Endpoint | None:
    if endpoint.client.state in ("down", "stopped"):
        return None
    return environment.stop_listening(endpoint)._replace(client=Client())


def leave(endpoint: Endpoint) -> Endpoint | None:
    """Close: send LeaveGroup, whose answer is not awaited (K-LEAVE-01)."""
    after = crash(endpoint)
    if after is None or not endpoint.client.member_id:
        return None
    return after._replace(requests=after.requests | {LeaveRequest("LeaveGroup", False, endpoint.client.member_id)})


def deliverable(config: Config, endpoint: Endpoint) -> tuple[Request, ...]:
    """Return the requests that the coordinator may get next."""
    return environment.deliverable(endpoint.requests, config.reorder)


def deliverable_syncs(config: Config, endpoint: Endpoint) -> tuple[SyncRequest, ...]:
    """Return the SyncGroups among them, whose record may be refused."""
    return tuple(request for request in deliverable(config, endpoint) if isinstance(request, SyncRequest))


def held_ids(endpoint: Endpoint) -> frozenset[str]:
    """Return the member ids that the client or a reply to it has. A session under one of them is not abandoned."""
    ids = {reply.member_id for reply in endpoint.replies if isinstance(reply, JoinReply)}
    return frozenset(ids | {endpoint.client.member_id}) - {""}

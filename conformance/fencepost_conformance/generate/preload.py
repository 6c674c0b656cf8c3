"""The contents of the log when a classic trace's first coordinator loads it."""

from __future__ import annotations

from random import Random

from fencepost.protocol.records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue, Record

from .clients import Client, Phase
from .plan import Plan, offered


def preloaded(rng: Random, plan: Plan, clients: list[Client]) -> list[Record]:
    """Return groups of an earlier coordinator; their members are clients that continue as if nothing had happened."""
    records = []
    for group_id in plan.groups:
        if rng.random() < 0.3:
            continue
        inside = [c for c in clients if c.plan.group_id == group_id and rng.random() < 0.8]
        generation = rng.choice((1, 7, 1_000))
        used: set[str | None] = set()
        members = []
        for n, client in enumerate(inside):
            if client.plan.instance_id in used:
                continue
            if client.plan.instance_id is not None:
                used.add(client.plan.instance_id)
            client.member_id, client.generation, client.phase = (
                f"{client.plan.client_id}-old-{n}",
                generation,
                Phase.STABLE,
            )
            offers = offered(client.plan, 0)
            client.protocol_name = inside[0].plan.protocols[0]
            metadata = next((p.metadata for p in offers if p.name == client.protocol_name), offers[0].metadata)
            members.append(
                GroupMetadataMember(
                    client.member_id,
                    group_instance_id=client.plan.instance_id,
                    client_id=client.plan.client_id,
                    client_host=client.plan.client_host,
                    rebalance_timeout=rng.choice((-1, client.plan.rebalance_timeout_ms)),
                    session_timeout=client.plan.session_timeout_ms,
                    subscription=metadata,
                    assignment=b"old %d" % n,
                )
            )
        leader = rng.choice(members).member_id if members else None
        for client in inside:
            client.leads = client.member_id == leader
            client.members = tuple(member.member_id for member in members)
        records.append(
            Record(
                GroupMetadataKey(group_id),
                GroupMetadataValue(
                    inside[0].plan.protocol_type if inside else rng.choice(("consumer", "")),
                    generation=generation,
                    protocol=inside[0].plan.protocols[0] if inside else None,
                    leader=leader,
                    current_state_timestamp=rng.choice((-1, 0, 1)),
                    members=tuple(members),
                ),
            )
        )
    return records

"""Questions to a broker before it is recorded or played on: the brokers of its cluster, and its coordinator's
settings."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from fencepost.protocol.kafka_names import FIELDS, value_of
from fencepost.wire.frames import MalformedFrame, NoAnswer
from fencepost.work.link import Unsupported

from ...common.addresses import Address
from ..lines import Setting
from ..wire.access import OPEN, Access
from ..wire.questions import Questions, questions

_BROKER_RESOURCE = 4


@dataclass(frozen=True, slots=True)
class Upstream:
    """``nodes``: the brokers of the cluster, by id, with the addresses that they give to clients. ``node``: the id of
    this one; None if none of these addresses shows it. ``controller``: the broker that changes topics, if known.
    ``settings``: the fields of ``Settings`` that the broker reported; empty if it does not report them. ``versions``:
    the lowest and highest version of each API, by its number."""

    nodes: dict[int, Address]
    node: int | None
    controller: Address
    settings: dict[str, Setting]
    versions: dict[int, tuple[int, int]]


async def inspect(address: Address, access: Access = OPEN) -> Upstream:
    """Ask the broker. Raises ``OSError``, ``MalformedFrame`` (not a Kafka broker, or no answer)."""
    async with questions(address.host, address.port, access) as broker:
        try:
            metadata = await broker.ask("metadata", 0, 13, topics=(), allow_auto_topic_creation=False)
        except Unsupported as unknown:
            raise MalformedFrame(str(unknown)) from None
        nodes = {int(row.node_id): Address(str(row.host), int(row.port)) for row in metadata.brokers}
        here = _which(nodes, address)
        # the given address leads to a single broker, whatever address it advertises
        controller = nodes.get(getattr(metadata, "controller_id", -1), address) if len(nodes) > 1 else address
        asked = next(iter(nodes), -1) if here is None else here
        return Upstream(nodes, here, controller, await _settings(broker, asked), dict(broker.versions))


def _which(nodes: dict[int, Address], address: Address) -> int | None:
    """The only broker; else the one with this address, or the only one with this port."""
    for fits in (list(nodes), [node for node, at in nodes.items() if at == address]):
        if len(fits) == 1:
            return fits[0]
    same_port = [node for node, at in nodes.items() if at.port == address.port]
    return same_port[0] if len(same_port) == 1 else None


async def _settings(broker: Questions, node: int) -> dict[str, Setting]:
    resource = {"resource_type": _BROKER_RESOURCE, "resource_name": str(node), "configuration_keys": tuple(FIELDS)}
    try:
        answer = await broker.ask("describe_configs", 0, 4, resources=(resource,))
    except NoAnswer:
        raise
    except (MalformedFrame, Unsupported):
        return {}
    settings: dict[str, Setting] = {}
    for result in answer.results:
        for row in result.configs if result.error_code.value == 0 else ():
            if row.name in FIELDS and row.value:
                with suppress(ValueError):  # not in Kafka's form: treated as missing
                    settings[FIELDS[row.name]] = value_of(row.name, row.value)
    return settings

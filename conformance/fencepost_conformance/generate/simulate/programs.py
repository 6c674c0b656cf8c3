"""The programs of a simulation: the services that their members use, and how the programs come to rest."""

from __future__ import annotations

from typing import Final

from .host import AnyHost
from .network import Network
from .plan import NetworkPlan

QUIET: Final = NetworkPlan(0.0, 0.0, 1, 0.0, 0.0, 0.0)


class Programs:
    """``hosts``: programs that run or may come back; ``network``: carries their messages."""

    hosts: list[AnyHost]
    network: Network

    def rival(self, host: AnyHost) -> bool:
        """Whether another process runs with the host's instance id."""
        instance = host.plan.settings.group_instance_id
        return instance is not None and any(
            each.running and each is not host and each.plan.settings.group_instance_id == instance
            for each in self.hosts
        )

    def _start(self, host: AnyHost) -> None:
        if host in self.hosts:  # it may already have restarted with the other protocol
            host.start()

    def _quieten(self) -> None:
        """Stop all faults of messages, listeners and processing times."""
        self.network.plan = QUIET
        for host in self.hosts:
            host.listener_fails = False
            host.listener_delay_ms = host.plan.listener_ms
            host.processing_ms = 0

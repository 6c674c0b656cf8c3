"""The programs of a simulation: what their members ask of it, and how they come to rest."""

from __future__ import annotations

from typing import Final

from .host import AnyHost
from .network import Network
from .plan import NetworkPlan

QUIET: Final = NetworkPlan(0.0, 0.0, 1, 0.0, 0.0, 0.0)


class Programs:
    """``hosts``: those that run, or may come back; ``network``: what their messages go by."""

    hosts: list[AnyHost]
    network: Network

    def rival(self, host: AnyHost) -> bool:
        """Does another process run under the host's instance id?"""
        instance = host.plan.settings.group_instance_id
        return instance is not None and any(
            each.running and each is not host and each.plan.settings.group_instance_id == instance
            for each in self.hosts
        )

    def _start(self, host: AnyHost) -> None:
        if host in self.hosts:  # it may have come with the other protocol already
            host.start()

    def _quieten(self) -> None:
        """Messages go at once, listeners do as they were planned to, and nothing takes long."""
        self.network.plan = QUIET
        for host in self.hosts:
            host.listener_fails = False
            host.listener_delay_ms = host.plan.listener_ms
            host.processing_ms = 0

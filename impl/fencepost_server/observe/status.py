"""The pages of the status port."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Final

from fencepost_server.look.made import made_now
from fencepost_server.observe import state
from fencepost_server.observe.http import Page, json_page
from fencepost_server.observe.metrics import CONTENT_TYPE, Metrics, by_label, gauges
from fencepost_server.observe.page import status_page
from fencepost_server.observe.rebalances import Rebalances
from fencepost_server.server import Server

_REBALANCES_SHOWN: Final = 50


def pages(server: Server, metrics: Metrics, rebalances: Rebalances, profile: str) -> dict[str, Page]:
    """Return the pages by path: that for people, numbers, the state, and the health."""
    return {
        "/": _people(server, profile),
        "/metrics": _metrics(server, metrics, rebalances),
        "/state": json_page(_state(server, metrics, rebalances, profile)),
        "/health": json_page(_health(server)),
    }


def _people(server: Server, profile: str) -> Page:
    async def page() -> tuple[str, str]:
        # in a thread, since it asks git for the commit of a checkout
        made = await asyncio.to_thread(made_now, target=server.node.address, profile=profile)
        return "text/html; charset=utf-8", status_page(made)

    return page


def _metrics(server: Server, metrics: Metrics, rebalances: Rebalances) -> Page:
    async def page() -> tuple[str, str]:
        node, listener = server.node, server.listener
        lines = [
            *metrics.lines(),
            *gauges(
                {
                    "fencepost_connections": ("Open connections.", len(listener.connections)),
                    "fencepost_connections_accepted_total": ("Connections since the start.", listener.accepted),
                    "fencepost_connections_refused_total": ("Connections rejected above the limit.", listener.refused),
                    "fencepost_connections_dropped_total": ("Connections closed by a time limit.", listener.dropped),
                    "fencepost_buffered_bytes": ("Bytes of unanswered requests.", listener.memory.used),
                    "fencepost_data_bytes": ("Bytes of batches.", node.data_bytes),
                    "fencepost_topics": ("Topics.", len(node.topics.by_name)),
                    "fencepost_transactional_ids": ("Transactional ids.", len(node.transactions.known)),
                    "fencepost_rebalances_total": ("Rebalances since the start.", rebalances.count),
                }
            ),
            *by_label("fencepost_groups", "Groups, by state.", "state", await state.states(node)),
            *rebalances.groups.lines(*await state.numbers(node), rebalances.under_way(time.time_ns() // 1_000_000)),
        ]
        return CONTENT_TYPE, "\n".join(lines) + "\n"

    return page


def _state(server: Server, metrics: Metrics, rebalances: Rebalances, profile: str) -> Callable[[], Awaitable[object]]:
    async def values() -> dict[str, object]:
        node = server.node
        return {
            "listen": str(node.address),
            "profile": profile,
            "connections": len(server.listener.connections),
            "topics": len(node.topics.by_name),
            "requests": metrics.total,
            "groups_total": int(sum((await state.states(node)).values())),
            "groups": await state.groups(node),
            "rebalances_total": rebalances.count,
            "rebalances": [each.row() for each in islice(rebalances.rows(), _REBALANCES_SHOWN)],
        }

    return values


def _health(server: Server) -> Callable[[], Awaitable[object]]:
    async def values() -> dict[str, object]:
        return {"serving": True, "leads": server.node.leads, "listen": str(server.node.address)}

    return values

"""All planted faults of the areas, by name."""

from __future__ import annotations

from . import (
    drivers,
    rebalances,
    server_configuration,
    server_connections,
    server_data,
    server_security,
    server_transactions,
    stores,
    workers,
)
from .fault import Fault

FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        *server_data.FAULTS,
        *server_security.FAULTS,
        *server_transactions.FAULTS,
        *server_configuration.FAULTS,
        *server_connections.FAULTS,
        *rebalances.FAULTS,
        *stores.FAULTS,
        *drivers.FAULTS,
        *workers.FAULTS,
    )
}

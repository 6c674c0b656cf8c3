"""The values of ``kernel.rules`` in Kafka's releases, by switch."""

from __future__ import annotations

from fencepost.quirks import Value, register_values

from ..kernel.rules import Rules

register_values(
    Rules,
    # Classic groups
    Value(
        "fault_bad_subscription_is_thrown",
        "bad_lengths_are_thrown",
        True,
        "Impossible lengths in a subscription raise an exception that is not caught (G-DATA-10, C-ST-27, V-124).",
    ),
)

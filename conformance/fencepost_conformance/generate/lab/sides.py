"""Side by side: what the user did, played once under each protocol."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from .lab import Lab
from .start import ActionError, Protocol


@dataclass(frozen=True, slots=True)
class Side:
    """One protocol. ``skipped``: the actions that were not possible there, with the reason."""

    protocol: Protocol
    lab: Lab
    skipped: tuple[str, ...]


def sides(lab: Lab) -> Iterator[Side]:
    """Yield the session under each protocol, up to the same time. Each action happens when it happened in ``lab``, and
    every client that starts uses the protocol. An action on one message is taken on the message that arrives next."""
    for protocol in Protocol:
        yield _side(lab, protocol)


def _side(lab: Lab, protocol: Protocol) -> Side:
    played, skipped = Lab(lab.start), []
    for at_ms, act in lab.acts:
        played.run_until(at_ms)
        chosen = replace(act, protocol=protocol, message=None) if act.do == "start" else replace(act, message=None)
        try:
            played.apply(chosen)
        except ActionError as reason:
            skipped.append(f"{act.do} at {at_ms} ms: {reason}")
    played.run_until(lab.now)
    return Side(protocol, played, tuple(skipped))

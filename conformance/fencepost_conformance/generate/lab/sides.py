"""Side by side: what the user did, played once under each protocol, or under another release."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from .actions import Action
from .lab import Lab
from .start import ActionError, Protocol, Start


@dataclass(frozen=True, slots=True)
class Side:
    """The session played once more. ``skipped``: the actions that were not possible there, with the reason."""

    lab: Lab
    skipped: tuple[str, ...]


def sides(lab: Lab) -> Iterator[tuple[Protocol, Side]]:
    """Yield the session under each protocol, up to the same time. Each action happens when it happened in ``lab``, and
    every client that starts uses the protocol. An action on one message is taken on the message that arrives next."""
    for protocol in Protocol:
        yield protocol, _side(lab, lab.start, lambda act, to=protocol: _under(act, to))  # type: ignore[misc]


def under_other_release(lab: Lab) -> Side:
    """Return the session under the release ``Start.other``, up to the same time. Each action happens when it happened
    in ``lab``; an action on one message is taken on the message with the same number."""
    return _side(lab, replace(lab.start, profile=lab.start.other), lambda act: act)


def _under(act: Action, protocol: Protocol) -> Action:
    return replace(act, protocol=protocol if act.do == "start" else act.protocol, message=None)


def _side(lab: Lab, start: Start, changed: Callable[[Action], Action]) -> Side:
    played, skipped = Lab(start), []
    for moment, act in lab.acts:
        played.run_to(moment)
        try:
            played.apply(changed(act))
        except ActionError as reason:
            skipped.append(f"{act.do} at {moment[0]} ms: {reason}")
    played.run_to(lab.moment)
    return Side(played, tuple(skipped))

"""The error that reports a broken property."""

from __future__ import annotations

from fencepost_model.promises import broken_promises


class Broken(AssertionError):
    """A property of section 12 does not hold. ``rule``: its id."""

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f"{rule}: {text}")
        self.rule = rule
        self.text = text


def demand(holds: bool, rule: str, text: str) -> None:
    """Raise ``Broken`` unless the property holds."""
    if not holds:
        raise Broken(rule, text)


def demand_promises(seen: object, group_id: str) -> None:
    """Raise ``Broken`` if a view of the group breaks a promise of the catalogue."""
    for promise, how in broken_promises(seen):
        raise Broken(promise, f"{group_id}: {how}")

"""Type checks of a host's arguments, so that a mistake is reported where it is made and not somewhere inside."""

from __future__ import annotations

from typing import Any

from .errors import WrongType

_SHOWN = 60


def expect(kind: type, value: object, name: str, otherwise: str) -> None:
    """Raise ``WrongType`` unless ``value`` is a ``kind``. ``name``: its name; ``otherwise``: what to pass instead."""
    if not isinstance(value, kind):
        raise WrongType(f"{name} must be a {kind.__name__}, not {_describe(value)}; {otherwise}")


def expect_methods(interface: Any, value: object, name: str, otherwise: str) -> None:
    """Raise ``WrongType`` unless ``value`` has every method of the interface (a ``Protocol``); names as in
    ``expect``."""
    wanted = [each for each, method in vars(interface).items() if not each.startswith("_") and callable(method)]
    missing = [each for each in wanted if not callable(getattr(value, each, None))]
    if isinstance(value, type):
        raise WrongType(f"{name} must be an object, not the class {value.__name__} itself; {otherwise}")
    if missing:
        methods = "method" if len(missing) == 1 else "methods"
        raise WrongType(f"{name} has no {methods} {', '.join(missing)}: {_describe(value)}; {otherwise}")


def _describe(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__} itself"
    shown = repr(value)
    return f"{type(value).__name__} ({shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'})"

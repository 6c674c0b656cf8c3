"""A member next to its model: the part that the pairs of both protocols share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

from fencepost.protocol.errors import ErrorCode

#: A deadline that no exploration reaches.
NEVER = 10**12

#: Visible effects: requests sent, listener calls made, errors thrown.
Effects: TypeAlias = list[tuple[str, object]]


class Disagreement(AssertionError):
    """The member and its model behaved differently. ``rules``: the rules that decided in the model."""

    def __init__(self, text: str, rules: Sequence[str]) -> None:
        super().__init__(f"{text} ({', '.join(rules)})")
        self.rules = tuple(dict.fromkeys(rules))


@dataclass(frozen=True, slots=True)
class Input:
    """An input. ``what`` names it. ``sent`` is the position, in sending order, of the request that it answers."""

    what: str
    value: object = None
    sent: int = -1

    def __str__(self) -> str:
        value = getattr(self.value, "error_code", self.value)
        shown = value.name if isinstance(value, ErrorCode) else "" if value is None else str(value)
        return f"{self.what} {shown}".strip() + (f" to request {self.sent}" if self.sent >= 0 else "")


class Beside(ABC):
    """An immutable pair. ``after`` returns the pair after an input, or raises ``Disagreement``."""

    @abstractmethod
    def inputs(self) -> list[Input]:
        """Return every input that is possible now, from a small alphabet."""

    @abstractmethod
    def key(self) -> object:
        """Return a key that is equal for pairs that behave alike."""

    @abstractmethod
    def _take(self, what: Input) -> None: ...

    def after(self, what: Input) -> Self:
        """Give one input to both sides."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._take(what)
        return other


def same_effects(member: Effects, model: Effects, rules: Sequence[str]) -> None:
    """Raise ``Disagreement`` unless both have the same effects."""
    if member != model:
        raise Disagreement(f"the member did {_text(member)}, the model {_text(model)}", rules)


def same_state(member: Mapping[str, object], model: Mapping[str, object], rules: Sequence[str]) -> None:
    """Raise ``Disagreement`` unless both states, which have the same keys, are equal."""
    different = {key: (member[key], model[key]) for key in member if member[key] != model[key]}
    if different:
        raise Disagreement(f"member and model differ: {different}", rules)


def _text(effects: Effects) -> str:
    return ", ".join(f"{what} {value}" for what, value in effects) or "nothing"

"""A member of either protocol while it handles one input."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ..table import Table, step
from .outputs import MemberOutput


class HasState(Protocol):
    """A named tuple that holds the name of the machine's state."""

    @property
    def state(self) -> str: ...


S = TypeVar("S", bound=HasState)


class AnyDraft(Generic[S]):
    """A member's state as attribute ``now``, replaced field by field; its actions go to ``outputs``."""

    __slots__ = ("now", "outputs", "rules")
    table: ClassVar[Table]

    def __init__(self, state: S) -> None:
        self.now = state
        self.outputs: list[MemberOutput] = []
        self.rules: list[str] = []

    def set(self, **fields: Any) -> None:
        now: Any = self.now  # a named tuple; no protocol can say so
        self.now = now._replace(**fields)

    def rule(self, *ids: str) -> None:
        """Note that these rules decided."""
        self.rules.extend(ids)

    def transition(self, trigger: str) -> None:
        """Fire a trigger. Raises ``IllegalTransition`` if the machine does not have it."""
        self.set(state=step(self.table, self.now.state, trigger))

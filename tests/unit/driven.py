"""Commands and timers of a member or a reader that a test drives."""

from __future__ import annotations

from typing import Any, TypeVar

Kind = TypeVar("Kind")


class Driven:
    """``commands``: those of the last step; ``timers``: the due times of set timers, by the clock ``now``."""

    commands: tuple[Any, ...]
    timers: dict[Any, int]
    now: int

    def only(self, kind: type[Kind]) -> Kind:
        found = [command for command in self.commands if isinstance(command, kind)]
        assert len(found) == 1, f"{kind.__name__} in {self.commands}"
        return found[0]

    def none(self, *kinds: type) -> None:
        assert not [command for command in self.commands if isinstance(command, kinds)], self.commands

    def set_timers(self, setting: type, cancelling: type) -> None:
        """Add the timers that the step has set, and remove those that it has cancelled."""
        for command in self.commands:
            if isinstance(command, setting):
                self.timers[command.timer] = self.now + command.delay_ms  # type: ignore[attr-defined]
            elif isinstance(command, cancelling):
                self.timers.pop(command.timer, None)  # type: ignore[attr-defined]

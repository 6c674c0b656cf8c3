"""The sessions that the page looks at. The latest are kept, and a list that grows is played only where it is new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...generate.lab import Action, Lab, Start

_KEPT: Final = 4


class Sessions:
    """The latest sessions, the last one used at the end."""

    def __init__(self) -> None:
        self._labs: list[Lab] = []

    def lab(self, start: Start, actions: Sequence[Action]) -> Lab:
        """Return the session after these actions. Raises ``ActionError`` if one of them cannot be played."""
        for lab in sorted(self._labs, key=lambda each: -len(each.actions)):
            if lab.start == start:
                self._labs.remove(lab)  # if an action cannot be played, it is of no use
                if lab.extend(actions):
                    self._labs.append(lab)
                    return lab
                self._labs.append(lab)
        lab = Lab(start).play(actions)
        self._labs = [*self._labs, lab][-_KEPT:]
        return lab

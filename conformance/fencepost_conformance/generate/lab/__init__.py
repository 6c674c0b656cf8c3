"""The laboratory: one group in virtual time, with real members and the real coordinator, moved by a list of actions.

A session is a ``Start`` and a list of actions. ``Lab`` plays the list; the state after N actions is a function of the
start and the first N actions. To go back is to play fewer actions; to branch is to play others.
"""

from .actions import Action, parse_actions
from .lab import Lab
from .start import ActionError, Protocol, Start, parse_start

__all__ = ["Action", "ActionError", "Lab", "Protocol", "Start", "parse_actions", "parse_start"]

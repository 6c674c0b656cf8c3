"""The error of a command that cannot run."""

from __future__ import annotations


class CannotRun(Exception):
    """The command cannot do its work; the message says what to do. Exit status 2."""

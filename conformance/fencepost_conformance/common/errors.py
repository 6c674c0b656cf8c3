"""The errors of a command that cannot run."""

from __future__ import annotations


class CannotRun(Exception):
    """The command cannot do its work; the message says what to do. Exit status 2."""


class NotOffered(CannotRun):
    """The broker lacks an API that the clients of a protocol need; another protocol may work."""


class BrokerFault(Exception):
    """The broker did not start, or died; the message ends with the end of its log."""

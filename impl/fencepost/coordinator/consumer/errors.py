"""How a request of a consumer group is turned down."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode


class Refused(Exception):
    """The request is answered with this error and writes nothing."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error

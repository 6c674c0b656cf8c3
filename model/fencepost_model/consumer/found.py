"""The member that a request to a consumer group is about."""

from __future__ import annotations

from typing import NamedTuple

from .state import Member


class Found(NamedTuple):
    """The member as it was before the request, and the one that it replaces."""

    member: Member
    replaced: Member | None = None

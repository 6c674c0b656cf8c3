"""Whom a request to a consumer group is about."""

from __future__ import annotations

from typing import NamedTuple

from .state import Member


class Found(NamedTuple):
    """The member that a request is about, before the request, and the one it replaces."""

    member: Member
    replaced: Member | None = None

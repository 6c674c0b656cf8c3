"""The promises by their ids (rule book, 12)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED

from .answers import ANSWERS
from .classic_groups import CLASSIC_GROUPS
from .consumer_groups import CONSUMER_GROUPS
from .promise import Promise

PROMISES: Final[dict[str, Promise[Any]]] = {
    promise.id: promise for promise in (*CLASSIC_GROUPS, *CONSUMER_GROUPS, *ANSWERS)
}


def broken_promises(seen: object, profile: Profile = INTENDED) -> Iterator[tuple[str, str]]:
    """Yield the id of each promise about such a view that it breaks, and how. ``profile``: that of the coordinator."""
    for promise in PROMISES.values():
        if promise.about is not type(seen):
            continue
        how = promise.under(profile)
        if how is not None and (text := how(seen)):
            yield promise.id, text

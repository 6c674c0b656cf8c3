"""The rules of a coordinator's model under a profile, from the tables of the families; see ``differences``."""

from __future__ import annotations

from functools import lru_cache

from fencepost.protocol.profile import Profile

from .classic import switches as classic
from .consumer import switches as consumer
from .differences import varied
from .mixed import switches as mixed
from .offsets import switches as offsets
from .variant import Variant


@lru_cache
def variant_of(profile: Profile) -> Variant:
    """Return the rules of the coordinator under this profile."""
    return Variant(
        varied(classic.INTENDED, classic.DIFFERENCES, profile),
        varied(consumer.INTENDED, consumer.DIFFERENCES, profile),
        varied(mixed.INTENDED, mixed.DIFFERENCES, profile),
        varied(offsets.INTENDED, offsets.DIFFERENCES, profile),
    )

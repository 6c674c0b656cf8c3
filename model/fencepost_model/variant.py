"""The rules of a coordinator's model under a profile; see ``differences``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from fencepost.protocol.profile import Profile

from .classic import variant as classic
from .consumer import variant as consumer
from .differences import varied
from .mixed import variant as mixed
from .offsets import variant as offsets


@dataclass(frozen=True, slots=True)
class Variant:
    """What a profile makes of each family of rules."""

    classic: classic.ClassicVariant
    consumer: consumer.ConsumerVariant
    mixed: mixed.MixedVariant
    offsets: offsets.OffsetsVariant


@lru_cache
def variant_of(profile: Profile) -> Variant:
    """Return the rules of the coordinator under this profile."""
    return Variant(
        varied(classic.ClassicVariant(), classic.DIFFERENCES, profile),
        varied(consumer.ConsumerVariant(), consumer.DIFFERENCES, profile),
        varied(mixed.MixedVariant(), mixed.DIFFERENCES, profile),
        varied(offsets.OffsetsVariant(), offsets.DIFFERENCES, profile),
    )

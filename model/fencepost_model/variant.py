"""The rules of a coordinator's model under a profile; see ``differences``."""

from __future__ import annotations

from dataclasses import dataclass

from .classic.variant import ClassicVariant
from .consumer.variant import ConsumerVariant
from .mixed.variant import MixedVariant
from .offsets.variant import OffsetsVariant


@dataclass(frozen=True, slots=True)
class Variant:
    """The rules of each family, under one profile."""

    classic: ClassicVariant
    consumer: ConsumerVariant
    mixed: MixedVariant
    offsets: OffsetsVariant

"""The profiles that judge recordings: those of the core, and one of an older coordinator that the core lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import PROFILES
from fencepost_model.classic.scala import KAFKA_3_9

JUDGED: Final[Mapping[str, Profile]] = {KAFKA_3_9.name: KAFKA_3_9, **PROFILES}

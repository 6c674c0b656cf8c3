"""The older group coordinator, written in Scala, Kafka's default up to 3.9 (D-01 to D-27).

Only the model of classic groups covers it, in order to check brokers. The core does not, so it is not a switch of
``Profile``. Where a client can see a difference between the two coordinators, the model asks whether its profile is a
``ScalaProfile``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import KAFKA_4_0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalaProfile(Profile):
    """The switches of a profile, for the Scala coordinator."""


_OF_4_0: Final = {each.name: getattr(KAFKA_4_0, each.name) for each in fields(Profile)}

KAFKA_3_9: Final[Profile] = replace(
    ScalaProfile(**_OF_4_0),
    name="kafka-3.9",
    fault_refusal_leaves_join_phase=False,  # D-18
    fault_parked_fail_early=False,  # D-21
)

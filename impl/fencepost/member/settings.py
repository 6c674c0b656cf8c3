"""Configuration of a member (1.5, client part). Times in milliseconds."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass, field

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import BadSettings
from fencepost.quirks import Quirks, quirks_of

from .assignors.base import Assignor, RebalanceProtocol, common_protocol
from .assignors.range import RangeAssignor
from .assignors.sticky import CooperativeStickyAssignor
from .rules import MemberRules, member_rules_of

_INSTANCE_ID = re.compile(r"[a-zA-Z0-9._-]{1,249}\Z")


#: The longest time that a Kafka client's configuration accepts, in ms.
_LONGEST_MS = (1 << 31) - 1


def _require_time(name: str, value: object) -> None:
    """Raise ``BadSettings`` unless the time is a 32-bit integer >= 0 (>= 1 for the poll interval)."""
    least = int(name == "max_poll_interval_ms")
    if type(value) is not int or not least <= value <= _LONGEST_MS:
        raise BadSettings(f"{name} must be an integer from {least} to {_LONGEST_MS} (got {value!r})")


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Settings of members of both protocols. Raises ``BadSettings`` for values that Kafka's consumer rejects."""

    group_id: str
    _: KW_ONLY
    group_instance_id: str | None = None  # G-CFG-48
    max_poll_interval_ms: int = 300_000  # G-CFG-43; also the rebalance timeout (G-CFG-53)
    request_timeout_ms: int = 30_000  # G-CFG-50
    retry_backoff_ms: int = 100  # G-CFG-49
    retry_backoff_max_ms: int = 1_000
    auto_commit: bool = False  # G-CFG-45
    rack: str | None = None
    profile: Profile = INTENDED
    quirks: Quirks | None = field(init=False, repr=False, compare=False)  #: of the profile
    rules: MemberRules = field(init=False, repr=False, compare=False)  #: of the profile

    def __post_init__(self) -> None:
        object.__setattr__(self, "quirks", quirks_of(self.profile))
        object.__setattr__(self, "rules", member_rules_of(self.profile))
        for name in self.__dataclass_fields__:
            if name.endswith("_ms"):
                _require_time(name, getattr(self, name))
        instance = self.group_instance_id
        if instance is not None and (instance in (".", "..") or not _INSTANCE_ID.match(instance)):
            raise BadSettings(
                "an instance id must be 1 to 249 letters, digits, '.', '_' or '-', other than '.' and '..' "
                f"(got {instance!r})"
            )  # G-WIRE-26


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings(ClientSettings):
    """Settings of a classic member."""

    session_timeout_ms: int = 45_000  # G-CFG-41
    heartbeat_interval_ms: int = 3_000  # G-CFG-42
    assignors: tuple[Assignor, ...] = field(
        default_factory=lambda: (RangeAssignor(), CooperativeStickyAssignor())  # G-CFG-47: together eager
    )

    def __post_init__(self) -> None:
        ClientSettings.__post_init__(self)
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise BadSettings(
                "heartbeat_interval_ms must be less than session_timeout_ms "
                f"(got {self.heartbeat_interval_ms} and {self.session_timeout_ms})"
            )  # G-CFG-42
        names = [assignor.name for assignor in self.assignors]
        if len(set(names)) != len(names):
            raise BadSettings(f"assignors must have different names (got {', '.join(names)})")
        common_protocol(self.assignors)  # A-PROTO-02: raises if they have no protocol in common

    @property
    def protocol(self) -> RebalanceProtocol:
        """Eager or cooperative (A-PROTO-02)."""
        return common_protocol(self.assignors)

    @property
    def join_timeout_ms(self) -> int:
        """How long JoinGroup waits for its response, in ms (K-HB-07)."""
        return max(self.request_timeout_ms, self.max_poll_interval_ms + 5_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings(ClientSettings):
    """Settings of a KIP-848 member. The coordinator sets session timeout and heartbeat interval (G-CFG-10, G-CFG-11).

    ``listener``: the application has a rebalance listener. ``version``: the highest version of ConsumerGroupHeartbeat
    that the coordinator supports; version 0 cannot carry a regular expression."""

    server_assignor: str | None = None
    listener: bool = True
    version: int = 1

    def __post_init__(self) -> None:
        ClientSettings.__post_init__(self)
        if self.version not in (0, 1):
            raise BadSettings(f"ConsumerSettings.version must be 0 or 1 (got {self.version!r})")

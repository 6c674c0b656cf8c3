"""Configuration of a worker."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, Literal
from uuid import uuid4

from fencepost.member import Member, MemberSettings
from fencepost.member.assignors.sticky import CooperativeStickyAssignor
from fencepost.member.consumer import ConsumerMember, ConsumerSettings
from fencepost.protocol.settings import BadSettings

from .driver import AnyMember

#: The longest time that a Kafka client's configuration accepts, in ms.
_LONGEST_MS: Final = (1 << 31) - 1
_SESSION_MS: Final = 45_000
_HEARTBEAT_MS: Final = 3_000
#: Options that exist in only one protocol.
_OF_CLASSIC: Final = ("session_timeout_ms", "heartbeat_interval_ms")
_OF_CONSUMER: Final = ("assignor",)


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Configuration of a worker. Times in milliseconds, from 1 on. Raises ``BadSettings`` for a value of the wrong type
    or out of bounds, and for an option that the protocol does not have.

    ``topics``: topic names, or an expression that matches whole names. With ``classic`` it is Python's and matched here
    (K-JOIN-15); with ``consumer`` it is the coordinator's (RE2 for a Kafka broker) and matched there (N-HB-02).
    ``instance_id``: makes a static member, which keeps its share over a restart (C-STATIC-15). With ``consumer``, a
    killed worker joins again when its earlier session has ended. ``request_timeout_ms``: the timeout of a response,
    except that of JoinGroup (G-CFG-50). ``assignor``: the coordinator's, ``uniform`` or ``range``, for ``consumer``.
    ``rebalance_timeout_ms``: how long a program may take to return to the loop (G-CFG-43). ``session_timeout_ms``,
    ``heartbeat_interval_ms``: for ``classic``; in the other protocol the coordinator decides (G-CFG-10, G-CFG-11).
    ``metadata_max_age_ms``: how often the cluster is asked for its topics."""

    group_id: str
    topics: frozenset[str] | re.Pattern[str]
    _: KW_ONLY
    protocol: Literal["consumer", "classic"] = "consumer"
    instance_id: str | None = None
    assignor: str | None = None
    rebalance_timeout_ms: int = 300_000
    request_timeout_ms: int = 5_000
    session_timeout_ms: int | None = None
    heartbeat_interval_ms: int | None = None
    metadata_max_age_ms: int = 300_000

    def __post_init__(self) -> None:
        _require_name("group_id", self.group_id, "the name of the group, such as 'orders'")
        if self.protocol not in ("consumer", "classic"):
            raise BadSettings(f"protocol must be 'consumer' or 'classic' (got {self.protocol!r})")
        _require_topics(self.topics)
        for name in ("instance_id", "assignor"):
            if getattr(self, name) is not None:
                _require_name(name, getattr(self, name), "a name, or None")
        for name in self.__dataclass_fields__:
            if name.endswith("_ms"):
                _require_time(name, getattr(self, name), optional=name in _OF_CLASSIC)
        self._require_protocol()
        if self.protocol == "classic" and self._heartbeat_ms >= self._session_ms:  # G-CFG-42
            raise BadSettings(
                f"heartbeat_interval_ms must be less than session_timeout_ms ({self._session_ms}; got "
                f"{self._heartbeat_ms})"
            )

    def _require_protocol(self) -> None:
        """Raise ``BadSettings`` for an option that would be ignored."""
        if self.protocol == "consumer":
            for name in _OF_CLASSIC:
                if getattr(self, name) is not None:
                    raise BadSettings(
                        f"{name} is an option of protocol='classic' (got {getattr(self, name)!r}); with 'consumer' the "
                        f"coordinator decides (group.consumer.{name.removesuffix('_ms').replace('_', '.')}.ms)"
                    )
        else:
            for name in _OF_CONSUMER:
                if getattr(self, name) is not None:
                    raise BadSettings(
                        f"{name} is an option of protocol='consumer' (got {getattr(self, name)!r}); with 'classic' the "
                        "members assign, by cooperative-sticky"
                    )

    @property
    def _session_ms(self) -> int:
        return _SESSION_MS if self.session_timeout_ms is None else self.session_timeout_ms

    @property
    def _heartbeat_ms(self) -> int:
        return _HEARTBEAT_MS if self.heartbeat_interval_ms is None else self.heartbeat_interval_ms

    def member(self) -> AnyMember:
        """Create a new member with these settings."""
        if self.protocol == "consumer":
            settings = ConsumerSettings(
                self.group_id,
                group_instance_id=self.instance_id,
                max_poll_interval_ms=self.rebalance_timeout_ms,
                request_timeout_ms=self.request_timeout_ms,
                server_assignor=self.assignor,
            )
            return ConsumerMember(settings, urlsafe_b64encode(uuid4().bytes).rstrip(b"=").decode())  # N-HB-08
        return Member(
            MemberSettings(
                self.group_id,
                group_instance_id=self.instance_id,
                max_poll_interval_ms=self.rebalance_timeout_ms,
                request_timeout_ms=self.request_timeout_ms,
                session_timeout_ms=self._session_ms,
                heartbeat_interval_ms=self._heartbeat_ms,
                assignors=(CooperativeStickyAssignor(),),
            )
        )


def _require_name(name: str, value: Any, what: str) -> None:
    if not isinstance(value, str) or not value:
        raise BadSettings(f"{name} must be {what} (got {value!r})")


def _require_topics(topics: Any) -> None:
    if isinstance(topics, re.Pattern):
        if not isinstance(topics.pattern, str) or not topics.pattern:
            raise BadSettings(f"topics must be an expression of text, such as re.compile('orders-.*') (got {topics!r})")
        return
    if not topics:
        raise BadSettings("topics must name at least one topic, as in ['orders'] (got none)")
    for topic in topics:
        _require_name("each topic", topic, "the name of a topic, such as 'orders'")


def _require_time(name: str, value: Any, *, optional: bool) -> None:
    if value is None and optional:
        return
    if type(value) is not int or not 1 <= value <= _LONGEST_MS:
        raise BadSettings(
            f"{name} must be an integer of milliseconds from 1 to {_LONGEST_MS}, such as 5_000 (got {value!r})"
        )

"""Who a worker is."""

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

#: The longest time that Kafka's configuration of a client takes.
_LONGEST_MS: Final = (1 << 31) - 1
_SESSION_MS: Final = 45_000
_HEARTBEAT_MS: Final = 3_000
#: Options of one protocol, and what to do with the other.
_OF_CLASSIC: Final = ("session_timeout_ms", "heartbeat_interval_ms")
_OF_CONSUMER: Final = ("assignor",)


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Who a worker is. Times in milliseconds, from 1 on. Raises ``BadSettings`` for a value of the wrong type or out of
    bounds, and for an option that the protocol does not have.

    ``topics``: what it works on, or an expression that whole names match: with ``classic`` Python's, matched here
    (K-JOIN-15); with ``consumer`` the coordinator's (RE2 of a Kafka broker), matched there (N-HB-02).
    ``instance_id``: a static member, which keeps its share over a restart (C-STATIC-15); a worker that was killed
    joins again when its former session has ended, with ``consumer``. ``request_timeout_ms``: how
    long an answer may take, but that of a JoinGroup (G-CFG-50). ``assignor``: of the coordinator, ``uniform`` or
    ``range``, for ``consumer``. ``rebalance_timeout_ms``: how long a program may take to come back to the loop
    (G-CFG-43). ``session_timeout_ms`` and ``heartbeat_interval_ms`` are ``classic``'s; in the other protocol they are
    the coordinator's (G-CFG-10, G-CFG-11). ``metadata_max_age_ms``: after that time the cluster is asked for its topics
    again."""

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
                f"heartbeat_interval_ms must be below session_timeout_ms ({self._session_ms}; got {self._heartbeat_ms})"
            )

    def _require_protocol(self) -> None:
        """Raises ``BadSettings`` for an option that would be ignored."""
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
        """A new member with these settings."""
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

"""Who a worker is."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from dataclasses import KW_ONLY, dataclass
from typing import Literal
from uuid import uuid4

from fencepost.member import Member, MemberSettings
from fencepost.member.assignors.sticky import CooperativeStickyAssignor
from fencepost.member.consumer import ConsumerMember, ConsumerSettings

from .driver import AnyMember


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Who a worker is. Times in milliseconds; raises ``BadSettings`` where Kafka's consumer refuses it.

    ``topics``: what it works on, or an expression that whole names match: with ``classic`` Python's, matched here
    (K-JOIN-15); with ``consumer`` the coordinator's (RE2 of a Kafka broker), matched there (N-HB-02).
    ``instance_id``: a static member, which keeps its share over a restart (C-STATIC-15). ``request_timeout_ms``: how
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
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    metadata_max_age_ms: int = 300_000

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
                session_timeout_ms=self.session_timeout_ms,
                heartbeat_interval_ms=self.heartbeat_interval_ms,
                assignors=(CooperativeStickyAssignor(),),
            )
        )

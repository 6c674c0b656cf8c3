"""The parts of a client that are compared, without the code that compares them."""

from __future__ import annotations

from enum import StrEnum


class MemberProtocol(StrEnum):
    """The protocol that a member uses."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class Half(StrEnum):
    """The compared half of a client: membership; or positions, records and commits, of manually assigned partitions or
    of partitions from a group."""

    MEMBER = "member"
    READER = "reader"
    GROUP_READER = "group-reader"

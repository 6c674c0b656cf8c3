"""The identities of members, for the causes of rebalances."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol as TypingProtocol

from fencepost.protocol.rebalances import MemberIdentity


class HasMemberIdentity(TypingProtocol):
    """A member of a group of either protocol."""

    @property
    def member_id(self) -> str: ...

    @property
    def instance_id(self) -> str | None: ...

    @property
    def client_id(self) -> str: ...

    @property
    def client_host(self) -> str: ...


def identities(members: Iterable[HasMemberIdentity]) -> tuple[MemberIdentity, ...]:
    """The identities of these members, in this order."""
    return tuple(
        [
            MemberIdentity(
                member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
            )
            for member in members
        ]
    )

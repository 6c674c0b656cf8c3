"""Members leave a consumer group, which may turn the group into a classic one (X-DOWN-01)."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.protocol.rebalances import RebalanceCause

from ..consumer import departure
from ..consumer.group import ConsumerGroup, ConsumerMember
from ..kernel.step import Step
from . import downgrade


def fence(step: Step, group: ConsumerGroup, members: Sequence[ConsumerMember], cause: RebalanceCause) -> None:
    """Remove the members in one change of the group: by a downgrade if only classic ones remain, otherwise by one bump
    (M-LEAVE-03, X-DOWN-01). Raises ``InternalError``; a downgrade may also raise ``Refused``."""
    leaving = frozenset(member.member_id for member in members)
    if downgrade.is_due(step, group, leaving):
        downgrade.by_departure(step, group, leaving, cause)
    else:
        departure.fence(step, group, members, cause)

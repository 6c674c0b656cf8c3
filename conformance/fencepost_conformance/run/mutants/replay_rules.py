"""INV-REPLAY-01 for any log: a load restores the last record of each group, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.protocol.events import AppendFailed, Event, Load
from fencepost.protocol.profile import Profile
from fencepost.protocol.records import GroupMetadataValue, Record
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupState, GroupView

from ...generate.simulate.broken import demand
from ...targets.core import CoreSession
from ...targets.ids import MemberIds
from ...targets.java_order import JavaOrder
from ...targets.leading import Leading
from ...traces.observation import Observation


def written(events: Sequence[Event], observations: Sequence[Observation]) -> list[Record]:
    """Return the log after a trace."""
    log: list[Record] = []
    last = 0
    leading = Leading()
    for event, seen in zip(events, observations, strict=False):
        taken = leading.takes(event)
        if isinstance(event, Load) and taken:
            log = list(event.records)
            leading.loaded(log, groups=bool(seen.groups or seen.consumer_groups))
        elif isinstance(event, AppendFailed) and last:
            del log[-last:]
        log += seen.records
        last = len(seen.records)
    return log


def check_load(settings: Settings, profile: Profile, log: Sequence[Record]) -> None:
    """Raise ``Broken`` if a coordinator that loads this log does not have exactly its groups."""
    session = CoreSession(settings, profile, JavaOrder(MemberIds()))
    session.feed(Load(0, leader_epoch=1, records=tuple(log)))
    expected = {record.key.group: record.group_metadata for record in log}
    for name, value in expected.items():
        group = session.groups.get(name)
        if value is None:
            demand(group is None, "INV-REPLAY-01", f"{name} was deleted but exists after loading")
        else:
            demand(group is not None, "INV-REPLAY-01", f"{name} does not exist after loading")
            assert group is not None
            if len(value.members) <= settings.group_max_size:  # otherwise it rebalances at once (F-LOAD-05)
                _check_group(group, value)


def _check_group(group: GroupView, value: GroupMetadataValue) -> None:
    loaded = {member.member_id: (member.group_instance_id, member.assignment) for member in group.members}
    logged = {member.member_id: (member.group_instance_id, member.assignment) for member in value.members}
    name = group.group_id
    demand(loaded == logged, "INV-REPLAY-01", f"{name}: loaded {loaded}, logged {logged}")
    mapped = {instance: member_id for member_id, (instance, _) in logged.items() if instance is not None}
    demand(dict(group.static_members) == mapped, "INV-REPLAY-01", f"{name}: instance ids {group.static_members}")
    state = GroupState.STABLE if value.members else GroupState.EMPTY
    ours, theirs = (group.generation_id, group.leader, group.state), (value.generation, value.leader, state)
    demand(ours == theirs, "INV-REPLAY-01", f"{name}: loaded {ours}, logged {theirs}")

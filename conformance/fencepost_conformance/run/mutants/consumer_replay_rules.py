"""INV-REPLAY-01 for the log of consumer groups: a load restores the live coordinator's groups, except soft state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.events import Load
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings

from ...generate.simulate.broken import demand
from ...targets.core import CoreSession
from ...targets.ids import MemberIds
from ...targets.java_order import JavaOrder
from ...traces.observation import Observation
from .consumer_scenes import HELD_AFTERWARDS, READ_WHILE_COMPACTED

#: fields that no record has (G-DATA-27), and one that is only recomputed when a member changes (M-TGT-05)
_SOFT = ("refresh_deadline", "subscription_type")


def standing(observations: Sequence[Observation]) -> dict[str, ConsumerGroupView]:
    """Return the consumer groups at the end of a trace."""
    groups: dict[str, ConsumerGroupView] = {}
    for seen in observations:
        for name, view in seen.consumer_groups.items():
            if view is None:
                groups.pop(name, None)
            else:
                groups[name] = view
    return groups


def check_read_while_compacted() -> None:
    """Raise ``Broken`` if a log that was compacted while it was read cannot be loaded (KAFKA-19862). The core runs
    under a Kafka profile here: the intended protocol never reads the records in question (F-REPLAY-18)."""
    session = _loaded(Settings(), KAFKA_4_3, READ_WHILE_COMPACTED)
    group = session.consumer_groups.get("g")
    demand(group is not None, "INV-REPLAY-01", "a log that was compacted while it was read is rejected")
    assert group is not None
    demand(group.partition_epochs == HELD_AFTERWARDS, "INV-REPLAY-01", f"held after loading: {group.partition_epochs}")


def check_consumer_load(
    settings: Settings, profile: Profile, log: Sequence[Record], live: Mapping[str, ConsumerGroupView]
) -> None:
    """Raise ``Broken`` if a coordinator that loads the log of these groups, as it is or compacted, has other groups."""
    last = {record.key: index for index, record in enumerate(log)}
    for kept in (log, [record for index, record in enumerate(log) if last[record.key] == index]):
        _check(settings, profile, kept, live)


def _loaded(settings: Settings, profile: Profile, log: Sequence[Record]) -> CoreSession:
    session = CoreSession(settings, profile, JavaOrder(MemberIds()))
    session.feed(Load(0, leader_epoch=1, records=tuple(log)))
    return session


def _check(settings: Settings, profile: Profile, log: Sequence[Record], live: Mapping[str, ConsumerGroupView]) -> None:
    loaded = _loaded(settings, profile, log).consumer_groups
    demand(
        loaded.keys() == live.keys(),
        "INV-REPLAY-01",
        f"loaded {', '.join(sorted(loaded))}, live {', '.join(sorted(live))}",
    )
    for name, view in live.items():
        for field in fields(ConsumerGroupView):
            if field.name not in _SOFT:
                ours, theirs = getattr(loaded[name], field.name), getattr(view, field.name)
                demand(ours == theirs, "INV-REPLAY-01", f"{name}, {field.name}: loaded {ours}, live {theirs}")

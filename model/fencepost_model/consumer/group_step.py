"""One step of a consumer group in progress: what the rules read, and what they ask for.

The group is read as it was before the step; ``records`` hold its changes (``updated_group``). Attributes beside them
hold what no record contains: timers, the metadata deadline, a regex resolution to start (M-HB-13)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from fencepost.protocol.consumer_messages import STATIC_LEAVE_EPOCH
from fencepost.protocol.consumer_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from fencepost.protocol.events import GroupConfig, Topic
from fencepost.protocol.records import Record, RecordKey, RecordValue
from fencepost.protocol.settings import Settings

from ..classic.choice import Chooser
from ..classic.state import Group
from ..machines import C_UNREVOKED
from .derive import counted, group_topics, hashed
from .oracle import CanonicalOracle, Oracle
from .replay import BYTES, replay
from .rows import held_rows, target_rows
from .state import KINDS, REBALANCE, SESSION, ConsumerGroup, Image, Member, Resolution, Target, Timer, new_group

if TYPE_CHECKING:
    from ..variant import Variant


class Environment(NamedTuple):
    """The surroundings of a group.

    - ``config``: its dynamic configuration, None if it has none.
    - ``busy``: a regex resolution of the group is running.
    - ``new_topics``: the version of the last image with a new topic, or of the image at the load (M-RX-03).
    """

    now: int = 0
    image: Image = Image()
    config: GroupConfig | None = None
    oracle: Oracle = CanonicalOracle()
    busy: bool = False
    new_topics: int = 0


class StepContext(NamedTuple):
    """Context of a step, with the list of the rules that decided it."""

    settings: Settings
    variant: Variant
    chooser: Chooser
    environment: Environment
    rules: list[str]


class GroupStep:
    """A step. ``group`` is None if it does not exist before the step; ``fresh``: this step creates it."""

    __slots__ = (
        "armed",
        "chooser",
        "classic",
        "denied_topics",
        "environment",
        "failed",
        "fresh",
        "group",
        "group_id",
        "must_write_epoch",
        "parked_member",
        "rebalance_epochs",
        "rebalances",
        "records",
        "refresh",
        "rules",
        "settings",
        "task",
        "upgrade_records",
        "variant",
    )

    def __init__(self, context: StepContext, group_id: str, group: ConsumerGroup | None) -> None:
        self.settings, self.variant, self.chooser, self.environment, self.rules = context
        self.group_id = group_id
        self.fresh = group is None
        self.group = new_group(self.variant.consumer.first_epoch) if group is None else group
        self.refresh = self.group.refresh
        self.records: list[Record] = []
        self.armed: dict[Timer, int | None] = {}
        self.rebalance_epochs: dict[str, int] = {}  #: member to its epoch when its rebalance timer was armed (M-TMR-02)
        self.task: Resolution | None = None
        self.denied_topics: frozenset[str] = frozenset()
        self.upgrade_records: list[Record] = []  #: of an upgrade, before the other records (X-UP-10)
        self.must_write_epoch = False  #: an epoch must be written in any case
        self.parked_member = ""  #: the member whose JoinGroup is parked in the classic group
        self.failed = False  #: an internal error happened in a timer's write
        self.rebalances = False  #: the classic group rebalances at once (X-DOWN-06, 22)
        self.classic: Group | None = None  #: the group after a downgrade (X-DOWN-03)

    def continue_epoch(self, generation: int) -> None:
        """Continue the count of the classic group in a new group (M-VAL-22 fixed); 0: do not."""
        if generation:
            epoch = max(generation, self.group.epoch)
            self.group = self.group._replace(epoch=epoch, assignment_epoch=epoch)
            self.must_write_epoch = True

    def updated_group(self) -> ConsumerGroup | None:
        """Return the group after the records. The object that a first join or an upgrade creates has no deadline
        yet."""
        group = None if self.fresh else self.group
        for record in self.records:
            group = replay(self.variant, group, record)
        if group is not None and not self.fresh and not self.upgrade_records and group.refresh != self.refresh:
            group = group._replace(refresh=self.refresh)
        return group

    def apply_upgrade(self, skip: int) -> None:
        """Note an upgrade: the records so far give the group for the rest of the step. ``skip``: how many are not its
        own."""
        group: ConsumerGroup | None = None
        for record in self.records[skip:]:
            group = replay(self.variant, group, record)
        assert group is not None
        self.upgrade_records, self.records = self.records, []
        self.group, self.fresh, self.refresh = group, False, group.refresh

    def rule(self, *ids: str) -> None:
        self.rules.extend(ids)

    # ---- timers -------------------------------------------------------------------------------------------------

    def arm_session(self, member_id: str) -> None:
        """Set the session timer to the group's session timeout (M-TMR-01, G-CFG-28)."""
        self.armed[Timer(SESSION, member_id)] = self.session_timeout()

    def arm_rebalance(self, member: Member) -> None:
        self.armed[Timer(REBALANCE, member.member_id)] = member.rebalance_timeout
        self.rebalance_epochs[member.member_id] = member.epoch

    def load_timers(self) -> None:
        """Set the timers as a coordinator does that has just loaded the group (F-LOAD-05)."""
        for member in self.group.members:
            self.arm_session(member.member_id)
            if member.state == C_UNREVOKED:
                self.arm_rebalance(member)

    def cancel_timers(self, member_id: str) -> None:
        for kind in KINDS:
            self.armed[Timer(kind, member_id)] = None

    def arm_member_session(self, member: Member) -> None:
        """Set the session timer; that of a classic member has its own timeout (X-TMR-01)."""
        if member.classic is None:
            self.arm_session(member.member_id)
        else:
            self.armed[Timer(SESSION, member.member_id)] = member.classic.session_timeout_ms

    def restore_rebalance_timer(self, member: Member, cancelled: frozenset[Timer], rebalance_epoch: int | None) -> None:
        """Restore the rebalance timer at full length, after an append that failed (M-HB-13 fixed). The member has
        the state that preceded the step that cancelled these timers. ``rebalance_epoch``: the epoch with which the
        timer was last armed."""
        rebalance = Timer(REBALANCE, member.member_id)
        if member.epoch == STATIC_LEAVE_EPOCH:
            return
        if member.state != C_UNREVOKED:
            self.armed[rebalance] = None
        elif rebalance in cancelled or rebalance_epoch != member.epoch:
            self.arm_rebalance(member)

    # ---- configuration ------------------------------------------------------------------------------------------

    def session_timeout(self) -> int:
        s, own = self.settings, self.environment.config
        value = own.consumer_session_timeout_ms if own is not None else None
        if value is None:
            return s.group_consumer_session_timeout_ms
        return self._clamp(value, s.group_consumer_min_session_timeout_ms, s.group_consumer_max_session_timeout_ms)

    def heartbeat_interval(self) -> int:
        s, own = self.settings, self.environment.config
        value = own.consumer_heartbeat_interval_ms if own is not None else None
        if value is None:
            return s.group_consumer_heartbeat_interval_ms
        low, high = s.group_consumer_min_heartbeat_interval_ms, s.group_consumer_max_heartbeat_interval_ms
        return self._clamp(value, low, high)

    def assignment_interval(self) -> int:
        s, own = self.settings, self.environment.config
        value = own.consumer_assignment_interval_ms if own is not None else None
        if value is None:
            return s.group_consumer_assignment_interval_ms
        low, high = s.group_consumer_min_assignment_interval_ms, s.group_consumer_max_assignment_interval_ms
        return self._clamp(value, low, high)

    def _clamp(self, value: int, low: int, high: int) -> int:
        """Clamp a group's configuration to the broker's bounds (M-CFG-01)."""
        self.rule("M-CFG-01")
        return min(max(value, low), high) if self.variant.consumer.clamps_group_config else value

    # ---- metadata -----------------------------------------------------------------------------------------------

    def topics(self, members: Iterable[Member]) -> tuple[Topic, ...]:
        """Return the existing topics that these members subscribe to."""
        members = tuple(members)
        regexes = counted(members, self.group.members, self.group.regexes)
        return hashed(group_topics(members, regexes), self.environment.image)

    def hash(self, topics: tuple[Topic, ...]) -> int:
        """Return the metadata hash (M-META-07)."""
        if not topics or not self.variant.consumer.stores_hash:
            return 0
        return self.environment.oracle.metadata_hash(self.group_id, self.group.hash, topics)

    # ---- records ------------------------------------------------------------------------------------------------

    def write(self, key: RecordKey, value: RecordValue | None) -> None:
        self.records.append(Record(key, value))

    def write_member(self, member: Member) -> None:
        self.write(
            ConsumerGroupMemberMetadataKey(self.group_id, member.member_id),
            ConsumerGroupMemberMetadataValue(
                instance_id=member.instance,
                rack_id=member.rack,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=member.names,
                subscribed_topic_regex=member.regex,
                rebalance_timeout_ms=member.rebalance_timeout,
                server_assignor=member.assignor,
                classic_member_metadata=member.classic,
            ),
        )

    def write_current(self, member: Member) -> None:
        epochs = self.variant.consumer.stores_assignment_epochs
        self.write(
            ConsumerGroupCurrentMemberAssignmentKey(self.group_id, member.member_id),
            ConsumerGroupCurrentMemberAssignmentValue(
                member.epoch,
                previous_member_epoch=member.previous,
                state=BYTES[member.state],
                assigned_partitions=held_rows(member.assigned, epochs),
                partitions_pending_revocation=held_rows(member.revoking, epochs),
            ),
        )

    def write_target(self, member_id: str, target: Target) -> None:
        self.write(
            ConsumerGroupTargetAssignmentMemberKey(self.group_id, member_id),
            ConsumerGroupTargetAssignmentMemberValue(target_rows(target)),
        )

    def write_target_epoch(self, epoch: int, at_ms: int) -> None:
        self.write(
            ConsumerGroupTargetAssignmentMetadataKey(self.group_id),
            ConsumerGroupTargetAssignmentMetadataValue(
                epoch, assignment_timestamp=at_ms if self.variant.consumer.spaces_targets else 0
            ),
        )

    def write_epoch(self, epoch: int, topics: tuple[Topic, ...], *, new: bool = False) -> None:
        """Write GroupEpoch (F-ORD-06, F-ORD-07). ``new``: the group is (X-UP-10)."""
        self.variant.consumer.write_metadata(self, topics, new)
        self.write(
            ConsumerGroupMetadataKey(self.group_id), ConsumerGroupMetadataValue(epoch, metadata_hash=self.hash(topics))
        )

    def write_member_tombstones(self, member_id: str) -> None:
        """Write the tombstones of a member, in the order of F-ORD-07."""
        self.write(ConsumerGroupCurrentMemberAssignmentKey(self.group_id, member_id), None)
        self.write(ConsumerGroupTargetAssignmentMemberKey(self.group_id, member_id), None)
        self.write(ConsumerGroupMemberMetadataKey(self.group_id, member_id), None)


def write_metadata(t: GroupStep, topics: tuple[Topic, ...], new: bool) -> None:
    """Write no metadata, as the record of the epoch has their hash (M-META-07)."""


def has_metadata(t: GroupStep, topics: tuple[Topic, ...]) -> bool:
    """Return whether these are still the group's metadata (M-HB-04)."""
    return t.hash(topics) == t.group.hash


def known_partitions(t: GroupStep) -> dict[bytes, int]:
    """Return the topics that an assignor sees, with the number of their partitions (M-TGT-03)."""
    return {topic.topic_id: topic.partitions for topic in t.environment.image.topics}

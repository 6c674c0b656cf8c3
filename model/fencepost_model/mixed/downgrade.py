"""The conversion of a consumer group to a classic group (rule book, 9.5)."""

from __future__ import annotations

from collections.abc import Collection

from fencepost.protocol.errors import ErrorCode

from ..classic.draft import Draft, DraftContext, InternalError
from ..classic.state import Group
from ..classic.state import Member as ClassicMember
from ..classic.subscription import CONSUMER
from ..consumer.group_step import GroupStep
from ..consumer.refusal import Refused
from ..consumer.rows import without_epochs
from ..consumer.state import ConsumerGroup, Member, Target
from ..consumer.tombstones import of_group
from ..embedded import BadBytes
from ..machines import C_STABLE, DEAD, STABLE
from .embedded import write_assignment


def must_downgrade(t: GroupStep, leavers: Collection[str], *, joiners: int = 0) -> bool:
    """Return whether the group becomes a classic one without these members (X-DOWN-01, X-DOWN-20)."""
    rest = [member for member in t.group.members if member.member_id not in leavers]
    return (
        all(member.classic is not None for member in rest)
        and 0 < len(rest) + joiners <= t.settings.group_max_size
        and t.settings.group_consumer_migration_policy.downgrades
    )


def downgrade(
    t: GroupStep, group: ConsumerGroup, leavers: Collection[str], joiner: tuple[Member, Target | None] | None
) -> None:
    """Convert the group (X-DOWN-02…05). ``group``: the state that the tombstones must match; the ``joiner`` comes with
    its share. Raises Refused (X-DOWN-04, 09, C-JOIN-72)."""
    t.rule("X-DOWN-02", "X-DOWN-03", "X-DOWN-04")
    gone = leavers if joiner is None else {*leavers, joiner[0].member_id}
    share_of = t.variant.mixed.downgraded_assignment
    rest = [(m, share_of(t, group, m, m.member_id)) for m in group.members if m.member_id not in gone]
    if joiner is not None:
        rest.append(joiner)
    members = tuple(sorted([_classic(member) for member, _ in rest]))
    bumps = joiner is not None and t.variant.mixed.downgrade_keeps_bump
    generation = group.epoch if bumps else t.group.epoch
    classic = Group(STABLE, DEAD, generation, CONSUMER, None, None, members, timestamp=t.environment.now)
    context = DraftContext(t.settings, t.variant, t.chooser, t.environment.now, [], [], t.rules)
    draft = Draft(context, t.group_id, classic, None)
    draft.leader = t.chooser.pick("leader", [member.member_id for member in members])
    # not the exceptions: one raised from here would keep this frame alive
    errors: dict[str, tuple[ErrorCode, str]] = {}
    try:
        draft.protocol_name = draft.select_protocol()
        for member, share in rest:
            own = draft.members[member.member_id]
            if share is None:
                errors[ErrorCode.UNKNOWN_SERVER_ERROR.name] = ErrorCode.UNKNOWN_SERVER_ERROR, "X-DOWN-04"
                continue
            try:
                draft.put(own._replace(assignment=write_assignment(share, draft.metadata(own), t.environment.image)))
            except BadBytes:
                errors[ErrorCode.GROUP_ID_NOT_FOUND.name] = ErrorCode.GROUP_ID_NOT_FOUND, "X-DOWN-09"
    except InternalError:  # no protocol that all support, or one that a member lists twice and another not at all
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "C-JOIN-72") from None
    if errors:  # the first in the order of a hash map
        raise Refused(*errors[t.chooser.pick("refusal", sorted(errors))])
    before = group._replace(regexes=t.group.regexes)  # a regex that ends with this join is buried twice
    t.records += [*of_group(t.group_id, before), draft.record(None)]
    if t.variant.mixed.downgrade_cancels_timers:
        t.rule("X-DOWN-33")
        for member in t.group.members:
            t.cancel_timers(member.member_id)
    t.classic = draft.close()


def downgraded_assignment(t: GroupStep, group: ConsumerGroup, member: Member, target_member_id: str) -> Target | None:
    """Return the partitions that the classic group assigns to the member: those that it holds (X-DOWN-04). None if it
    cannot be converted."""
    return tuple(sorted(without_epochs((*member.assigned, *member.revoking))))


def is_owed_partitions(t: GroupStep, member: Member) -> bool:
    """Return whether the member is not at its target (X-DOWN-22)."""
    behind = member.epoch < t.group.assignment_epoch or member.state != C_STABLE
    return behind or without_epochs(member.assigned) != (t.group.target_of(member.member_id) or ())


def _classic(member: Member) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance,
        member.client_id,
        member.client_host,
        member.rebalance_timeout,
        member.classic.session_timeout_ms,
        member.classic.supported_protocols,
    )

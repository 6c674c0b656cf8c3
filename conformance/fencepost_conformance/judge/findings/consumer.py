"""Rules of groups with members of the consumer protocol, each broken by a Kafka bug."""

from __future__ import annotations

from fencepost.protocol import embedded
from fencepost.protocol.consumer_messages import (
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
)
from fencepost.protocol.consumer_view import ConsumerGroupView, ConsumerMemberView, MemberState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import AppendFailed, Load, TimerKind, TopicsChanged
from fencepost.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.view import GroupState

from ...generate.simulate.consumer_group_rules import held
from .judge import NotReached, reached
from .played_trace import PlayedTrace, Step


def every_member_has_a_session_timer(played: PlayedTrace, place: int, step: Step) -> str | None:
    """M-TMR-01, LIV-08: every member of every consumer group has a session timer."""
    reached(any(view.members for view in step.consumer.values()), "no consumer group has members at the end")
    watched = {(key.group_id, key.member_id) for key in step.armed if key.kind is TimerKind.CONSUMER_SESSION}
    for name, view in step.consumer.items():
        for row in view.members:
            if (name, row.member_id) not in watched:
                return f"no session timer watches {row.member_id} of {name}"
    return None


def revoking_member_has_a_rebalance_timer(played: PlayedTrace, place: int, step: Step) -> str | None:
    """M-TMR-02, LIV-08: a member that must revoke partitions has a rebalance timer."""
    failed = [at for at, each in enumerate(played.steps) if isinstance(each.event, AppendFailed)]
    reached(failed, "no confirmation fails to be appended")
    timed = {(key.group_id, key.member_id) for key in step.armed if key.kind is TimerKind.CONSUMER_REBALANCE}
    revoking = [
        (name, row.member_id)
        for name, view in step.consumer.items()
        for row in view.members
        if row.state is MemberState.UNREVOKED_PARTITIONS
    ]
    reached(revoking, "no member has partitions to revoke at the end")
    for name, member in revoking:
        if (name, member) not in timed:
            return f"{member} of {name} has partitions to revoke, but no timer ends that"
    return None


def instance_id_is_rejected_only_if_in_use(played: PlayedTrace) -> str | None:
    """M-STATIC-02, M-STATIC-13: an instance id is rejected only if another member has it."""
    asked = [
        row for row in played.asked(ConsumerGroupHeartbeatRequest) if row[1].instance_id and not row[1].member_epoch
    ]
    reached(len(asked) > 1, "no instance id is used again")
    for place, body, answer in asked:
        view = played.before(place).consumer.get(body.group_id)
        if view is None or getattr(answer, "error_code", None) is not ErrorCode.UNRELEASED_INSTANCE_ID:
            continue
        holders = [row.member_id for row in view.members if row.instance_id == body.instance_id]
        if not [each for each in holders if each != body.member_id]:
            held = "itself" if holders else "nobody"
            return f"{body.member_id} is rejected for {body.instance_id}, which {held} has (event {place})"
    return None


def reconciled_group_owns_all_partitions(played: PlayedTrace, place: int, step: Step) -> str | None:
    """LIV-13, LIV-15, LIV-16: when all members are reconciled, each partition that one of them subscribes to has an
    owner."""
    settled = [view for view in step.consumer.values() if view.members]
    reached(settled, "no consumer group has members at the end")
    for view in settled:
        if not _is_settled(view) or step.tasks:
            raise NotReached(f"{view.group_id} is still {view.state.value} at the end")
        owned = held(rows for row in view.members for rows in row.assigned)
        wanted = {name for row in view.members for name in _wants(view, row)}
        for topic in played.topics(place):
            for number in range(topic.partitions):
                if topic.name in wanted and (topic.topic_id, number) not in owned:
                    return f"{view.group_id} has settled, but {topic.name}:{number} has no owner"
    return None


def _is_settled(view: ConsumerGroupView) -> bool:
    """Whether the group is reconciled; static members that are temporarily away do not count."""
    here = [row for row in view.members if row.member_epoch != STATIC_LEAVE_EPOCH]
    return view.assignment_epoch == view.group_epoch and all(
        row.state is MemberState.STABLE and row.member_epoch == view.group_epoch for row in here
    )


def _wants(view: ConsumerGroupView, row: ConsumerMemberView) -> tuple[str, ...]:
    resolved = {each.regex: each.topics for each in view.regexes}
    return (*row.subscribed_topic_names, *resolved.get(row.subscribed_topic_regex, ()))


def a_member_is_asked_to_rejoin(played: PlayedTrace, place: int, step: Step) -> str | None:
    """LIV-14: if a group of classic members has no target for its epoch, some member must be asked to rejoin."""
    view = next((each for each in step.consumer.values() if each.members), None)
    if view is None or any(row.classic is None for row in view.members):
        raise NotReached("no consumer group has classic members only at the end")
    if view.group_epoch == view.assignment_epoch:
        return None
    answers = {
        body.member_id: answer
        for at, body, answer in played.asked(HeartbeatRequest)
        if body.group_id == view.group_id and played.steps[at].origin is None
    }
    reached(answers.keys() >= {row.member_id for row in view.members}, "not every member has sent a heartbeat")
    if all(isinstance(each, HeartbeatResponse) and each.error_code is ErrorCode.NONE for each in answers.values()):
        return f"{view.group_id} has no target for epoch {view.group_epoch}, but no member is asked to rejoin"
    return None


def leaving_member_is_removed(played: PlayedTrace) -> str | None:
    """X-DOWN-09: a member can leave."""
    left = 0
    for place, body, answer in played.asked(ConsumerGroupHeartbeatRequest):
        before, after = (
            played.before(place).consumer.get(body.group_id),
            played.steps[place].consumer.get(body.group_id),
        )
        if body.member_epoch != LEAVE_EPOCH or before is None or answer is None or not _has(before, body.member_id):
            continue
        left += 1
        if after is not None and _has(after, body.member_id):
            error = getattr(answer, "error_code", ErrorCode.NONE)
            return f"{body.member_id} cannot leave: {error.name} (event {place})"
    reached(left, "no member leaves")
    return None


def _has(view: ConsumerGroupView, member_id: str) -> bool:
    return any(row.member_id == member_id for row in view.members)


def member_with_a_generation_is_in_it(played: PlayedTrace) -> str | None:
    """X-DOWN-23: a member that gets a generation is in it."""
    joins = [answer for _, _, answer in played.asked(JoinGroupRequest) if isinstance(answer, JoinGroupResponse)]
    good = {(each.member_id, each.generation_id) for each in joins if each.error_code is ErrorCode.NONE}
    reached(good, "no JoinGroup is answered with a generation")
    for place, body, answer in played.asked(HeartbeatRequest):
        error = getattr(answer, "error_code", None)
        if (body.member_id, body.generation_id) in good and error is ErrorCode.ILLEGAL_GENERATION:
            return f"{body.member_id} got generation {body.generation_id}, but is rejected with it (event {place})"
    return None


def no_member_is_assigned_more_than_its_sync_returned(played: PlayedTrace, place: int, step: Step) -> str | None:
    """X-DOWN-22: in a Stable group no member is assigned more than its last SyncGroup returned, while its Heartbeat is
    answered NONE."""
    synced = {
        body.member_id: answer.assignment
        for _, body, answer in played.asked(SyncGroupRequest)
        if isinstance(answer, SyncGroupResponse) and answer.error_code is ErrorCode.NONE
    }
    views = [view for view in step.classic.values() if view.state is GroupState.STABLE]
    beats = {body.member_id: answer for _, body, answer in played.asked(HeartbeatRequest)}
    reached(synced, "no member has synced")
    for view in views:
        for row in view.members:
            beat = beats.get(row.member_id)
            if row.member_id not in synced or not isinstance(beat, HeartbeatResponse) or beat.error_code:
                continue
            owes, has = _partitions(row.assignment), _partitions(synced[row.member_id])
            if owes != has:
                more = ", ".join(f"{topic}:{number}" for topic, number in sorted(owes - has))
                return f"{view.group_id} is Stable; {row.member_id} should own {more}, but no answer says so"
    return None


def unassigned_partition_of_a_downgraded_group_causes_a_rebalance(
    played: PlayedTrace, place: int, step: Step
) -> str | None:
    """X-DOWN-06, LIV-05: when a group has been downgraded and loaded, each partition that its members subscribe to is
    assigned, or some member is asked to rejoin."""
    loads = [at for at, each in enumerate(played.steps) if isinstance(each.event, Load) and each.event.records]
    reached(loads, "no written record is loaded")
    before = {name for each in played.steps[: loads[-1]] for name in each.consumer}
    views = [view for name, view in step.classic.items() if name in before and view.members]
    reached(views, "no downgraded group has members after the load")
    for view in views:
        beats = {
            body.member_id: getattr(answer, "error_code", None)
            for at, body, answer in played.asked(HeartbeatRequest)
            if at > loads[-1] and body.group_id == view.group_id
        }
        if ErrorCode.REBALANCE_IN_PROGRESS in beats.values():
            continue
        for row in view.members:
            accepted = beats.get(row.member_id) is ErrorCode.NONE
            reached(accepted, f"the last heartbeat of {row.member_id} is not accepted")
        assigned = {each for row in view.members for each in _partitions(row.assignment)}
        wanted = {
            name
            for row in view.members
            for each in row.protocols
            for name in embedded.decode_subscription(each.metadata).topics
        }
        for topic in played.topics(place):
            for number in range(topic.partitions):
                if topic.name in wanted and (topic.name, number) not in assigned:
                    return f"{view.group_id} asks no member to rejoin, but {topic.name}:{number} has no owner"
    return None


def _partitions(assignment: bytes) -> set[tuple[str, int]]:
    return {(each.topic, each.partition) for each in embedded.decode_assignment(assignment).partitions}


def topic_change_refreshes_subscribed_groups_only(played: PlayedTrace) -> str | None:
    """X-DOWN-30, M-META-03: a topic change leaves the refresh deadline of a group that does not subscribe to it."""
    changes = [place for place, step in enumerate(played.steps) if place and isinstance(step.event, TopicsChanged)]
    reached(changes, "no topic changes")
    judged = 0
    for place in changes:
        changed = {each.name for each in set(played.topics(place)) ^ set(played.topics(place - 1))}
        for name, before in played.before(place).consumer.items():
            now = played.steps[place].consumer.get(name)
            if now is None or any(changed.intersection(_wants(now, row)) for row in now.members):
                continue
            judged += 1
            if before.refresh_deadline != now.refresh_deadline:
                return f"no member of {name} subscribes to {', '.join(sorted(changed))}, but it refreshes its topics"
    reached(judged, "no consumer group is without a subscription to the topic that changes")
    return None


def members_are_described_once(played: PlayedTrace) -> str | None:
    """M-DESC-01."""
    answers = [
        each
        for _, _, each in played.asked(ConsumerGroupDescribeRequest)
        if isinstance(each, ConsumerGroupDescribeResponse)
    ]
    reached(answers, "no ConsumerGroupDescribe is answered")
    for group in (group for answer in answers for group in answer.groups):
        ids = [row.member_id for row in group.members]
        for name in ids:
            if ids.count(name) > 1:
                return f"ConsumerGroupDescribe shows {name} of {group.group_id} {ids.count(name)} times"
    return None


def heartbeat_without_changes_keeps_the_epoch(played: PlayedTrace) -> str | None:
    """M-HB-15, LIV-17: a heartbeat with nothing new leaves the epoch of its group."""
    judged = 0
    for place, body, _ in played.asked(ConsumerGroupHeartbeatRequest):
        said = (body.subscribed_topic_names, body.subscribed_topic_regex, body.server_assignor, body.topic_partitions)
        before, after = (step.consumer.get(body.group_id) for step in (played.before(place), played.steps[place]))
        if body.member_epoch <= 0 or before is None or after is None or any(each is not None for each in said):
            continue
        judged += len({row.server_assignor for row in before.members}) > 1
        if after.group_epoch != before.group_epoch:
            epochs = f"{before.group_epoch} to {after.group_epoch}"
            return f"{body.member_id} sends nothing new, but the epoch goes from {epochs} (event {place})"
    reached(judged, "no heartbeat arrives while the votes differ")
    return None

"""Rules of the runtime: the log, timers, loading and losing the partition, each broken by a Kafka bug."""

from __future__ import annotations

from fencepost.protocol.consumer_records import ConsumerGroupMetadataKey, ConsumerGroupMetadataValue
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import AppendFailed, Load, Request, TimerFired, TimerKind, Unload
from fencepost.protocol.messages import JoinGroupRequest
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataValue, Record
from fencepost.protocol.view import GroupState

from .judge import reached
from .played_trace import PlayedTrace, Step

_CLASSIC_TIMERS = (TimerKind.JOIN, TimerKind.SYNC, TimerKind.SESSION)
_CONSUMER_TIMERS = (
    TimerKind.CONSUMER_SESSION,
    TimerKind.CONSUMER_REBALANCE,
    TimerKind.CONSUMER_JOIN,
    TimerKind.CONSUMER_SYNC,
)


def written_log_can_be_loaded(played: PlayedTrace) -> str | None:
    """INV-REPLAY-02: whatever clients send, and however the log was compacted, the partition can be loaded."""
    loads = [place for place, step in enumerate(played.steps) if isinstance(step.event, Load) and step.event.records]
    reached(loads, "no written record is loaded")
    after = [place for place, _ in played.requests.values() if place > loads[-1]]
    reached(after, "no request follows the load")
    for number, (place, request) in played.requests.items():
        answer = played.answers.get(number)
        code = getattr(answer[1], "error_code", None) if answer is not None else None
        if place > loads[-1] and code is ErrorCode.NOT_COORDINATOR:
            group = getattr(request.body, "group_id", "")
            return f"the load fails; {group} is answered NOT_COORDINATOR (event {place})"
    return None


def memory_matches_the_log(played: PlayedTrace) -> str | None:
    """INV-REPLAY-01, F-SURV-05: once all records are replicated, a classic group has the members of its last record in
    this generation, with their assignments, unless they have left since."""
    for place, step in enumerate(played.steps):
        if not step.quiet or isinstance(step.event, Load):
            continue
        for name, value in _last_records(step.log).items():
            view = step.classic.get(name)
            if view is None or view.generation_id != value.generation:
                continue
            live = {row.group_instance_id or row.member_id: row for row in view.members}
            for row in value.members:
                member = live.get(row.group_instance_id or row.member_id)
                if member is not None and (member.member_id, member.assignment) != (row.member_id, row.assignment):
                    return f"{name} has a different {row.member_id} in memory than in the log (event {place})"
    reached(any(_last_records(played.last.log).values()), "no classic group is in the log")
    return None


def empty_group_matches_the_log(played: PlayedTrace, place: int, step: Step) -> str | None:
    """INV-REPLAY-01, C-ST-27: an empty group does not use a generation without writing it."""
    rows = _last_records(step.log)
    for name, view in step.classic.items():
        written = rows[name].generation if name in rows else None
        if step.quiet and view.state is GroupState.EMPTY and view.generation_id != written:
            return f"{name} is empty in generation {view.generation_id}, but in the log in {written}"
    return None


def no_empty_group_after_a_failure(played: PlayedTrace) -> str | None:
    """Return the reason why a played trace is not judged: no group is empty after a failed append; else None."""
    failed = next((place for place, step in enumerate(played.steps) if isinstance(step.event, AppendFailed)), None)
    if failed is None:
        return "no append fails"
    views = (view for step in played.steps[failed:] for view in step.classic.values())
    return None if any(view.state is GroupState.EMPTY for view in views) else "no group is empty after the failure"


def _last_records(log: tuple[Record, ...]) -> dict[str, GroupMetadataValue]:
    rows = {record.key.group: record.value for record in log if isinstance(record.key, GroupMetadataKey)}
    return {name: value for name, value in rows.items() if isinstance(value, GroupMetadataValue)}


def group_epoch_never_decreases(played: PlayedTrace, place: int, step: Step) -> str | None:
    """INV-KIP-04: no group epoch is below one in the log, since the group was last deleted."""
    for name, view in step.consumer.items():
        highest = 0
        for record in step.log:
            if record.key == ConsumerGroupMetadataKey(name):
                value = record.value
                highest = max(highest, value.epoch) if isinstance(value, ConsumerGroupMetadataValue) else 0
        if view.group_epoch < highest:
            return f"{name} is at epoch {view.group_epoch}, but the log has its epoch {highest}"
    return None


def no_join_of_an_empty_group(played: PlayedTrace) -> str | None:
    """Return the reason why a played trace is not judged, or None: no JoinGroup reaches a consumer group without
    members, or no consumer joins after it."""
    came = [
        place
        for place, body, answer in played.asked(JoinGroupRequest)
        if answer is not None and _is_empty(played.before(place).consumer.get(body.group_id))
    ]
    if not came:
        return "no JoinGroup comes to an empty consumer group"
    joined = any(view.members for step in played.steps[came[0] :] for view in step.consumer.values())
    return None if joined else "no consumer joins after that"


def _is_empty(view: ConsumerGroupView | None) -> bool:
    return view is not None and not view.members


def generations_and_epochs_never_restart(played: PlayedTrace) -> str | None:
    """INV-CONV-01, for groups without members too: generations and group epochs are one sequence."""
    highest: dict[str, int] = {}
    seen_both = False
    for place, step in enumerate(played.steps):
        now = {name: view.group_epoch for name, view in step.consumer.items()}
        now |= {name: view.generation_id for name, view in step.classic.items()}
        for name, count in now.items():
            seen_both |= name in step.classic and highest.get(name, 0) > 0
            if count < highest.get(name, 0):
                return f"{name} goes to {count} after {highest[name]} (event {place})"
            highest[name] = max(highest.get(name, 0), count)
    reached(seen_both, "no group changes its protocol")
    return None


def only_existing_groups_have_timers(played: PlayedTrace, place: int, step: Step) -> str | None:
    """X-UP-16, C-TMR-12: no step arms a timer of a classic group that does not exist after it."""
    for key, deadline in step.seen.timers.items():
        # a group that a failed append undoes disappears only in the next step
        undone = place + 1 < len(played.steps) and isinstance(played.steps[place + 1].event, AppendFailed)
        if deadline is not None and key.kind in _CLASSIC_TIMERS and key.group_id not in step.classic and not undone:
            return f"a {key.kind.value} timer of {key.group_id} is set, but that is not a classic group"
    return None


def no_conversion_before_a_timeout(played: PlayedTrace) -> str | None:
    """Return the reason why a played trace is not judged, or None: no classic group is converted before a late write to
    it."""
    converted = [
        place for place, step in enumerate(played.steps) if step.consumer.keys() & played.before(place).classic.keys()
    ]
    if not converted:
        return "no classic group is converted"
    late = (each.event for each in played.steps[converted[0] :])
    timed_out = any(isinstance(each, TimerFired) and each.key.kind is TimerKind.OPERATION for each in late)
    return None if timed_out else "no write is late after that"


def classic_group_has_no_consumer_timers(played: PlayedTrace, place: int, step: Step) -> str | None:
    """X-DOWN-33: a classic group has no timers of a consumer group."""
    reached(step.classic, "no group is classic at the end")
    for key in step.armed:
        if key.kind in _CONSUMER_TIMERS and key.group_id in step.classic:
            return f"{key.group_id} is classic, but a {key.kind.value} timer of {key.member_id} runs"
    return None


def partition_loss_fences_no_member(played: PlayedTrace) -> str | None:
    """F-UNLOAD-01: a request that waits when the partition is lost is sent to another coordinator."""
    replies = [reply.body for step in played.steps if isinstance(step.event, Unload) for reply in step.seen.replies]
    reached(replies, "no request waits when the partition is lost")
    for body in replies:
        error = getattr(body, "error_code", ErrorCode.NOT_COORDINATOR)
        if error is not ErrorCode.NOT_COORDINATOR:
            return f"the partition is lost, and a waiting request is answered {error.name}"
    return None


def no_answer_is_unknown_server_error(played: PlayedTrace) -> str | None:
    """No answer is UNKNOWN_SERVER_ERROR."""
    for number, (place, body) in played.answers.items():
        if getattr(body, "error_code", None) is ErrorCode.UNKNOWN_SERVER_ERROR:
            asked = type(played.requests[number][1].body).__name__.removesuffix("Request")
            return f"{asked} is answered UNKNOWN_SERVER_ERROR (event {place})"
    last = max((number for number in played.requests), default=None)
    reached(last is not None and last in played.answers, "the last request is not answered")
    return None


def rejection_answers_no_other_request(played: PlayedTrace) -> str | None:
    """X-UP-06, X-UP-09: a rejected request causes no other answers. Judged where a request waits."""
    waited = 0
    for number, (place, request) in played.requests.items():
        answer = played.answers.get(number)
        if answer is None or answer[0] != place or not place:
            continue
        waiting = [each for each in played.waiting(place - 1) if _group(each) == _group(request)]
        waited += bool(waiting) and hasattr(request.body, "member_epoch")
        error = getattr(answer[1], "error_code", ErrorCode.NONE)
        others = [reply for reply in played.steps[place].seen.replies if reply.request_id != number]
        if error is not ErrorCode.NONE and hasattr(request.body, "member_epoch") and others:
            return f"a heartbeat is rejected with {error.name}, but answers {len(others)} others (event {place})"
    reached(waited, "no request waits when the consumer joins")
    return None


def _group(request: Request) -> str:
    name: str = getattr(request.body, "group_id", "")
    return name

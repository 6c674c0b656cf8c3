"""Subscriptions by regular expression (7.11).

Matching every regex against every topic name is work for another thread, so it is a task. A heartbeat starts it with
the current regexes; its result comes back as a separate event and is written like any other change. Until then a new
regex matches nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TaskDone, TaskKey, TaskKind
from fencepost.protocol.records import Record

from ..kernel import operations
from ..kernel.errors import InternalError, Rejected
from ..kernel.persistent import with_entry, without
from ..kernel.state import RegexTask, next_epoch
from ..kernel.step import Step
from . import group_epoch, records, reports
from .consumer_appliers import write_records
from .group import (
    ConsumerGroup,
    ConsumerGroupMember,
    Resolution,
    find_consumer_group,
    with_member,
    with_resolutions,
)


class RegexChange(Enum):
    """How a request changed the regex of its member."""

    NONE = "none"
    UNRESOLVED = "unresolved"  #: changed, and the new one is not resolved yet
    RESOLVED = "resolved"  #: changed, and the topics of the new one are known


class RegexUpdate(NamedTuple):
    """The effect of a request on the regex of its member, and the records. ``loses_topics``: until the new regex is
    resolved the member subscribes to other topics than before."""

    change: RegexChange
    loses_topics: bool
    records: list[Record]


def update_subscribed_regex(
    step: Step, request: Request, group: ConsumerGroup, old: ConsumerGroupMember, new: ConsumerGroupMember
) -> RegexUpdate:
    """Start to resolve the regexes of a group if necessary, and return what changed for the member (M-RX-02, M-RX-03,
    M-HB-03). Raises ``Rejected`` (M-VAL-08); a started task stays started (M-HB-13)."""
    change, written, wanted = RegexChange.NONE, list[Record](), False
    if old.regex != new.regex:
        change = RegexChange.UNRESOLVED
        if old.regex and group.by_regex.get(old.regex) == 1:
            written.append(records.regular_expression(group.group_id, old.regex, None))
        if not new.regex:
            if step.rules.dropped_regex_bumps:
                change = RegexChange.RESOLVED  # the result is known at once (M-HB-03)
        elif new.regex not in group.by_regex:
            if step.functions.matcher(new.regex) is None:
                fault = step.functions.regex_fault(new.regex)
                raise Rejected(
                    ErrorCode.INVALID_REGULAR_EXPRESSION,
                    f"SubscribedTopicRegex `{new.regex}` is not a valid regular expression: {fault}.",
                )
            wanted = True
        elif new.regex in group.resolved:
            change = RegexChange.RESOLVED
    if wanted or group.by_regex:
        _maybe_start(step, request, group, old, new, wanted=wanted)
    lost = False
    if change is RegexChange.UNRESOLVED and step.rules.lost_topics_bump:
        before, now = group.topics_of(old), group.topics_of(new)
        lost = step.topics.ids(before) != step.topics.ids(now)  # other members must get them (LIV-15, M-HB-03, M-RX-08)
    return RegexUpdate(change, lost, written)


def _maybe_start(
    step: Step,
    request: Request,
    group: ConsumerGroup,
    old: ConsumerGroupMember,
    new: ConsumerGroupMember,
    *,
    wanted: bool,
) -> None:
    """M-RX-03, M-RX-04."""
    name, settings = group.group_id, step.settings
    if name in step.tasks:
        return
    last = _last(step, group)
    if last is not None and step.at_ms <= last.timestamp + settings.regex_min_refresh_interval_ms:
        return
    used = with_member(group, old, new).by_regex
    version = 0 if last is None else last.version
    interval = settings.group_consumer_regex_refresh_interval_ms
    outdated = last is None or step.at_ms > last.timestamp + interval  # M-RX-03, G-CFG-33
    due = wanted or version < step.topics.created or (outdated and step.rules.regexes_refreshed)
    if (due or len(used) != len(group.resolved)) and used:
        step.tasks = with_entry(step.tasks, name, RegexTask(tuple(sorted(used)), request.denied_topics))
        step.wanted.append(TaskKey(TaskKind.REGEX, name))


def _last(step: Step, group: ConsumerGroup) -> Resolution | None:
    """One of the resolutions stands for all; they can differ where a failed request had asked for fewer."""
    rows = group.resolved
    if len({(found.timestamp, found.version) for found in rows.values()}) > 1:
        return rows[step.choices.table(group.group_id, list(rows))[0]]
    return next(iter(rows.values()), None)


def done(step: Step, event: TaskDone) -> None:
    """A resolution has ended: write the topics that its regexes match; a change bumps the epoch (M-RX-04, M-RX-05,
    F-ORD-15)."""
    name = event.key.group_id
    task = step.tasks[name]
    step.tasks = without(step.tasks, name)
    group = find_consumer_group(step, name)
    if group is not None and not event.failed:
        try:
            _take_up(step, group, task)
        except InternalError:
            return
    operations.timer_done(step)


def _take_up(step: Step, group: ConsumerGroup, task: RegexTask) -> None:
    names = [name for name in step.topics.by_name if name not in task.denied]  # M-RX-06
    resolutions = {
        regex: Resolution(_matches(step, regex, names), step.topics.version, step.at_ms)
        for regex in task.regexes
        if regex in group.by_regex
    }
    written = [records.regular_expression(group.group_id, regex, found) for regex, found in resolutions.items()]
    changed = frozenset[str]().union(
        *(
            found.topics ^ (old.topics if (old := group.resolved.get(regex)) is not None else frozenset())
            for regex, found in resolutions.items()
        )
    )
    topics = group_epoch.look_at_topics(step, group, with_resolutions(group, resolutions).counts)
    written += topics.before
    epoch = next_epoch(group.epoch)
    bumped = bool(changed) or topics.differ
    if bumped:
        written.append(records.group_epoch(group.group_id, epoch, topics.hash))
        group_epoch.set_refresh_deadline(step, group, epoch)
    write_records(step, written)  # F-ORD-15
    if bumped:
        cause = reports.regex_changed(changed) if changed else reports.topics_changed(group)
        reports.started(step, group.group_id, epoch, cause)


def _matches(step: Step, regex: str, names: Iterable[str]) -> frozenset[str]:
    matcher = step.functions.matcher(regex)
    return frozenset() if matcher is None else frozenset(filter(matcher, names))

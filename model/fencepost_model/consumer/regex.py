"""Subscriptions by regular expression (rule book, 7.11)."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from fencepost.protocol.consumer_records import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from fencepost.protocol.errors import ErrorCode

from ..widths import next_epoch
from .derive import group_topics, hashed, subscription, used_regexes
from .found import Found
from .group_step import GroupStep
from .refusal import Refused
from .state import Member, Resolution


class Regex(Enum):
    """The effect of a request's regex on the group epoch."""

    KEEP = "keep"
    BUMP = "bump"


def update_regex(t: GroupStep, found: Found, updated: Member, *, is_join: bool = False) -> Regex:
    """Apply a change of the member's regex (M-RX-02, M-HB-03). ``is_join``: a JoinGroup, with which any change bumps
    (X-JOIN-11). Raises Refused (M-VAL-08)."""
    result = Regex.KEEP
    old, new = found.member.regex, updated.regex
    wanted = False
    if old != new:
        before = used_regexes(t.group.members)
        if old and before.get(old) == 1:
            t.rule("M-RX-02")
            t.write(ConsumerGroupRegularExpressionKey(t.group_id, old), None)
        if is_join:
            result = Regex.BUMP
        elif not new:
            result = Regex.BUMP if t.variant.consumer.dropped_regex_bumps else Regex.KEEP
        elif not before.get(new):
            if t.environment.oracle.matcher(new) is None:
                raise Refused(ErrorCode.INVALID_REGULAR_EXPRESSION, "M-VAL-08")
            wanted = True
        elif t.group.resolved(new) is not None:
            result = Regex.BUMP
        had, has = (subscription(each, t.group, t.environment.image) for each in (found.member, updated))
        if had != has and t.variant.consumer.changed_topics_bump:
            t.rule("LIV-15")
            result = Regex.BUMP
    used = _used_with(t, found.member, updated)
    if t.task is None and needs_resolution(t, used, wanted=wanted):
        t.rule("M-RX-03")
        t.task = Resolution(t.group_id, tuple(sorted(used)), t.denied_topics)
    return result


def _used_with(t: GroupStep, member: Member, updated: Member) -> set[str]:
    """Return the regexes that the group uses after the request. A member that takes another's place while it has a
    regex still counts with that former regex (M-STATIC-15)."""
    used = used_regexes(t.group.members)
    for regex, more in ((member.regex, -1), (updated.regex, 1)):
        if regex:
            used[regex] = used.get(regex, 0) + more
    return {regex for regex, count in used.items() if count > 0}


def needs_resolution(t: GroupStep, used: Collection[str], *, wanted: bool) -> bool:
    """Return whether a resolution must be scheduled (M-RX-03). ``used``: regexes that the group uses, this member's
    included."""
    if not used or t.environment.busy:
        return False
    rows = {row.regex: row for row in t.group.regexes}
    if not rows:
        return True
    at, version = next(iter(rows.values())).timestamp, next(iter(rows.values())).version
    if any((row.timestamp, row.version) != (at, version) for row in rows.values()):
        # Any of them stands for all. They were not all resolved together if a failed request had asked for one
        # (M-HB-13).
        row = rows[t.chooser.pick("resolution", list(rows))]
        at, version = row.timestamp, row.version
    if t.environment.now <= at + t.settings.regex_min_refresh_interval_ms:
        return False
    if wanted or len(used) != len(rows) or version < t.environment.new_topics:
        return True
    is_old = t.environment.now > at + t.settings.group_consumer_regex_refresh_interval_ms
    return is_old and t.variant.consumer.refreshes_regexes


def resolve(t: GroupStep, resolution: Resolution) -> None:
    """Write the result of a resolution, and bump if it changes something (M-RX-05)."""
    t.rule("M-RX-04")
    used = used_regexes(t.group.members)
    image = t.environment.image
    names = [topic.name for topic in image.topics if topic.name not in resolution.hidden]
    rows = {row.regex: row for row in t.group.regexes}
    changed = False
    for regex in resolution.regexes:
        if regex not in used:
            continue
        matches = t.environment.oracle.matcher(regex)
        topics = tuple(sorted([name for name in names if matches is not None and matches(name)]))
        old = rows.get(regex)
        changed |= topics != (() if old is None else old.topics)
        t.rule("M-RX-05")
        value = ConsumerGroupRegularExpressionValue(topics, version=image.version, timestamp=t.environment.now)
        t.write(ConsumerGroupRegularExpressionKey(t.group_id, regex), value)
    after = t.updated_group()
    if after is None:
        return
    topics_now = hashed(group_topics(after.members, after.regexes), image)
    if changed or not t.variant.consumer.has_metadata(t, topics_now):
        t.rule("M-EPOCH-07")
        epoch = next_epoch(t.group.epoch)
        t.write_epoch(epoch, topics_now)
        t.refresh = (t.environment.now + t.settings.metadata_refresh_interval_ms, epoch)

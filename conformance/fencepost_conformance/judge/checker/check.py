"""One trace, one verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, TypeAlias

from fencepost.protocol.consumer_messages import JOIN_EPOCH, ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import JoinGroupRequest, SyncGroupRequest
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings
from fencepost_model.classic.scala import ScalaProfile

from ...traces.files import BrokenTrace, EventTrace, WireTrace, read_stream
from ...traces.lines import Setting
from ...traces.wire.settings import OF_OFFSETS, changed
from .commits import Commit
from .consumer.topics import TopicEvent, topic_events, topic_names
from .consumer.watch import first_consumer_event, watch
from .coordination import is_absent
from .door import while_loading
from .history import Event, History, Op, histories
from .instead import Instead, instead
from .lateness import Slow, only_late
from .listed import wrong_listings
from .listings import add_listings
from .offsets.judge import wrong_offsets
from .offsets.kept import held
from .offsets.metadata import wrong_lengths
from .positions.judge import wrong_positions
from .rows import wrong_rows
from .search import Exhausted, Limits, Search
from .text import answer_text, of_answers, of_wrong, request_text
from .undecoded import undecoded
from .verdict import Outcome, Refusal, Verdict, failed_inside

#: completes the verdict about a trace
Also: TypeAlias = Callable[[WireTrace, Verdict], Verdict]

#: Answers that only a member gets that the coordinator knows.
_OF_KNOWN_MEMBERS = (
    ErrorCode.NONE,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_MEMBER_EPOCH,
)
#: These APIs may wait: until all members and pending ids have joined or the initial delay is over, or the leader syncs.
_WAITS_BY: dict[type, tuple[str, ...]] = {
    JoinGroupRequest: ("C-JOIN-41", "C-JOIN-43", "C-ST-23"),
    SyncGroupRequest: ("C-SYNC-16",),
}
#: How many different answers a refusal lists.
_SHOWN = 8


def alive_before(history: History, *, scala: bool) -> tuple[Event | None, Event | None]:
    """The first answer that shows that the group existed before the trace began, and the first that may show it.

    If the coordinator knows a member id that no answer of the trace gave out, it gave it out before the trace. Only the
    first answer of a coordinator that has loaded counts here; the checker judges later ones. A Heartbeat that was
    answered NONE before that shows such a member, or a coordinator that is loading (C-HB-03).
    """
    may_show: Event | None = None
    consumer = False
    brought: set[str] = set()  #: ids of members that have asked to join, and need not have heard the answer
    for event in history.events:
        consumer = consumer or isinstance(event.op.body, ConsumerGroupHeartbeatRequest)
        if not event.answered and _brings_its_id(event.op):
            brought.add(event.op.body.member_id)  # type: ignore[union-attr]
        if not event.answered or event.op.answer is None:
            continue
        named: str = getattr(event.op.body, "member_id", "")
        code = getattr(event.op.answer, "error_code", None)
        known = code in _OF_KNOWN_MEMBERS
        if isinstance(event.op.body, Commit):  # a group without members asks for none (O-COMMIT-22, O-COMMIT-24)
            known = code is ErrorCode.NONE and event.op.body.generation_id >= 0
        if isinstance(event.op.body, JoinGroupRequest) and consumer:  # Kafka lets any member id in (X-JOIN-06)
            known = False
        shows = event if named and known and named not in brought else None
        if not while_loading(event.op.answer, scala=scala):
            return shows, may_show
        may_show = may_show or shows
    return may_show, may_show


def _brings_its_id(op: Op) -> bool:
    """Whether a new member joins under an id that it has generated itself (M-VAL-09)."""
    return isinstance(op.body, ConsumerGroupHeartbeatRequest) and op.body.member_epoch == JOIN_EPOCH


def _first_impossible(part: Callable[..., Search], furthest: int, last: int) -> tuple[int, bool]:
    """The position of the first event such that the events up to it have no explanation; and whether that is certain.

    The search compares answers before the trace shows them. So it may get stuck (``furthest``) before that position:
    an answer that it gave there may be wrong only because of later events. If a search of a ``part`` takes too long,
    that part counts as not explained. ``last``: the position of the last event.
    """
    certain = True

    def explained(upto: int) -> bool:
        nonlocal certain
        try:
            return part(upto=upto).run()
        except Exhausted:
            certain = False
            return False

    low, high, stride = furthest, last, 1
    while low < high:  # gallop: the first impossible event is mostly near
        probe = min(low + stride - 1, high)
        if not explained(probe + 1):
            high = probe
            break
        low, stride = probe + 1, stride * 2
    while low < high:
        middle = (low + high) // 2
        if explained(middle + 1):
            low = middle + 1
        else:
            high = middle
    return low, certain


def _refusal(history: History, at: int, part: Callable[..., Search]) -> Refusal:
    """The refusal of the event at this position; ``part`` makes a search of the events up to a position."""
    event = history.events[at]
    op = event.op
    rules: dict[str, None] = {}
    allowed: list[str] = []
    difference = None
    if event.answered:
        probe = part(upto=at + 1, probe=True)
        with suppress(Exhausted):
            probe.run()
        for answer, because in probe.answers.items():
            allowed.append(answer_text(answer, op))
            rules.update(dict.fromkeys(because))
        difference = of_answers(op, probe.answers)
        seen = f"{request_text(op)} was answered {answer_text(op.answer, op)}"
        if not allowed:
            allowed.append("no answer yet: the request still has to wait")
            rules.update(dict.fromkeys(_WAITS_BY.get(type(op.body), ())))
    else:
        seen = f"{request_text(op)} was sent while something that must have happened before had not"
    shown = tuple(sorted(set(allowed)))
    return Refusal(history.group_id, event.line, event.at_ms, seen, shown[:_SHOWN], tuple(rules), difference=difference)


def _explained_after_all(whole: Callable[..., Search], limits: Limits) -> bool:
    """Whether a second search, which tries every order of requests up to its limit of steps, explains the trace."""
    try:
        return whole(replace(limits, steps=limits.second_look), reduced=False).run()
    except Exhausted:
        return False


def check_history(history: History, settings: Settings, profile: Profile, limits: Limits) -> tuple[Refusal | None, int]:
    """A refusal or None, and the number of model steps. Raises Exhausted.

    The coordinator rarely looks for expired offsets. So the search tries deletions of the empty group (O-EXP-20) only
    if the trace has no explanation without one.
    """
    whole = partial(Search, history, settings, profile)
    search = whole(limits)
    if search.run() or _explained_after_all(whole, limits):
        return None, search.steps
    last, steps = len(history.events) - 1, search.steps
    part = partial(whole, replace(limits, steps=limits.detail))
    at, certain = _first_impossible(part, search.furthest, last)
    if search.deletable and not search.scala:
        upto = at if certain else last
        whole, part = partial(whole, deletions_upto=upto), partial(part, deletions_upto=upto)
        search = whole(limits)
        explained = search.run() or _explained_after_all(whole, limits)
        steps += search.steps
        if explained:
            return None, steps
        at, _ = _first_impossible(part, search.furthest, last)
    return _refusal(history, at, part), steps


def check_consumer_history(
    history: History, topics: list[TopicEvent], settings: Settings, profile: Profile, limits: Limits
) -> tuple[Refusal | None, int]:
    """As ``check_history``, for a group in which some member speaks the consumer protocol (KIP-848)."""
    begins = first_consumer_event(history)
    assert begins is not None
    steps = 0
    if any(event.answered for event in history.events[:begins]):
        until_then = replace(history, events=history.events[:begins])
        refusal, steps = check_history(until_then, settings, profile, limits)
        if refusal is not None:
            return refusal, steps
    found = watch(history, topics, settings, profile, limits)
    if found is None:
        return None, steps + len(history.events)
    event, wrong = found
    seen = f"{request_text(event.op)} was answered {answer_text(event.op.answer, event.op)}"
    names = topic_names(topics)
    difference = of_wrong(wrong, names)
    refusal = Refusal(
        history.group_id, event.line, event.at_ms, seen, (wrong.allowed,), wrong.rules, difference=difference
    )
    return refusal, steps


def _turned_away(history: History) -> bool:
    """Whether every answer says that the broker is not the coordinator, so that none says anything about the group."""
    answers = [event.op.answer for event in history.events if event.answered]
    return bool(answers) and all(map(is_absent, answers))


def _check_group(
    history: History, topics: list[TopicEvent], profile: Profile, settings: Settings, limits: Limits
) -> tuple[Refusal | None, int]:
    """As ``check_history`` or ``check_consumer_history``, depending on the protocols of the group."""
    if first_consumer_event(history) is None:
        return check_history(history, settings, profile, limits)
    return check_consumer_history(history, topics, settings, profile, limits)


def _brief(limits: Limits) -> Limits:
    """Limits for further searches of a group that was refused already."""
    return replace(limits, steps=limits.detail)


def _instead(
    history: History,
    refusal: Refusal,
    settings: Settings,
    assumed: list[str],
    check: Callable[[Settings], tuple[Refusal | None, int]],
) -> Instead | None:
    def refused_at(other: Settings) -> int | None:
        try:
            found, _ = check(other)
        except Exhausted:
            return 0  # the search gave up: these settings are not known to be better
        return None if found is None else found.line

    return instead(history, refusal.line, settings, assumed, refused_at) if assumed else None


def _line(trace: WireTrace, number: int) -> int:
    """The line in the file of the ``number``-th line after the header, or of the header (0)."""
    return trace.numbers[number] if trace.numbers else number


def _numbered(trace: WireTrace, refusal: Refusal) -> Refusal:
    """The refusal with lines of the file."""
    other = refusal.instead
    if other is not None and other.line is not None:
        other = replace(other, line=_line(trace, other.line))
    return replace(refusal, line=_line(trace, refusal.line), instead=other)


def _first(
    check: Callable[[Settings, Limits], tuple[Refusal | None, int]], settings: Settings, limits: Limits
) -> Refusal | None:
    return check(settings, limits)[0]


def _first_wrong_offset(
    trace: WireTrace, group_id: str, settings: Settings, limits: Limits, *, scala: bool
) -> tuple[Refusal | None, int]:
    """As ``check_history``, for the offsets that were fetched."""
    return next(wrong_offsets(trace, [group_id], settings, limits, scala=scala), None), 0


def check_trace(
    trace: WireTrace,
    path: str = "",
    *,
    limits: Limits | None = None,
    profile: Profile | None = None,
    given: Mapping[str, Setting] | None = None,
    created: str | None = None,
) -> Verdict:
    """The verdict about one wire trace; ``profile`` replaces the one that the trace names, ``given`` (by field) the
    settings in its header. No group whose id begins with ``created`` existed before the trace, and no other client
    uses it.

    Line numbers count the lines of the file. For a trace without a file, they count from 1 after the header.
    """
    limits, profile, given = limits or Limits(), profile or trace.profile, given or {}
    try:
        settings = changed(trace.settings, given)
    except ValueError as contradiction:
        reason = f"these settings do not go together: {contradiction}"
        return Verdict(path, trace.name, "broken", _line(trace, 0), reason)
    assumed = [field for field in trace.assumed if field not in given]
    began = time.perf_counter()
    refusals: list[Refusal] = []
    accepted: list[str] = []
    steps = events = 0
    outcome: Outcome = "accepted"
    line, reason = 0, ""
    scala = isinstance(profile, ScalaProfile)
    groups = histories(trace, scala=scala)
    if not scala:  # its lists are not compared
        add_listings(trace, groups)
    for group_id, times in held(trace, settings, limits).items():
        if group_id in groups:
            groups[group_id].offsets = times
    of_rows = [*wrong_rows(trace), *wrong_lengths(trace, settings, assumed), *wrong_listings(trace)]
    if not groups and not of_rows:
        nothing = "no request about a group" if trace.lines else "no events"
        return Verdict(path, trace.name, "undecided", _line(trace, 0), f"it has {nothing}: there is nothing to check")
    topics = topic_events(trace)
    for history in groups.values():
        events += len(history.events)
        alive = perhaps_alive = None
        if created is None or not history.group_id.startswith(created):
            alive, perhaps_alive = alive_before(history, scala=scala)
        if history.foreign is not None or alive is not None:
            at, why = history.foreign or (alive.line if alive else 0, "was alive before the trace began")
            outcome, line, reason = "undecided", _line(trace, at), f"group {history.group_id!r} {why}"
            continue
        check = partial(_check_group, history, topics, profile)
        try:
            refusal, cost = check(settings, limits)
        except Exhausted as given_up:
            outcome, line, reason = "undecided", _line(trace, 0), f"group {history.group_id!r}: {given_up}"
            continue
        steps += cost
        if refusal is not None and perhaps_alive is not None:
            outcome, line = "undecided", _line(trace, perhaps_alive.line)
            reason = f"group {history.group_id!r} seems to have been alive before the trace began"
        elif refusal is not None:
            found = only_late(trace, refusal, limits, partial(_first, check, settings))
            if isinstance(found, Slow):
                outcome, line = "undecided", _line(trace, found.line)
                reason = found.sentence(history.group_id, limits.slack_ms)
                continue
            refusal = found
            other = _instead(history, refusal, settings, assumed, partial(check, limits=_brief(limits)))
            refusals.append(_numbered(trace, replace(refusal, instead=other)))
        elif _turned_away(history):
            outcome, line = "undecided", _line(trace, history.events[0].line)
            reason = f"group {history.group_id!r}: each answer says that the broker is not the coordinator"
        else:
            accepted.append(history.group_id)
    named_groups = [*accepted, *(each.group_id for each in refusals)]
    for wrong in wrong_offsets(trace, named_groups, settings, limits, scala=scala):
        of_group = partial(_first_wrong_offset, trace, wrong.group_id, scala=scala)
        found = only_late(trace, wrong, limits, partial(_first, of_group, settings))
        if isinstance(found, Slow):
            outcome, line = "undecided", _line(trace, found.line)
            reason = found.sentence(wrong.group_id, limits.slack_ms)
            continue
        of_offsets = [field for field in assumed if field in OF_OFFSETS]
        other = _instead(groups[wrong.group_id], found, settings, of_offsets, partial(of_group, limits=limits))
        refusals.append(_numbered(trace, replace(found, instead=other)))
    refusals += [_numbered(trace, refusal) for refusal in wrong_positions(trace, accepted)]
    named = {(refusal.group_id, refusal.line) for refusal in refusals}
    for refusal in of_rows:
        numbered = _numbered(trace, refusal)
        if (numbered.group_id, numbered.line) not in named:
            refusals.append(numbered)
    unread = undecoded(trace)
    refusals += [_numbered(trace, refusal) for refusal in unread.refusals]
    if unread.line and outcome == "accepted":
        outcome, line, reason = "undecided", _line(trace, unread.line), unread.why
    if refusals:
        outcome = "refused"
    return Verdict(
        path,
        trace.name,
        outcome,
        line,
        reason,
        tuple(refusals),
        len(groups),
        events,
        steps,
        time.perf_counter() - began,
    )


def check_file(
    path: Path,
    limits: Limits | None = None,
    profile: Profile | None = None,
    given: Mapping[str, Setting] | None = None,
    *,
    also: Also = lambda _, verdict: verdict,
) -> Iterator[Verdict]:
    """The verdict about each trace of a file; ``also`` may say more about a trace. Never raises, whatever the file
    contains or if it does not exist."""
    try:
        with path.open("rb") as stream:
            yield from check_stream(str(path), stream, limits, profile, given, also=also)
    except OSError as error:
        yield Verdict(str(path), "", "broken", 0, error.strerror or str(error))


def check_stream(
    path: str,
    stream: IO[bytes],
    limits: Limits | None = None,
    profile: Profile | None = None,
    given: Mapping[str, Setting] | None = None,
    *,
    also: Also = lambda _, verdict: verdict,
) -> Iterator[Verdict]:
    """The verdict about each trace in the bytes of the file at ``path``. Never raises, whatever they contain."""
    for trace in read_stream(path, stream):
        if isinstance(trace, BrokenTrace):
            yield Verdict(path, "", "broken", trace.line, trace.reason)
        elif isinstance(trace, EventTrace):
            reason = "a trace of kind 'events'; validate checks traces of kind 'wire'"
            yield Verdict(path, trace.name, "broken", 1, reason)
        else:
            yield _without_raising(trace, path, limits, profile, given, also=also)


def _without_raising(
    trace: WireTrace,
    path: str,
    limits: Limits | None,
    profile: Profile | None,
    given: Mapping[str, Setting] | None,
    *,
    also: Also,
) -> Verdict:
    """As ``check_trace``. A trace on which the checker itself fails is broken; the traces after it are still judged."""
    try:
        return also(trace, check_trace(trace, path, limits=limits, profile=profile, given=given))
    except Exception as error:
        return Verdict(path, trace.name, "broken", _line(trace, 0), failed_inside(error))

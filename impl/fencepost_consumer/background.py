"""The new consumer's background, as far as it serves polls and ``position`` (8.12).

Java's new consumer has two threads: the application's thread passes events to the background thread. Each poll leaves
one event there, and there is at most one (N-POLL-01). This module handles the reader's part of it: a *search* for
positions (validate them, set committed ones, reset the rest), and fetches when the search is over. A search outlives
the poll that began it: offsets are used as soon as they are known, and fetches are sent then, even without a poll
(N-POLL-03). The next poll throws the problem of a search.

Here the two threads are one: an event is handled where it is passed on, and requests are sent at the end of the step.
Any other interleaving of the two threads equals one with a slower network or application.
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.member.events import PollPart
from fencepost.protocol.partitions import TopicPartition
from fencepost_consumer import commits, committed, fetching, positions
from fencepost_consumer.events import CallReturned, Problem, ProblemKind
from fencepost_consumer.state import LookupKey, PollEvent, Search, Waiting
from fencepost_consumer.turn import Turn
from fencepost_consumer.working_copy import Thrown

# --- the poll event ---


def poll(turn: Turn, part: PollPart) -> None:
    """Do the work before records are returned (N-POLL-01). In a group the member's work comes between the parts: the
    background reconciles before it commits and searches; then listeners run."""
    whole = part is PollPart.WHOLE
    if whole or part is PollPart.BEGIN:
        held = _queued(turn) and not turn.rules.every_poll_checks
        polled = turn.reader.polled
        turn.reader = turn.reader._replace(polled=replace(polled, held=True) if polled is not None and held else None)
    if whole or part is PollPart.BACKGROUND:
        _work_off(turn)
    if part is PollPart.BACKGROUND_EVENTS:
        lasts(turn)
    if whole or part is PollPart.END:
        _throw(turn)
        polled = turn.reader.polled
        if polled is not None and (polled.held or (polled.lasted and _over(turn, polled))):
            turn.reader = turn.reader._replace(polled=None)
        positions.check(turn)
    if part is PollPart.BROKEN:
        turn.reader = turn.reader._replace(polled=None)  # N-POLL-03


def lasts(turn: Turn) -> None:
    """Record that the application's thread waits for the background during a poll, which may then handle its event."""
    if turn.reader.polled is not None:
        turn.reader = turn.reader._replace(polled=replace(turn.reader.polled, lasted=True))


def _work_off(turn: Turn) -> None:
    if turn.reader.polled is None:
        commits.maybe_auto_commit(turn)
        turn.reader = turn.reader._replace(polled=PollEvent(turn.reader.next_search))
        _begin(turn, turn.now, polls=True)
    try:
        commits.run_callbacks(turn)
        turn.check_coordinator()
    except Thrown:
        turn.reader = turn.reader._replace(polled=None)  # N-POLL-03
        raise


def _queued(turn: Turn) -> bool:
    """Return whether fetched records from the last poll's event are still queued. Throw the problem of that event."""
    _throw(turn)
    polled = turn.reader.polled
    return polled is not None and _over(turn, polled) and any(not each.in_line for each in turn.reader.buffer)


def _over(turn: Turn, polled: PollEvent) -> bool:
    return all(each.number != polled.search for each in turn.reader.searches)


def _throw(turn: Turn) -> None:
    polled = turn.reader.polled
    if polled is not None and polled.problem is not None:
        turn.reader = turn.reader._replace(polled=None)
        raise Thrown(_take_problem(turn, polled.problem))


def _take_problem(turn: Turn, problem: Problem) -> Problem:
    """Return the problem to throw. It is not kept for the next search."""
    if problem == turn.reader.lookup_problem and turn.rules.searches_throw_once:
        turn.reader = turn.reader._replace(lookup_problem=None)
    return problem


def send_fetches(turn: Turn) -> None:
    """Send fetches at the end of a step, if they were requested in it."""
    if turn.reader.fetches_wanted:
        turn.reader = turn.reader._replace(fetches_wanted=False)
        waiting = turn.reader.waiting
        if not turn.reader.closed or (waiting is not None and waiting.commit is not None):
            fetching.send_fetches(turn)  # even while a close commits


def want_fetches(turn: Turn) -> None:
    """Request fetches at the end of this step."""
    turn.reader = turn.reader._replace(fetches_wanted=True)


# --- position ---


def position(turn: Turn, waiting: Waiting, partition: TopicPartition) -> CallReturned | None:
    """Run searches one after another until there is a position; None while the call waits. During a search nothing else
    is checked. After a search without an effect the call waits for the next event, where Java loops without a pause
    (N-POLL-05)."""
    while True:
        if waiting.searched:
            turn.wake()  # K-POLL-06: the search continues
        if waiting.search is not None:
            return None
        if waiting.problem is not None:
            raise Thrown(_take_problem(turn, waiting.problem))
        offset = turn.reader.position(partition)
        if offset is not None:
            return CallReturned(offset)
        before = turn.reader.partitions, turn.reader.next_request_id
        number = turn.reader.next_search
        turn.reader = turn.reader._replace(waiting=replace(waiting, search=number, searched=True))
        _begin(turn, waiting.deadline_ms, polls=False)
        turn.wake()
        assert turn.reader.waiting is not None
        waiting = turn.reader.waiting
        after = turn.reader.partitions, turn.reader.next_request_id
        if waiting.search is None and waiting.problem is None and before == after:
            return None


# --- searches ---


def _begin(turn: Turn, deadline_ms: int, *, polls: bool) -> None:
    """Begin a search: validate positions, then look for missing ones (K-POS-01, K-POS-07)."""
    search = Search(turn.reader.next_search, deadline_ms, polls)
    turn.reader = turn.reader._replace(next_search=search.number + 1, searches=(*turn.reader.searches, search))
    problem = turn.reader.lookup_problem
    if problem is not None:
        turn.reader = turn.reader._replace(lookup_problem=None)
        _end(turn, search, problem)
        return
    try:
        positions.validate(turn)
    except Thrown as thrown:
        _end(turn, search, thrown.problem)
        return
    if all(state.valid for state in turn.reader.partitions.values()):
        _end(turn, search)
        return
    search = replace(search, initializing=turn.reader.initializing)
    if search.initializing and turn.reader.settings.group_id:
        _put(turn, replace(search, lookup=_look_up(turn, search)))
    else:
        _reset(turn, search)


def _look_up(turn: Turn, search: Search) -> LookupKey:
    """Return the look-up to wait for: the last one, if it is for the same partitions, else a new one (N-POLL-03)."""
    last = turn.reader.last_lookup
    if last is not None and set(turn.reader.lookups[last].partitions) == set(search.initializing):
        return last
    turn.reader = turn.reader._replace(last_lookup=search.number)
    until = turn.now + turn.reader.settings.default_api_timeout_ms
    committed.begin(turn, search.number, search.initializing, max(search.deadline_ms, until))
    return search.number


def continue_lookups(turn: Turn) -> None:
    """Use look-ups that have ended; send those that wait, if they may be sent."""
    for key in reversed(_theirs(turn)):
        lookup = turn.reader.lookups[key]
        if not lookup.over:
            continue
        committed.drop(turn, key)
        turn.reader = turn.reader._replace(last_lookup=None)
        if lookup.problem is None:
            committed.take(turn, lookup)
        for search in [each for each in turn.reader.searches if each.lookup == key]:
            if lookup.problem is not None:
                _meets(turn, search, lookup.problem)
            else:
                _reset(turn, replace(search, lookup=None))
    for waiting in turn.reader.lookups:
        committed.maybe_send_lookup(turn, waiting)


def _theirs(turn: Turn) -> list[int]:
    """Return the keys of look-ups that searches have begun."""
    return [each for each in turn.reader.lookups if isinstance(each, int)]


def _reset(turn: Turn, search: Search) -> None:
    """Reset partitions without a committed offset, and those that await a reset (K-POS-02, K-POS-03)."""
    first = turn.reader.next_request_id
    try:
        positions.reset_initializing(turn, search.initializing)
        positions.send_resets(turn)
    except Thrown as thrown:
        _meets(turn, search, thrown.problem)
        return
    asked = frozenset(range(first, turn.reader.next_request_id))
    if asked:
        _put(turn, replace(search, resets=asked))
    else:
        _end(turn, search)


def landed(turn: Turn, request_id: int) -> None:
    """Record that a request to a leader has ended. With its last one, a search ends, whatever the results
    (K-POS-03)."""
    for search in turn.reader.searches:
        if request_id in search.resets:
            left = search.resets - {request_id}
            if left:
                _put(turn, replace(search, resets=left))
            else:
                _end(turn, search)


def forget(turn: Turn) -> None:
    """Drop look-ups for a partition that was taken away; their results do not count if it returns (K-POS-08)."""
    for key in _theirs(turn):
        if not turn.reader.partitions.keys() >= set(turn.reader.lookups[key].partitions):
            committed.drop(turn, key)
            if turn.reader.last_lookup == key:
                turn.reader = turn.reader._replace(last_lookup=None)
            for search in turn.reader.searches:
                if search.lookup == key:
                    _end(turn, search)


def _meets(turn: Turn, search: Search, problem: Problem) -> None:
    """Fail a search. If its time is over, the next search throws the problem too (N-POLL-03)."""
    if turn.now >= search.deadline_ms:
        turn.reader = turn.reader._replace(lookup_problem=problem)
    _end(turn, search, problem)


def _end(turn: Turn, search: Search, problem: Problem | None = None) -> None:
    """End a search, and pass its problem to the call that began it. A timeout of the look-up is passed to a poll, but
    not to ``position``, which searches again."""
    reader = turn.reader
    turn.reader = reader._replace(searches=tuple(each for each in reader.searches if each.number != search.number))
    if search.polls:
        if problem is None:
            want_fetches(turn)
        elif reader.polled is not None and reader.polled.search == search.number:
            turn.reader = turn.reader._replace(polled=replace(reader.polled, problem=problem))
    elif reader.waiting is not None and reader.waiting.search == search.number:
        passed_problem = None if problem is not None and problem.kind is ProblemKind.TIMEOUT else problem
        turn.reader = turn.reader._replace(waiting=replace(reader.waiting, search=None, problem=passed_problem))


def _put(turn: Turn, search: Search) -> None:
    searches = tuple(search if each.number == search.number else each for each in turn.reader.searches)
    turn.reader = turn.reader._replace(searches=searches)

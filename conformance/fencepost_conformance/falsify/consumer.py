"""Falsehoods about groups with the consumer protocol (KIP-848), with the reason for each.

As in ``classic``. Most use what is certain about a member that the trace shows from its first heartbeat on: its epoch
and its partitions (``stories``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from fencepost.protocol.errors import ErrorCode as E

from ..trace.files import WireTrace
from ..trace.lines import SentLine
from .exchanges import Exchange, altered, without
from .kinds import Made, falsehood
from .stories import CALM_MS, Beat, held_around, names_of, rows, stories, unanswered

_TOPIC_APIS: Final = frozenset({19, 20, 37})  # CreateTopics, DeleteTopics, CreatePartitions
#: The other fields of a heartbeat answered with an error: all empty.
_NOTHING: Final = {"member_id": None, "member_epoch": 0, "heartbeat_interval_ms": 0, "assignment": None}


def _beats(trace: WireTrace, all_: list[Exchange]) -> Iterator[Beat]:
    for beats in stories(trace, all_).values():
        yield from beats


# ---- errors ---------------------------------------------------------------------------------------------------------


def _error(trace: WireTrace, beat: Beat, error: E) -> WireTrace:
    return altered(trace, {beat.one.received: {**_NOTHING, "error_code": int(error)}})


@falsehood
def consumer_unknown_member(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member that is gone stays gone (M-FENCE-01), but its next heartbeat is answered NONE."""
    for beat in _beats(trace, all_):
        follows = beat.next is not None and beat.next.error == E.NONE and beat.next.ask["member_epoch"] > 0
        if beat.calm and follows and beat.next is not None:
            yield _error(trace, beat, E.UNKNOWN_MEMBER_ID), beat.one.received, beat.next.received


@falsehood
def consumer_fenced(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member that names its current epoch is not fenced (M-FENCE-06)."""
    for beat in _beats(trace, all_):
        if beat.calm:
            yield _error(trace, beat, E.FENCED_MEMBER_EPOCH), beat.one.received, beat.one.received


@falsehood
def consumer_group_not_found(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A group with a member exists (M-VAL-20)."""
    for beat in _beats(trace, all_):
        if beat.calm:
            yield _error(trace, beat, E.GROUP_ID_NOT_FOUND), beat.one.received, beat.one.received


@falsehood
def consumer_instance_fenced(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member keeps its instance id unless another member comes with it (M-STATIC-05)."""
    for beat in _beats(trace, all_):
        yield _error(trace, beat, E.FENCED_INSTANCE_ID), beat.one.received, beat.one.received


@falsehood
def consumer_instance_unreleased(trace: WireTrace, all_: list[Exchange]) -> Made:
    """An instance id that no other member has is not unreleased (M-STATIC-02)."""
    for beat in _beats(trace, all_):
        yield _error(trace, beat, E.UNRELEASED_INSTANCE_ID), beat.one.received, beat.one.received


@falsehood
def consumer_invalid(trace: WireTrace, all_: list[Exchange]) -> Made:
    """The request is well formed (M-VAL-09…14)."""
    for beat in _beats(trace, all_):
        yield _error(trace, beat, E.INVALID_REQUEST), beat.one.received, beat.one.received


# ---- epochs ---------------------------------------------------------------------------------------------------------


@falsehood
def consumer_epoch_ahead(trace: WireTrace, all_: list[Exchange]) -> Made:
    """The member continues with the epoch that it really got, and is not fenced for it (M-FENCE-05)."""
    for beat in _beats(trace, all_):
        after = beat.next
        goes_on = after is not None and after.error == E.NONE and after.ask["topic_partitions"] is None
        if goes_on and after is not None and after.ask["member_epoch"] == beat.epoch:
            changed = altered(trace, {beat.one.received: {"member_epoch": beat.epoch + 1}})
            yield changed, beat.one.received, after.received


@falsehood
def consumer_epoch_back(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member never falls behind the epoch that it names (INV-KIP-04)."""
    for beat in _beats(trace, all_):
        if beat.asked > 1:
            changed = altered(trace, {beat.one.received: {"member_epoch": beat.asked - 1}})
            yield changed, beat.one.received, beat.one.received


def _lasts_through(other: Beat, join: Beat) -> bool:
    """Whether the other heartbeat's member was there before the join, and sent another heartbeat after it."""
    before = other.before
    return other.calm and before is not None and before.received < join.one.sent and join.one.received < other.one.sent


@falsehood
def consumer_join_behind(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A new member starts at the target's epoch, which others had reached before (M-REC-22, INV-KIP-03)."""
    beats = list(_beats(trace, all_))
    for beat in beats:
        seen = [other.epoch for other in beats if other.one.received < beat.one.sent]
        # without members, a JoinGroup or the expiry of offsets may begin a new group (X-JOIN-06, O-EXP-20)
        kept = any(_lasts_through(other, beat) for other in beats)
        classic = any(each.api == "JoinGroup" for each in all_)
        if kept and not classic and beat.asked == 0 and seen and beat.epoch >= max(seen) > 1:
            changed = altered(trace, {beat.one.received: {"member_epoch": max(seen) - 1}})
            yield changed, beat.one.received, beat.one.received


@falsehood
def consumer_left_behind(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member with nothing to revoke follows the target's epoch, which another has reached (M-REC-02, M-REC-04)."""
    beats = list(_beats(trace, all_))
    for beat in beats:
        there = any(other.one.received < beat.one.sent and other.epoch >= beat.epoch for other in beats)
        plain = beat.had == beat.has and beat.one.answer["assignment"] is None
        if 0 < beat.asked < beat.epoch and there and plain:
            changed = altered(trace, {beat.one.received: {"member_epoch": beat.asked}})
            yield changed, beat.one.received, beat.one.received


# ---- assignments ----------------------------------------------------------------------------------------------------


@falsehood
def consumer_assignment_missing(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A full request is answered with the assignment (M-RSP-01)."""
    for each in all_:
        if each.api == "ConsumerGroupHeartbeat" and each.ask["member_epoch"] == 0 and each.error == E.NONE:
            yield altered(trace, {each.received: {"assignment": None}}), each.received, each.received


@falsehood
def consumer_assignment_unasked(trace: WireTrace, all_: list[Exchange]) -> Made:
    """An unchanged assignment is only sent to a member that asks for it (M-RSP-01)."""
    for beat in _beats(trace, all_):
        if beat.calm and beat.one.answer["assignment"] is None:
            yield (
                altered(trace, {beat.one.received: {"assignment": rows(beat.has)}}),
                beat.one.received,
                beat.one.received,
            )


@falsehood
def consumer_assignment_beyond(trace: WireTrace, all_: list[Exchange]) -> Made:
    """Only partitions that exist are assigned (INV-KIP-05)."""
    known = set(names_of(trace).values())
    for beat in _beats(trace, all_):
        topics = sorted({topic for topic, _ in beat.has} & known)
        if topics and beat.one.answer["assignment"]:
            wrong = rows(beat.has | {(topics[0], 10_000)})
            yield altered(trace, {beat.one.received: {"assignment": wrong}}), beat.one.received, beat.one.received


@falsehood
def consumer_assignment_foreign(trace: WireTrace, all_: list[Exchange]) -> Made:
    """Only partitions of topics to which the member subscribes are assigned (A-PROP-03)."""
    known = names_of(trace)
    for member, beats in stories(trace, all_).items():
        asked = [beat.one.ask for beat in beats]
        named = {name for ask in asked for name in ask["subscribed_topic_names"] or ()}
        others = sorted(known.keys() - named)
        by_name = not any(ask["subscribed_topic_regex"] for ask in asked)
        if not others or not by_name or not named <= known.keys() or not member:
            continue
        for beat in beats:
            if beat.one.answer["assignment"]:
                wrong = rows(beat.has | {(known[others[0]], 0)})
                yield altered(trace, {beat.one.received: {"assignment": wrong}}), beat.one.received, beat.one.received


@falsehood
def consumer_assignment_short(trace: WireTrace, all_: list[Exchange]) -> Made:
    """When the group is quiet, every partition of the subscribed topics is assigned (A-PROP-01)."""
    for beat, end in _quiet_after(trace, all_):
        if beat.has:
            wrong = rows(beat.has - {max(beat.has)})
            yield altered(trace, {beat.one.received: {"assignment": wrong}}), beat.one.received, end


def _quiet_after(trace: WireTrace, all_: list[Exchange]) -> Iterator[tuple[Beat, int]]:
    """Yield the last heartbeats that assigned something before a quiet period, and a line in that period by which every
    member has sent two heartbeats. Groups with classic or static members or regexes are left out."""
    told = stories(trace, all_)
    heartbeats = [each for each in all_ if each.api == "ConsumerGroupHeartbeat"]
    known = names_of(trace).keys()
    for each in all_:
        ask = each.ask
        named = set(ask.get("subscribed_topic_names") or ())
        other = each.api == "JoinGroup" or ask.get("instance_id") or ask.get("subscribed_topic_regex")
        if other or not named <= known or ask.get("subscribed_topic_names") == []:
            return
    changes = [at for at, line in enumerate(trace.lines) if getattr(line, "api_key", 0) in _TOPIC_APIS]
    moves = {each.received for each in heartbeats if each.answer["assignment"] is not None or each.error != E.NONE}
    moves |= {each.sent for each in heartbeats if each.ask["member_epoch"] <= 0}
    moves |= {at for at, _ in unanswered(trace, all_)} | set(changes)
    moves |= {beat.one.received for beats in told.values() for beat in beats if beat.asked != beat.epoch}
    left = {each.ask["member_id"] for each in heartbeats if each.ask["member_epoch"] == -1 and each.error == E.NONE}
    lost = {str(line.body.get("member_id")) for line in trace.lines if isinstance(line, SentLine)} - left - {"None"}
    for beats in told.values():
        for beat in beats:
            begin = beat.one.received
            if any(name not in told or told[name][-1].one.received <= begin for name in lost):
                continue  # a member that went without leaving may still count
            end = min([at for at in moves if at > begin], default=len(trace.lines))
            # By then every request uses the current topics (M-EPOCH-03, M-TGT-08).
            known_ms = max([trace.lines[at].at_ms for at in changes if at < begin], default=0) + CALM_MS + 500
            known_ms = max(known_ms, beat.one.received_ms) + trace.settings.group_consumer_assignment_interval_ms
            quiet = [
                [
                    other.one
                    for other in theirs
                    if begin < other.one.sent and other.one.received < end and other.one.sent_ms > known_ms
                ]
                for theirs in told.values()
                if theirs[-1].one.received > begin > theirs[0].one.received or theirs is beats
            ]
            if beat.one.answer["assignment"] is None or not all(len(row) > 2 for row in quiet):
                continue
            same = len({one.answer["member_epoch"] for row in quiet for one in row} | {beat.epoch}) == 1
            if same:
                yield beat, end - 1


@falsehood
def consumer_two_owners(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A partition that another member certainly holds is not assigned (INV-KIP-01, INV-KIP-09)."""
    told = stories(trace, all_)
    for member, beats in told.items():
        for beat in beats:
            if beat.one.answer["assignment"]:
                for other in (name for name in told if name != member):
                    held = held_around(told[other], beat.one) - beat.has
                    if held:
                        wrong = rows(beat.has | {min(held)})
                        changed = altered(trace, {beat.one.received: {"assignment": wrong}})
                        yield changed, beat.one.received, beat.one.received
                        break


@falsehood
def consumer_revocation_untold(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member holds what it was not asked to revoke, and no other member is given it (M-RSP-03, INV-KIP-01)."""
    told = stories(trace, all_)
    for member, beats in told.items():
        for at, beat in enumerate(beats):
            lost = beat.had - beat.has
            if not lost or beat.asked != beat.epoch or beat.asked == 0:
                continue
            again = [later.one.received for later in beats[at + 1 :] if later.one.answer["assignment"] is not None]
            ends = min([*again, beats[-1].one.received])
            given = [
                later.one.received
                for name in told
                if name != member
                for later in told[name]
                if later.one.received > beat.one.received and later.has & lost
            ]
            if given and min(given) < ends and _steady(beats[at:], min(given)):
                yield altered(trace, {beat.one.received: {"assignment": None}}), beat.one.received, min(given)


def _steady(beats: list[Beat], until: int) -> bool:
    """Whether its heartbeats are frequent enough that it is a member the whole time."""
    times = [beat.one for beat in beats if beat.one.sent < until]
    if not all(two.received_ms - one.sent_ms < CALM_MS for one, two in pairwise(times)):
        return False
    after = [beat.one for beat in beats if beat.one.received > until]
    return bool(after) and after[0].sent > until and after[0].received_ms - times[-1].sent_ms < CALM_MS


# ---- the rest -------------------------------------------------------------------------------------------------------


@falsehood
def consumer_swapped(trace: WireTrace, all_: list[Exchange]) -> Made:
    """Two members get each other's answer (M-HB-10)."""
    beats = sorted(_beats(trace, all_), key=lambda beat: beat.one.received)
    for one, two in pairwise(beats):
        if one.one.ask["member_id"] != two.one.ask["member_id"]:
            changes = {one.one.received: two.one.answer, two.one.received: one.one.answer}
            yield altered(trace, changes), one.one.received, one.one.received


@falsehood
def consumer_interval(trace: WireTrace, all_: list[Exchange]) -> Made:
    """The heartbeat interval is the broker's (M-HB-10, G-CFG-11)."""
    for beat in _beats(trace, all_):
        wrong = beat.one.answer["heartbeat_interval_ms"] + 1
        changed = altered(trace, {beat.one.received: {"heartbeat_interval_ms": wrong}})
        yield changed, beat.one.received, beat.one.received


@falsehood
def consumer_join_forgotten(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member that never joined is unknown (M-FENCE-01)."""
    for beat in _beats(trace, all_):
        after = beat.next
        alive = any(each.received < beat.one.sent and each.error == E.NONE for each in all_)
        if alive and beat.asked == 0 and after is not None and after.error == E.NONE:
            yield without(trace, beat.one), beat.one.sent, after.received


@falsehood
def consumer_leave_epoch(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member that leaves is answered with the epoch that it left with (M-RSP-04)."""
    for each in all_:
        if each.api == "ConsumerGroupHeartbeat" and each.ask["member_epoch"] < 0 and each.error == E.NONE:
            yield altered(trace, {each.received: {"member_epoch": 1}}), each.received, each.received


@falsehood
def consumer_leave_unknown(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member whose heartbeat was just answered NONE can leave (M-LEAVE-02)."""
    for beats in stories(trace, all_).values():
        last = beats[-1]
        later = sorted((each for each in all_ if each.sent > last.one.sent), key=lambda each: each.sent)
        mine = [each for each in later if each.ask.get("member_id") == last.one.ask["member_id"]]
        for leave in [each for each in mine if each.api == "ConsumerGroupHeartbeat"][:1]:
            near = leave.sent > last.one.received and leave.received_ms - last.one.sent_ms < CALM_MS
            if near and leave.ask["member_epoch"] == -1 and leave.error == E.NONE and not last.revoking:
                fields = {**_NOTHING, "error_code": int(E.UNKNOWN_MEMBER_ID)}
                yield altered(trace, {leave.received: fields}), leave.received, leave.received


@falsehood
def consumer_commit_stale(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A commit with the member's current epoch is not stale (O-COMMIT-33)."""
    told = stories(trace, all_)
    for each in all_:
        beats = told.get(each.ask.get("member_id", ""), []) if each.api == "OffsetCommit" else []
        for beat in beats:
            epoch = each.ask.get("generation_id_or_member_epoch")
            around = beat.one.received < each.sent and beat.next is not None and beat.next.sent > each.received
            near = each.received_ms - beat.one.sent_ms < CALM_MS
            codes = {row["error_code"] for topic in each.answer["topics"] for row in topic["partitions"]}
            if around and near and epoch == beat.epoch and codes == {0} and not beat.revoking:
                stale = int(E.STALE_MEMBER_EPOCH)
                topics = [
                    {**topic, "partitions": [{**row, "error_code": stale} for row in topic["partitions"]]}
                    for topic in each.answer["topics"]
                ]
                yield altered(trace, {each.received: {"topics": topics}}), each.received, each.received

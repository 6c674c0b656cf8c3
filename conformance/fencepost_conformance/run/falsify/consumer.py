"""Falsehoods about groups with the consumer protocol (KIP-848), with the reason for each.

As in ``classic``. Most use what is certain about a member that the trace shows from its first heartbeat on: its epoch
and its partitions (``heartbeat_histories``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from fencepost.protocol.errors import ErrorCode as E

from ...traces.files import WireTrace
from ...traces.lines import SentLine
from .exchanges import Exchange, altered, without
from .heartbeat_histories import (
    CALM_MS,
    HeartbeatExchange,
    heartbeat_histories,
    held_during,
    names_of,
    rows,
    unanswered,
)
from .kinds import Made, falsehood

_TOPIC_APIS: Final = frozenset({19, 20, 37})  # CreateTopics, DeleteTopics, CreatePartitions
#: The other fields of a heartbeat answered with an error: all empty.
_NOTHING: Final = {"member_id": None, "member_epoch": 0, "heartbeat_interval_ms": 0, "assignment": None}


def _every_heartbeat(trace: WireTrace, all_: list[Exchange]) -> Iterator[HeartbeatExchange]:
    for history in heartbeat_histories(trace, all_).values():
        yield from history


# ---- errors ---------------------------------------------------------------------------------------------------------


def _error(trace: WireTrace, heartbeat: HeartbeatExchange, error: E) -> WireTrace:
    return altered(trace, {heartbeat.one.received: {**_NOTHING, "error_code": int(error)}})


@falsehood
def consumer_unknown_member(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member that is gone stays gone (M-FENCE-01), but its next heartbeat is answered NONE."""
    for heartbeat in _every_heartbeat(trace, all_):
        follows = (
            heartbeat.next is not None and heartbeat.next.error == E.NONE and heartbeat.next.ask["member_epoch"] > 0
        )
        if heartbeat.calm and follows and heartbeat.next is not None:
            yield _error(trace, heartbeat, E.UNKNOWN_MEMBER_ID), heartbeat.one.received, heartbeat.next.received


@falsehood
def consumer_fenced(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member that names its current epoch is not fenced (M-FENCE-06)."""
    for heartbeat in _every_heartbeat(trace, all_):
        if heartbeat.calm:
            yield _error(trace, heartbeat, E.FENCED_MEMBER_EPOCH), heartbeat.one.received, heartbeat.one.received


@falsehood
def consumer_group_not_found(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A group with a member exists (M-VAL-20)."""
    for heartbeat in _every_heartbeat(trace, all_):
        if heartbeat.calm:
            yield _error(trace, heartbeat, E.GROUP_ID_NOT_FOUND), heartbeat.one.received, heartbeat.one.received


@falsehood
def consumer_instance_fenced(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member keeps its instance id unless another member comes with it (M-STATIC-05)."""
    for heartbeat in _every_heartbeat(trace, all_):
        yield _error(trace, heartbeat, E.FENCED_INSTANCE_ID), heartbeat.one.received, heartbeat.one.received


@falsehood
def consumer_instance_unreleased(trace: WireTrace, all_: list[Exchange]) -> Made:
    """An instance id that no other member has is not unreleased (M-STATIC-02)."""
    for heartbeat in _every_heartbeat(trace, all_):
        yield _error(trace, heartbeat, E.UNRELEASED_INSTANCE_ID), heartbeat.one.received, heartbeat.one.received


@falsehood
def consumer_invalid(trace: WireTrace, all_: list[Exchange]) -> Made:
    """The request is well formed (M-VAL-09…14)."""
    for heartbeat in _every_heartbeat(trace, all_):
        yield _error(trace, heartbeat, E.INVALID_REQUEST), heartbeat.one.received, heartbeat.one.received


# ---- epochs ---------------------------------------------------------------------------------------------------------


@falsehood
def consumer_epoch_ahead(trace: WireTrace, all_: list[Exchange]) -> Made:
    """The member continues with the epoch that it really got, and is not fenced for it (M-FENCE-05)."""
    for heartbeat in _every_heartbeat(trace, all_):
        after = heartbeat.next
        continues = after is not None and after.error == E.NONE and after.ask["topic_partitions"] is None
        if continues and after is not None and after.ask["member_epoch"] == heartbeat.epoch:
            changed = altered(trace, {heartbeat.one.received: {"member_epoch": heartbeat.epoch + 1}})
            yield changed, heartbeat.one.received, after.received


@falsehood
def consumer_epoch_back(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member never falls behind the epoch that it names (INV-KIP-04)."""
    for heartbeat in _every_heartbeat(trace, all_):
        if heartbeat.asked > 1:
            changed = altered(trace, {heartbeat.one.received: {"member_epoch": heartbeat.asked - 1}})
            yield changed, heartbeat.one.received, heartbeat.one.received


def _lasts_through(other: HeartbeatExchange, join: HeartbeatExchange) -> bool:
    """Whether the other heartbeat's member was there before the join, and sent another heartbeat after it."""
    before = other.before
    return other.calm and before is not None and before.received < join.one.sent and join.one.received < other.one.sent


@falsehood
def consumer_join_behind(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A new member starts at the target's epoch, which others had reached before (M-REC-22, INV-KIP-03)."""
    history = list(_every_heartbeat(trace, all_))
    for heartbeat in history:
        seen = [other.epoch for other in history if other.one.received < heartbeat.one.sent]
        # without members, a JoinGroup or the expiry of offsets may begin a new group (X-JOIN-06, O-EXP-20)
        kept = any(_lasts_through(other, heartbeat) for other in history)
        classic = any(each.api == "JoinGroup" for each in all_)
        if kept and not classic and heartbeat.asked == 0 and seen and heartbeat.epoch >= max(seen) > 1:
            changed = altered(trace, {heartbeat.one.received: {"member_epoch": max(seen) - 1}})
            yield changed, heartbeat.one.received, heartbeat.one.received


@falsehood
def consumer_left_behind(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member with nothing to revoke follows the target's epoch, which another has reached (M-REC-02, M-REC-04)."""
    history = list(_every_heartbeat(trace, all_))
    for heartbeat in history:
        there = any(other.one.received < heartbeat.one.sent and other.epoch >= heartbeat.epoch for other in history)
        plain = heartbeat.had == heartbeat.has and heartbeat.one.answer["assignment"] is None
        if 0 < heartbeat.asked < heartbeat.epoch and there and plain:
            changed = altered(trace, {heartbeat.one.received: {"member_epoch": heartbeat.asked}})
            yield changed, heartbeat.one.received, heartbeat.one.received


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
    for heartbeat in _every_heartbeat(trace, all_):
        if heartbeat.calm and heartbeat.one.answer["assignment"] is None:
            yield (
                altered(trace, {heartbeat.one.received: {"assignment": rows(heartbeat.has)}}),
                heartbeat.one.received,
                heartbeat.one.received,
            )


@falsehood
def consumer_assignment_beyond(trace: WireTrace, all_: list[Exchange]) -> Made:
    """Only partitions that exist are assigned (INV-KIP-05)."""
    known = set(names_of(trace).values())
    for heartbeat in _every_heartbeat(trace, all_):
        topics = sorted({topic for topic, _ in heartbeat.has} & known)
        if topics and heartbeat.one.answer["assignment"]:
            wrong = rows(heartbeat.has | {(topics[0], 10_000)})
            yield (
                altered(trace, {heartbeat.one.received: {"assignment": wrong}}),
                heartbeat.one.received,
                heartbeat.one.received,
            )


@falsehood
def consumer_assignment_foreign(trace: WireTrace, all_: list[Exchange]) -> Made:
    """Only partitions of topics to which the member subscribes are assigned (A-PROP-03)."""
    known = names_of(trace)
    for member, history in heartbeat_histories(trace, all_).items():
        asked = [heartbeat.one.ask for heartbeat in history]
        named = {name for ask in asked for name in ask["subscribed_topic_names"] or ()}
        others = sorted(known.keys() - named)
        by_name = not any(ask["subscribed_topic_regex"] for ask in asked)
        if not others or not by_name or not named <= known.keys() or not member:
            continue
        for heartbeat in history:
            if heartbeat.one.answer["assignment"]:
                wrong = rows(heartbeat.has | {(known[others[0]], 0)})
                yield (
                    altered(trace, {heartbeat.one.received: {"assignment": wrong}}),
                    heartbeat.one.received,
                    heartbeat.one.received,
                )


@falsehood
def consumer_assignment_short(trace: WireTrace, all_: list[Exchange]) -> Made:
    """When the group is quiet, every partition of the subscribed topics is assigned (A-PROP-01)."""
    for heartbeat, end in _quiet_after(trace, all_):
        if heartbeat.has:
            wrong = rows(heartbeat.has - {max(heartbeat.has)})
            yield altered(trace, {heartbeat.one.received: {"assignment": wrong}}), heartbeat.one.received, end


def _quiet_after(trace: WireTrace, all_: list[Exchange]) -> Iterator[tuple[HeartbeatExchange, int]]:
    """Yield the last heartbeats that assigned something before a quiet period, and a line in that period by which every
    member has sent two heartbeats. Groups with classic or static members or regexes are left out."""
    histories = heartbeat_histories(trace, all_)
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
    moves |= {
        heartbeat.one.received
        for history in histories.values()
        for heartbeat in history
        if heartbeat.asked != heartbeat.epoch
    }
    left = {each.ask["member_id"] for each in heartbeats if each.ask["member_epoch"] == -1 and each.error == E.NONE}
    lost = {str(line.body.get("member_id")) for line in trace.lines if isinstance(line, SentLine)} - left - {"None"}
    for history in histories.values():
        for heartbeat in history:
            begin = heartbeat.one.received
            if any(name not in histories or histories[name][-1].one.received <= begin for name in lost):
                continue  # a member that went without leaving may still count
            end = min([at for at in moves if at > begin], default=len(trace.lines))
            # By then every request uses the current topics (M-EPOCH-03, M-TGT-08).
            known_ms = max([trace.lines[at].at_ms for at in changes if at < begin], default=0) + CALM_MS + 500
            known_ms = max(known_ms, heartbeat.one.received_ms) + trace.settings.group_consumer_assignment_interval_ms
            quiet = [
                [
                    other.one
                    for other in theirs
                    if begin < other.one.sent and other.one.received < end and other.one.sent_ms > known_ms
                ]
                for theirs in histories.values()
                if theirs[-1].one.received > begin > theirs[0].one.received or theirs is history
            ]
            if heartbeat.one.answer["assignment"] is None or not all(len(row) > 2 for row in quiet):
                continue
            same = len({one.answer["member_epoch"] for row in quiet for one in row} | {heartbeat.epoch}) == 1
            if same:
                yield heartbeat, end - 1


@falsehood
def consumer_two_owners(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A partition that another member certainly holds is not assigned (INV-KIP-01, INV-KIP-09)."""
    histories = heartbeat_histories(trace, all_)
    for member, history in histories.items():
        for heartbeat in history:
            if heartbeat.one.answer["assignment"]:
                for other in (name for name in histories if name != member):
                    held = held_during(histories[other], heartbeat.one) - heartbeat.has
                    if held:
                        wrong = rows(heartbeat.has | {min(held)})
                        changed = altered(trace, {heartbeat.one.received: {"assignment": wrong}})
                        yield changed, heartbeat.one.received, heartbeat.one.received
                        break


@falsehood
def consumer_revocation_omitted(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member holds what it was not asked to revoke, and no other member is given it (M-RSP-03, INV-KIP-01)."""
    histories = heartbeat_histories(trace, all_)
    for member, history in histories.items():
        for at, heartbeat in enumerate(history):
            lost = heartbeat.had - heartbeat.has
            if not lost or heartbeat.asked != heartbeat.epoch or heartbeat.asked == 0:
                continue
            again = [later.one.received for later in history[at + 1 :] if later.one.answer["assignment"] is not None]
            ends = min([*again, history[-1].one.received])
            given = [
                later.one.received
                for name in histories
                if name != member
                for later in histories[name]
                if later.one.received > heartbeat.one.received and later.has & lost
            ]
            if given and min(given) < ends and _steady(history[at:], min(given)):
                yield altered(trace, {heartbeat.one.received: {"assignment": None}}), heartbeat.one.received, min(given)


def _steady(history: list[HeartbeatExchange], until: int) -> bool:
    """Whether its heartbeats are frequent enough that it is a member the whole time."""
    times = [heartbeat.one for heartbeat in history if heartbeat.one.sent < until]
    if not all(two.received_ms - one.sent_ms < CALM_MS for one, two in pairwise(times)):
        return False
    after = [heartbeat.one for heartbeat in history if heartbeat.one.received > until]
    return bool(after) and after[0].sent > until and after[0].received_ms - times[-1].sent_ms < CALM_MS


# ---- the rest -------------------------------------------------------------------------------------------------------


@falsehood
def consumer_swapped(trace: WireTrace, all_: list[Exchange]) -> Made:
    """Two members get each other's answer (M-HB-10)."""
    history = sorted(_every_heartbeat(trace, all_), key=lambda heartbeat: heartbeat.one.received)
    for one, two in pairwise(history):
        if one.one.ask["member_id"] != two.one.ask["member_id"]:
            changes = {one.one.received: two.one.answer, two.one.received: one.one.answer}
            yield altered(trace, changes), one.one.received, one.one.received


@falsehood
def consumer_interval(trace: WireTrace, all_: list[Exchange]) -> Made:
    """The heartbeat interval is the broker's (M-HB-10, G-CFG-11)."""
    for heartbeat in _every_heartbeat(trace, all_):
        wrong = heartbeat.one.answer["heartbeat_interval_ms"] + 1
        changed = altered(trace, {heartbeat.one.received: {"heartbeat_interval_ms": wrong}})
        yield changed, heartbeat.one.received, heartbeat.one.received


@falsehood
def consumer_join_forgotten(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member that never joined is unknown (M-FENCE-01)."""
    for heartbeat in _every_heartbeat(trace, all_):
        after = heartbeat.next
        alive = any(each.received < heartbeat.one.sent and each.error == E.NONE for each in all_)
        if alive and heartbeat.asked == 0 and after is not None and after.error == E.NONE:
            yield without(trace, heartbeat.one), heartbeat.one.sent, after.received


@falsehood
def consumer_leave_epoch(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member that leaves is answered with the epoch that it left with (M-RSP-04)."""
    for each in all_:
        if each.api == "ConsumerGroupHeartbeat" and each.ask["member_epoch"] < 0 and each.error == E.NONE:
            yield altered(trace, {each.received: {"member_epoch": 1}}), each.received, each.received


@falsehood
def consumer_leave_unknown(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member whose heartbeat was just answered NONE can leave (M-LEAVE-02)."""
    for history in heartbeat_histories(trace, all_).values():
        last = history[-1]
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
    histories = heartbeat_histories(trace, all_)
    for each in all_:
        history = histories.get(each.ask.get("member_id", ""), []) if each.api == "OffsetCommit" else []
        for heartbeat in history:
            epoch = each.ask.get("generation_id_or_member_epoch")
            around = (
                heartbeat.one.received < each.sent
                and heartbeat.next is not None
                and heartbeat.next.sent > each.received
            )
            near = each.received_ms - heartbeat.one.sent_ms < CALM_MS
            codes = {row["error_code"] for topic in each.answer["topics"] for row in topic["partitions"]}
            if around and near and epoch == heartbeat.epoch and codes == {0} and not heartbeat.revoking:
                stale = int(E.STALE_MEMBER_EPOCH)
                topics = [
                    {**topic, "partitions": [{**row, "error_code": stale} for row in topic["partitions"]]}
                    for topic in each.answer["topics"]
                ]
                yield altered(trace, {each.received: {"topics": topics}}), each.received, each.received

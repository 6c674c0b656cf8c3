"""Falsehoods about classic groups, with the reason for each.

Each function yields copies that no run of the protocol can produce. The reason is a rule that forbids the altered
answer, or a rule by which a later line of the same trace contradicts it. ``first`` and ``last`` bound the first
impossible event: not before the altered line, and not after the line that contradicts it.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from fencepost.protocol.errors import ErrorCode as E

from ...judge.checker.coordination import NOT_HERE
from ...traces.files import WireTrace
from .exchanges import Exchange, altered, without
from .kinds import NOBODY, Made, falsehood


def _heartbeats(all_: list[Exchange]) -> Iterator[tuple[Exchange, Exchange]]:
    """Yield neighbouring heartbeats of one member in one generation, the second sent after the answer to the first.

    Both were answered NONE, so between them the member was in the group and its generation was current."""
    heartbeats: dict[tuple[str, int], list[Exchange]] = {}
    for each in all_:
        if each.api == "Heartbeat":
            heartbeats.setdefault((each.ask["member_id"], each.ask["generation_id"]), []).append(each)
    for row in heartbeats.values():
        for one, two in pairwise(row):
            if one.error == two.error == E.NONE and one.received < two.sent:
                yield one, two


def _joined(all_: list[Exchange]) -> list[Exchange]:
    return [each for each in all_ if each.api == "JoinGroup" and each.error == E.NONE]


def _synced(all_: list[Exchange]) -> list[Exchange]:
    return [each for each in all_ if each.api == "SyncGroup" and each.error == E.NONE]


def _sync_of(all_: list[Exchange], join: Exchange) -> Exchange | None:
    """Return the SyncGroup answered NONE by which the member continued from this join."""
    for each in _synced(all_):
        same = each.ask["member_id"] == join.member and each.ask["generation_id"] == join.generation
        if same and each.sent > join.received:
            return each
    return None


def _one_error(all_: list[Exchange], trace: WireTrace, error: E) -> Made:
    for one, two in _heartbeats(all_):
        yield altered(trace, {one.received: {"error_code": int(error)}}), one.received, two.received


@falsehood
def heartbeat_illegal_generation(trace: WireTrace, all_: list[Exchange]) -> Made:
    """Generations do not go back (INV-GEN-01), and the next heartbeat of the same generation is answered NONE."""
    yield from _one_error(all_, trace, E.ILLEGAL_GENERATION)


@falsehood
def heartbeat_unknown_member(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member that is gone stays gone (INV-FENCE-02), but its next heartbeat is answered NONE."""
    yield from _one_error(all_, trace, E.UNKNOWN_MEMBER_ID)


@falsehood
def heartbeat_rebalance(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A rebalance ends in a new generation (C-ST-13, C-HB-11), but the next heartbeat of the old one is answered
    NONE."""
    yield from _one_error(all_, trace, E.REBALANCE_IN_PROGRESS)


@falsehood
def heartbeat_fenced(trace: WireTrace, all_: list[Exchange]) -> Made:
    """Another member took the instance id (C-STATIC-13), but the next heartbeat is answered NONE."""
    yield from _one_error(all_, trace, E.FENCED_INSTANCE_ID)


@falsehood
def heartbeat_calm(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member saw a rebalance before this heartbeat of the same generation was sent; it cannot be over (C-HB-11)."""
    first_seen: dict[int, int] = {}
    for each in all_:
        if each.api != "Heartbeat" or each.error != E.REBALANCE_IN_PROGRESS:
            continue
        generation = each.ask["generation_id"]
        if first_seen.setdefault(generation, each.received) < each.sent:
            yield altered(trace, {each.received: {"error_code": int(E.NONE)}}), each.received, each.received


@falsehood
def join_generation_ahead(trace: WireTrace, all_: list[Exchange]) -> Made:
    """The member syncs with the generation that it got (C-SYNC-09, INV-GEN-01)."""
    for join in _joined(all_):
        if (sync := _sync_of(all_, join)) is not None:
            changed = altered(trace, {join.received: {"generation_id": join.generation + 1}})
            yield changed, join.received, sync.received


@falsehood
def join_generation_back(trace: WireTrace, all_: list[Exchange]) -> Made:
    """The generation of a join never ended before the request was sent (INV-GEN-01)."""
    for join in _joined(all_):
        back = join.generation - 1
        before = [each for each in _joined(all_) if each.received < join.sent and each.generation == back]
        sync = _sync_of(all_, join)
        if before and sync is not None and not join.ask["group_instance_id"]:
            yield altered(trace, {join.received: {"generation_id": back}}), join.received, sync.received


@falsehood
def join_foreign_leader(trace: WireTrace, all_: list[Exchange]) -> Made:
    """The leader is a member (INV-MEM-04)."""
    for join in _joined(all_):
        yield altered(trace, {join.received: {"leader": NOBODY}}), join.received, join.received


@falsehood
def join_two_leaders(trace: WireTrace, all_: list[Exchange]) -> Made:
    """One generation has one leader (INV-JOIN-01); only a static replacement before v9 gets the old one."""
    joins = _joined(all_)
    for one in joins:
        for two in joins:
            both = one.generation == two.generation and two.leader == two.member
            if both and one.received > two.received and one.member != two.member and not one.ask["group_instance_id"]:
                yield altered(trace, {one.received: {"leader": one.member}}), one.received, one.received


@falsehood
def join_other_member_id(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member that asks with its id is answered with that id (C-JOIN-49)."""
    for join in _joined(all_):
        if join.ask["member_id"]:
            yield altered(trace, {join.received: {"member_id": NOBODY}}), join.received, join.received


@falsehood
def join_foreign_protocol(trace: WireTrace, all_: list[Exchange]) -> Made:
    """The selected protocol is one that the member offered (INV-PROTO-01)."""
    for join in _joined(all_):
        yield altered(trace, {join.received: {"protocol_name": "nobodys"}}), join.received, join.received


@falsehood
def join_list_short(trace: WireTrace, all_: list[Exchange]) -> Made:
    """The leader's list names every member of the generation (INV-JOIN-02), and this member joined it too."""
    joins = _joined(all_)
    for join in joins:
        rows = join.answer.get("members", [])
        others = {other.member for other in joins if other.generation == join.generation} - {join.member}
        for row in rows:
            if row["member_id"] in others:
                rest = [kept for kept in rows if kept is not row]
                last = max(o.received for o in joins if o.generation == join.generation)
                yield altered(trace, {join.received: {"members": rest}}), join.received, max(last, join.received)
                break


@falsehood
def join_list_to_follower(trace: WireTrace, all_: list[Exchange]) -> Made:
    """Only the leader gets the list (C-JOIN-57)."""
    for join in _joined(all_):
        if join.leader != join.member and join.ask["protocols"]:
            row = {
                "member_id": join.member,
                "group_instance_id": None,
                "metadata": join.ask["protocols"][0]["metadata"],
            }
            yield altered(trace, {join.received: {"members": [row]}}), join.received, join.received


@falsehood
def join_refused(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member that was rejected as unknown is not in the generation that it then syncs with (INV-FENCE-02)."""
    empty = {"generation_id": -1, "leader": "", "members": [], "protocol_type": None, "protocol_name": ""}
    for join in _joined(all_):
        sync = _sync_of(all_, join)
        if sync is not None and join.ask["member_id"]:
            fields = {**empty, "error_code": int(E.UNKNOWN_MEMBER_ID), "skip_assignment": False}
            yield altered(trace, {join.received: fields}), join.received, sync.received


@falsehood
def id_never_used(trace: WireTrace, all_: list[Exchange]) -> Made:
    """The member then joins with an id that was never handed out (C-JOIN-38g)."""
    for each in all_:
        if each.api == "JoinGroup" and each.error == E.MEMBER_ID_REQUIRED:
            used = [join for join in _joined(all_) if join.ask["member_id"] == each.member]
            if used:
                changed = altered(trace, {each.received: {"member_id": NOBODY}})
                yield changed, each.received, used[0].received


@falsehood
def id_not_handed_out(trace: WireTrace, all_: list[Exchange]) -> Made:
    """Without the exchange that handed it out, the member's id is unknown (C-JOIN-38g)."""
    for each in all_:
        # The trace must show the beginning of the group; otherwise the member may be older than the trace.
        begun = any(other.received < each.sent and other.error not in NOT_HERE for other in all_)
        if begun and each.api == "JoinGroup" and each.error == E.MEMBER_ID_REQUIRED:
            used = [join for join in _joined(all_) if join.ask["member_id"] == each.member]
            if used:
                yield without(trace, each), each.sent, used[0].received


@falsehood
def sync_other_assignment(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member gets the bytes that the leader sent for it (INV-SYNC-01)."""
    for sync in _synced(all_):
        content = base64.urlsafe_b64decode(sync.answer.get("assignment", "") + "==")
        if content:
            wrong = base64.urlsafe_b64encode(content[:-1] + bytes([content[-1] ^ 1])).decode()
            yield altered(trace, {sync.received: {"assignment": wrong}}), sync.received, sync.received


@falsehood
def sync_refused(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A generation with an announced rebalance stays so (C-SYNC-15), but the member's next heartbeat is answered
    NONE."""
    for sync in _synced(all_):
        heartbeats = [
            each
            for each in all_
            if each.api == "Heartbeat" and each.error == E.NONE and each.sent > sync.received
            and all(each.ask[name] == sync.ask[name] for name in ("member_id", "generation_id"))
        ]  # fmt: skip
        if heartbeats:
            fields = {"error_code": int(E.REBALANCE_IN_PROGRESS), "assignment": ""}
            none = {"protocol_type": None, "protocol_name": None}
            yield altered(trace, {sync.received: {**fields, **none}}), sync.received, heartbeats[0].received


@falsehood
def sync_without_leader(trace: WireTrace, all_: list[Exchange]) -> Made:
    """No member gets an assignment before a leader has sent it (INV-SYNC-02)."""
    for lead in _synced(all_):
        fed = [
            each
            for each in _synced(all_)
            if each.ask["generation_id"] == lead.ask["generation_id"] and not each.ask["assignments"]
        ]
        again = [each for each in _synced(all_) if each.ask["assignments"] and each is not lead]
        alone = all(each.ask["generation_id"] != lead.ask["generation_id"] for each in again)
        if lead.ask["assignments"] and fed and alone:
            positions = [lead.sent, *(each.received for each in fed)]
            yield without(trace, lead), min(positions), max(positions)


@falsehood
def sync_swapped(trace: WireTrace, all_: list[Exchange]) -> Made:
    """Two members of one generation get each other's assignment (INV-SYNC-01)."""
    for one, two in pairwise(sorted(_synced(all_), key=lambda each: (each.ask["generation_id"], each.received))):
        same = one.ask["generation_id"] == two.ask["generation_id"] and one.ask["member_id"] != two.ask["member_id"]
        if same and one.answer["assignment"] != two.answer["assignment"]:
            changes = {
                one.received: {"assignment": two.answer["assignment"]},
                two.received: {"assignment": one.answer["assignment"]},
            }
            first, last = sorted(changes)
            yield altered(trace, changes), first, last


@falsehood
def join_swapped(trace: WireTrace, all_: list[Exchange]) -> Made:
    """Two members of one generation get each other's answer (C-JOIN-49)."""
    for one, two in pairwise(sorted(_joined(all_), key=lambda each: (each.generation, each.received))):
        if one.generation == two.generation and one.member != two.member and one.version == two.version:
            # Two new static members might have got these ids; then the leader's list, or another answer, shows it.
            last = max(each.received for each in _joined(all_) if each.generation == one.generation)
            changed = altered(trace, {one.received: two.answer, two.received: one.answer})
            yield changed, min(one.received, two.received), last


@falsehood
def join_forgotten(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member that never joined this generation syncs with it (C-JOIN-44, C-SYNC-08).

    Dropping the second of two joins of one member, the second unchanged (C-JOIN-51, C-JOIN-55), would not show.
    """
    times = Counter((join.member, join.generation) for join in _joined(all_))
    for join in _joined(all_):
        sync = _sync_of(all_, join)
        if (
            sync is not None
            and times[join.member, join.generation] == 1
            and join.ask["member_id"]
            and not join.ask["group_instance_id"]
            and join.sent > all_[0].sent
        ):
            yield without(trace, join), join.sent, sync.received


@falsehood
def leave_unknown(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member is known if its heartbeat was just answered NONE and no other request came in between (C-LEAVE-14)."""
    for heartbeat, leave in pairwise(sorted(all_, key=lambda each: each.sent)):
        if (
            leave.api != "LeaveGroup"
            or heartbeat.api != "Heartbeat"
            or heartbeat.error != E.NONE
            or heartbeat.received > leave.sent
        ):
            continue
        rows = leave.ask["members"]
        quiet = leave.received_ms - heartbeat.sent_ms < 5_000
        if len(rows) == 1 and rows[0]["member_id"] == heartbeat.ask["member_id"] and quiet and leave.error == E.NONE:
            gone = int(E.UNKNOWN_MEMBER_ID)
            members = [{**row, "error_code": gone} for row in leave.answer.get("members", [])]
            fields = {"members": members} if members else {"error_code": gone}
            yield altered(trace, {leave.received: fields}), leave.received, leave.received

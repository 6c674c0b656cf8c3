"""Falsehoods about classic members of a consumer group and about descriptions of groups, with the reason for each."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from fencepost.member.consumer_protocol import Assignment, encode_assignment
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.errors import ErrorCode as E

from ...traces.files import WireTrace
from .exchanges import Exchange, altered
from .heartbeat_histories import CALM_MS, heartbeat_histories, held_during, names_of
from .kinds import Made, falsehood


def _pillars(trace: WireTrace, all_: list[Exchange]) -> list[tuple[int, int]]:
    """Return the spans of lines in which some member certainly uses the consumer protocol, and so does the group."""
    found: list[tuple[int, int]] = []
    for history in heartbeat_histories(trace, all_).values():
        start = history[0]
        for one, two in pairwise(history):
            if two.one.received_ms - one.one.sent_ms >= CALM_MS or one.revoking:
                found.append((start.one.received, one.one.received))
                start = two
        found.append((start.one.received, history[-1].one.received))
    return found


def _inside(spans: list[tuple[int, int]], first: int, last: int) -> bool:
    return any(begin < first and last < end for begin, end in spans)


def _classic_members(trace: WireTrace, all_: list[Exchange]) -> Iterator[tuple[Exchange, list[Exchange]]]:
    """Yield each JoinGroup that a consumer group answered NONE, with the dynamic member's later requests, until it
    joins again.

    The group certainly used the consumer protocol the whole time, and the requests do not overlap.
    """
    spans = _pillars(trace, all_)
    joins = [each for each in all_ if each.api == "JoinGroup" and each.error == E.NONE]
    for join in joins:
        own = [other.sent for other in joins if other.member == join.member and other.sent > join.sent]
        again = min(own, default=0)
        later = sorted(
            (
                each
                for each in all_
                if each.api in ("SyncGroup", "Heartbeat")
                and each.ask["member_id"] == join.member
                and each.sent > join.received
                and (not again or each.received < again)
            ),
            key=lambda each: each.sent,
        )
        row: list[Exchange] = []
        for each in later:
            before = row[-1] if row else join
            if each.sent < before.received or each.received_ms - before.sent_ms > CALM_MS:
                break
            row.append(each)
        if not join.ask["group_instance_id"] and row and _inside(spans, join.sent, row[-1].received):
            yield join, row


@falsehood
def mixed_join_with_leader(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A consumer group has no leader (X-JOIN-15)."""
    for join, _ in _classic_members(trace, all_):
        yield altered(trace, {join.received: {"leader": join.member}}), join.received, join.received


@falsehood
def mixed_join_parked(trace: WireTrace, all_: list[Exchange]) -> Made:
    """In a consumer group no JoinGroup waits for others, so none is asked to retry (X-JOIN-14)."""
    empty = {"generation_id": -1, "leader": "", "members": [], "protocol_type": None, "protocol_name": ""}
    for join, _ in _classic_members(trace, all_):
        fields = {**empty, "error_code": int(E.REBALANCE_IN_PROGRESS)}
        yield altered(trace, {join.received: fields}), join.received, join.received


@falsehood
def mixed_sync_two_owners(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A classic member does not get what a member of the other protocol holds (INV-KIP-01)."""
    names = {topic: name for name, topic in names_of(trace).items()}
    histories = heartbeat_histories(trace, all_)
    for _, row in _classic_members(trace, all_):
        for sync in row:
            held = [held_during(history, sync) for history in histories.values()] if sync.api == "SyncGroup" else []
            theirs = sorted(each for some in held for each in some if each[0] in names)
            if theirs and sync.error == E.NONE:
                topic, number = theirs[0]
                content = encode_assignment(Assignment((TopicPartition(names[topic], number),)))
                wrong = base64.urlsafe_b64encode(content).decode()
                yield altered(trace, {sync.received: {"assignment": wrong}}), sync.received, sync.received


def _calm_heartbeats(trace: WireTrace, all_: list[Exchange]) -> Iterator[tuple[Exchange, Exchange]]:
    for _, row in _classic_members(trace, all_):
        synced = [at for at, each in enumerate(row) if each.api == "SyncGroup" and each.error == E.NONE]
        if not synced or any(each.error not in (E.NONE, E.REBALANCE_IN_PROGRESS) for each in row):
            continue
        for one, two in pairwise(row[synced[0] + 1 :]):
            if one.api == two.api == "Heartbeat" and one.error == two.error == E.NONE:
                yield one, two


@falsehood
def mixed_heartbeat_unknown(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member that is gone stays gone until it joins (X-HB-01)."""
    for one, two in _calm_heartbeats(trace, all_):
        yield altered(trace, {one.received: {"error_code": int(E.UNKNOWN_MEMBER_ID)}}), one.received, two.received


@falsehood
def mixed_heartbeat_generation(trace: WireTrace, all_: list[Exchange]) -> Made:
    """The generation of a classic member is its own epoch, whatever the group's (X-JOIN-15, X-SYNC-03)."""
    for one, _ in _calm_heartbeats(trace, all_):
        yield altered(trace, {one.received: {"error_code": int(E.ILLEGAL_GENERATION)}}), one.received, one.received


@falsehood
def mixed_heartbeat_rebalance(trace: WireTrace, all_: list[Exchange]) -> Made:
    """A member that must rejoin gets that answer until it does (X-HB-03, X-HB-07)."""
    for one, two in _calm_heartbeats(trace, all_):
        yield altered(trace, {one.received: {"error_code": int(E.REBALANCE_IN_PROGRESS)}}), one.received, two.received


def _described(all_: list[Exchange]) -> Iterator[tuple[Exchange, dict[str, Any]]]:
    for each in all_:
        if each.api == "ConsumerGroupDescribe":
            for group in each.answer["groups"]:
                if group["error_code"] == E.NONE and group["members"]:
                    yield each, group


@falsehood
def described_assignment_ahead(trace: WireTrace, all_: list[Exchange]) -> Made:
    """The target is never ahead of the group (INV-KIP-03)."""
    for each, group in _described(all_):
        wrong = {**group, "assignment_epoch": group["group_epoch"] + 1}
        yield altered(trace, {each.received: {"groups": [wrong]}}), each.received, each.received


@falsehood
def described_two_owners(trace: WireTrace, all_: list[Exchange]) -> Made:
    """No partition has two holders (INV-KIP-01)."""
    for each, group in _described(all_):
        owners = [row for row in group["members"] if row["assignment"]]
        if len(owners) > 1:
            one, two = owners[:2]
            both = {**two, "assignment": [*two["assignment"], *one["assignment"]]}
            wrong = {**group, "members": [both if row is two else row for row in group["members"]]}
            yield altered(trace, {each.received: {"groups": [wrong]}}), each.received, each.received


@falsehood
def described_without_member(trace: WireTrace, all_: list[Exchange]) -> Made:
    """Every member is described (M-DESC-01)."""
    histories = heartbeat_histories(trace, all_)
    for each, group in _described(all_):
        for row in group["members"]:
            if held_during(histories.get(row["member_id"], []), each):
                rest = [other for other in group["members"] if other is not row]
                state = "Empty" if not rest else group["group_state"]
                wrong = {**group, "members": rest, "group_state": state}
                yield altered(trace, {each.received: {"groups": [wrong]}}), each.received, each.received

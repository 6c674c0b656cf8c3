"""The older coordinator of Kafka 3.9, by profile ``kafka-3.9``: its differences (D-01 to D-27), and no others.

Each scene ends with an answer. ``kafka-3.9`` accepts it and the newest release does not; for the alternative answer it
is the other way round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import KAFKA_4_0, KAFKA_4_4
from fencepost.protocol.settings import Settings
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.generate.wire.asking import default_profile
from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.judge.checker.search import Limits
from fencepost_conformance.show.report.terminal import older_words
from fencepost_conformance.targets.registry import parse_target, profile_for
from fencepost_conformance.traces.files import WireTrace
from fencepost_conformance.traces.lines import ReceivedLine, SentLine
from fencepost_model.classic.group import GroupModel, GroupState, Successor
from fencepost_model.classic.scala import KAFKA_3_9
from fencepost_model.classic.state import JOIN_TIMER, Arrive, Fire, Input, Timer

from .written import Wire

JOIN, HEARTBEAT, LEAVE, SYNC, DESCRIBE, DELETE = 11, 12, 13, 14, 15, 42
COMMIT, FETCH, TXN_COMMIT = 8, 9, 28
OFFER = (m.Protocol("range", b"t"),)
SETTINGS = Settings(group_initial_rebalance_delay_ms=0, group_min_session_timeout_ms=100)


@dataclass
class Classic(Wire):
    """Members of a classic group "g", each on a separate connection."""

    settings: Settings = SETTINGS

    def join(self, at: int, client: str, member: str = "", version: int = 3, session: int = 60_000) -> int:
        self.asked += 1
        body = m.JoinGroupRequest(
            "g", session_timeout_ms=session, rebalance_timeout_ms=60_000, member_id=member, protocol_type="consumer",
            protocols=OFFER,
        )  # fmt: skip
        self.send(at, ord(client), JOIN, version, body)
        return self.asked

    def joined(
        self, at: int, client: str, number: int, generation: int, leader: str, *members: str, version: int = 3
    ) -> None:
        body = m.JoinGroupResponse(
            E.NONE, generation_id=generation, protocol_type="consumer", protocol_name="range", leader=leader,
            member_id=client, members=tuple(m.JoinGroupMember(each, metadata=b"t") for each in members),
        )  # fmt: skip
        self.answer(at, ord(client), JOIN, version, number, body)

    def refused(  # noqa: PLR0917
        self, at: int, client: str, number: int, error: E, member: str = "", version: int = 3
    ) -> None:
        self.answer(at, ord(client), JOIN, version, number, m.JoinGroupResponse(error, member_id=member))

    def pending(self, at: int, client: str, session: int = 60_000) -> None:
        number = self.join(at, client, version=9, session=session)
        self.refused(at, client, number, E.MEMBER_ID_REQUIRED, client, version=9)

    def sync(self, at: int, client: str, generation: int, error: E = E.NONE, *given: str, version: int = 5) -> None:
        body = m.SyncGroupRequest(
            "g", generation_id=generation, member_id=client, protocol_type="consumer", protocol_name="range",
            assignments=tuple(m.SyncGroupAssignment(each, b"x") for each in given),
        )  # fmt: skip
        names = {"protocol_type": "consumer", "protocol_name": "range", "assignment": b"x"} if error is E.NONE else {}
        self.exchange(at, ord(client) + 100, SYNC, version, body, m.SyncGroupResponse(error, **names))

    def heartbeat(self, at: int, client: str, generation: int, error: E = E.NONE) -> None:
        body = m.HeartbeatRequest("g", generation_id=generation, member_id=client)
        self.exchange(at, ord(client) + 100, HEARTBEAT, 4, body, m.HeartbeatResponse(error))

    def leave(self, at: int, *members: str) -> None:
        asked = m.LeaveGroupRequest("g", tuple(m.LeaveGroupMember(each) for each in members))
        rows = tuple(m.LeaveGroupMemberResponse(each, error_code=E.NONE) for each in members)
        self.exchange(at, 9, LEAVE, 5, asked, m.LeaveGroupResponse(E.NONE, rows))

    def delete(self, at: int, error: E = E.NONE) -> None:
        answer = m.DeleteGroupsResponse((m.DeletedGroup("g", error),))
        self.exchange(at, 8, DELETE, 2, m.DeleteGroupsRequest(("g",)), answer)

    def alone(self, session: int = 60_000) -> None:
        """Bring member a to generation 1, Stable."""
        self.joined(5, "a", self.join(0, "a", session=session), 1, "a", "a")
        self.sync(10, "a", 1, E.NONE, "a")

    def about_offsets(self, at: int, key: int, version: int, asked: Any, error: E | None) -> int:
        self.asked += 1
        self._line(SentLine, at, 7, key, version, asked)
        if error is not None:
            self.answer_offsets(at + 5, key, version, self.asked, error)
        return self.asked

    def answer_offsets(self, at: int, key: int, version: int, number: int, error: E) -> None:
        row: dict[str, Any] = {"partition_index": 0, "error_code": int(error)}
        body: dict[str, Any] = {"topics": [{"name": "t", "partitions": [row]}]}
        if key == FETCH:
            row |= {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""}
            body |= {"error_code": 0}
        last, self.asked = self.asked, number
        self._line(ReceivedLine, at, 7, key, version, body)
        self.asked = last

    def commit(self, at: int, error: E | None, generation: int = -1, key: int = COMMIT) -> int:
        row = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
        asked = {
            "group_id": "g", "generation_id_or_member_epoch": generation, "member_id": "x" * (generation >= 0),
            "topics": [{"name": "t", "partitions": [row]}],
        }  # fmt: skip
        if key == TXN_COMMIT:
            asked |= {"transactional_id": "p", "producer_id": 1, "producer_epoch": 0, "generation_id": generation}
            del asked["generation_id_or_member_epoch"]
        return self.about_offsets(at, key, 4 if key == TXN_COMMIT else 9, asked, error)

    def fetch(self, at: int, error: E) -> None:
        asked = {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}], "require_stable": True}
        self.about_offsets(at, FETCH, 7, asked, error)

    def outcome(self, profile: Any, slack_ms: int = 200) -> str:
        trace = WireTrace(self.settings, profile, tuple(self.lines))
        return check_trace(trace, limits=Limits(slack_ms=slack_ms)).outcome


def sync_prolongs_the_session(wire: Classic, *, older: bool) -> None:
    """D-02."""
    wire.alone(session=6_000)
    wire.sync(5_000, "a", 1)
    wire.heartbeat(8_000, "a", 1, E.NONE if older else E.UNKNOWN_MEMBER_ID)


def sync_names_a_protocol_that_the_group_has_not(wire: Classic, *, older: bool) -> None:
    """D-03."""
    wire.settings = replace(SETTINGS, group_initial_rebalance_delay_ms=3_000)
    wire.pending(0, "a")
    wire.join(10, "a", "a", version=9)
    wire.sync(20, "a", 0, E.INCONSISTENT_GROUP_PROTOCOL if older else E.REBALANCE_IN_PROGRESS)


def a_new_member_delays_only_the_first_generation(wire: Classic, *, older: bool) -> None:
    """The newest release takes twice as long; 3.9 might too, as far as the trace shows (D-04)."""
    assert older
    wire.settings = replace(SETTINGS, group_initial_rebalance_delay_ms=1_000)
    wire.joined(1_010, "a", wire.join(0, "a"), 1, "a", "a")
    wire.sync(1_020, "a", 1, E.NONE, "a")
    wire.leave(1_030, "a")
    wire.pending(1_990, "b")
    first = wire.join(2_000, "b", "b")
    wire.heartbeat(2_010, "b", 2, E.REBALANCE_IN_PROGRESS)
    wire.pending(2_490, "c")
    second = wire.join(2_500, "c", "c")
    wire.heartbeat(2_510, "c", 2, E.REBALANCE_IN_PROGRESS)
    wire.joined(3_010, "b", first, 3, "b", "b", "c")
    wire.joined(3_010, "c", second, 3, "b")


def a_commit_to_a_missing_group(wire: Classic, *, older: bool) -> None:
    """D-05."""
    wire.heartbeat(0, "a", 1, E.UNKNOWN_MEMBER_ID)
    wire.commit(10, E.ILLEGAL_GENERATION if older else E.GROUP_ID_NOT_FOUND, generation=5)


def a_pending_id_leaves(wire: Classic, *, older: bool) -> None:
    """D-06."""
    wire.alone()
    wire.pending(20, "b")
    wire.leave(30, "b")
    wire.heartbeat(40, "a", 1, E.NONE if older else E.REBALANCE_IN_PROGRESS)


def members_leave_one_by_one(wire: Classic, *, older: bool) -> None:
    """D-07."""
    wire.alone()
    other = wire.join(20, "b")
    again = wire.join(30, "a", "a")
    wire.joined(40, "a", again, 2, "a", "a", "b")
    wire.joined(40, "b", other, 2, "a")
    wire.sync(41, "a", 2, E.NONE, "a", "b")
    again = wire.join(50, "a", "a", version=9)
    if older:
        asked = m.LeaveGroupRequest("g", (m.LeaveGroupMember("b"), m.LeaveGroupMember("a")))
        wire.asked += 1
        left = wire.asked
        wire.send(60, 9, LEAVE, 5, asked)
        wire.joined(61, "a", again, 3, "a", "a", version=9)
        rows = tuple(m.LeaveGroupMemberResponse(each, error_code=E.NONE) for each in ("b", "a"))
        wire.answer(65, 9, LEAVE, 5, left, m.LeaveGroupResponse(E.NONE, rows))
    else:
        wire.leave(60, "b", "a")
        wire.refused(70, "a", again, E.UNKNOWN_MEMBER_ID, version=9)


def an_expiry_does_not_end_the_initial_delay(wire: Classic, *, older: bool) -> None:
    """D-08."""
    wire.settings = replace(SETTINGS, group_initial_rebalance_delay_ms=3_000)
    wire.pending(0, "a")
    first = wire.join(5, "a", "a")
    wire.heartbeat(6, "a", 0, E.REBALANCE_IN_PROGRESS)
    wire.pending(10, "b", session=1_000)
    if older:
        wire.heartbeat(2_000, "a", 0, E.REBALANCE_IN_PROGRESS)
    wire.joined(3_010 if older else 1_020, "a", first, 1, "a", "a")


def a_fetch_waits_for_a_plain_commit(wire: Classic, *, older: bool) -> None:
    """The newest release answers as if no write were pending, and 3.9 may do so too (D-09)."""
    assert older
    wire.heartbeat(0, "a", 1, E.UNKNOWN_MEMBER_ID)
    wire.commit(10, E.NONE)
    number = wire.commit(20, None)
    wire.fetch(21, E.UNSTABLE_OFFSET_COMMIT)
    wire.answer_offsets(30, COMMIT, 9, number, E.NONE)


def a_refusal_ends_the_join_phase(wire: Classic, *, older: bool) -> None:
    """D-18."""
    wire.settings = replace(SETTINGS, group_max_size=2)
    wire.alone()
    other = wire.join(20, "b")
    again = wire.join(30, "a", "a")
    wire.joined(40, "a", again, 2, "a", "a", "b")
    wire.joined(40, "b", other, 2, "a")
    wire.sync(41, "a", 2, E.NONE, "a", "b")
    again = wire.join(50, "a", "a")
    third = wire.join(60, "c")
    wire.refused(71, "b", wire.join(70, "b", "b"), E.GROUP_MAX_SIZE_REACHED)
    if older:
        wire.joined(72, "a", again, 3, "a", "a", "c")
        wire.joined(72, "c", third, 3, "a")
    else:
        wire.heartbeat(20_000, "a", 2, E.REBALANCE_IN_PROGRESS)


def a_transaction_makes_the_group(wire: Classic, *, older: bool) -> None:
    """D-24."""
    wire.heartbeat(0, "a", 1, E.UNKNOWN_MEMBER_ID)
    wire.commit(10, E.UNKNOWN_MEMBER_ID if older else E.ILLEGAL_GENERATION, generation=5, key=TXN_COMMIT)


def a_transaction_that_is_not_verified_makes_the_group(wire: Classic, *, older: bool) -> None:
    """In 3.9 it may be deleted again, as any empty group (D-24, D-26)."""
    assert older
    wire.heartbeat(0, "a", 1, E.UNKNOWN_MEMBER_ID)
    wire.commit(10, E.COORDINATOR_LOAD_IN_PROGRESS, generation=5, key=TXN_COMMIT)
    wire.delete(20, E.NONE)


def a_transaction_that_is_not_verified(wire: Classic, *, older: bool) -> None:
    """D-27."""
    assert older
    wire.heartbeat(0, "a", 1, E.UNKNOWN_MEMBER_ID)
    wire.commit(10, E.COORDINATOR_NOT_AVAILABLE, key=TXN_COMMIT)


def assignments_are_shown_of_a_stable_group_only(wire: Classic, *, older: bool) -> None:
    """D-25."""
    wire.alone()
    wire.join(20, "b")
    rows = (
        m.DescribedMember(
            "a",
            group_instance_id=None,
            client_id="",
            client_host="",
            member_metadata=b"",
            member_assignment=b"" if older else b"x",
        ),
        m.DescribedMember(
            "b", group_instance_id=None, client_id="", client_host="", member_metadata=b"", member_assignment=b""
        ),
    )
    described = m.DescribedGroup(
        E.NONE, group_id="g", group_state="PreparingRebalance", protocol_type="consumer", members=rows
    )
    wire.exchange(30, 8, DESCRIBE, 5, m.DescribeGroupsRequest(("g",)), m.DescribeGroupsResponse((described,)))


def an_empty_group_vanishes(wire: Classic, *, older: bool) -> None:
    """It may stay. Later releases delete it only at checks for expired offsets, so not twice in succession (D-26)."""
    assert older
    wire.alone()
    wire.leave(20, "a")
    wire.delete(30, E.GROUP_ID_NOT_FOUND)
    wire.joined(45, "b", wire.join(40, "b"), 1, "b", "b")
    wire.leave(50, "b")
    wire.delete(60, E.GROUP_ID_NOT_FOUND)


BOTH: tuple[Callable[..., None], ...] = (
    sync_prolongs_the_session,
    sync_names_a_protocol_that_the_group_has_not,
    a_commit_to_a_missing_group,
    a_pending_id_leaves,
    members_leave_one_by_one,
    an_expiry_does_not_end_the_initial_delay,
    a_refusal_ends_the_join_phase,
    a_transaction_makes_the_group,
    assignments_are_shown_of_a_stable_group_only,
)
#: Here 3.9 may also answer like the newest release.
TOLERATED: tuple[Callable[..., None], ...] = (
    a_new_member_delays_only_the_first_generation,
    a_fetch_waits_for_a_plain_commit,
    a_transaction_that_is_not_verified_makes_the_group,
    a_transaction_that_is_not_verified,
    an_empty_group_vanishes,
)
SCENES = [*((scene, True) for scene in (*BOTH, *TOLERATED)), *((scene, False) for scene in BOTH)]


@pytest.mark.parametrize(("scene", "older"), SCENES, ids=lambda each: getattr(each, "__name__", str(each)))
def test_each_release_does_it_its_own_way(scene: Callable[..., None], older: bool) -> None:
    wire = Classic()
    scene(wire, older=older)
    outcomes = {each.name: wire.outcome(each) for each in (KAFKA_3_9, KAFKA_4_0, KAFKA_4_4)}
    newer = "refused" if older else "accepted"
    assert outcomes == {"kafka-3.9": "accepted" if older else "refused", "kafka-4.0": newer, "kafka-4.4": newer}


def test_a_group_with_offsets_does_not_vanish() -> None:
    wire = Classic()
    wire.alone()
    wire.leave(20, "a")
    wire.commit(30, E.NONE)
    wire.delete(40, E.GROUP_ID_NOT_FOUND)
    assert wire.outcome(KAFKA_3_9) == "refused"


def test_a_group_with_members_does_not_vanish() -> None:
    wire = Classic()
    wire.alone()
    wire.delete(30, E.GROUP_ID_NOT_FOUND)
    assert wire.outcome(KAFKA_3_9) == "refused"


@pytest.mark.parametrize(("ends", "outcome"), [(50, "accepted"), (32, "refused")])
def test_a_group_that_is_deleted_is_not_available(ends: int, outcome: str) -> None:
    """While DeleteGroups is in progress, and not after it (D-11)."""
    wire = Classic()
    wire.alone()
    wire.leave(20, "a")
    wire.asked += 1
    number = wire.asked
    wire.send(30, 8, DELETE, 2, m.DeleteGroupsRequest(("g",)))
    answer = m.DeleteGroupsResponse((m.DeletedGroup("g", E.NONE),))
    if ends == 32:
        wire.answer(32, 8, DELETE, 2, number, answer)
    wire.refused(45, "b", wire.join(40, "b"), E.COORDINATOR_NOT_AVAILABLE)
    if ends == 50:
        wire.answer(50, 8, DELETE, 2, number, answer)
    assert wire.outcome(KAFKA_3_9) == outcome
    assert wire.outcome(KAFKA_4_4) == "refused"


@pytest.mark.parametrize(("proof", "outcome"), [(False, "accepted"), (True, "refused")])
def test_a_sync_while_the_coordinator_loads(proof: bool, outcome: str) -> None:
    """The group starts again, until some answer shows that the coordinator has loaded (D-01)."""
    wire = Classic()
    if proof:
        wire.heartbeat(0, "a", 1, E.UNKNOWN_MEMBER_ID)
    wire.sync(10, "a", 1, E.REBALANCE_IN_PROGRESS)
    wire.heartbeat(20, "a", 1, E.UNKNOWN_MEMBER_ID)
    assert wire.outcome(KAFKA_3_9) == outcome
    assert wire.outcome(KAFKA_4_4) != "accepted"


def test_a_fetch_does_not_wait_when_no_commit_is_under_way() -> None:
    """D-09."""
    wire = Classic()
    wire.heartbeat(0, "a", 1, E.UNKNOWN_MEMBER_ID)
    wire.commit(10, E.NONE)
    wire.fetch(21, E.UNSTABLE_OFFSET_COMMIT)
    assert wire.outcome(KAFKA_3_9) == "refused"


def step(model: GroupModel, state: GroupState, taken: Input) -> Successor:
    (only,) = model.successors(state, taken)
    return only


def arrival(number: int, body: m.RequestBody, new_id: str = "") -> Arrive:
    return Arrive(number, 9, "c", "", body, new_id)


@pytest.mark.parametrize(("profile", "older"), [(KAFKA_3_9, True), (KAFKA_4_0, False)])
def test_steps_inside_the_model(profile: Profile, older: bool) -> None:
    """No record of a new group is written (D-10). A member that replaces a new static member is new, and may expire
    (D-22). A Heartbeat does not wait for replication (D-23)."""
    model = GroupModel(SETTINGS, profile)
    asked = m.JoinGroupRequest(
        "g", session_timeout_ms=6_000, rebalance_timeout_ms=60_000, member_id="", group_instance_id="i",
        protocol_type="consumer", protocols=OFFER,
    )  # fmt: skip
    pending = step(model, GroupState(), arrival(1, replace(asked, group_instance_id=None), "a"))
    assert bool(pending.output.records) is not older
    joined = step(model, GroupState(), arrival(1, asked, "a"))
    again = step(model, joined.state, arrival(2, asked, "b"))
    expired = step(model, again.state, Fire(Timer("session", "b")))
    assert expired.state.group is not None
    assert bool(expired.state.group.members) is not older
    state = step(model, joined.state, Fire(JOIN_TIMER)).state
    sync = m.SyncGroupRequest("g", generation_id=1, member_id="a", protocol_type="consumer", protocol_name="range")
    state = step(model, state, arrival(3, sync)).state
    assert state.undurable
    beaten = step(model, state, arrival(4, m.HeartbeatRequest("g", generation_id=1, member_id="a")))
    assert bool(beaten.output.replies) is older


def test_the_profile_is_for_judging_brokers() -> None:
    assert default_profile({68: (0, 0), 11: (0, 9)}) == "kafka-3.9"
    assert default_profile({68: (0, 1)}) == default_profile({11: (0, 9)}) == "kafka-4.4"
    assert profile_for(parse_target("broker:3.9.2"), None) == "kafka-3.9"
    assert profile_for(parse_target("broker:3.9.2"), "kafka-4.0") == "kafka-4.0"
    assert profile_for(parse_target("localhost:9092"), "kafka-3.9") == "kafka-3.9"
    assert "use --profile kafka-4.0" in older_words("kafka-3.9")
    assert older_words("kafka-4.0") == ""
    for target in ("core", "kafka:4.0.2"):
        with pytest.raises(CannotRun, match=r"profile kafka-3\.9 judges brokers only"):
            profile_for(parse_target(target), "kafka-3.9")

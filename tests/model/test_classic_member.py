"""The classic member, input by input."""

from __future__ import annotations

from typing import TypeVar

import pytest

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost_model.member import (
    Answer,
    Callback,
    Close,
    CloseOption,
    Commit,
    CoordinatorFound,
    EnforceRebalance,
    FindCoordinator,
    HeartbeatDue,
    MemberConfig,
    MemberModel,
    MetadataChanged,
    Poll,
    PollExpired,
    Raise,
    Send,
    SessionExpired,
    Subscribe,
    Unsubscribe,
)
from fencepost_model.member.inputs import CommitAnswer, MemberInput
from fencepost_model.member.outputs import MemberOutput
from fencepost_model.member.state import Generation

T = TypeVar("T")
TOPIC = (("t", 2),)
ALL = frozenset({("t", 0), ("t", 1)})


class Driven:
    """A member and its last outputs."""

    def __init__(self, config: MemberConfig | None = None) -> None:
        self.model = MemberModel(config or MemberConfig())
        self.state = self.model.initial()
        self.outputs: tuple[MemberOutput, ...] = ()

    def do(self, *steps: MemberInput) -> Driven:
        for step in steps:
            (successor,) = self.model.successors(self.state, step)
            self.state, self.outputs = successor.state, successor.outputs
        return self

    def sent(self, kind: type[T]) -> tuple[int, T]:
        """Return the only request of this kind among the last outputs."""
        found = [(o.request, o.body) for o in self.outputs if isinstance(o, Send) and isinstance(o.body, kind)]
        assert len(found) == 1, self.outputs
        return found[0]

    @property
    def callbacks(self) -> list[tuple[str, frozenset[tuple[str, int]]]]:
        return [(o.kind, o.partitions) for o in self.outputs if isinstance(o, Callback)]

    @property
    def raised(self) -> list[str]:
        return [o.error for o in self.outputs if isinstance(o, Raise)]

    # ---- shortcuts ----------------------------------------------------------------------------------------------

    def joining(self) -> int:
        """Drive the member to its first JoinGroup, and return the id of that request."""
        self.do(MetadataChanged(TOPIC), Subscribe(frozenset({"t"})), Poll())
        assert self.outputs == (FindCoordinator(),)
        self.do(CoordinatorFound(), Poll())
        return self.sent(JoinGroupRequest)[0]

    def syncing(self, join: int, *, generation: int = 1, leader: str = "m") -> int:
        rows = (JoinGroupMember("m", metadata=self.model.config.codec.subscription("range", frozenset({"t"}), ALL, 0)),)
        self.do(
            Answer(
                join,
                JoinGroupResponse(
                    ErrorCode.NONE,
                    generation_id=generation,
                    protocol_type="consumer",
                    protocol_name="range",
                    leader=leader,
                    member_id="m",
                    members=rows,
                ),
            )
        )
        return self.sent(SyncGroupRequest)[0]

    def stable(self, partitions: frozenset[tuple[str, int]] = ALL, *, leader: str = "m") -> Driven:
        sync = self.syncing(self.joining(), leader=leader)
        return self.synced(sync, partitions)

    def synced(self, sync: int, partitions: frozenset[tuple[str, int]]) -> Driven:
        data = repr(sorted(partitions)).encode()
        return self.do(
            Answer(
                sync,
                SyncGroupResponse(ErrorCode.NONE, protocol_type="consumer", protocol_name="range", assignment=data),
            ),
            Poll(),
        )


def test_first_join_as_leader() -> None:
    member = Driven()
    join = member.joining()
    assert member.state.state == "PREPARING_REBALANCE"
    assert not member.model.may_heartbeat(member.state)
    sync = member.syncing(join)
    _, request = member.sent(SyncGroupRequest)
    assert [row.member_id for row in request.assignments] == ["m"]
    assert member.model.may_heartbeat(member.state)  # K-ST-03
    member.synced(sync, ALL)
    assert member.state.state == "STABLE"
    assert member.callbacks == [("assigned", ALL)]  # the first join revokes and loses nothing (K-CB-02)
    assert not member.state.rejoin


def test_member_id_required_keeps_the_id() -> None:
    member = Driven()
    join = member.joining()
    member.do(Answer(join, JoinGroupResponse(ErrorCode.MEMBER_ID_REQUIRED, member_id="m")))
    assert member.state.generation == Generation(member_id="m")
    assert member.state.state == "PREPARING_REBALANCE"  # K-ST-17
    member.do(Poll())
    assert member.sent(JoinGroupRequest)[1].member_id == "m"
    assert member.callbacks == []  # K-ERR-15: join prepare is not repeated


@pytest.mark.parametrize("cooperative", [False, True])
def test_rebalance_seen_by_a_heartbeat(cooperative: bool) -> None:
    member = Driven(MemberConfig(cooperative=cooperative)).stable().do(HeartbeatDue())
    beat, request = member.sent(HeartbeatRequest)
    assert (request.generation_id, request.member_id) == (1, "m")
    member.do(Answer(beat, HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS)), Poll())
    member.sent(JoinGroupRequest)
    assert member.callbacks == ([] if cooperative else [("revoked", ALL)])  # K-CB-03, 04
    assert member.state.owned == (ALL if cooperative else frozenset())


def test_cooperative_member_revokes_at_join_complete_and_rejoins() -> None:
    member = Driven(MemberConfig(cooperative=True)).stable(leader="other").do(EnforceRebalance(), Poll())
    sync = member.syncing(member.sent(JoinGroupRequest)[0], generation=2, leader="other")
    member.synced(sync, frozenset({("t", 0)}))
    assert member.callbacks == [("revoked", frozenset({("t", 1)})), ("assigned", frozenset())]  # K-CB-06, 05
    assert member.state.state == "PREPARING_REBALANCE"
    assert member.sent(JoinGroupRequest)[1].reason == "need to revoke partitions and re-join"


@pytest.mark.parametrize(("error", "kept"), [(ErrorCode.UNKNOWN_MEMBER_ID, ""), (ErrorCode.ILLEGAL_GENERATION, "m")])
@pytest.mark.parametrize("cooperative", [False, True])
def test_fenced_heartbeat_loses_everything(error: ErrorCode, kept: str, cooperative: bool) -> None:
    member = Driven(MemberConfig(cooperative=cooperative)).stable().do(HeartbeatDue())
    member.do(Answer(member.sent(HeartbeatRequest)[0], HeartbeatResponse(error)))
    assert member.state.state == "UNJOINED"
    assert member.state.generation == Generation(member_id=kept)  # K-ERR-04, 05
    member.do(Poll())
    assert member.callbacks == [("lost", ALL)]  # K-ERR-15
    assert member.sent(JoinGroupRequest)[1].member_id == kept


def test_answers_of_an_older_generation_reset_nothing() -> None:
    """UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION and FENCED_INSTANCE_ID of an older generation reset nothing (K-ST-15)."""
    member = Driven().stable().do(HeartbeatDue())
    old = [member.sent(HeartbeatRequest)[0]]
    for _ in range(2):
        old.append(member.do(HeartbeatDue()).sent(HeartbeatRequest)[0])  # K-HB-08
    member.do(EnforceRebalance(), Poll())
    sync = member.syncing(member.sent(JoinGroupRequest)[0], generation=2)
    member.synced(sync, ALL)
    for beat, error in zip(
        old,
        (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID),
        strict=True,
    ):
        member.do(Answer(beat, HeartbeatResponse(error)))
    assert member.state.state == "STABLE"
    assert member.state.generation.id == 2


def test_fenced_instance_id_is_thrown_once_and_then_joins_again() -> None:
    member = Driven(MemberConfig(instance_id="i")).stable().do(HeartbeatDue())
    member.do(Answer(member.sent(HeartbeatRequest)[0], HeartbeatResponse(ErrorCode.FENCED_INSTANCE_ID)), Poll())
    assert member.raised == ["FENCED_INSTANCE_ID"]  # K-ERR-08, K-HB-10
    member.do(Poll())
    assert member.raised == []
    assert member.sent(JoinGroupRequest)[1].member_id == ""


def test_the_error_of_the_heartbeat_thread_waits_for_a_subscription() -> None:
    """A poll without a subscription does not throw the error that stopped the heartbeat thread (K-HB-10)."""
    member = Driven(MemberConfig(instance_id="i")).stable().do(HeartbeatDue())
    beat, _ = member.sent(HeartbeatRequest)
    member.do(Answer(beat, HeartbeatResponse(ErrorCode.FENCED_INSTANCE_ID)), Unsubscribe(), Poll())
    assert member.raised == []
    assert member.do(Subscribe(frozenset({"t"})), Poll()).raised == ["FENCED_INSTANCE_ID"]


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ],
)
def test_fatal_join_answers_are_thrown(error: ErrorCode) -> None:
    member = Driven()
    member.do(Answer(member.joining(), JoinGroupResponse(error)), Poll())
    assert member.raised == [error.name]  # K-ERR-08…11


def test_sync_while_loading_by_profile() -> None:
    """Kafka throws a temporary error at the application; the fixed client retries (K-ERR-02)."""
    for profile, thrown in ((KAFKA_4_3, ["KafkaException"]), (MemberConfig().profile, [])):
        member = Driven(MemberConfig(profile=profile))
        sync = member.syncing(member.joining())
        member.do(Answer(sync, SyncGroupResponse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)), Poll())
        assert member.raised == thrown
        assert member.state.state == "COMPLETING_REBALANCE"
        member.do(Poll())
        assert member.sent(JoinGroupRequest)[1].member_id == "m"
        assert member.callbacks == []


def test_retry_after_a_failed_sync_claims_old_partitions_with_the_new_generation() -> None:
    """A retry without join prepare claims the old partitions with the new generation (K-ERR-16)."""
    member = Driven(MemberConfig(cooperative=True)).stable().do(EnforceRebalance(), Poll())
    sync = member.syncing(member.sent(JoinGroupRequest)[0], generation=2)
    member.do(Answer(sync, SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS)), Poll())
    metadata = member.sent(JoinGroupRequest)[1].protocols[0].metadata
    assert metadata == member.model.config.codec.subscription("range", frozenset({"t"}), ALL, 2)


def test_reset_between_sync_and_join_complete() -> None:
    """A reset between SyncGroup and join complete skips join complete, and the member joins again (K-ST-16)."""
    member = Driven()
    sync = member.syncing(member.joining())
    member.do(HeartbeatDue())
    beat = member.sent(HeartbeatRequest)[0]
    member.do(Answer(sync, SyncGroupResponse(ErrorCode.NONE, assignment=repr(sorted(ALL)).encode())))
    member.do(Answer(beat, HeartbeatResponse(ErrorCode.ILLEGAL_GENERATION)), Poll())
    assert member.callbacks == []
    assert member.sent(JoinGroupRequest)[1].member_id == ""
    assert member.state.owned == frozenset()


@pytest.mark.parametrize(("instance", "leaves"), [(None, 1), ("i", 0)])
def test_poll_expiry(instance: str | None, leaves: int) -> None:
    member = Driven(MemberConfig(instance_id=instance)).stable().do(PollExpired())
    assert sum(isinstance(o, Send) and isinstance(o.body, LeaveGroupRequest) for o in member.outputs) == leaves
    assert member.state.owned == ALL  # K-HB-04
    member.do(Poll())
    assert member.callbacks == [("lost", ALL)]


@pytest.mark.parametrize(
    ("instance", "option", "leaves"),
    [
        (None, CloseOption.DEFAULT, 1),
        ("i", CloseOption.DEFAULT, 0),
        ("i", CloseOption.LEAVE_GROUP, 1),
        (None, CloseOption.REMAIN_IN_GROUP, 0),
    ],
)
def test_close(instance: str | None, option: CloseOption, leaves: int) -> None:
    member = Driven(MemberConfig(instance_id=instance, auto_commit=True)).stable().do(Close(option))
    kinds = [type(o.body) if isinstance(o, Send) else type(o) for o in member.outputs]
    assert kinds == [Commit, Callback] + [LeaveGroupRequest] * leaves  # K-LEAVE-04, K-LEAVE-05
    assert member.callbacks == [("revoked", ALL)]  # K-CB-07
    for output in member.outputs:
        if isinstance(output, Send) and isinstance(output.body, LeaveGroupRequest):
            assert output.body.members[0].group_instance_id is None  # K-LEAVE-01
    with pytest.raises(ValueError, match="closed"):
        member.do(Poll())


def test_unsubscribe_while_rebalancing_loses() -> None:
    member = Driven(MemberConfig(cooperative=True)).stable().do(EnforceRebalance(), Poll(), Unsubscribe())
    assert member.callbacks == [("lost", ALL)]  # K-CB-07
    member.do(Poll())
    assert member.outputs == ()


def test_callback_that_throws_at_prepare_is_not_repeated() -> None:
    member = Driven().stable().do(EnforceRebalance(), Poll(frozenset({"revoked"})))
    assert (member.callbacks, member.raised) == ([("revoked", ALL)], ["KafkaException"])
    member.do(Poll())
    member.sent(JoinGroupRequest)
    assert member.callbacks == []  # K-CB-09


def test_callback_that_throws_at_complete_is_called_until_it_does_not() -> None:
    member = Driven()
    sync = member.syncing(member.joining())
    answer = SyncGroupResponse(ErrorCode.NONE, assignment=repr(sorted(ALL)).encode())
    member.do(Answer(sync, answer), Poll(frozenset({"assigned"})))
    assert (member.callbacks, member.raised) == ([("assigned", ALL)], ["KafkaException"])
    member.do(Poll(frozenset({"assigned"})))
    assert (member.callbacks, member.raised) == ([("assigned", frozenset())], ["KafkaException"])  # K-CB-09
    member.do(Poll())
    assert (member.callbacks, member.raised) == ([("assigned", frozenset())], [])
    member.do(Poll())
    assert member.outputs == ()


def test_commit_before_the_rebalance() -> None:
    """The commit precedes the JoinGroup; after a retriable error the commit is repeated (K-CB-01)."""
    member = Driven(MemberConfig(auto_commit=True)).stable().do(EnforceRebalance(), Poll())
    (commit,) = (o for o in member.outputs if isinstance(o, Commit))
    assert (commit.generation, commit.partitions) == (1, ALL)
    member.do(Poll())
    assert member.outputs == ()
    member.do(Answer(commit.request, CommitAnswer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)), Poll())
    (commit,) = (o for o in member.outputs if isinstance(o, Commit))
    member.do(Answer(commit.request, CommitAnswer(ErrorCode.NONE)), Poll())
    member.sent(JoinGroupRequest)
    assert member.callbacks == [("revoked", ALL)]


def test_fenced_commit_loses_everything_even_when_the_generation_changed() -> None:
    """An OffsetCommit answer is the only one that resets newer state although its generation is older (K-OFF-13)."""
    member = Driven(MemberConfig(auto_commit=True)).stable().do(EnforceRebalance(), Poll())
    (commit,) = (o for o in member.outputs if isinstance(o, Commit))
    member.do(Answer(commit.request, CommitAnswer(ErrorCode.ILLEGAL_GENERATION)), Poll())
    assert member.callbacks == [("lost", ALL)]
    assert member.sent(JoinGroupRequest)[1].member_id == "m"


def test_assignment_outside_the_subscription() -> None:
    member = Driven()
    sync = member.syncing(member.joining())
    member.synced(sync, frozenset({("x", 0)}))
    assert member.callbacks == [("revoked", frozenset())]  # K-CB-08: no callback for it; the eager prepare that follows
    assert member.sent(JoinGroupRequest)[1].reason == "received assignments do not match the current subscription"


def test_leader_rejoins_on_new_metadata_follower_does_not() -> None:
    for leader, rejoins in (("m", 1), ("other", 0)):
        member = Driven().stable(leader=leader).do(MetadataChanged((("t", 3),)), Poll())
        assert sum(isinstance(o, Send) for o in member.outputs) == rejoins  # K-JOIN-02


def test_a_former_leader_watches_until_its_next_join_is_complete() -> None:
    """A former leader watches as a follower too; a change of metadata makes it join once more (K-JOIN-02)."""
    member = Driven().stable().do(EnforceRebalance(), Poll())
    join, _ = member.sent(JoinGroupRequest)
    sync = member.syncing(join, generation=2, leader="other")
    member.do(MetadataChanged((("t", 3),)))
    member.synced(sync, ALL)
    join, _ = member.sent(JoinGroupRequest)
    member.synced(member.syncing(join, generation=3, leader="other"), ALL)
    assert member.do(MetadataChanged((("t", 4),)), Poll()).outputs == ()


def test_a_leader_watches_only_the_topics_of_its_group() -> None:
    """A leader joins again only if the topics of its group change (K-JOIN-18)."""
    member = Driven().stable()
    assert member.do(MetadataChanged((*TOPIC, ("u", 1))), Poll()).outputs == ()


def test_leader_that_skips_assignment_still_watches() -> None:
    """A leader that gets SkipAssignment sends an empty SyncGroup and keeps watching the metadata (K-JOIN-11)."""
    member = Driven(MemberConfig(instance_id="i"))
    answer = JoinGroupResponse(
        ErrorCode.NONE,
        generation_id=3,
        protocol_type="consumer",
        protocol_name="range",
        leader="m",
        skip_assignment=True,
        member_id="m",
        members=(),
    )
    member.do(Answer(member.joining(), answer))
    assert member.sent(SyncGroupRequest)[1].assignments == ()
    assert member.state.watched == TOPIC


def test_assignor_that_throws() -> None:
    """The poll throws the assignor's exception, no SyncGroup is sent, and the next poll joins again (K-JOIN-20)."""
    member = Driven()
    rows = (JoinGroupMember("m", metadata=b"not a subscription"),)
    answer = JoinGroupResponse(
        ErrorCode.NONE,
        generation_id=1,
        protocol_type="consumer",
        protocol_name="range",
        leader="m",
        member_id="m",
        members=rows,
    )
    member.do(Answer(member.joining(), answer))
    assert member.outputs == ()
    assert member.state.state == "COMPLETING_REBALANCE"
    member.do(Poll())
    assert member.raised == ["SyntaxError"]
    member.do(Poll())
    assert member.sent(JoinGroupRequest)[1].member_id == "m"


def test_lost_connection_looks_for_the_coordinator_again() -> None:
    member = Driven()
    join = member.joining()
    member.do(Answer(join, None), Poll())  # K-ERR-13
    assert member.outputs == (FindCoordinator(),)
    member.do(CoordinatorFound(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    assert member.raised == ["GROUP_AUTHORIZATION_FAILED"]  # K-FIND-01


def test_session_expiry_forgets_the_coordinator_only() -> None:
    member = Driven().stable().do(SessionExpired())  # K-HB-02
    assert member.state.state == "STABLE"
    member.do(HeartbeatDue())
    assert member.outputs == (FindCoordinator(),)
    with pytest.raises(ValueError, match="timer"):
        member.do(SessionExpired())

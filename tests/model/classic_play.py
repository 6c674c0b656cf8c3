"""Drive one classic group of the model in tests: feed inputs, and get the answers."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupMember,
    LeaveGroupRequest,
    Protocol,
    ResponseBody,
    SyncGroupAssignment,
    SyncGroupRequest,
)
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost_model.classic import (
    Arrive,
    Durable,
    Fire,
    Group,
    GroupModel,
    GroupState,
    Member,
    Timer,
)
from fencepost_model.classic.state import Input
from fencepost_model.machines import COMPLETING, STABLE

RANGE = (Protocol("range", b"x"),)
JOIN, SYNC = Timer("join"), Timer("sync")


class Play:
    """A group under test: each call returns the answers, by request id."""

    def __init__(self, profile: Profile = INTENDED, *, instant: bool = True, **settings: int) -> None:
        settings.setdefault("group_initial_rebalance_delay_ms", 0)
        self.model = GroupModel(Settings(**settings), profile, instant_appends=instant)
        self.state: GroupState = self.model.initial()
        self.records: list[Record] = []
        self.rules: tuple[str, ...] = ()
        self.asked = 0

    @property
    def group(self) -> Group:
        assert self.state.group is not None
        return self.state.group

    def member(self, member_id: str) -> Member:
        return next(member for member in self.group.members if member.member_id == member_id)

    def do(self, step: Input, choice: str | None = None) -> dict[int, ResponseBody]:
        successors = self.model.successors(self.state, step)
        if choice is None:
            (successor,) = successors
        else:
            (successor,) = (each for each in successors if each.choice == choice)
        self.state, self.rules = successor.state, successor.rules
        self.records += successor.output.records
        return dict(successor.output.replies)

    def ask(
        self, body: object, new_id: str = "", *, version: int = 9, choice: str | None = None
    ) -> ResponseBody | None:
        """Send a request and return its own answer, or None if there is none yet."""
        self.asked += 1
        return self.do(Arrive(self.asked, version, "c", "/h", body, new_id), choice).get(self.asked)  # type: ignore[arg-type]

    def join(
        self,
        member_id: str = "",
        new_id: str = "",
        *,
        instance: str | None = None,
        protocols: tuple[Protocol, ...] = RANGE,
        rebalance: int = 10_000,
        version: int = 9,
        choice: str | None = None,
    ) -> ResponseBody | None:
        body = JoinGroupRequest(
            "g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=rebalance,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="plain",
            protocols=protocols,
        )
        return self.ask(body, new_id, version=version, choice=choice)

    def sync(self, member_id: str, generation: int, *given: str, instance: str | None = None) -> ResponseBody | None:
        assignments = tuple(SyncGroupAssignment(each, each.encode()) for each in given)
        return self.ask(
            SyncGroupRequest(
                "g",
                generation_id=generation,
                member_id=member_id,
                group_instance_id=instance,
                protocol_type="plain",
                protocol_name="range",
                assignments=assignments,
            ),
            version=5,
        )

    def leave(self, member_id: str, instance: str | None = None, *, choice: str | None = None) -> ResponseBody | None:
        return self.ask(
            LeaveGroupRequest("g", (LeaveGroupMember(member_id, group_instance_id=instance),)), version=5, choice=choice
        )

    def newcomer(self, member_id: str) -> None:
        """Let a dynamic member join with the id that the coordinator gave it."""
        answer = self.join(new_id=member_id)
        assert isinstance(answer, JoinGroupResponse)
        assert answer.error_code is ErrorCode.MEMBER_ID_REQUIRED
        assert self.join(member_id) is None

    def completing(self, *members: str) -> Play:
        """Bring dynamic members into their first generation; the first one is the leader."""
        for member_id in members:
            self.newcomer(member_id)
        while self.state.delay is not None:
            self.do(Fire(JOIN))
        assert self.group.state == COMPLETING
        return self

    def stable(self, *members: str) -> Play:
        self.completing(*members)
        for member_id in members[1:]:
            assert self.sync(member_id, 1) is None
        self.sync(members[0], 1, *members)
        if self.state.undurable:
            self.do(Durable(self.state.undurable))
        assert self.group.state == STABLE
        return self

    def static(self, member_id: str, instance: str) -> Play:
        """Bring a group with one static member to Stable."""
        self.join(new_id=member_id, instance=instance)
        self.do(Fire(JOIN))
        self.sync(member_id, 1, member_id)
        if self.state.undurable:
            self.do(Durable(self.state.undurable))
        assert self.group.state == STABLE
        return self


def error(body: ResponseBody | None) -> ErrorCode | None:
    return None if body is None else body.error_code  # type: ignore[union-attr]

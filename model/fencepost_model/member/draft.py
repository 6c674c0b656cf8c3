"""A member while one input is dealt with."""

from __future__ import annotations

from fencepost.protocol.messages import LeaveGroupMember, LeaveGroupRequest

from ..machines import M_COMPLETING, M_PREPARING, UNJOINED
from ..table import MEMBER_TABLE
from .base import AnyDraft
from .inputs import CloseOption, Partition
from .outputs import AskMetadata, Callback, MemberRequest, Raise, Send
from .state import NO_GENERATION, Generation, InFlight, Joined, MemberConfig, MemberState


class Thrown(Exception):
    """An exception leaves the call of the application; what was done before stays."""


class MemberDraft(AnyDraft[MemberState]):
    """A classic member's; ``throws`` names the listeners that throw in this input (K-CB-09)."""

    __slots__ = ("config", "throws")
    table = MEMBER_TABLE

    def __init__(self, config: MemberConfig, state: MemberState, throws: frozenset[str] = frozenset()) -> None:
        super().__init__(state)
        self.config = config
        self.throws = throws

    # ---- requests -----------------------------------------------------------------------------------------------

    def number(self, api: str) -> int:
        """The id of a new request, which is then in flight with the present generation."""
        request = self.now.next_request
        sent = InFlight(request, api, self.now.generation)
        self.set(next_request=request + 1, in_flight=(*self.now.in_flight, sent))
        return request

    def send(self, api: str, body: MemberRequest) -> None:
        self.outputs.append(Send(self.number(api), body))

    # ---- the join -----------------------------------------------------------------------------------------------

    def request_rejoin(self, reason: str) -> None:
        self.set(rejoin=True, reason=reason[:255])

    def end_join(self, ended: Joined) -> None:
        """The join under way has an outcome, for the next poll to deal with."""
        self.set(joined=ended)

    def reset(self, reason: str, *, keep_id: bool) -> None:
        """K-ST-13, K-ERR-15: forget the generation, perhaps the id; join prepare will run again."""
        self.rule("K-ST-13")
        self.go("reset")
        member_id = self.now.generation.member_id if keep_id else ""
        self.set(generation=Generation(NO_GENERATION, member_id), prepare=True, beating=False)
        self.request_rejoin(reason)

    def forget_coordinator(self) -> None:
        self.set(coordinator=False, looking=False)

    def look_at_metadata(self) -> None:
        """K-JOIN-18: new metadata counts from here on, of the topics that are this member's to watch."""
        if self.now.renewed:
            watched = self.now.topics | self.now.group_topics
            self.set(renewed=False, snapshot=tuple(row for row in self.now.metadata if row[0] in watched))

    def ask_metadata(self) -> None:
        """Metadata of every topic that is this member's to watch."""
        self.outputs.append(AskMetadata(self.now.topics | self.now.group_topics))

    # ---- callbacks ----------------------------------------------------------------------------------------------

    def call(self, kind: str, partitions: frozenset[Partition]) -> bool:
        """Calls a listener; False if it throws."""
        self.outputs.append(Callback(kind, partitions))
        return kind not in self.throws

    def fail(self, error: str) -> None:
        """The application gets an exception, and the call ends."""
        self.outputs.append(Raise(error))
        raise Thrown

    # ---- leaving ------------------------------------------------------------------------------------------------

    def give_up(self) -> None:
        """K-CB-07: everything owned is given up before leaving."""
        owned, generation = self.now.owned, self.now.generation
        if not owned:
            return
        self.rule("K-CB-07")
        gone = generation.id == NO_GENERATION or not generation.member_id
        rebalancing = self.now.state in (M_PREPARING, M_COMPLETING)
        self.call("lost" if gone or rebalancing else "revoked", owned)
        self.set(owned=frozenset())

    def leave(self, reason: str, option: CloseOption = CloseOption.DEFAULT) -> None:
        """K-LEAVE-01, K-LEAVE-03: say goodbye where that is done, and reset in any case."""
        self.rule("K-LEAVE-01")
        member_id = self.now.generation.member_id
        dynamic = self.config.instance_id is None
        wanted = option is CloseOption.LEAVE_GROUP or (option is CloseOption.DEFAULT and dynamic)
        if self.now.coordinator and self.now.state != UNJOINED and member_id and wanted:
            entry = LeaveGroupMember(member_id, reason=reason)
            self.send("other", LeaveGroupRequest(self.config.group_id, (entry,)))
        self.reset(reason, keep_id=False)

"""A classic member while it handles one input."""

from __future__ import annotations

from fencepost.protocol.messages import LeaveGroupMember, LeaveGroupRequest

from ..machines import M_COMPLETING, M_PREPARING, UNJOINED
from ..table import MEMBER_TABLE
from .base import AnyDraft
from .inputs import CloseOption, Partition
from .outputs import AskMetadata, Callback, MemberRequest, Raise, Send
from .state import NO_GENERATION, Generation, InFlight, Joined, MemberConfig, MemberState
from .variant import MemberVariant


class Thrown(Exception):
    """An exception leaves the application's call; earlier actions stay."""


class MemberDraft(AnyDraft[MemberState]):
    """A classic member's draft. ``throws`` names the listeners that throw in this input (K-CB-09)."""

    __slots__ = ("config", "throws", "variant")
    table = MEMBER_TABLE

    def __init__(
        self, config: MemberConfig, variant: MemberVariant, state: MemberState, throws: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(state)
        self.config = config
        self.variant = variant
        self.throws = throws

    # ---- requests -----------------------------------------------------------------------------------------------

    def number(self, api: str) -> int:
        """Return the id of a new request, which is then in flight with the current generation."""
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
        """Note the outcome of the running join, for the next poll."""
        self.set(joined=ended)

    def reset(self, reason: str, *, keep_id: bool) -> None:
        """Forget the generation, perhaps the id; join prepare will run again (K-ST-13, K-ERR-15)."""
        self.rule("K-ST-13")
        self.transition("reset")
        member_id = self.now.generation.member_id if keep_id else ""
        self.set(generation=Generation(NO_GENERATION, member_id), prepare=True, beating=False)
        self.request_rejoin(reason)

    def forget_coordinator(self) -> None:
        self.set(coordinator=False, looking=False)

    def look_at_metadata(self) -> None:
        """Take over new metadata of the topics that this member watches (K-JOIN-18)."""
        if self.now.renewed:
            watched = self.now.topics | self.now.group_topics
            self.set(renewed=False, snapshot=tuple(row for row in self.now.metadata if row[0] in watched))

    def ask_metadata(self) -> None:
        """Ask for metadata of every topic that this member watches."""
        self.outputs.append(AskMetadata(self.now.topics | self.now.group_topics))

    # ---- callbacks ----------------------------------------------------------------------------------------------

    def call(self, kind: str, partitions: frozenset[Partition]) -> bool:
        """Call a listener. Returns False if it throws."""
        self.outputs.append(Callback(kind, partitions))
        return kind not in self.throws

    def fail(self, error: str) -> None:
        """End the call with an exception for the application."""
        self.outputs.append(Raise(error))
        raise Thrown

    # ---- leaving ------------------------------------------------------------------------------------------------

    def give_up(self) -> None:
        """Give up everything owned before leaving (K-CB-07)."""
        owned, generation = self.now.owned, self.now.generation
        if not owned:
            return
        self.rule("K-CB-07")
        gone = generation.id == NO_GENERATION or not generation.member_id
        rebalancing = self.now.state in (M_PREPARING, M_COMPLETING)
        self.call("lost" if gone or rebalancing else "revoked", owned)
        self.set(owned=frozenset())

    def leave(self, reason: str, option: CloseOption = CloseOption.DEFAULT) -> None:
        """Send a LeaveGroup if the option asks for it, and reset in any case (K-LEAVE-01, K-LEAVE-03)."""
        self.rule("K-LEAVE-01")
        member_id = self.now.generation.member_id
        dynamic = self.config.instance_id is None
        wanted = option is CloseOption.LEAVE_GROUP or (option is CloseOption.DEFAULT and dynamic)
        if self.now.coordinator and self.now.state != UNJOINED and member_id and wanted:
            entry = LeaveGroupMember(member_id, reason=reason)
            self.send("other", LeaveGroupRequest(self.config.group_id, (entry,)))
        self.reset(reason, keep_id=False)

"""A program with a KIP-848 member."""

from __future__ import annotations

from fencepost.member.consumer import ConsumerMember, ConsumerSettings, ConsumerState, consumer_step
from fencepost.member.consumer.state import ApiCall
from fencepost.member.events import Command, ListenerDone, MemberEvent, SubscribeRegex
from fencepost.protocol.errors import ErrorCode

from .consumer_rules import ConsumerRules
from .host import MemberHost


class ConsumerHost(MemberHost[ConsumerMember]):
    """A host whose background thread reads the socket whatever the program does."""

    def fresh(self) -> ConsumerMember:
        settings = self.plan.settings
        assert isinstance(settings, ConsumerSettings)
        self._rules = ConsumerRules(self.plan.name)
        return ConsumerMember(settings, f"{self.plan.name}.{self.process}")  # N-HB-08

    def step(self, event: MemberEvent) -> tuple[ConsumerMember, tuple[Command, ...]]:
        return consumer_step(self.member, event, self._world.jitter())

    def check(self, before: ConsumerMember, event: MemberEvent, commands: tuple[Command, ...]) -> None:
        self._rules.observe(before, self.member, event, commands)

    def polls(self, event: MemberEvent) -> bool:
        """Whether the poll interval restarts. A poll in which a listener returned continues and counts again
        (N-POLL-01)."""
        waiting = self.member.waiting
        continues = isinstance(event, ListenerDone) and waiting is not None and waiting.api is ApiCall.POLL
        return continues or super().polls(event)

    @property
    def reads(self) -> bool:
        return True

    @property
    def leaves(self) -> bool:
        return self.member.state is ConsumerState.PREPARE_LEAVING

    @property
    def works(self) -> bool:
        return self.member.state is ConsumerState.STABLE and bool(self.member.assignment)

    def ends(self, error: ErrorCode | None) -> bool:
        """Whether the program ends: a fatal member stays fatal (N-TR-11)."""
        return self.member.state is ConsumerState.FATAL

    def comes_back(self) -> bool:
        """Whether the program restarts. An earlier dead process with its instance id times out (M-STATIC-02); a live
        one does not."""
        return not self._world.rival(self)

    def subscribe(self, topics: frozenset[str]) -> None:
        if self.plan.regex is None:
            super().subscribe(topics)
        elif self.idle:
            self._subscribed = True
            self.handle(SubscribeRegex(self._world.now, self.plan.regex))

"""The rebalance listener of a member of either protocol: the order of its calls, and the commits before them (12.3)."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.member.events import Call, Command, Commit, CommitFinished, Listener, ListenerDone, MemberEvent
from fencepost.member.partitions import TopicPartition

from .broken import demand


class ListenerRules:
    """``held``: partitions reported to the program as assigned, and not yet as revoked or lost."""

    def __init__(self, name: str) -> None:
        self.held: set[TopicPartition] = set()
        self._name = name
        self._running = False
        self._committing: frozenset[TopicPartition] = frozenset()
        self._committed: frozenset[TopicPartition] = frozenset()

    def observe(self, event: MemberEvent, commands: Iterable[Command], commits: str | None) -> None:
        """Check the listener calls of a step. ``commits``: the rule that requires a commit before a revocation, or
        None."""
        if isinstance(event, ListenerDone):
            self._running = False
        elif isinstance(event, CommitFinished):
            self._committed = self._committing
        for command in commands:
            if isinstance(command, Commit):
                self._committing, self._committed = frozenset(command.partitions), frozenset()
            elif isinstance(command, Listener):
                self._called(command, commits)

    def _called(self, call: Listener, commits: str | None) -> None:
        name, partitions = self._name, frozenset(call.partitions)
        demand(not self._running, "INV-CL-08", f"{name}: {call.call.value} is called while another call runs")
        self._running = True
        if call.call is Call.ASSIGNED:
            again = self.held & partitions
            demand(not again, "INV-CL-01", f"{name}: {sorted(again)} are assigned again without having been revoked")
            self.held |= partitions
            return
        self.held -= partitions
        if call.call is Call.REVOKED and commits is not None:
            rest = partitions - self._committed
            demand(not rest, commits, f"{name}: {sorted(rest)} are revoked before their positions are committed")
        self._committed = frozenset()

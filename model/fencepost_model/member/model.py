"""``MemberModel``: a member of a classic group, input by input.

The caller owns the clock and the network: it says when a heartbeat is due or an interval has passed, carries requests
and answers, and may lose them. A member has no choices, so there is always one successor.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from fencepost.protocol.messages import HeartbeatRequest

from ..differences import varied
from ..machines import M_COMPLETING, M_STABLE
from .answers import answered
from .draft import MemberDraft, Thrown
from .inputs import (
    Answer,
    Close,
    CoordinatorFound,
    EnforceRebalance,
    HeartbeatDue,
    MemberInput,
    MetadataChanged,
    Poll,
    PollExpired,
    SessionExpired,
    Subscribe,
    Unsubscribe,
)
from .outputs import Commit, MemberOutput
from .rejoin import ensure_coordinator, found, poll
from .state import MemberConfig, MemberState
from .variant import DIFFERENCES, INTENDED


class MemberSuccessor(NamedTuple):
    """The result of an input: the member's actions in order, and the rules that decided."""

    choice: str
    state: MemberState
    outputs: tuple[MemberOutput, ...]
    rules: tuple[str, ...]


class MemberModel:
    """A member with a given configuration."""

    def __init__(self, config: MemberConfig) -> None:
        self.config = config
        self.variant = varied(INTENDED, DIFFERENCES, config.profile)

    def initial(self) -> MemberState:
        """Return the state of a new consumer."""
        return MemberState()

    def may_heartbeat(self, state: MemberState) -> bool:
        """Return whether the heartbeat thread runs. Only then may its three timers expire (K-ST-03, 04, K-HB-01)."""
        return state.thread and state.beating and state.state in (M_COMPLETING, M_STABLE)

    def successors(self, state: MemberState, step: MemberInput) -> tuple[MemberSuccessor, ...]:
        """Return the result, always exactly one. Raises ValueError for an input that cannot happen in this state."""
        if state.closed and not isinstance(step, Answer):
            raise ValueError("the consumer is closed")
        d = MemberDraft(self.config, self.variant, state, step.throws if isinstance(step, Poll) else frozenset())
        with suppress(Thrown):
            self._take(d, step)
        return (MemberSuccessor("", d.now, tuple(d.outputs), tuple(d.rules)),)

    def _take(self, d: MemberDraft, step: MemberInput) -> None:
        if isinstance(step, Poll):
            poll(d)
        elif isinstance(step, Answer):
            answered(d, step)
        elif isinstance(step, CoordinatorFound):
            found(d, step.error)
        elif isinstance(step, HeartbeatDue):
            self._heartbeat(d)
        elif isinstance(step, SessionExpired | PollExpired):
            self._expired(d, step)
        elif isinstance(step, Subscribe):
            self._subscribe(d, step.topics)
        elif isinstance(step, Unsubscribe):
            d.rule("K-LEAVE-02", "K-LEAVE-04")
            d.give_up()
            d.leave("the consumer unsubscribed from all topics")
            d.set(topics=frozenset(), group_topics=frozenset())
        elif isinstance(step, Close):
            self._close(d, step)
        elif isinstance(step, EnforceRebalance):
            d.rule("K-JOIN-01")
            d.request_rejoin(step.reason)
        elif isinstance(step, MetadataChanged):
            d.set(metadata=step.metadata, renewed=True)

    def _subscribe(self, d: MemberDraft, topics: frozenset[str]) -> None:
        if topics != d.now.topics:
            d.rule("K-JOIN-10", "K-JOIN-18")
            d.set(topics=topics, renewed=True)
            d.ask_metadata()

    def _heartbeat(self, d: MemberDraft) -> None:
        if not self.may_heartbeat(d.now):
            raise ValueError("no heartbeat is due in this state")
        d.rule("K-HB-02", "K-HB-08")
        if not ensure_coordinator(d):
            return
        generation = d.now.generation
        d.send(
            "heartbeat",
            HeartbeatRequest(
                self.config.group_id,
                generation_id=generation.id,
                member_id=generation.member_id,
                group_instance_id=self.config.instance_id,
            ),
        )

    def _expired(self, d: MemberDraft, step: SessionExpired | PollExpired) -> None:
        """Expire a timer of the heartbeat thread. While the coordinator is unknown the thread only looks for it
        (K-HB-02)."""
        if not self.may_heartbeat(d.now) or not d.now.coordinator:
            raise ValueError("the heartbeat thread does not check this timer now")
        if isinstance(step, SessionExpired):
            d.rule("K-HB-02")
            d.forget_coordinator()
        else:
            d.rule("K-HB-03", "K-HB-04")  # the partitions stay until the next poll gives them up as lost
            d.leave("consumer poll timeout has expired.")

    def _close(self, d: MemberDraft, step: Close) -> None:
        """Close: commit, even without positions, stop the heartbeats, give up the partitions, leave (K-LEAVE-04)."""
        d.rule("K-LEAVE-04", "K-LEAVE-05")
        generation = d.now.generation
        if self.config.auto_commit and d.now.coordinator:
            d.outputs.append(Commit(d.number("other"), generation.id, generation.member_id, d.now.owned))
        d.set(thread=False, beating=False)
        d.give_up()
        d.leave("the consumer is being closed", step.option)
        d.set(closed=True)

"""``ClientModel``: a member of a consumer group, input by input.

The caller owns the clock and the network: it says when a heartbeat is due or an interval has passed, looks for the
coordinator, carries requests and answers, and may lose them. A listener call is an output. The application's thread
continues when the caller says that the listener has returned. There is always one successor.
"""

from __future__ import annotations

from typing import NamedTuple

from fencepost.protocol.errors import ErrorCode

from ...differences import varied
from ...machines import IN_GROUP, PREPARE_LEAVING
from ..inputs import Close, CoordinatorFound, HeartbeatDue, Poll, PollExpired, Subscribe, Unsubscribe
from ..outputs import MemberOutput
from . import background, calls
from .answers import handle_answer
from .draft import ClientDraft
from .inputs import (
    ClientInput,
    CommitDue,
    CommitEnded,
    Disconnected,
    HeartbeatAnswered,
    ListenerReturned,
    SubscribeRegex,
    TopicsKnown,
)
from .state import ClientConfig, ClientState
from .switches import DIFFERENCES, INTENDED


class ClientSuccessor(NamedTuple):
    """The result of an input: the member's actions in order, and the rules that decided."""

    choice: str
    state: ClientState
    outputs: tuple[MemberOutput, ...]
    rules: tuple[str, ...]


class ClientModel:
    """A member with a given configuration."""

    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self.variant = varied(INTENDED, DIFFERENCES, config.profile)

    def initial(self) -> ClientState:
        """Return the state of a new consumer."""
        return ClientState()

    def may_heartbeat(self, state: ClientState) -> bool:
        """Return whether a heartbeat waits only for its interval or back-off (N-HB-06, N-HB-07)."""
        return state.coordinator and state.in_flight is None and state.state in (*IN_GROUP, PREPARE_LEAVING)

    def may_expire(self, state: ClientState) -> bool:
        """Return whether the poll interval is checked (N-TR-09, N-TR-13)."""
        return state.coordinator and state.state in IN_GROUP

    def successors(self, state: ClientState, step: ClientInput) -> tuple[ClientSuccessor, ...]:
        """Return the result, always exactly one. Raises ValueError for an input that cannot happen in this state."""
        if isinstance(step, Poll | Subscribe | SubscribeRegex | Unsubscribe | Close) and (state.call or state.closed):
            raise ValueError("the consumer is closed or in another call")
        d = ClientDraft(self.config, self.variant, state)
        self._take(d, step)
        background.run(d)
        calls.settle(d)
        return (ClientSuccessor("", d.now, tuple(d.outputs), tuple(d.rules)),)

    def _take(self, d: ClientDraft, step: ClientInput) -> None:
        match step:
            case Poll():
                calls.poll(d)
            case ListenerReturned(threw):
                calls.returned(d, threw)
            case HeartbeatAnswered():
                handle_answer(d, step)
            case CoordinatorFound(error):
                d.rule("K-FIND-01")
                if error is ErrorCode.NONE:
                    d.set(coordinator=True)
                else:
                    d.throw(error.name)
            case HeartbeatDue():
                if not self.may_heartbeat(d.now):
                    raise ValueError("no heartbeat is due in this state")
                d.rule("N-HB-07")
                d.set(due=True, failing=False)
            case CommitDue():
                background.commit_again(d)
            case Disconnected():
                d.forget_coordinator()
            case PollExpired():
                if not self.may_expire(d.now):
                    raise ValueError("the poll interval is not checked now")
                background.expire(d)
            case Subscribe(topics):
                d.rule("N-TR-14")
                d.set(subscribed=True, changed=True, topics=topics, regex=None)
            case SubscribeRegex(regex):
                d.rule("N-TR-14")
                d.set(subscribed=True, changed=True, topics=frozenset(), regex=regex)
            case Unsubscribe():
                calls.unsubscribe(d)
            case Close():
                calls.close(d, step)
            case CommitEnded(request, again):
                if request == d.now.close_commit:
                    calls.close_committed(d)
                else:
                    background.committed(d, request, again=again)
            case TopicsKnown(known):
                d.set(known=known)
            case _:
                d.rule("N-POLL-04")

"""The environment that all closed systems have in common, as in ``spec/Environment.tla``: messages are lost or copied,
a client stops waiting, a timer fires early, a process crashes, the coordinator moves.

Budgets limit these faults. A kind of fault may have its own budget; all others share one. So a run may be slow and
lossy, and "slow" takes nothing from "lossy".

An endpoint is a client with its messages in flight: a named tuple that has ``requests`` and ``replies``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from ..explore.interface import Value

E = TypeVar("E")  #: an endpoint
B = TypeVar("B")  #: a batch of a log, with the answers that wait for it

#: What is left of each budget, in the order of ``Environment.names``.
Left: TypeAlias = tuple[int, ...]
Updates: TypeAlias = tuple[tuple[int, Value], ...]

ANY: Final = "any"  #: the budget of all kinds without their own
KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "losses": ("RequestLost", "ReplyLost"),
    "copies": ("RequestDuplicated",),
    "delays": (
        "ClientGivesUp",
        "MemberGivesUp",
        "JoinTimerFiresEarly",
        "SyncTimerFiresEarly",
        "SessionTimerFiresEarly",
        "RebalanceTimerFiresEarly",
        "MemberJoinTimerFiresEarly",
        "MemberSyncTimerFiresEarly",
    ),
    "crashes": ("ClientCrashes", "MemberRestarts"),
    "departures": ("ClientLeaves", "ClientLeavesPermanently", "OperatorRemovesMember"),
    "changes": ("ClientRequestsRejoin", "ClientChangesInstance", "TopicGrows"),
    "failedWrites": ("AppendFails", "LeaveAppendFails"),
    "failOvers": ("CoordinatorFailsOver",),
}
_KIND_OF: Final = {action: kind for kind, actions in KINDS.items() for action in actions}


class Configured(Protocol):
    """The part of a configuration that is about the environment."""

    @property
    def allowed(self) -> frozenset[str]: ...
    @property
    def faults(self) -> int: ...
    @property
    def budgets(self) -> tuple[tuple[str, int], ...]: ...


class Counters(NamedTuple):
    """Member ids used, what is left of the budgets, and how many partitions the topic has (0: they are not counted)."""

    ids_used: int
    faults_left: Left
    existing: int = 0


def check_allowed(allowed: frozenset[str], actions: Iterable[str]) -> None:
    """Raise ValueError unless all of these actions are actions of the environment."""
    if unknown := allowed - {*actions}:
        raise ValueError(f"not an environment action: {', '.join(sorted(unknown))}")


def check_environment(config: Configured, actions: Iterable[str]) -> None:
    """Raise ValueError unless the configuration allows only these actions and has budgets only for known kinds."""
    check_allowed(config.allowed, actions)
    if unknown := {kind for kind, _ in config.budgets} - KINDS.keys():
        raise ValueError(f"not a kind of fault: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    if any(number < 0 for _, number in config.budgets):
        raise ValueError("a budget is less than 0")


def budgets_of(constants: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Return the budgets that the constants set, by kind."""
    return tuple(sorted((kind, int(number)) for kind, number in dict(constants["Budgets"]).items()))


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment of a configuration. ``component``: that of the states' counters, which have the budgets."""

    config: Configured
    component: int
    names: tuple[str, ...] = field(init=False)
    full: Left = field(init=False)  #: at the start

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", (ANY, *(kind for kind, _ in self.config.budgets)))
        object.__setattr__(self, "full", (self.config.faults, *(number for _, number in self.config.budgets)))

    def has_types(self, left: Left) -> bool:
        return len(left) == len(self.full) and all(0 <= now <= most for now, most in zip(left, self.full, strict=True))

    def by_name(self, left: Left) -> dict[str, int]:
        """Return the budgets as the specification names them."""
        return dict(zip(self.names, left, strict=True))

    def after(self, left: Left, action: str) -> Left | None:
        """Return what is left after this fault, or None if its budget is spent."""
        kind = _KIND_OF[action]
        place = self.names.index(kind) if kind in self.names else 0
        return (*left[:place], left[place] - 1, *left[place + 1 :]) if left[place] else None

    def fault(self, action: str) -> tuple[int, Value]:
        """Return the update of the counters for this fault."""
        return self.component, action

    def count(self, counters: Counters, token: str) -> Counters | None:
        """Return the counters after an update: of a fault, or with one more member id used ("id")."""
        if token == "id":
            return counters._replace(ids_used=counters.ids_used + 1)
        left = self.after(counters.faults_left, token)
        return None if left is None else counters._replace(faults_left=left)

    def firing(self, timer: str, is_due: bool) -> tuple[str, Updates] | None:
        """Return the action in which a timer that is set fires, with its updates, or None if it may not. A timer that
        is due fires by itself; any other fires early, which is a fault."""
        if is_due:
            return timer, ()
        early = f"{timer}Early"
        return (early, (self.fault(early),)) if early in self.config.allowed else None

    def network(self) -> Iterator[tuple[str, Callable[[Any], Iterator[Any]], tuple[int, Value]]]:
        """Yield each fault of messages that may happen: its action, the step of an endpoint, the update."""
        for action, step in NETWORK.items():
            if action in self.config.allowed:
                yield action, step, self.fault(action)


# ---- messages --------------------------------------------------------------------------------------------------------


def lose_request(endpoint: E) -> Iterator[E]:
    """Yield the endpoint without each request whose answer is awaited."""
    before: Any = endpoint
    for each in before.requests:
        if each.awaited:
            yield before._replace(requests=before.requests - {each})


def copy_request(endpoint: E) -> Iterator[E]:
    """Yield the endpoint with a copy of each such request, for whose answer no client waits."""
    before: Any = endpoint
    for each in before.requests:
        if each.awaited:
            yield before._replace(requests=before.requests | {each._replace(awaited=False)})


def lose_reply(endpoint: E) -> Iterator[E]:
    """Yield the endpoint without each reply."""
    before: Any = endpoint
    for each in before.replies:
        yield before._replace(replies=before.replies - {each})


NETWORK: Final[Mapping[str, Callable[[Any], Iterator[Any]]]] = {
    "RequestLost": lose_request,
    "RequestDuplicated": copy_request,
    "ReplyLost": lose_reply,
}


def stop_listening(endpoint: E, *more: Any) -> E:
    """Return the endpoint whose client waits for nothing: requests stay in flight, replies are not read. ``more``: what
    it sends last."""
    before: Any = endpoint
    requests = frozenset(each._replace(awaited=False) for each in before.requests)
    return before._replace(requests=requests | {*more}, replies=frozenset())  # type: ignore[no-any-return]


def forget_answers(batches: Iterable[B], number: int) -> tuple[B, ...]:
    """Return the batches without the answers that wait there for this client."""
    them: Any = batches
    return tuple(each._replace(answers=frozenset(a for a in each.answers if a[0] != number)) for each in them)


def expects_answer(endpoint: Any, elsewhere: bool) -> bool:
    """Return whether an answer to the client may still come. ``elsewhere``: the coordinator or its log has it."""
    return elsewhere or bool(endpoint.replies) or any(request.awaited for request in endpoint.requests)


def deliverable(requests: Iterable[E], reorder: bool) -> tuple[E, ...]:
    """Return the requests that may arrive next. One whose answer is awaited comes after those given up, which were on
    an earlier connection, unless the network reorders."""
    them: Any = requests
    late = not all(each.awaited for each in them)
    return tuple(sorted((each for each in them if reorder or not each.awaited or not late), key=repr))

"""Where the order of one of Kafka's tables is visible, the host chooses it; and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fencepost import coordinator
from fencepost.protocol import consumer_records as r
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.events import Load, Request, SetTimer, TaskKey, TaskKind, TimerKey, TimerKind
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings

from .scene import FirstOf


class LastOf(FirstOf):
    """Iterate every table from its end; ``asked``: the tables that were asked for."""

    def __init__(self, *, turned: bool) -> None:
        super().__init__()
        self.turned = turned
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def table(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        self.asked.append((group_id, tuple(keys)))
        return keys[::-1] if self.turned else keys


def member(group: str, name: str, regex: str = "") -> Record:
    value = r.ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id="client",
        client_host="/127.0.0.1",
        subscribed_topic_names=(),
        subscribed_topic_regex=regex,
        rebalance_timeout_ms=5_000,
        server_assignor=None,
    )
    return Record(r.ConsumerGroupMemberMetadataKey(group, name), value)


def loaded(profile: Profile, choices: FirstOf, *records: Record) -> tuple[coordinator.CoordinatorState, set[TimerKey]]:
    """Return the state after a load, and the remaining timers of groups."""
    state, outcome = coordinator.step(
        coordinator.initial_state(Settings(), profile), Load(0, leader_epoch=1, records=records), choices
    )
    left: set[TimerKey] = set()
    for command in outcome.timers:
        (left.add if isinstance(command, SetTimer) else left.discard)(command.key)
    return state, left - {TimerKey(TimerKind.EXPIRY)}


def session(group: str, name: str) -> TimerKey:
    return TimerKey(TimerKind.CONSUMER_SESSION, group, name)


@pytest.mark.parametrize(
    ("turned", "stays"), [(False, session("g-m", "m")), (True, session("g", "m-m"))], ids=["log order", "turned"]
)
def test_of_two_timers_of_one_name_the_later_one_stays(turned: bool, stays: TimerKey) -> None:
    """C-TMR-11."""
    choices = LastOf(turned=turned)
    assert loaded(KAFKA_4_3, choices, member("g", "m-m"), member("g-m", "m"))[1] == {stays}
    assert choices.asked == [("", ("g", "g-m"))]


def test_no_choice_is_asked_where_no_names_collide() -> None:
    choices = LastOf(turned=True)
    both = {session("g", "m-m"), session("g-m", "m")}
    assert loaded(INTENDED, choices, member("g", "m-m"), member("g-m", "m"))[1] == both
    assert len(loaded(KAFKA_4_3, choices, member("g", "m"), member("gm", "m"))[1]) == 2
    assert choices.asked == []


@pytest.mark.parametrize(("turned", "starts"), [(False, True), (True, False)], ids=["the old one", "the new one"])
def test_one_resolution_sets_the_time_of_all(turned: bool, starts: bool) -> None:
    """The orders differ after a failed request that had asked for fewer topics. The interval of ten seconds is over for
    one of them only (M-RX-03)."""

    def resolved(regex: str, at_ms: int) -> Record:
        value = r.ConsumerGroupRegularExpressionValue((), version=0, timestamp=at_ms)
        return Record(r.ConsumerGroupRegularExpressionKey("g", regex), value)

    choices = LastOf(turned=turned)
    records = (member("g", "m", "a.*"), member("g", "n", "b.*"), resolved("a.*", 0), resolved("b.*", 9_000))
    state, _ = loaded(INTENDED, choices, *records)
    body = ConsumerGroupHeartbeatRequest(
        "g",
        member_id="k",
        member_epoch=0,
        rebalance_timeout_ms=5_000,
        subscribed_topic_regex="c.*",
        topic_partitions=(),
    )
    _, outcome = coordinator.step(
        state, Request(10_001, id=1, version=1, client_id="client", client_host="/127.0.0.1", body=body), choices
    )
    assert outcome.tasks == ((TaskKey(TaskKind.REGEX, "g"),) if starts else ())
    assert choices.asked == [("g", ("a.*", "b.*"))]

"""Members and group of the model reach Stable without help, connected by a network that loses nothing."""

from __future__ import annotations

from random import Random

import pytest

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost.protocol.settings import Settings
from fencepost_model.classic import Arrive, Durable, Fire, GroupModel, Timer
from fencepost_model.member import (
    Answer,
    Callback,
    Commit,
    CoordinatorFound,
    FindCoordinator,
    HeartbeatDue,
    MemberConfig,
    MemberModel,
    MetadataChanged,
    Poll,
    Send,
    Subscribe,
)
from fencepost_model.member.inputs import CommitAnswer, MemberInput

TOPIC = (("t", 5),)


class World:
    """One group, its members, its requests by (member, request), and the owners of partitions."""

    def __init__(self, profile: Profile, configs: list[MemberConfig], seed: int) -> None:
        self.rng = Random(seed)
        self.group = GroupModel(Settings(group_initial_rebalance_delay_ms=0), profile)
        self.state = self.group.initial()
        self.members = [MemberModel(config) for config in configs]
        self.states = [member.initial() for member in self.members]
        self.ids = 0
        self.asked: dict[int, tuple[int, int]] = {}  #: the coordinator's request id -> member, member's request id
        self.owned: list[set[tuple[str, int]]] = [set() for _ in configs]
        for at in range(len(configs)):
            self.member(at, MetadataChanged(TOPIC))
            self.member(at, Subscribe(frozenset({"t"})))

    def member(self, at: int, step: MemberInput) -> None:
        (successor,) = self.members[at].successors(self.states[at], step)
        self.states[at] = successor.state
        for output in successor.outputs:
            if isinstance(output, FindCoordinator):
                self.member(at, CoordinatorFound())
            elif isinstance(output, Callback):
                change = self.owned[at].update if output.kind == "assigned" else self.owned[at].difference_update
                change(output.partitions)
            elif isinstance(output, Commit):
                self.member(at, Answer(output.request, CommitAnswer(ErrorCode.NONE)))
            elif isinstance(output, Send):
                self.ids += 1
                self.asked[self.ids] = (at, output.request)
                self.coordinator(Arrive(self.ids, 9, f"c{at}", "/h", output.body, f"m{self.ids}"))

    def coordinator(self, step: Arrive | Fire | Durable) -> None:
        successor = self.rng.choice(self.group.successors(self.state, step))
        self.state = successor.state
        for request, body in successor.output.replies:
            at, sent = self.asked.pop(request)
            self.member(at, Answer(sent, body))

    def turn(self) -> None:
        at = self.rng.randrange(len(self.members))
        choice = self.rng.random()
        if self.state.undurable:
            self.coordinator(Durable(1))
        elif choice < 0.2 and Timer("join") in self.state.timers and self.state.delay is not None:
            self.coordinator(Fire(Timer("join")))
        elif choice < 0.5 and self.members[at].may_heartbeat(self.states[at]):
            self.member(at, HeartbeatDue())
        else:
            self.member(at, Poll())

    def settled(self) -> bool:
        group = self.state.group
        return (
            group is not None
            and group.state == "Stable"
            and len(group.members) == len(self.members)
            and all(state.state == "STABLE" and not state.rejoin and not state.joining for state in self.states)
        )


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_3], ids=lambda profile: profile.name)
@pytest.mark.parametrize("cooperative", [False, True])
@pytest.mark.parametrize("static", [False, True])
def test_every_member_gets_a_share(profile: Profile, cooperative: bool, static: bool) -> None:
    """The group becomes Stable, each partition has one owner, and nothing else happens (LIV-05, LIV-06, INV-OWN-01)."""
    # The type is not "consumer": Kafka would try to decode these plain bytes as a subscription (subscription.py).
    for seed in range(8):
        configs = [
            MemberConfig(
                cooperative=cooperative,
                protocol_type="plain",
                instance_id=f"i{n}" if static else None,
                auto_commit=True,
            )
            for n in range(3)
        ]
        world = World(profile, configs, seed)
        for _ in range(600):
            world.turn()
            if world.settled():
                break
        assert world.settled(), (seed, world.state, world.states)
        shares = [partition for owned in world.owned for partition in owned]
        assert sorted(shares) == [("t", partition) for partition in range(5)]
        generation = world.state.group.generation if world.state.group else 0
        for _ in range(60):
            world.turn()
        assert world.settled()
        assert world.state.group is not None
        assert world.state.group.generation == generation

"""Print digests of the outputs of the core, the members and the model for a few seeds, and of the choices in the order
in which they are asked. ``test_hash_seeds`` runs this program in processes that hash texts differently."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fencepost.coordinator import initial_state, step
from fencepost.functions import KafkaFunctions
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_3
from fencepost_conformance.generate.generator import Generated, generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.generate.simulate.consumer_plan import draw_consumer_plan
from fencepost_conformance.generate.simulate.host import MemberHost
from fencepost_conformance.generate.simulate.mixed_plan import draw_mixed_plan
from fencepost_conformance.generate.simulate.plan import Plan, draw_plan
from fencepost_conformance.generate.simulate.run import Simulation
from fencepost_conformance.targets.ids import MemberIds
from fencepost_conformance.targets.java_order import JavaOrder
from fencepost_model.trace import Follower
from tools.digests import digest

FUNCTIONS = KafkaFunctions()
PROFILES = (INTENDED, KAFKA_4_3, KAFKA_4_0)
#: In this trace a partition is lost while several member ids, which are a set, are pending.
SEVERAL_PENDING = 1_251
PLANS: Mapping[str, Callable[[int, Profile], Plan]] = {
    "classic": draw_plan,
    "consumer": draw_consumer_plan,
    "mixed": draw_mixed_plan,
}


def core(trace: Generated) -> Iterable[object]:
    state, choices = initial_state(trace.settings, trace.profile, functions=FUNCTIONS), JavaOrder(MemberIds())
    for event in trace.events:
        state, outcome = step(state, event, choices)
        yield outcome


def model(trace: Generated) -> Iterable[object]:
    follower = Follower(trace.settings, trace.profile, FUNCTIONS.matcher)
    for event, seen in zip(trace.events, trace.observations, strict=True):
        verdict = follower.feed(event, seen)
        yield verdict.ok, verdict.rules, [(taken.choice, taken.state) for taken in verdict.taken]


def members(plan: Plan) -> Iterable[object]:
    commands: list[object] = []
    simulation = Simulation(plan)
    original = MemberHost._carry_out

    def watched(self: Any, done: Any) -> None:
        commands.append(done)
        original(self, done)

    MemberHost._carry_out = watched
    try:
        commands.append(str(simulation.run()))
    finally:
        MemberHost._carry_out = original
    return commands


def main(count: int) -> None:
    found = {}
    for protocol in GroupProtocol:
        for profile in PROFILES:
            for seed in (*range(900, 900 + count), SEVERAL_PENDING):
                trace = generate(seed, profile, 120, protocol)
                found[f"events, {protocol}, {profile.name}, seed {seed}"] = digest(trace.events)
                found[f"core, {protocol}, {profile.name}, seed {seed}"] = digest(core(trace))
                if seed < 900 + count // 2:
                    found[f"model, {protocol}, {profile.name}, seed {seed}"] = digest(model(trace))
    for name, draw in PLANS.items():
        for seed in range(count):
            found[f"members, {name}, seed {seed}"] = digest(members(draw(seed, INTENDED)))
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]))

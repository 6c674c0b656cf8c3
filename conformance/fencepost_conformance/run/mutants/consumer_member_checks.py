"""Checks for faults of the KIP-848 member: its model next to it, and whole groups."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from fencepost.member.consumer import ConsumerSettings

from ...generate.simulate.beside import Disagreement, Input
from ...generate.simulate.broken import Broken
from ...generate.simulate.consumer_pair import ConsumerPair
from ...generate.simulate.consumer_plan import draw_consumer_plan
from ...generate.simulate.run import simulate

WALKS, WALK_STEPS = 600, 60
SIMULATIONS = 30
HEALTHY = ("poll", "listener", "coordinator", "subscribe", "heartbeat due", "commit due")

#: Check, rule or comparison, steps, seed, text.
Found = tuple[str, str, int, int, str]


def walks() -> Iterator[Found]:
    """Give the member and its model the same inputs."""
    for seed in range(WALKS):
        rng = Random(f"consumer walk {seed}")
        settings = ConsumerSettings(
            "g",
            group_instance_id=rng.choice([None, "i"]),
            auto_commit=rng.random() < 0.4,
            listener=rng.random() < 0.8,
        )
        pair, steps = ConsumerPair(settings), 0
        try:
            while steps < WALK_STEPS and (inputs := pair.inputs()):
                steps += 1
                pair = pair.after(choose(rng, inputs))
        except Disagreement as found:
            yield "member's model", found.rules[0] if found.rules else "", steps, seed, str(found)
        except Exception as raised:  # the faulty program crashed
            yield "member's model", "an internal error", steps, seed, f"{type(raised).__name__}: {raised}"


def choose(rng: Random, inputs: list[Input]) -> Input:
    """Choose mostly inputs of a healthy group, so that walks get into groups; rarely an end."""
    healthy = [
        each
        for each in inputs
        if each.what in HEALTHY or (each.what == "answer" and not int(getattr(each.value, "error_code", 0)))
    ]
    if healthy and rng.random() < 0.6:
        return rng.choice(healthy)
    return rng.choice([each for each in inputs if each.what != "close" or rng.random() < 0.1] or inputs)


def simulations() -> Iterator[Found]:
    """Whole groups."""
    for seed in range(SIMULATIONS):
        try:
            report = simulate(draw_consumer_plan(seed))
        except Broken:
            raise
        except Exception as raised:  # the faulty program crashed
            yield "consumer simulation", "an internal error", 0, seed, f"{type(raised).__name__}: {raised}"
            continue
        if report.broken is not None:
            steps = report.events + report.member_steps
            yield "consumer simulation", report.broken.rule, steps, seed, report.broken.text

"""Steps the core over random traces, and prints its processor time: ``core_probe PROFILE PROTOCOL``.

Each input line starts one more round; the answer has its steps and seconds. It runs in its own process, with the core
that is first on its path.
"""

from __future__ import annotations

import gc
import sys
import time

from fencepost.coordinator import initial_state, step
from fencepost.functions import KafkaFunctions
from fencepost.protocol.choices import Choices
from fencepost.protocol.profiles import PROFILES

from ...generate.generator import generate
from ...generate.plan import GroupProtocol
from ...targets.ids import MemberIds
from ...targets.java_order import JavaOrder, WithoutHyphens

TRACES = 60


def main(profile: str, protocol: str) -> None:
    functions = KafkaFunctions()
    given = [generate(seed, PROFILES[profile], protocol=GroupProtocol(protocol)) for seed in range(TRACES)]
    steps = sum(len(trace.events) for trace in given)
    for _ in sys.stdin:
        gc.collect()
        gc.disable()  # steps make no reference cycles, and the collector runs at random times
        began = time.process_time()
        for trace in given:
            state = initial_state(trace.settings, trace.profile, functions=functions)
            choices: Choices = JavaOrder(MemberIds())
            if trace.profile.draws_no_hyphens:
                choices = WithoutHyphens(choices)
            for event in trace.events:
                state, _ = step(state, event, choices)
        print(steps, time.process_time() - began, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

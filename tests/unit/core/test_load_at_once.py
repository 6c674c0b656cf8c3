"""A load applies many plain commits at once, and comes to what ``replay`` comes to, which applies one by one."""

from __future__ import annotations

import pytest

from fencepost.coordinator import initial_state, offsets_view, replay, step
from fencepost.coordinator.kernel.errors import InternalError
from fencepost.coordinator.kernel.state import Status
from fencepost.protocol.events import Load
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_4
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol

from .scene import FirstOf


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_4], ids=lambda profile: profile.name)
@pytest.mark.parametrize("protocol", list(GroupProtocol))
def test_a_load_comes_to_what_its_records_come_to_one_by_one(profile: Profile, protocol: GroupProtocol) -> None:
    """F-REPLAY-01 to F-REPLAY-05: groups and their numbers, offsets, and what is pending."""
    committed = pending = 0
    for seed in range(12):
        trace = generate(seed, profile, 120, protocol, offsets=0.7)
        records = tuple(record for seen in trace.observations for record in seen.records)
        empty = initial_state(trace.settings, profile)
        loaded, _ = step(empty, Load(0, leader_epoch=1, records=records), FirstOf())
        try:
            one_by_one = replay(empty, records)
        except InternalError:  # some of what a trace has written was lost with a failed append
            assert loaded.status is Status.FAILED
            continue
        assert loaded.offsets == one_by_one.offsets
        assert list(loaded.groups) == list(one_by_one.groups)
        assert loaded.incarnations == one_by_one.incarnations
        assert loaded.end == one_by_one.end == len(records)
        view = offsets_view(loaded)
        committed, pending = committed + len(view.committed), pending + len(view.pending)
    assert committed
    assert pending

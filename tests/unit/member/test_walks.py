"""Random walks of the classic member and its model that told them apart once."""

import pytest

from fencepost_conformance.mutants.suite import walk


@pytest.mark.parametrize(
    "seed",
    [
        4,  # who led, and unsubscribed, watches on until its next join is complete (K-JOIN-02)
        110,  # only the topics that are its own, or its group's, count (K-JOIN-18)
        1591,  # a failure of the heartbeat thread waits for a poll that has a subscription (K-HB-10)
    ],
)
def test_member_and_model_agree(seed: int) -> None:
    assert walk(seed) is None

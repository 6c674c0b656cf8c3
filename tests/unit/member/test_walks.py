"""Random walks on which the classic member and its model once differed."""

import pytest

from fencepost_conformance.run.mutants.suite import walk


@pytest.mark.parametrize(
    "seed",
    [
        4,  # a former leader that unsubscribed keeps watching until its next join is complete (K-JOIN-02)
        110,  # only its own topics, or its group's, count (K-JOIN-18)
        1591,  # a failure of the heartbeat thread waits for a poll that has a subscription (K-HB-10)
    ],
)
def test_member_and_model_agree(seed: int) -> None:
    assert walk(seed) is None

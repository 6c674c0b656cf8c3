"""Fixtures that the tests of the model share."""

from __future__ import annotations

import pytest

from fencepost_model.tlc.run import TlcMissing, find_jar, find_java


@pytest.fixture(scope="module")
def tlc() -> None:
    """Skip a test that needs TLC where TLC cannot run."""
    try:
        find_jar()
        find_java()
    except TlcMissing as reason:
        pytest.skip(str(reason))

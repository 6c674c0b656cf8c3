"""One browser for all tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from driver import Browser, chromium


@pytest.fixture(scope="session")
def started() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def browser(started: Browser) -> Iterator[Browser]:
    """A browser with an empty page, in light mode, as wide as a desktop. Afterwards its console must be empty."""
    started.open("about:blank")
    started.emulate("light")
    started.resize(1280)
    started.console()
    yield started
    assert started.console() == []

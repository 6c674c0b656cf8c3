"""One PostgreSQL for all tests of stores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .postgres import Postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.close()

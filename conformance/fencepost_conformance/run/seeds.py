"""The seed of a run: a new random one each time, so that runs test new traces, unless a seed is given."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..common.errors import CannotRun

#: the environment variable that sets it
VARIABLE = "FENCEPOST_SEED"
#: seeds are drawn below this; the traces that follow the first one may go beyond
BOUND = 2**31


def seed_of_run(environment: Mapping[str, str] = os.environ) -> int:
    """Return the first seed of this run, from 0 up to ``BOUND``; the caller prints it with ``seed_line``. Raises
    ``CannotRun`` if the variable holds no such number."""
    wanted = environment.get(VARIABLE)
    if not wanted:
        return int.from_bytes(os.urandom(8), "big") % BOUND
    if not (wanted.isascii() and wanted.isdigit() and int(wanted) < BOUND):
        raise CannotRun(f"{VARIABLE} is {wanted!r}; give a number from 0 to {BOUND - 1}, or leave it unset")
    return int(wanted)


def seed_line(seed: int) -> str:
    """Return the line about its seed that a run prints at its beginning."""
    return f"seed {seed}: repeat the same traces with {VARIABLE}={seed}"

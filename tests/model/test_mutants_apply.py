"""Each mutant of the model replaces functions that are there: one that was moved would leave its sibling broken."""

from __future__ import annotations

import pytest

from fencepost_model.system.mutants import MUTANTS


@pytest.mark.parametrize("name", MUTANTS)
def test_each_replaced_function_is_there(name: str) -> None:
    for owner, attribute, _ in MUTANTS[name]():
        assert hasattr(owner, attribute), f"{owner.__name__} has no {attribute}"

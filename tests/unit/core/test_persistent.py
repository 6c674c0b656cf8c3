"""A map that is never changed says what a dictionary says, also of earlier versions, and whatever the keys hash to."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import pytest

from fencepost.coordinator.kernel.persistent import PersistentMap


@dataclass(frozen=True)
class Alike:
    """All of them hash to the same."""

    number: int

    def __hash__(self) -> int:
        return -7


@pytest.mark.parametrize(("key", "count"), [(str, 400), (int, 400), (lambda n: -n * 16**5, 400), (Alike, 60)])
def test_it_says_what_a_dictionary_says(key: Callable[[int], object], count: int) -> None:
    rng, keys = Random(1), [key(number) for number in range(count)]
    now: PersistentMap[object, int] = PersistentMap()
    expected: dict[object, int] = {}
    versions = []
    for step in range(4_000):
        grows = 0.6 if step % 2_000 < 1_000 else 0.2
        changes = {each: step if rng.random() < grows else None for each in rng.sample(keys, rng.choice((1, 1, 3)))}
        now = now.changed(changes)
        expected.update({each: value for each, value in changes.items() if value is not None})
        for each, value in changes.items():
            if value is None:
                expected.pop(each, None)
        if step % 200 == 0:
            versions.append((now, dict(expected)))
    for version, known in [*versions, (now, expected)]:
        assert version == known
        assert (len(version), dict(version), set(version)) == (len(known), known, set(known))
        assert all((each in version, version.get(each)) == (each in known, known.get(each)) for each in keys)
    assert pickle.loads(pickle.dumps(now)) == now


def test_a_change_costs_the_same_however_much_there_is() -> None:
    """It copies what is on the way to one entry, and nothing beside."""
    many = PersistentMap[int, int]().changed(dict.fromkeys(range(100000), 0))
    after = many.changed({5: 1})
    branches = [(one, other) for one, other in zip(many._root, after._root, strict=True) if one is not other]
    assert len(branches) == 1
    assert (many[5], after[5]) == (0, 1)

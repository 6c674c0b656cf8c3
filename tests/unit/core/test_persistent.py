"""A persistent map equals a dictionary, in its order, also in earlier versions, and whatever the keys hash to. The
outcomes of a core in which every map is a tree are the same."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

import pytest

from fencepost.coordinator.kernel import persistent
from fencepost.coordinator.kernel.persistent import (
    PersistentMap,
    changed,
    edit,
    exchanged,
    frozen,
    frozen_set,
    with_element,
    with_entry,
    without,
    without_element,
)
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol


@dataclass(frozen=True)
class Alike:
    """Keys with the same hash."""

    number: int

    def __hash__(self) -> int:
        return -7


@pytest.mark.parametrize(("key", "count"), [(str, 400), (int, 400), (lambda n: -n * 16**5, 400), (Alike, 200)])
def test_a_persistent_map_behaves_like_a_dictionary(key: Callable[[int], object], count: int) -> None:
    rng, keys = Random(1), [key(number) for number in range(count)]
    now: Mapping[object, int] = {}
    expected: dict[object, int] = {}
    versions, kinds = [], set()
    for step in range(4_000):
        grows = 0.6 if step % 2_000 < 1_000 else 0.2
        draft = edit(now)
        for each in rng.sample(keys, rng.choice((1, 1, 3))):
            for mapping in (draft, expected):
                if step % 7 == 0:  # removed and added again, it is the last
                    mapping.pop(each, None)
            if rng.random() < grows:
                draft[each] = expected[each] = step
            else:
                assert draft.pop(each, None) == expected.pop(each, None)
            assert (len(draft), each in draft, draft.get(each)) == (len(expected), each in expected, expected.get(each))
        if step % 100 == 0:
            assert list(draft.items()) == list(expected.items())
            versions.append((frozen(draft), dict(expected)))
        now = frozen(draft)
        kinds.add(type(now))
    assert kinds == {dict, PersistentMap}
    for version, known in [*versions, (now, expected)]:
        assert version == known
        assert known == version
        assert list(version.items()) == list(known.items())
        assert (list(version), list(version.values())) == (list(known), list(known.values()))
        assert all((each in version, version.get(each)) == (each in known, known.get(each)) for each in keys)
        copied = pickle.loads(pickle.dumps(version))
        assert (copied, list(copied)) == (version, list(version))
        assert version != {**known, object(): 1}


def test_one_entry_is_added_removed_or_exchanged() -> None:
    many = frozen(dict.fromkeys(map(str, range(500)), 0))
    assert list(with_entry(many, "7", 1).items())[7] == ("7", 1)
    assert [*with_entry(without(many, "7"), "7", 1)][-1] == "7"
    assert without(many, "absent") is many
    assert list(changed(many, {"7": None, "new": 2, "8": 3}).items())[6:8] == [("6", 0), ("8", 3)]
    with pytest.raises(KeyError):
        many["absent"]
    with pytest.raises(KeyError):
        del edit(many)["absent"]


@pytest.mark.parametrize("count", [5, 5_000])
def test_exchanged_values_are_found(count: int) -> None:
    before = frozen({number: (number,) for number in range(count)})
    after = changed(before, {3: (3,), 1: None, count: (0,)})
    assert [key for key, _ in exchanged(before, after)] == [1, 3]
    assert exchanged(before, before) == []


def test_a_persistent_set_behaves_like_a_set() -> None:
    rng, now, expected = Random(2), frozen_set(()), set[int]()
    for step in range(3_000):
        each = rng.randrange(300)
        if rng.random() < (0.7 if step % 1_500 < 700 else 0.3):
            now, _ = with_element(now, each), expected.add(each)
        else:
            now, _ = without_element(now, each), expected.discard(each)
        assert (now == expected, len(now), each in now) == (True, len(expected), each in expected)
    assert sorted(frozen_set(range(1_000))) == list(range(1_000))
    assert frozen_set(range(1_000)) - set(range(999)) == {999}


def test_the_cost_of_a_change_does_not_depend_on_the_size() -> None:
    """The map copies the nodes on the way to one entry, and no others."""
    many = frozen(dict.fromkeys(range(100_000), 0))
    after = with_entry(many, 5, 1)
    assert isinstance(many, PersistentMap)
    assert isinstance(after, PersistentMap)
    branches = [(one, other) for one, other in zip(many._root, after._root, strict=True) if one is not other]
    assert len(branches) == 1
    assert (many[5], after[5]) == (0, 1)


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_3], ids=lambda profile: profile.name)
@pytest.mark.parametrize("protocol", list(GroupProtocol))
def test_outcomes_do_not_depend_on_the_kind_of_map(
    monkeypatch: pytest.MonkeyPatch, profile: Profile, protocol: GroupProtocol
) -> None:
    seeds = range(8)
    small = [generate(seed, profile, 60, protocol) for seed in seeds]
    monkeypatch.setattr(persistent, "SMALL", 0)
    monkeypatch.setattr(persistent, "_LEAF", 1)
    large = [generate(seed, profile, 60, protocol) for seed in seeds]
    for one, other in zip(large, small, strict=True):
        assert one.events == other.events
        assert one.observations == other.observations

"""A class with a fast constructor equals the frozen dataclass in all other respects."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import KW_ONLY, FrozenInstanceError, dataclass, field, fields, is_dataclass, replace

import pytest

from fencepost.protocol import consumer_messages, consumer_records, consumer_view, events, messages, records, view
from fencepost.protocol.frozen import maker, quick

MODULES = (events, messages, consumer_messages, records, consumer_records, view, consumer_view)
CLASSES = sorted(
    {each for module in MODULES for each in vars(module).values() if isinstance(each, type) and is_dataclass(each)},
    key=lambda each: each.__qualname__,
)


@quick
@dataclass(frozen=True, slots=True)
class Quick:
    first: int
    second: str = "two"
    _: KW_ONLY
    third: tuple[int, ...] = field(default_factory=lambda: (1, 2))
    fourth: int
    fifth: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fifth", self.fourth + 1)


@pytest.mark.parametrize("made", CLASSES, ids=lambda each: each.__qualname__)
def test_parameters_match_the_dataclass(made: type) -> None:
    again = dataclass(frozen=True)(type(made.__name__, (), bare(made)))
    assert shape(made) == shape(again)
    assert "_set_" in made.__init__.__code__.co_names[0]  # type: ignore[misc]


def bare(made: type) -> dict[str, object]:
    """Return the body of a class with the same fields."""
    body: dict[str, object] = {"__annotations__": {each.name: each.type for each in fields(made)}}
    for each in fields(made):
        body[each.name] = field(default=each.default, default_factory=each.default_factory, kw_only=each.kw_only)  # type: ignore[call-overload]
    return body


def shape(made: type) -> list[tuple[str, object, object]]:
    parameters = inspect.signature(made).parameters.values()
    return [(each.name, each.kind, None if "factory" in repr(each.default) else each.default) for each in parameters]


def test_fields_are_set_and_stay() -> None:
    one = Quick(1, fourth=4)
    assert (one.first, one.second, one.third, one.fourth, one.fifth) == (1, "two", (1, 2), 4, 5)
    assert Quick(first=1, second="two", third=(1, 2), fourth=4) == one
    assert hash(one) == hash(Quick(1, fourth=4))
    assert replace(one, fourth=7).fifth == 8
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one
    with pytest.raises(FrozenInstanceError):
        one.first = 2  # type: ignore[misc]
    with pytest.raises(TypeError, match="fourth"):
        Quick(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        Quick(1, "two", (3,))  # type: ignore[call-arg, misc]


def test_a_class_without_slots_is_refused() -> None:
    with pytest.raises(TypeError, match="Plain has no slots"):

        @quick
        @dataclass(frozen=True)
        class Plain:
            first: int


@pytest.mark.parametrize("made", [*CLASSES, Quick], ids=lambda each: each.__qualname__)
def test_a_maker_makes_the_objects_of_its_class(made: type) -> None:
    given = [each for each in fields(made) if each.init]
    values = list(range(len(given)))
    one = maker(made)(*values)
    assert one == made(**{each.name: value for each, value in zip(given, values, strict=True)})
    assert type(one) is made
    with pytest.raises((FrozenInstanceError, TypeError)):
        setattr(one, given[0].name if given else "none", 7)

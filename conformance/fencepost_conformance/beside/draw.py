"""Random scripts from a seed: valid and invalid requests in every API and version that ``serve`` announces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Final, TypeAlias

from . import data, groups, settings, topics, transactions
from .script import Move, Script
from .spoil import spoiled
from .world import World

Draw: TypeAlias = Callable[[World], Iterator[Move]]

AREAS: Final[dict[str, tuple[tuple[Draw, int], ...]]] = {
    "topics": topics.MOVES,
    "data": data.MOVES,
    "transactions": transactions.MOVES,
    "settings": settings.MOVES,
}
#: areas that every script draws from
_ALWAYS: Final[tuple[tuple[Draw, int], ...]] = groups.MOVES
#: the weights of areas: of the main area of a script, and of the others
_MAIN, _BESIDE = 8, 1
_SPOILED: Final = 0.06


def script(seed: int, number: int, length: int, areas: tuple[str, ...] = ()) -> Script:
    """The script of that seed and number, of at least ``length`` requests.

    Args:
        areas: keys of ``AREAS``, the main areas of scripts in turn; all of them by default.
    """
    rng = Random(f"{seed}/{number}")
    world = World(rng)
    names = sorted(areas or AREAS)
    main = names[number % len(names)]
    weighted: list[tuple[Draw, float]] = []
    for name, rows in (*AREAS.items(), ("groups", _ALWAYS)):
        whole = sum(weight for _, weight in rows)
        share = _MAIN if name == main else _BESIDE
        weighted += [(draw, share * weight / whole) for draw, weight in rows]
    draws, weights = zip(*weighted, strict=True)
    made: list[Move] = [*topics.create(world)]
    while len(made) < length:
        (draw,) = rng.choices(draws, weights)
        for move in draw(world):
            made.append(spoiled(rng, move) if rng.random() < _SPOILED else move)
    return tuple(made)


def scripts(seed: int, requests: int, length: int, areas: tuple[str, ...] = ()) -> list[Script]:
    """Scripts with ``requests`` requests in total, or a few more."""
    found: list[Script] = []
    left = requests
    while left > 0:
        found.append(script(seed, len(found), min(length, left), areas))
        left -= len(found[-1])
    return found

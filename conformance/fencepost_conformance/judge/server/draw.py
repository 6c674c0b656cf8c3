"""Random scripts from a seed: valid and invalid requests in every API and version that ``serve`` announces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Final, TypeAlias

from . import data, frames, groups, settings, topics, transactions
from .play import may_be_together
from .script import OWN, Move, Script, Sent
from .spoil import spoiled
from .world import World

Draw: TypeAlias = Callable[[World], Iterator[Move]]

AREAS: Final[dict[str, tuple[tuple[Draw, int], ...]]] = {
    "topics": topics.MOVES,
    "data": data.MOVES,
    "transactions": transactions.MOVES,
    "settings": settings.MOVES,
}
#: requests that scripts about every area contain
_ALWAYS: Final[tuple[tuple[Draw, int], ...]] = (*groups.MOVES, *frames.MOVES)
#: the weights of areas: of the main area of a script, and of the others
_MAIN, _BESIDE = 8, 1
_SPOILED: Final = 0.06
#: the probabilities of unusual ways to send a request
_SLOW, _CUT, _AHEAD, _ELSEWHERE = 0.02, 0.01, 0.2, 0.03


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
            made.append(_sent(rng, spoiled(rng, move) if rng.random() < _SPOILED else move))
    made_topics = {row["name"] for move in made if move.api == "create_topics" for row in move.values["topics"]}
    kept = settings.without_effects(made) if f"{OWN}nobody" in made_topics else made
    return tuple(data.without_newest(kept))


def _sent(rng: Random, move: Move) -> Move:
    """The request with its way of sending: rarely in pieces, with the next one, without its end, or over another
    connection."""
    number = rng.random()
    if number < _SLOW:
        return replace(move, sent=Sent.PIECES)
    if number < _SLOW + _CUT and not move.keeps:
        return replace(move, sent=Sent.CUT)
    if number < _SLOW + _CUT + _AHEAD and may_be_together(move):
        return replace(move, sent=Sent.AHEAD)
    if number > 1 - _ELSEWHERE:
        return replace(move, line=1)
    return move


def scripts(seed: int, requests: int, length: int, areas: tuple[str, ...] = ()) -> list[Script]:
    """Scripts with ``requests`` requests in total, or a few more."""
    found: list[Script] = []
    left = requests
    while left > 0:
        found.append(script(seed, len(found), min(length, left), areas))
        left -= len(found[-1])
    return found

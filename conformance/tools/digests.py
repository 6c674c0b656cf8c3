"""Digests of the core's behaviour on random traces: equal digests mean equal behaviour.

``python -m tools.digests FIRST COUNT`` prints a line for each profile and kind of groups. With
``--seeds`` it also prints one for each seed, so that ``diff`` of two outputs names the traces to look at with
``fencepost replay``.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from fencepost.protocol.profiles import PROFILES
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol

STEPS = 60
_LOT = 50


@dataclass(frozen=True, slots=True)
class Lot:
    """Neighbouring seeds under one profile."""

    profile: str
    protocol: GroupProtocol
    seeds: range


def plain(value: Any) -> Any:
    """Return the value without the order of its sets and mappings, which has no effect; tuples keep theirs."""
    if isinstance(value, frozenset | set):
        return sorted(map(repr, map(plain, value)))
    if isinstance(value, Mapping):
        return sorted((repr(plain(key)), repr(plain(each))) for key, each in value.items())
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, *(plain(getattr(value, field.name)) for field in fields(value))]
    return value if isinstance(value, str | int | bytes | None) else str(value)


def digest(things: Iterable[object]) -> str:
    """Return a digest of everything in these objects."""
    total = hashlib.blake2b(digest_size=12)
    for thing in things:
        total.update(repr(plain(thing)).encode())
    return total.hexdigest()


def digest_of(seed: int, profile: str, protocol: GroupProtocol) -> str:
    """Return a digest of a trace's events, the core's reactions, and its failure if any."""
    trace = generate(seed, PROFILES[profile], STEPS, protocol)
    return digest((trace.events, trace.observations, trace.failure))


def of_lot(lot: Lot) -> list[str]:
    gc.collect()
    gc.disable()  # traces have no reference cycles, and the search for them takes a third of the time
    return [digest_of(seed, lot.profile, lot.protocol) for seed in lot.seeds]


def digests(seeds: range, workers: int = 1) -> Iterator[tuple[str, GroupProtocol, dict[int, str]]]:
    """Yield the digest of each seed, for each profile and kind of groups."""
    for profile in PROFILES:
        for protocol in GroupProtocol:
            lots = [Lot(profile, protocol, seeds[at : at + _LOT]) for at in range(0, len(seeds), _LOT)]
            if workers == 1:
                found = [of_lot(lot) for lot in lots]
            else:
                with ProcessPoolExecutor(workers) as pool:
                    found = list(pool.map(of_lot, lots))
            yield profile, protocol, dict(zip(seeds, (each for lot in found for each in lot), strict=True))


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="digests", description="Digests of the core's behaviour on random traces.")
    parser.add_argument("first", type=int, help="the first seed")
    parser.add_argument("count", type=int, help="number of seeds for each profile and kind of groups")
    parser.add_argument("--seeds", action="store_true", help="also print a line for each seed")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args(words)
    for profile, protocol, by_seed in digests(range(given.first, given.first + given.count), given.workers):
        if given.seeds:
            for seed, digest in by_seed.items():
                print(profile, protocol, seed, digest)
        whole = hashlib.blake2b("".join(by_seed.values()).encode(), digest_size=12)
        print(profile, protocol, f"{len(by_seed):,} seeds", whole.hexdigest(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

"""The checks of a certificate: for each claim the command that shows it, at a stated size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from fencepost.certification.statement import CLAIMS, RELEASES

from ..mainjob import Stage
from ..mutants.catalogue import MUTANTS

#: tests of stores whose process is killed
KILLS: Final = "tests/unit/store/test_killed.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is checked. ``graphs``, ``promises``: arguments of ``check``; ``traces``: of each protocol, in each
    comparison; ``mutants``: how many, drawn by the seed, None for all; ``all_kills``: a thousand instead of some 25."""

    name: str
    graphs: tuple[str, ...]
    promises: tuple[str, ...]
    traces: int
    mutants: int | None
    all_kills: bool = False


SIZES: Final = {
    "small": Size(
        name="small",
        graphs=("EagerCommits", "ConsumerAlone", "MixedCommits", "OffsetsQuiet"),
        promises=("--size", "small"),
        traces=20,
        mutants=4,
    ),
    "full": Size(
        name="full",
        graphs=("--size", "large"),
        promises=("--size", "large"),
        traces=5_000,
        mutants=None,
        all_kills=True,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A check to make. ``name``: a key of ``CLAIMS``; ``stage``: its command; ``is_pytest``: the words are arguments of
    pytest, else of ``fencepost``."""

    name: str
    stage: Stage
    seed: int | None = None
    is_pytest: bool = False

    @property
    def command(self) -> str:
        """The command that repeats the check."""
        return " ".join(("pytest" if self.is_pytest else "fencepost", *self.stage.words))


def planned(size: Size, seed: int) -> Iterator[Planned]:
    """Yield each check of ``CLAIMS``, in their order."""

    def check(name: str, *words: str, seed: int | None = None, jdk: bool = False) -> Planned:
        return Planned(name=name, stage=Stage(CLAIMS[name], words, needs_jdk=jdk), seed=seed)

    traces = ("--protocol", "all", "--traces", str(size.traces), "--seed", str(seed))
    yield check("specification-model", "check", "--engine", "tlc", *size.graphs, jdk=True)
    yield check("promises", "check", *size.promises)
    yield check("core-model", "conform", *traces, seed=seed)
    for release in RELEASES:
        yield check(f"core-kafka-{release}", "conform", "--target", f"kafka:{release}", *traces, seed=seed, jdk=True)
    yield check("mutants", "mutants", "--quick", *drawn(size, seed), seed=seed)
    yield Planned(
        name="store-kills",
        stage=Stage(CLAIMS["store-kills"], (KILLS, "-m", "all or not all" if size.all_kills else "not all")),
        is_pytest=True,
    )


def drawn(size: Size, seed: int) -> list[str]:
    """Return the names of the mutants to try; empty for all."""
    if size.mutants is None or size.mutants >= len(MUTANTS):
        return []
    return sorted(Random(seed).sample(sorted(MUTANTS), size.mutants))

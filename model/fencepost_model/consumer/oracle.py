"""Values that the model leaves to a caller: the metadata hash, the assignor's target, the regex matcher."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Protocol

from fencepost.protocol.events import Topic

from .state import Target
from .target import GroupSpec, propose

Matcher = Callable[[str], Callable[[str], bool] | None]


class Oracle(Protocol):
    """The source of those values.

    - ``metadata_hash``: the same for the same topics and different for others (M-META-07); never called without topics.
    - ``target``: one that the assignor may give, or None if it fails (M-HB-12).
    - ``matcher``: None if the regex does not compile (M-VAL-08).
    """

    def metadata_hash(self, group_id: str, stored: int, topics: tuple[Topic, ...]) -> int: ...
    def target(self, group_id: str, spec: GroupSpec) -> Mapping[str, Target] | None: ...
    def matcher(self, regex: str) -> Callable[[str], bool] | None: ...


class CanonicalOracle:
    """Answers that depend on the question alone, for explorations, and where a target does not show its answer."""

    def __init__(self, matcher: Matcher = lambda regex: None) -> None:
        self._matcher = matcher

    def metadata_hash(self, group_id: str, stored: int, topics: tuple[Topic, ...]) -> int:
        return digest(topics)

    def target(self, group_id: str, spec: GroupSpec) -> Mapping[str, Target] | None:
        return propose(spec)

    def matcher(self, regex: str) -> Callable[[str], bool] | None:
        return self._matcher(regex)


def digest(topics: tuple[Topic, ...]) -> int:
    """Return a function of what the metadata hash depends on (G-DATA-30); racks are sets, so they are sorted first."""
    rows = [(t.name, t.topic_id, t.partitions, [sorted(racks) for racks in t.racks]) for t in topics]
    return int.from_bytes(blake2b(repr(rows).encode(), digest_size=8).digest(), signed=True)

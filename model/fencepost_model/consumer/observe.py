"""Values that the model leaves open, read from the observed behaviour of a target.

A metadata hash is taken as observed and checked to be a function: in one trace the same topics always have the same
hash, and other topics another. A target assignment is taken from the records; ``target.valid`` decides whether the
assignor may give it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from fencepost.protocol.consumer_records import (
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
)
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.events import Topic
from fencepost.protocol.records import Record

from .oracle import Matcher, digest
from .rows import to_target
from .state import Target
from .target import GroupSpec, propose

#: Topics and their observed hash.
Hashes: TypeAlias = tuple[tuple[tuple[Topic, ...], int], ...]


def no_matcher(regex: str) -> Callable[[str], bool] | None:
    """A matcher for callers without regular expressions: no regex compiles."""
    return None


class ObservedValues(NamedTuple):
    """The observation of one event; None for a part that was not observed."""

    records: Sequence[Record] | None = None
    groups: Mapping[str, ConsumerGroupView | None] | None = None
    matcher: Matcher = no_matcher


NOTHING_OBSERVED: Final = ObservedValues()


class ObservedOracle:
    """An oracle that answers as the target did. It adds what it learns to ``hashes``. ``failing``: the groups whose
    last request was to write an epoch, and failed."""

    __slots__ = ("_failing", "_guessed", "_seen", "hashes")

    def __init__(self, seen: ObservedValues, hashes: Hashes, failing: frozenset[str] = frozenset()) -> None:
        self._seen = seen
        self._failing = failing
        self._guessed: set[int] = set()  # stand-ins for hashes that were never observed
        self.hashes = hashes

    def metadata_hash(self, group_id: str, stored: int, topics: tuple[Topic, ...]) -> int:
        known = set()
        for each, value in self.hashes:
            if each == topics:
                return value
            known.add(value)
        shown = [value for value in self._hashes(group_id) if value and value not in known]
        if shown:
            value = shown[0]
        elif self._seen.records is None:
            value = digest(topics)
        elif stored and stored not in known | self._guessed and not self._bump_failed(group_id):
            value = stored  # no epoch was written, so it must be the group's hash
        else:
            value = digest(topics)
            self._guessed.add(value)
            return value
        self.hashes = (*self.hashes, (topics, value))
        return value

    def _bump_failed(self, group_id: str) -> bool:
        """Return whether the last request failed to write its epoch. Such a request leaves only the deadline, with that
        epoch (M-HB-13)."""
        view = None if self._seen.groups is None else self._seen.groups.get(group_id)
        if view is None:
            return group_id in self._failing  # it failed at the same time as the previous one, so nothing changed
        return view.refresh_deadline is not None and view.refresh_deadline[1] > view.group_epoch

    def _hashes(self, group_id: str) -> list[int]:
        records, groups = self._seen.records, self._seen.groups
        if records is not None:
            return [
                record.value.metadata_hash
                for record in records
                if isinstance(record.value, ConsumerGroupMetadataValue) and record.key.group == group_id
            ]
        view = None if groups is None else groups.get(group_id)
        return [] if view is None else [view.metadata_hash]

    def target(self, group_id: str, spec: GroupSpec) -> Mapping[str, Target] | None:
        records, groups = self._seen.records, self._seen.groups
        if records is not None:
            shown = {
                record.key.member_id: to_target(record.value.topic_partitions)
                for record in records
                if isinstance(record.key, ConsumerGroupTargetAssignmentMemberKey)
                and isinstance(record.value, ConsumerGroupTargetAssignmentMemberValue)
                and record.key.group == group_id
            }
            return {member.member_id: shown.get(member.member_id, member.previous) for member in spec.members}
        view = None if groups is None else groups.get(group_id)
        if view is not None:
            return {member_id: to_target(rows) for member_id, rows in view.target}
        return propose(spec)

    def matcher(self, regex: str) -> Callable[[str], bool] | None:
        return self._seen.matcher(regex)

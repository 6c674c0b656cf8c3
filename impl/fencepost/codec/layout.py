"""Differences between Kafka releases in the bytes of records, as data (F-REC-20, V-70…V-75, V-78, V-131).

A layout is chosen by the name of a profile. It is not a profile: nothing in it is a bug to fix, and every layout reads
the records of older releases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from fencepost.protocol.errors import NoSuchProfile
from fencepost.protocol.profile import Profile

SHARE_TYPES: Final[Mapping[int, str]] = {
    10: "ShareGroupMemberMetadata",
    11: "ShareGroupMetadata",
    12: "ShareGroupTargetAssignmentMetadata",
    13: "ShareGroupTargetAssignmentMember",
    14: "ShareGroupCurrentMemberAssignment",
    15: "ShareGroupStatePartitionMetadata",
}
STREAMS_TYPES: Final[Mapping[int, str]] = {
    17: "StreamsGroupMetadata",
    19: "StreamsGroupMemberMetadata",
    20: "StreamsGroupTargetAssignmentMetadata",
    21: "StreamsGroupTargetAssignmentMember",
    22: "StreamsGroupCurrentMemberAssignment",
    23: "StreamsGroupTopology",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """``others``: types that the release knows but this project does not decode, by number (F-REC-09).

    ``most_elements``, ``most_tags``: a longer list, or more tagged fields, is an error; so is a negative number of
    tagged fields. None: there is no check, and a negative number means none (F-REC-23)."""

    offset_commit_version: int = 4  #: of values without an expiry (F-REC-20)
    topic_ids: bool = True  #: in values of OffsetCommit (F-REC-11)
    metadata_hash: bool = True  #: in GroupEpoch (F-REC-03)
    assignment_timestamp: bool = True  #: in TargetEpoch (F-REC-06)
    assignment_epochs: bool = True  #: in CurrentAssignment (F-REC-08)
    legacy_offsets_of_any_version: bool = False  #: type 0 is read like type 1 (F-REC-00)
    most_elements: int | None = 1_000_000
    most_tags: int | None = 10_000
    others: Mapping[int, str]


NEWEST: Final = Layout(others={**SHARE_TYPES, **STREAMS_TYPES})
_4_3: Final = replace(NEWEST, most_elements=None, most_tags=None)
_4_2_2: Final = replace(NEWEST, assignment_timestamp=False, assignment_epochs=False)
_4_2: Final = replace(_4_2_2, most_elements=None, most_tags=None)
_4_0: Final = replace(
    _4_2,
    offset_commit_version=3,
    topic_ids=False,
    metadata_hash=False,
    legacy_offsets_of_any_version=True,
    others={9: "ShareGroupPartitionMetadata", **SHARE_TYPES},
)
#: by the name of the release's profile
LAYOUTS: Final[Mapping[str, Layout]] = {
    "kafka-4.0": _4_0,
    "kafka-4.1": _4_2,
    "kafka-4.2": _4_2,
    "kafka-4.2.2": _4_2_2,
    "kafka-4.3": _4_3,
    "kafka-4.4": NEWEST,
    "intended": NEWEST,
}


def layout_of(profile: Profile) -> Layout:
    """Return the layout of this profile's release. Raises ``NoSuchProfile`` for a custom profile, whose layout is
    unknown."""
    found = LAYOUTS.get(profile.name)
    if found is None:
        raise NoSuchProfile(f"no layout of records for profile {profile.name!r}; use one of {', '.join(LAYOUTS)}")
    return found

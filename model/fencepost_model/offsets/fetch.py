"""Reading offsets (rule book, 6.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.offset_messages import (
    ZERO_ID,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

from ..consumer.derive import topics_by_name
from ..consumer.state import Image
from .checks import AnyGroup, may_fetch
from .rows import Entry, RequestedTopic, group_error
from .state import Offsets, Place
from .topics import IDS_SINCE, known

if TYPE_CHECKING:
    from ..variant import Variant


class Wanted(NamedTuple):
    """A topic that reaches the coordinator: as the request named it, and its real name and id."""

    requested: RequestedTopic
    name: str
    topic_id: bytes


class Question(NamedTuple):
    """The request for one group.

    - ``topics``: None for all.
    - ``refused``: by the broker.
    - ``denied``: topics without the right.
    - ``whole``: all requested topics, refused or not.
    """

    group_id: str
    member_id: str | None
    epoch: int
    topics: tuple[Wanted, ...] | None
    refused: tuple[OffsetFetchResponseTopic, ...]
    denied: frozenset[str]
    version: int
    whole: tuple[RequestedTopic, ...]

    def requested(self) -> tuple[RequestedTopic, ...]:
        """Return the topics that reach the coordinator, as the request names them."""
        return tuple([topic.requested for topic in self.topics or ()])

    def error(self, error: ErrorCode) -> OffsetFetchResponseGroup:
        """Return an error of the group, for all requested topics (O-FETCH-14)."""
        return group_error(self.group_id, self.whole, self.version, error)


def question(image: Image, asked: OffsetFetchRequestGroup, denied: frozenset[str], version: int) -> Question:
    """Return the part of a request for one group that reaches the coordinator (O-FETCH-01, 13, 14)."""
    with_ids = version >= IDS_SINCE
    wanted: list[Wanted] = []
    refused: list[OffsetFetchResponseTopic] = []
    for topic in asked.topics or ():
        found = known(image, topic.name, topic.topic_id, with_ids=with_ids)
        name = topic.name if found is None else found[0]
        error = ErrorCode.UNKNOWN_TOPIC_ID if found is None and with_ids else ErrorCode.NONE
        if error is ErrorCode.NONE and name in denied:
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if error is ErrorCode.NONE:
            real = topic.topic_id if with_ids else ZERO_ID
            wanted.append(Wanted((topic.name, topic.topic_id, topic.partition_indexes), name, real))
        else:
            rows = tuple([OffsetFetchResponsePartition(index, error_code=error) for index in topic.partition_indexes])
            refused.append(OffsetFetchResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=rows))
    topics = None if asked.topics is None else tuple(wanted)
    whole = tuple([(topic.name, topic.topic_id, topic.partition_indexes) for topic in asked.topics or ()])
    return Question(asked.group_id, asked.member_id, asked.member_epoch, topics, tuple(refused), denied, version, whole)


class Answer(NamedTuple):
    """The entry of the answer, and the rules that decided."""

    entry: Entry
    rules: tuple[str, ...]


def fetch(
    variant: Variant, image: Image, group: AnyGroup | None, offsets: Offsets, asked: Question, *, stable: bool
) -> Answer:
    """Return the answer for one group, from the newest offsets (``stable``, O-FETCH-08) or replicated ones
    (O-FETCH-07)."""
    checked = may_fetch(variant, group, asked.member_id, asked.epoch)
    if checked.error is not None:
        return Answer(Entry(asked.error(checked.error), None), checked.rules)
    seen = Offsets() if group is None else offsets  # O-FETCH-03, but an offset that a transaction holds is reported
    if asked.topics is None:
        topics = _all(image, seen, asked, stable=stable)
    else:
        topics = [
            OffsetFetchResponseTopic(
                name=topic.requested[0],
                topic_id=topic.requested[1],
                partitions=tuple(
                    [
                        _one(seen, place, topic.topic_id, held=stable and offsets.is_pending(place))
                        for place in [Place(asked.group_id, topic.name, number) for number in topic.requested[2]]
                    ]
                ),
            )
            for topic in asked.topics
        ]
    rules = (*checked.rules, "O-FETCH-08" if stable else "O-FETCH-07")
    body = OffsetFetchResponseGroup(asked.group_id, topics=(*topics, *asked.refused))
    return Answer(Entry(body, asked.requested()), rules)


def _one(offsets: Offsets, place: Place, topic_id: bytes, *, held: bool) -> OffsetFetchResponsePartition:
    if held:
        return OffsetFetchResponsePartition(place.partition, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    found = offsets.get(place)
    if found is None or (ZERO_ID not in (topic_id, found.topic_id) and topic_id != found.topic_id):
        return OffsetFetchResponsePartition(place.partition)  # O-FETCH-06
    return OffsetFetchResponsePartition(
        place.partition,
        committed_offset=found.offset,
        committed_leader_epoch=found.leader_epoch,
        metadata=found.metadata,
    )


def _all(image: Image, offsets: Offsets, asked: Question, *, stable: bool) -> list[OffsetFetchResponseTopic]:
    """Return everything committed in the group, except topics that the caller may not see, or that have no id
    (O-FETCH-01, O-FETCH-13)."""
    with_ids = asked.version >= IDS_SINCE
    places: dict[str, list[Place]] = {}
    for place, _ in offsets.of_group(asked.group_id):
        if place.topic not in asked.denied:
            places.setdefault(place.topic, []).append(place)
    topics = []
    for name, found in places.items():
        topic = topics_by_name(image).get(name)
        if with_ids and topic is None:
            continue
        topic_id = topic.topic_id if with_ids and topic is not None else ZERO_ID
        rows = tuple([_one(offsets, place, ZERO_ID, held=stable and offsets.is_pending(place)) for place in found])
        topics.append(OffsetFetchResponseTopic(name="" if with_ids else name, topic_id=topic_id, partitions=rows))
    return topics

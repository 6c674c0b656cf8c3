"""Judge the positions of a trace: compare the offset of every Fetch of a member with the answers that it got before.

A member begins to read a partition at a committed offset, or where a reset or a truncation puts it (K-POS-01, K-POS-03,
K-POS-07). It continues behind the records that it got (K-FETCH-02), and does not read partitions that it has lost
(K-FETCH-01, K-SUB-02). A member that leaves because its application does not poll may continue to prefetch, as aiokafka
does, if it hands out none of these records.

An application may also seek (K-POS-05), which no trace shows. So only traces whose header says that no client seeks are
judged. Clients that are several members, or none, are not judged, nor are partitions that a client never got.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ....traces.convert import wire_request, wire_response
from ....traces.files import WireTrace
from ....traces.lines import ReceivedLine, SentLine
from ..difference import Difference
from ..offsets.places import Names, Place, names_of
from ..offsets.reading import OFFSET_FETCH, Exchange, exchanges, fetched
from ..verdict import Refusal
from .clients import Client, clients

#: Key in the header's provenance: the clients of the trace never seek.
POSITIONS: Final = "positions"
JUDGED: Final = "judged"

FETCH: Final = 1
_LIST_OFFSETS: Final = 2
_OFFSET_FOR_LEADER_EPOCH: Final = 23
POSITION_APIS: Final = frozenset({FETCH, _LIST_OFFSETS, _OFFSET_FOR_LEADER_EPOCH})
_RULES: Final = ("K-POS-01", "K-POS-03", "K-POS-07", "K-FETCH-01", "K-FETCH-02", "K-SUB-02")


class Judged(NamedTuple):
    """A judged row of a Fetch: the ``at``-th partition of this line."""

    line: int
    at: int
    client: str
    place: Place
    offset: int


@dataclass(slots=True)
class _Reading:
    """Reads a trace line by line."""

    names: Names
    clients: dict[str, Client]
    fetches: dict[int, Exchange]  #: of committed offsets, by the line of their answers
    open: dict[tuple[int, int], SentLine]
    judged: list[Judged] = field(default_factory=list)

    def sent(self, number: int, line: SentLine) -> Refusal | None:
        client = self.clients.get(line.client_id or "")
        if client is None:
            return None
        self.open[line.connection, line.correlation_id] = line
        if line.api_key == FETCH:
            return None if line.body.get("late") else self._fetch(client, number, line)
        body = wire_request(line)
        if body is not None:
            client.says(body, line.at_ms, self.names)
        return None

    def _fetch(self, client: Client, number: int, line: SentLine) -> Refusal | None:
        for at, (place, row) in enumerate(_rows(line.body, self.names)):
            track = client.tracks.get(place)
            if track is None or (place not in client.held and track.lost_ms is None):
                continue
            self.judged.append(Judged(number, at, client.name, place, row["fetch_offset"]))
            allowed = track.allowed()
            if not track.fetches(row["fetch_offset"], line.at_ms):
                seen = f"{client.name} read {place[0]}-{place[1]} from {row['fetch_offset']}"
                difference = Difference(
                    "Fetch",
                    line.api_version,
                    f"{client.name} for {place[0]}-{place[1]}",
                    "fetch_offset",
                    str(row["fetch_offset"]),
                    " or ".join(allowed),
                    request=True,
                )
                return Refusal(client.group_id, number, line.at_ms, seen, allowed, _RULES, difference=difference)
        return None

    def received(self, number: int, line: ReceivedLine) -> None:
        asked = self.open.pop((line.connection, line.correlation_id), None)
        if asked is None or "undecoded" in line.body:
            return
        client = self.clients[asked.client_id or ""]
        if line.api_key == FETCH:
            for place, row in _rows(line.body, self.names):
                if row["next_offset"] is not None:
                    client.track(place).brought(row["next_offset"])
        elif line.api_key == OFFSET_FETCH:
            for group in fetched(self.fetches[number], self.names) if number in self.fetches else ():
                for place, (value, code) in group.rows.items():
                    if not code and value.offset >= 0:
                        client.track(place).may_begin_at(value.offset, "OffsetFetch")
                    elif not code:
                        client.track(place).nothing_committed()
        elif line.api_key in (_LIST_OFFSETS, _OFFSET_FOR_LEADER_EPOCH):
            for place, row in _rows(line.body, self.names):
                if row["error_code"]:
                    continue
                if row.get("offset", -1) >= 0:
                    client.track(place).may_reset_to(row["offset"])
                elif row.get("end_offset", -1) >= 0:
                    client.track(place).may_begin_at(row["end_offset"], "OffsetForLeaderEpoch")
        else:
            client.hears(wire_response(line), line.at_ms, self.names)


def wrong_positions(trace: WireTrace, groups: Collection[str]) -> Iterator[Refusal]:
    """For each of these groups the first impossible Fetch of a member; none if clients may seek."""
    if not are_judged(trace):
        return
    refused: set[str] = set()
    for found in _found(trace, _reading(trace)):
        if found.group_id in groups and found.group_id not in refused:
            refused.add(found.group_id)
            yield found


def are_judged(trace: WireTrace) -> bool:
    """Whether the header says that clients never seek."""
    return dict(trace.provenance).get(POSITIONS) == JUDGED


def judged(trace: WireTrace) -> list[Judged]:
    """All judged rows of a trace."""
    if not are_judged(trace):
        return []
    reading = _reading(trace)
    list(_found(trace, reading))
    return reading.judged


def _reading(trace: WireTrace) -> _Reading:
    every = exchanges(trace)
    by_answer = {each.end: each for each in every if each.api == OFFSET_FETCH}
    return _Reading(names_of(trace), clients(trace), by_answer, {})


def _found(trace: WireTrace, reading: _Reading) -> Iterator[Refusal]:
    for number, line in enumerate(trace.lines, 1):
        if isinstance(line, ReceivedLine):
            reading.received(number, line)
        elif isinstance(line, SentLine):
            found = reading.sent(number, line)
            if found is not None:
                yield found


def _rows(body: Any, names: Names) -> Iterator[tuple[Place, Any]]:
    """The partitions of a request or an answer; the name of the field with their numbers depends on the API."""
    for topic in _list(body.get("topics")):
        for row in topic.get("partitions") or ():
            name = topic.get("name") or topic.get("topic") or names.names.get(str(topic.get("topic_id")), "")
            yield (str(name), row.get("partition_index", row.get("partition"))), row


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []

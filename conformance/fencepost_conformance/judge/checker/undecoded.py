"""Frames that the recorder forwarded and could not decode: the checker does not accept a trace that contains one.

It refuses an answer with an error code that Kafka does not have. For any other frame the trace is undecided, unless the
broker closed the connection instead of answering: brokers do that if they cannot read a request, which then has no
effect. Frames of APIs that the checker does not judge do not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ...traces.files import WireTrace
from ...traces.lines import API_OF_KEY, DisconnectedLine, ReceivedLine, SentLine, UndecodedLine, WireLine
from .consumer.topics import CREATE_PARTITIONS
from .offsets.reading import OF_OFFSETS
from .positions.judge import POSITION_APIS, are_judged
from .verdict import Refusal


@dataclass(slots=True)
class Undecoded:
    """The frames of a trace. ``refusals``: answers with error codes that Kafka does not have. ``line``: the first frame
    for which the trace is undecided, 0 for none; ``why``: the reason."""

    refusals: list[Refusal] = field(default_factory=list)
    line: int = 0
    why: str = ""


#: ``history`` keeps the answers of group APIs, which are judged there.
_OF_GROUPS: Final = frozenset(API_OF_KEY)
_JUDGED: Final = _OF_GROUPS | OF_OFFSETS | {CREATE_PARTITIONS}


def _name(api_key: int) -> str:
    from kio.schema.index import api_key_map  # noqa: PLC0415  # a checker on Spark runs without kio

    return api_key_map.get(api_key, f"API {api_key}")


def undecoded(trace: WireTrace) -> Undecoded:
    """Find such frames in a trace. Lines count from 1 after the header."""
    found = Undecoded()
    judged = _JUDGED | (POSITION_APIS if are_judged(trace) else frozenset())
    for number, line in enumerate(trace.lines, 1):
        if isinstance(line, UndecodedLine):
            counts = line.by == "server" or not _turned_away(trace.lines[number:], line.connection, None)
            what = "a request" if line.by == "client" else "an answer"
            why = f"{what} of {line.bytes} bytes could not be decoded: {line.why}"
        elif isinstance(line, SentLine | ReceivedLine) and "undecoded" in line.body:
            counts = line.api_key in judged
            what = f"{_name(line.api_key)} v{line.api_version}"
            why = f"{what} could not be decoded: {line.body.get('why', 'no reason is given')}"
            if isinstance(line, SentLine):
                counts = counts and not _turned_away(trace.lines[number:], line.connection, line.correlation_id)
            elif line.api_key in _OF_GROUPS:
                continue
            elif counts and "error_code" in line.body:
                found.refusals.append(_odd(trace, number, line, what))
                continue
        else:
            continue
        if counts and not found.line:
            found.line, found.why = number, why
    return found


def _turned_away(later: tuple[WireLine, ...], connection: int, correlation_id: int | None) -> bool:
    """Whether the broker closed the connection and answered neither this request nor any later one."""
    sent: set[int] = set() if correlation_id is None else {correlation_id}
    for line in _on(later, connection):
        if isinstance(line, DisconnectedLine):
            return line.by == "server"
        if isinstance(line, SentLine):
            sent.add(line.correlation_id)
        elif isinstance(line, ReceivedLine) and line.correlation_id in sent:
            return False
    return False


def _on(lines: tuple[WireLine, ...], connection: int) -> Iterator[WireLine]:
    return (line for line in lines if line.connection == connection)


def _odd(trace: WireTrace, number: int, line: ReceivedLine, what: str) -> Refusal:
    requests = [
        each
        for each in _on(trace.lines[: number - 1], line.connection)
        if isinstance(each, SentLine) and each.correlation_id == line.correlation_id
    ]
    group_id = str(requests[-1].body.get("group_id", "")) if requests else ""
    seen = f"{what} was answered error code {line.body['error_code']}"
    return Refusal(group_id, number, line.at_ms, seen, ("an error code that Kafka has",), ())

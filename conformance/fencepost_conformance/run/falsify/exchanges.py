"""A wire trace as exchanges: requests with their answers, in the order of the answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...judge.checker.commits import OFFSET_COMMIT
from ...traces.files import WireTrace
from ...traces.lines import API_OF_KEY, ReceivedLine, SentLine


@dataclass(frozen=True, slots=True)
class Exchange:
    """``sent`` and ``received`` are positions in the trace's lines, from 0."""

    api: str
    version: int
    sent: int
    received: int
    sent_ms: int
    received_ms: int
    ask: dict[str, Any]
    answer: dict[str, Any]

    @property
    def error(self) -> int:
        code: int = self.answer.get("error_code", -1)
        return code

    @property
    def member(self) -> str:
        """The member that sent the request, or that the answer names if the request has no id."""
        name: str = self.ask.get("member_id") or self.answer.get("member_id", "")
        return name

    @property
    def leader(self) -> str:
        name: str = self.answer.get("leader", "")
        return name

    @property
    def generation(self) -> int:
        number: int = self.answer.get("generation_id", self.ask.get("generation_id", -1))
        return number


def exchanges(trace: WireTrace) -> list[Exchange]:
    """Return the answered requests of the group APIs, and commits."""
    found: list[Exchange] = []
    open_: dict[tuple[int, int], tuple[int, SentLine]] = {}
    for position, line in enumerate(trace.lines):
        if isinstance(line, SentLine):
            open_[line.connection, line.correlation_id] = position, line
        elif isinstance(line, ReceivedLine) and (line.connection, line.correlation_id) in open_:
            sent, ask = open_.pop((line.connection, line.correlation_id))
            api = "OffsetCommit" if line.api_key == OFFSET_COMMIT else API_OF_KEY.get(line.api_key)
            if api is not None and "undecoded" not in ask.body and "undecoded" not in line.body:
                found.append(
                    Exchange(
                        api, line.api_version, sent, position, ask.at_ms, line.at_ms, dict(ask.body), dict(line.body)
                    )
                )
    return found


def altered(trace: WireTrace, changes: dict[int, dict[str, Any]]) -> WireTrace:
    """Return the trace with other answers. ``changes``: position of a received line -> fields of its body to
    replace."""
    lines = list(trace.lines)
    for position, fields in changes.items():
        line = lines[position]
        assert isinstance(line, ReceivedLine)
        lines[position] = line.model_copy(update={"body": {**line.body, **fields}})
    return replace(trace, lines=tuple(lines), numbers=())


def without(trace: WireTrace, exchange: Exchange) -> WireTrace:
    """Return the trace without this request and its answer."""
    gone = {exchange.sent, exchange.received}
    return replace(trace, lines=tuple(line for at, line in enumerate(trace.lines) if at not in gone), numbers=())

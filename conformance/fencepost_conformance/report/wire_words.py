"""A wire trace in the same words as a trace of events: a lane for each client's connection, the broker last."""

from __future__ import annotations

from typing import Any

from ..trace import WireTrace, convert
from ..trace.lines import API_OF_KEY, ConnectedLine, DisconnectedLine, ReceivedLine, SentLine, WireLine
from .words import COORDINATOR, Answer, StepWords, answer_words, body_words


def wire_steps(trace: WireTrace) -> list[StepWords]:
    """Each line as a step."""
    names = _names(trace)
    return [_step(index, line, names) for index, line in enumerate(trace.lines)]


def wire_lanes(trace: WireTrace) -> list[str]:
    return [*_names(trace).values(), COORDINATOR]


def _names(trace: WireTrace) -> dict[int, str]:
    names: dict[int, str] = {}
    for line in trace.lines:
        if isinstance(line, ConnectedLine):
            names[line.connection] = f"{line.connection}: {line.client}"
        elif isinstance(line, SentLine) and line.client_id:
            head = names.get(line.connection, str(line.connection))
            if line.client_id not in head:
                names[line.connection] = f"{head} {line.client_id}"
        else:
            names.setdefault(line.connection, str(line.connection))
    return names


def _step(index: int, line: WireLine, names: dict[int, str]) -> StepWords:
    who = names[line.connection]
    if isinstance(line, ConnectedLine | DisconnectedLine):
        what = "connects" if isinstance(line, ConnectedLine) else f"disconnects{f' (by {line.by})' if line.by else ''}"
        return StepWords(index, line.at_ms, who, COORDINATOR, what, (), (), (), (), None)
    api = API_OF_KEY.get(line.api_key, f"api {line.api_key}")
    if isinstance(line, SentLine):
        request = convert.wire_request(line)
        said = _plain(line.body) if request is None else body_words(request)
        what = f"#{line.correlation_id} {api} v{line.api_version} {said}"
        return StepWords(index, line.at_ms, who, COORDINATOR, what, (), (), (), (), None)
    return StepWords(index, line.at_ms, COORDINATOR, who, "", (_answer(line, who, api),), (), (), (), None)


def _answer(line: ReceivedLine, who: str, api: str) -> Answer:
    response = convert.wire_response(line)
    said = _plain(line.body) if response is None else answer_words(response)
    error = said.split(" ")[0] not in ("NONE", "") if response is not None else bool(line.body.get("error_code"))
    return Answer(who, line.correlation_id, f"{api} {said}", error)


def _plain(body: dict[str, Any]) -> str:
    text = ", ".join(f"{name} {value}" for name, value in body.items())
    return text if len(text) <= 160 else f"{text[:160]} …"

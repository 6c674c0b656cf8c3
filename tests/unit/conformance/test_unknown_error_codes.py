"""Answers with error codes that no group API has are rejected; the trace does not count as unreadable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost_conformance.judge.checker.check import check_file, check_trace
from fencepost_conformance.traces.files import WireTrace, read_traces, write_traces
from fencepost_conformance.traces.lines import ReceivedLine

CORPUS = Path(__file__).parents[2] / "corpus"
API_KEYS = {"JoinGroup": 11, "Heartbeat": 12, "SyncGroup": 14, "ConsumerGroupHeartbeat": 68}


def altered(name: str, api: str, code: int, *, undecoded: bool = False) -> tuple[WireTrace, int]:
    """Return a trace of the corpus with another error code in the last answer of that API, and its place (from 1)."""
    (trace,) = read_traces(CORPUS / f"{name}.jsonl.gz")
    assert isinstance(trace, WireTrace)
    at = max(
        number
        for number, line in enumerate(trace.lines)
        if isinstance(line, ReceivedLine) and line.api_key == API_KEYS[api] and not line.body["error_code"]
    )
    line = trace.lines[at]
    assert isinstance(line, ReceivedLine)
    body = {"undecoded": "AAAA", "error_code": code} if undecoded else {**line.body, "error_code": code}
    lines = (*trace.lines[:at], line.model_copy(update={"body": body}), *trace.lines[at + 1 :])
    return WireTrace(trace.settings, trace.profile, lines), at + 1


@pytest.mark.parametrize("undecoded", [False, True])
@pytest.mark.parametrize("code", [41, 999, -7])
@pytest.mark.parametrize(
    ("name", "api"),
    [
        ("alone-java", "Heartbeat"),
        ("alone-java", "SyncGroup"),
        ("alone-java", "JoinGroup"),
        ("consumer-alone-java", "ConsumerGroupHeartbeat"),
    ],
)
def test_an_unknown_error_code_is_rejected_at_its_line(
    name: str, api: str, code: int, undecoded: bool, tmp_path: Path
) -> None:
    trace, at = altered(name, api, code, undecoded=undecoded)
    path = tmp_path / "odd.jsonl"
    write_traces(path, [trace])
    (verdict,) = check_file(path)
    assert verdict.outcome == "refused", verdict.reason
    (refusal,) = verdict.refusals
    assert refusal.line == at + 1  # the header is the first line of the file
    assert api in refusal.seen
    assert f"error code {code}" in refusal.seen
    assert refusal.allowed


def test_another_wrong_field_still_breaks_the_trace(tmp_path: Path) -> None:
    trace, at = altered("alone-java", "Heartbeat", 999)
    lines = [json.loads(text) for text in _written(tmp_path, trace)]
    del lines[at]["body"]["error_code"]
    (tmp_path / "broken.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (verdict,) = check_file(tmp_path / "broken.jsonl")
    assert (verdict.outcome, verdict.line) == ("broken", at + 1)


def _written(folder: Path, trace: WireTrace) -> list[str]:
    write_traces(folder / "t.jsonl", [trace])
    return (folder / "t.jsonl").read_text().splitlines()


def test_one_group_of_a_deletion_can_be_odd() -> None:
    """The answer has a code for each group; only the wrong one is rejected."""
    header = {"connection": 1, "correlation_id": 1, "api_key": 42, "api_version": 2, "at_ms": 1}
    from fencepost_conformance.traces.lines import SentLine  # noqa: PLC0415

    sent = SentLine(**header, body={"groups_names": ["g", "h"]})  # type: ignore[arg-type]
    rows = [{"group_id": "g", "error_code": 999}, {"group_id": "h", "error_code": 69}]
    received = ReceivedLine(**header, body={"results": rows})  # type: ignore[arg-type]
    (trace,) = read_traces(CORPUS / "alone-java.jsonl.gz")
    assert isinstance(trace, WireTrace)
    verdict = check_trace(WireTrace(trace.settings, trace.profile, (sent, received)))
    assert verdict.outcome == "refused"
    assert [refusal.group_id for refusal in verdict.refusals] == ["g"]

"""Peers that never answer or disconnect, existing recordings, files without events, and the marks of a rejection."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fencepost.protocol.messages import VERSIONS, HeartbeatRequest
from fencepost.wire import frames
from fencepost.wire.frames import NoAnswer, close, framed, read_frame, read_request_header
from fencepost_conformance.cli import main
from fencepost_conformance.common.addresses import Address
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.generate.wire import asking
from fencepost_conformance.generate.wire.connection import Connection, Notes
from fencepost_conformance.judge.coverage.wire import reasons, visible
from fencepost_conformance.judge.rows.job import Job, TraceOutcome
from fencepost_conformance.judge.rows.summary import Summary
from fencepost_conformance.run.pipeline import over_wire
from fencepost_conformance.run.pipeline.stage import Played
from fencepost_conformance.show.files import write_report
from fencepost_conformance.traces.files import WireTrace, read_traces, write_traces
from fencepost_conformance.traces.lines import ReceivedLine
from fencepost_conformance.traces.recorder.output import Output
from fencepost_conformance.traces.recorder.run import record

from .fake_broker import HOST, FakeBroker
from .test_record import read, recording

CORPUS = Path(__file__).parents[2] / "corpus"

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _mute(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()


@contextmanager
def listening(serve: Serve) -> Iterator[int]:
    """Listen in a separate thread; yields the port."""
    port, over = list[int](), threading.Event()
    ready = threading.Event()

    async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            await close(writer)

    async def run() -> None:
        server = await asyncio.start_server(closing, HOST, 0)
        port.append(server.sockets[0].getsockname()[1])
        ready.set()
        while not over.is_set():
            await asyncio.sleep(0.02)
        server.close()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    ready.wait(10)
    yield port[0]
    over.set()
    thread.join()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten every wait."""
    monkeypatch.setattr("fencepost_conformance.traces.wire.questions.ASK_S", 0.3)
    monkeypatch.setattr("fencepost.remote.connection.CONNECT_S", 0.3)
    monkeypatch.setattr(frames, "CONNECT_S", 0.3)


# --- mute peers ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("command", ["conform", "record"])
def test_a_port_that_never_answers_is_reported(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening(_mute) as port:
        words = {
            "conform": ["--target", f"{HOST}:{port}", "--traces", "1"],
            "record": ["--listen", f"{HOST}:0", "--upstream", f"{HOST}:{port}", "-o", str(tmp_path / "t.jsonl")],
        }
        began = time.monotonic()
        with pytest.raises(SystemExit) as left:
            main([command, *words[command]])
    assert left.value.code == 2
    assert time.monotonic() - began < 60
    assert "does not respond to ApiVersions within 0.3 s" in capsys.readouterr().err
    assert not (tmp_path / "t.jsonl").exists()


@pytest.mark.usefixtures("quick")
def test_a_port_that_takes_no_connection_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def never(*_: object, **__: object) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(frames.asyncio, "open_connection", never)
    with pytest.raises(CannotRun, match=r"no connection to .* within 0\.3 s"):
        asyncio.run(record(Address(HOST, 0), Address(HOST, 1), tmp_path / "t.jsonl", asyncio.Event()))


def test_a_request_that_is_never_answered_ends_its_trace() -> None:
    async def ask() -> Notes:
        notes = Notes(patience_s=0.2)
        async with FakeBroker(mute=("heartbeat",)) as broker:
            connection = await Connection.open(notes, HOST, broker.port)
            with pytest.raises(NoAnswer, match=r"no answer to Heartbeat v4 on connection 1 within 0\.2 s"):
                await connection.ask(4, HeartbeatRequest("g", generation_id=1, member_id="m"), "c")
            connection.close()
        return notes

    notes = asyncio.run(ask())
    assert [line.type for line in notes.lines] == ["connected", "sent", "disconnected"]
    trace = WireTrace(over_wire.settle({}, {}).settings, over_wire.PROFILES["kafka-4.3"], tuple(notes.lines))
    row = over_wire.judge(Job("a:1", "kafka-4.3", 9), 3, trace, "no answer to Heartbeat v4").row
    assert (row.outcome, row.left, row.failed) == (TraceOutcome.REFUSED, "no answer to Heartbeat v4", True)


def test_an_unknown_member_of_a_group_that_the_trace_created_is_refused(tmp_path: Path) -> None:
    """In a recorded trace the group may have existed before."""
    path = tmp_path / "commit.jsonl"
    path.write_text(
        '{"type":"trace","version":1,"kind":"wire"}\n'
        '{"type":"connected","at_ms":0,"connection":1,"client":"here:1"}\n'
        '{"type":"sent","at_ms":1,"connection":1,"correlation_id":3,"api_key":12,"api_version":4,"client_id":"c",'
        '"body":{"group_id":"run-g","generation_id":1,"member_id":"m","group_instance_id":null}}\n'
        '{"type":"received","at_ms":2,"connection":1,"correlation_id":3,"api_key":12,"api_version":4,'
        '"body":{"error_code":27}}\n'
    )
    (trace,) = read_traces(path)
    assert isinstance(trace, WireTrace)
    job = Job("a:1", "kafka-4.4", 9)
    for created, outcome in ((None, TraceOutcome.UNDECIDED), ("other-", TraceOutcome.UNDECIDED)):
        assert over_wire.judge(job, 3, trace, created=created).row.outcome == outcome
    row = over_wire.judge(job, 3, trace, created="run-").row
    assert row.outcome == TraceOutcome.REFUSED
    assert "expected UNKNOWN_MEMBER_ID" in row.left


def test_a_broker_that_stops_responding_loses_no_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """``play`` finds the port closed in its third trace."""
    (trace,) = read_traces(CORPUS / "alone-java.jsonl.gz")
    assert isinstance(trace, WireTrace)
    played: list[int] = []

    async def play(_target: object, seed: int, *_: object, **__: object) -> Played:
        await asyncio.sleep(0.2 * seed)
        played.append(seed)
        if seed == 2:
            raise ConnectionRefusedError(111, "Connection refused")
        return Played(trace)

    def everything(*_: object) -> asking.Offer:
        return asking.Offer({key: VERSIONS[kind] for key, kind in asking.CLIENTS[GroupProtocol.CLASSIC].items()}, {}, 1)

    monkeypatch.setattr(over_wire, "play", play)
    monkeypatch.setattr(over_wire, "offer", everything)
    from fencepost_conformance.run.pipeline.plan import Plan  # noqa: PLC0415
    from fencepost_conformance.targets.registry import parse_target  # noqa: PLC0415

    with listening(FakeBroker()._serve) as port:
        name = f"{HOST}:{port}"
        summary = Summary(Job(name, "kafka-4.3", 5))
        over_wire.run_over_wire(Plan(summary.job, 0, 9), parse_target(name), summary, lambda _: None)
    assert summary.traces == 2
    assert summary.stopped == f"{name}: Connection refused"


# --- what the recorder keeps -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz"])
def test_a_recording_that_is_there_is_not_written_over(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("yesterday's")
    with pytest.raises(CannotRun, match="already exists; give another name, or use --force"):
        asyncio.run(record(Address(HOST, 0), Address(HOST, 1), path, asyncio.Event()))
    with pytest.raises(CannotRun, match="already exists"):
        Output(path, lambda _: None)
    assert path.read_text() == "yesterday's"
    output = Output(path, lambda _: None, replace=True)
    output.write("today's")
    output.close()
    assert path.read_bytes() != b"yesterday's"


def test_an_odd_error_code_passes_the_recorder_and_is_refused(tmp_path: Path) -> None:
    """Kafka has no error code 999."""
    path = tmp_path / "t.jsonl"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (frame := await read_frame(reader, 1 << 20)) is not None:
            header = read_request_header(frame)
            assert header.api == "heartbeat"
            answer = header.correlation_id.to_bytes(4, "big") + b"\0" + bytes(4) + (999).to_bytes(2, "big") + b"\0"
            writer.write(framed(answer))
            await writer.drain()
        writer.close()

    async def run() -> None:
        async with FakeBroker() as broker, recording(broker, path) as (connect, _):
            broker.server.close()
            broker.server = await asyncio.start_server(serve, HOST, broker.port)
            peer = await connect()
            with pytest.raises(frames.UnknownErrorCode, match="no error code 999"):
                await peer.beat()

    asyncio.run(run())
    answers = [line for line in read(path).lines if isinstance(line, ReceivedLine)]
    assert [line.body["error_code"] for line in answers] == [999]
    from fencepost_conformance.judge.checker.check import check_file  # noqa: PLC0415

    (verdict,) = check_file(path)
    assert verdict.outcome == "refused"
    assert "Heartbeat v4" in verdict.refusals[0].seen
    assert "error code 999" in verdict.refusals[0].seen


# --- verdicts and pictures -------------------------------------------------------------------------------------------


def test_a_file_without_events_is_reported_and_the_others_are_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = '{"type": "trace", "version": 1, "kind": "wire"}\n'
    (tmp_path / "empty.jsonl").write_text(header)
    good = (CORPUS / "alone-java.jsonl.gz").read_bytes()
    (tmp_path / "good.jsonl.gz").write_bytes(good)
    with pytest.raises(SystemExit) as left:
        main(["validate", str(tmp_path), "--json"])
    result = json.loads(capsys.readouterr().out)
    assert left.value.code == 2
    assert (result["counts"]["passed"], result["counts"]["undecided"]) == (1, 1)
    assert "empty.jsonl:1: it has no events: there is nothing to check" in result["error"]


def wrong() -> tuple[WireTrace, int]:
    """Return a trace whose last Heartbeat answer is impossible, and the index of the answer."""
    (trace,) = read_traces(CORPUS / "alone-java.jsonl.gz")
    assert isinstance(trace, WireTrace)
    at = max(at for at, line in enumerate(trace.lines) if isinstance(line, ReceivedLine) and line.api_key == 12)
    line = trace.lines[at].model_copy(update={"body": {"error_code": 82}})
    return WireTrace(trace.settings, trace.profile, (*trace.lines[:at], line, *trace.lines[at + 1 :])), at


def test_replay_shows_and_marks_the_reason_for_a_rejected_wire_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, at = wrong()
    file, page = tmp_path / "wrong.jsonl", tmp_path / "page.html"
    write_traces(file, [trace, trace])
    for form in ([], ["--json", "--html", str(page)]):
        with pytest.raises(SystemExit) as left:
            main(["replay", str(file), *form])
        assert left.value.code == 1
        output = capsys.readouterr().out
        if not form:
            assert f"✗{at:>4} " in output
            assert f"rejected at line {at + 2}, group alone" in output
            assert "C-HB-" in output
        else:
            first, second = json.loads(output)["traces"]
            assert (first["verdict"], first["marked"], second["marked"]) == ("failed", at, at)
    assert page.read_text().count(f'data-marked="{at}"') == 2


def test_the_report_marks_the_step_that_was_refused(tmp_path: Path) -> None:
    trace, at = wrong()
    summary = Summary(Job("a:1", "kafka-4.3", 9))
    summary.add_judged(over_wire.judge(summary.job, 5, trace))
    write_report(tmp_path, summary, 1.0)
    assert f'data-marked="{at}"' in (tmp_path / "report.html").read_text()
    (row,) = summary.failures
    assert f"line {row.event + 1}: " in (tmp_path / "report.html").read_text()
    written = (tmp_path / "failures" / "seed-5.jsonl").read_text().splitlines()
    assert json.loads(written[row.event])["body"] == {"error_code": 82}  # the line of the file, counted from 1


def test_results_that_the_wire_cannot_show_are_not_reported_missing() -> None:
    ranges = {"Heartbeat": (0, 3), "JoinGroup": (2, 5)}
    summary = Summary(Job("a:1", "kafka-4.3", 9), visible=visible(ranges))
    coverage = summary.coverage()
    assert set(coverage["kinds"]) == {"error", "version"}
    named = {*coverage["unreached"], *coverage["with_reason"]}
    assert {name.split()[1] for name in named} == set(ranges)
    assert {"version Heartbeat 3", "version JoinGroup 2", "error JoinGroup MEMBER_ID_REQUIRED"} <= named
    assert not {"version Heartbeat 4", "version JoinGroup 1"} & named
    assert "error Heartbeat NOT_COORDINATOR" in coverage["with_reason"]
    assert "error JoinGroup FENCED_INSTANCE_ID" in named  # from v5 on
    assert "error JoinGroup FENCED_INSTANCE_ID" not in visible({"JoinGroup": (0, 4)})
    assert set(reasons(visible(ranges), GroupProtocol.CLASSIC)) == set(coverage["with_reason"])

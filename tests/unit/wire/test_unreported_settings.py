"""Settings that a broker does not report: they are assumed and named, can be given, and are named where they would
explain a rejection."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.protocol.kafka_names import BROKER_NAMES
from fencepost_conformance.cli import main
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.judge.rows.job import Job
from fencepost_conformance.judge.rows.summary import Judged, Summary
from fencepost_conformance.run.pipeline import over_wire
from fencepost_conformance.show.report.html import report_page
from fencepost_conformance.show.report.terminal import details, tables
from fencepost_conformance.traces.files import WireTrace, read_traces, write_traces
from fencepost_conformance.traces.lines import ReceivedLine, SentLine
from fencepost_conformance.traces.wire.settings import given, settle
from fencepost_server.look.made import Made

from .fake_broker import FakeBroker
from .test_record import recording

MADE = Made("1.2.3", "", "today", "a test")

CORPUS = Path(__file__).parents[2] / "corpus"
JOIN_GROUP = 11
DELAY, DELAY_FIELD = "group.initial.rebalance.delay.ms", "group_initial_rebalance_delay_ms"


def unreported(name: str, *fields: str) -> WireTrace:
    """Return a trace of the corpus as recorded from a broker that does not report these settings."""
    (trace,) = read_traces(CORPUS / f"{name}.jsonl.gz")
    assert isinstance(trace, WireTrace)
    usual = settle({}, {}).settings
    settings = replace(trace.settings, **{field: getattr(usual, field) for field in fields})
    assert settings != trace.settings
    return replace(trace, settings=settings, assumed=fields)


def quick(name: str = "alone-java") -> WireTrace:
    """Return a trace with the initial delay removed from its times, as from a broker without it that does not report
    that."""
    (trace,) = read_traces(CORPUS / f"{name}.jsonl.gz")
    assert isinstance(trace, WireTrace)
    answer = next(  # the first answer with a generation
        line
        for line in trace.lines
        if isinstance(line, ReceivedLine) and line.api_key == JOIN_GROUP and line.body["generation_id"] == 1
    )
    sent = next(
        line
        for line in trace.lines
        if isinstance(line, SentLine)
        and (line.connection, line.correlation_id) == (answer.connection, answer.correlation_id)
    )
    cut = answer.at_ms - sent.at_ms - 5
    lines = [
        line.model_copy(update={"at_ms": max(min(line.at_ms, sent.at_ms + 5), line.at_ms - cut)})
        for line in trace.lines
    ]
    return replace(trace, lines=tuple(lines), assumed=(DELAY_FIELD,))


# --- the checker -----------------------------------------------------------------------------------------------------


def test_a_rejection_names_the_assumed_setting_that_would_explain_it() -> None:
    trace = quick()
    verdict = check_trace(trace)
    (refusal,) = verdict.refusals
    assert refusal.hint == (f"would be accepted with {DELAY}=0, which the trace does not show; give it with --setting")
    assert check_trace(trace, given={DELAY_FIELD: 0}).outcome == "accepted"


def test_given_settings_produce_no_hint() -> None:
    (refusal,) = check_trace(replace(quick(), assumed=())).refusals
    assert refusal.hint == ""


def test_a_setting_that_was_given_is_not_guessed_at() -> None:
    (refusal,) = check_trace(quick(), given={DELAY_FIELD: 3_000}).refusals
    assert refusal.hint == ""


def test_checking_continues_past_an_assumption_that_explains_nothing() -> None:
    """Behind the fault that the delay explains, the trace has another one."""
    trace = quick("three-at-once-java")
    answers = [at for at, line in enumerate(trace.lines) if line.type == "received" and "error_code" in line.body]
    last = trace.lines[answers[-1]]
    wrong = last.model_copy(update={"body": {**last.body, "error_code": 82}})  # type: ignore[union-attr]
    trace = replace(trace, lines=(*trace.lines[: answers[-1]], wrong, *trace.lines[answers[-1] + 1 :]))
    refusal = check_trace(trace).refusals[0]
    assert refusal.instead is not None
    assert refusal.instead.line is not None
    assert refusal.line < refusal.instead.line <= answers[-1] + 2  # the header is the first line of the file
    assert f"would be accepted up to line {refusal.instead.line} with {DELAY}=" in refusal.hint


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("consumer-full-java", "group_consumer_max_size"),
        ("consumer-alone-java", "group_consumer_heartbeat_interval_ms"),
        ("consumer-crash-java", "group_consumer_session_timeout_ms"),
    ],
)
def test_values_are_read_off_the_trace(name: str, field: str) -> None:
    trace = unreported(name, field)
    verdict = check_trace(trace)
    if verdict.outcome == "accepted":
        pytest.fail(f"{name} is accepted without {BROKER_NAMES[field]}: the case shows nothing")
    assert f"would be accepted with {BROKER_NAMES[field]}=" in verdict.refusals[0].hint


# --- the command line ------------------------------------------------------------------------------------------------


def test_validate_takes_settings_and_prints_the_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "quick.jsonl"
    write_traces(file, [quick()])
    assert json.loads(file.read_text().splitlines()[0])["assumed"] == [DELAY_FIELD]
    ended_with = {}
    for words in ([], ["--setting", f"{DELAY}=0"]):
        for form in ([], ["--json"]):
            with pytest.raises(SystemExit) as ended:
                main(["validate", str(file), *words, *form])
            ended_with[bool(words), bool(form)] = ended.value.code, capsys.readouterr().out
    assert {key: code for key, (code, _) in ended_with.items()} == {
        (False, False): 1, (False, True): 1, (True, False): 0, (True, True): 0
    }  # fmt: skip
    assert f"{DELAY}=0" in "".join(ended_with[False, False][1].split())
    assert f"{DELAY}=0" in json.loads(ended_with[False, True][1])["verdicts"][0]["refusals"][0]["hint"]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("group.initial.rebalance.delay=0", "did you mean group.initial.rebalance.delay.ms"),
        ("group.max.size", "is not NAME=VALUE"),
        ("group.max.size=many", "'many' is not a value of group.max.size"),
        ("group.consumer.migration.policy=sideways", "'sideways' is not a value"),
    ],
)
def test_a_wrong_setting_is_reported(option: str, message: str) -> None:
    with pytest.raises(CannotRun, match=message):
        given([option])


def test_settings_are_read_as_kafka_writes_them() -> None:
    assert given(["group.max.size=3", "group.consumer.assignors=range, uniform", "group.max.size=4"]) == {
        "group_max_size": 4,
        "group_consumer_assignors": ("range", "uniform"),
    }


def test_settings_are_for_brokers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["conform", "--traces", "1", "--setting", "group.max.size=3"])
    assert ended.value.code == 2
    assert "--setting is for a broker" in capsys.readouterr().err


# --- the recorder ----------------------------------------------------------------------------------------------------


def test_a_recorder_reports_and_records_its_assumptions(tmp_path: Path) -> None:
    async def run(path: Path, settings: dict[str, object]) -> list[str]:
        complaints: list[str] = []
        async with (
            FakeBroker(unreported=(DELAY, "group.max.size")) as broker,
            recording(broker, path, complaints, settings=settings) as (connect, _),
        ):
            await (await connect()).beat()
        return complaints

    (notice,) = asyncio.run(run(tmp_path / "one.jsonl", {}))
    assert "settings that the broker did not report" in notice
    assert f"{DELAY}=3000" in notice
    assert "group.max.size=2147483647" in notice
    header = json.loads((tmp_path / "one.jsonl").read_text().splitlines()[0])
    assert header["assumed"] == [DELAY_FIELD, "group_max_size"]
    assert asyncio.run(run(tmp_path / "two.jsonl", {DELAY_FIELD: 5, "group_max_size": 7})) == []
    (trace,) = read_traces(tmp_path / "two.jsonl")
    assert isinstance(trace, WireTrace)
    assert (trace.settings.group_initial_rebalance_delay_ms, trace.settings.group_max_size) == (5, 7)
    assert trace.assumed == ()


# --- conform ---------------------------------------------------------------------------------------------------------


def test_a_run_reports_its_assumptions_and_their_effect() -> None:
    trace = quick()
    job = Job("127.0.0.1:9092", "kafka-4.3", 60)
    summary = Summary(job, known=settle({}, {}, over_wire.OF_CLASSIC))
    judged: Judged = over_wire.judge(job, 4, replace(trace, numbers=()))
    summary.add_judged(judged)
    assert summary.tally.failed == 1
    report = details(summary)
    assert report["assumed"][DELAY] == 3_000
    assert f"{DELAY}=0" in report["failures"][0]["hint"]
    page = report_page(summary, 1.0, [], MADE)
    from rich.console import Console  # noqa: PLC0415

    console = Console(width=100)
    with console.capture() as terminal:
        console.print(tables(summary))
    for text in (page, "".join(terminal.get().split())):
        assert f"{DELAY}=3000" in text
        assert f"{DELAY}=0" in text

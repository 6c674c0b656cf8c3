"""``fencepost conform --trace`` runs sessions that ``fencepost lab`` has saved."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.coordinator.routing import APIS
from fencepost.protocol import consumer_messages as cm
from fencepost_conformance.cli import main
from fencepost_conformance.generate.lab import Lab, Start, parse_actions
from fencepost_conformance.generate.lab.saving import events_trace, wire_trace
from fencepost_conformance.traces.files import write_traces

ACTIONS = [{"do": "start", "client": "c1", "protocol": "consumer"}, {"do": "run", "ms": 9_000}]


@pytest.fixture
def session() -> Lab:
    return Lab(Start()).play(parse_actions(ACTIONS))


@pytest.fixture
def file(session: Lab, tmp_path: Path) -> Path:
    write_traces(tmp_path / "lab-trace.jsonl", [events_trace(session)])
    return tmp_path / "lab-trace.jsonl"


def conform(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(["conform", *words])
    return int(ended.value.code or 0), capsys.readouterr().out


def test_a_session_passes_under_its_profile(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, text = conform(capsys, "--trace", str(file), "--trace", str(file), "--json")
    result = json.loads(text)
    assert (status, result["verdict"], result["counts"]["traces"]) == (0, "passed", 2)
    assert result["profile"] == Start().profile


def test_a_failure_names_the_file_and_is_drawn(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The core answers with a wrong epoch, which the model rejects."""
    api = APIS[cm.ConsumerGroupHeartbeatRequest]

    def late(step: object, request: object, body: cm.ConsumerGroupHeartbeatRequest) -> None:
        api.handle(step, request, replace(body, rebalance_timeout_ms=77) if body.member_epoch == 0 else body)

    monkeypatch.setitem(APIS, cm.ConsumerGroupHeartbeatRequest, api._replace(handle=late))
    status, text = conform(capsys, "--trace", str(file), "--json", "-o", str(tmp_path / "out"))
    result = json.loads(text)
    assert (status, result["verdict"]) == (1, "failed")
    assert result["failures"][0]["replay"] == f"fencepost replay {file} --target core"
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.count('class="trace"') == 1
    assert str(file) in page
    status, text = conform(capsys, "--trace", str(file))
    assert "lab-trace.jsonl" in "".join(text.split())  # the line may be folded


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--seed", "3"), "--seed does not go with --trace: the files have whole traces"),
        (("--target", "localhost:1"), "a trace of events runs on core, kafka:RELEASE or kafka:DIR, not on a broker"),
        (("--profile", "kafka-3.9"), "profile kafka-3.9 judges brokers only"),
    ],
)
def test_options_that_do_not_go_with_a_trace(
    words: tuple[str, ...], reason: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, text = conform(capsys, "--trace", str(file), *words, "--json")
    assert status == 2
    assert reason in json.loads(text)["error"]


def test_a_file_that_cannot_run_is_one_clear_line(
    session: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_traces(tmp_path / "wire.jsonl", [wire_trace(session)])
    (tmp_path / "text.jsonl").write_text("text\n")
    for name, reason in {
        "wire.jsonl": "has messages of clients, not events: fencepost validate",
        "text.jsonl": "text.jsonl:1: ",
        "none.jsonl": "No such file or directory; give a file of traces",
    }.items():
        status, text = conform(capsys, "--trace", str(tmp_path / name), "--json")
        assert status == 2
        assert reason in json.loads(text)["error"]


def test_a_broken_file_does_not_keep_others_from_running(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.jsonl").write_text("text\n")
    status, text = conform(capsys, "--trace", str(tmp_path / "text.jsonl"), "--trace", str(file), "--json")
    result = json.loads(text)
    assert (status, result["verdict"]) == (2, "incomplete")
    assert (result["counts"]["passed"], result["counts"]["broken"]) == (1, 1)
    assert "text.jsonl:1: " in result["broken"][0]["why"]


def test_traces_of_several_profiles_need_one(session: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    older = Lab(Start(profile="kafka-4.1")).play(parse_actions(ACTIONS))
    write_traces(tmp_path / "two.jsonl", [events_trace(session), events_trace(older)])
    status, text = conform(capsys, "--trace", str(tmp_path / "two.jsonl"), "--json")
    assert status == 2
    assert "choose one by --profile" in json.loads(text)["error"]
    status, text = conform(capsys, "--trace", str(tmp_path / "two.jsonl"), "--profile", "kafka-4.3", "--json")
    result = json.loads(text)
    assert (result["profile"], result["counts"]["traces"]) == ("kafka-4.3", 2)

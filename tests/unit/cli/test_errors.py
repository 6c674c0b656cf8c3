"""Errors are one line for people and an object for programs, and suggest similar names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost_conformance.cli import main
from fencepost_conformance.common.nearest import nearest, unknown

ROOT = Path(__file__).parents[3]

#: a command line that each command must reject, for each kind of mistake: a name, a number, an option, a file, a
#: command
BAD = [
    "check EagerQiet",
    "check --size huge",
    "check --siz small",
    "conform --target localhost:1",
    "conform --traces many",
    "conform --protocol nonsense",
    "record --listen here --upstream there -o {}/t.jsonl",
    "validate {}/none.jsonl",
    "validate",
    "replay {}/none.jsonl",
    "replay 1 --steps 3 --html {}/none/page.html",
    "mutants nonsense",
    "findings nonsense",
    "diff core nonsense",
    "diff core",
    "rules ZZ",
    "diagram nonsense",
    "diagram classic-group -o {}/none/machine.svg",
    "bench nonsense",
    "certify --size huge",
    "certify --key {}/none.pub",
    "certify --sign {}/none",
    "certify {}/none/certificate.json",
    "certify --check {}/none.json",
    "certify --check --traces 3",
    "certify --check --installed {}/none",
    "chek",
]


@pytest.mark.parametrize("line", BAD)
def test_under_json_an_error_is_one_object(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*(word.format(tmp_path) for word in line.split()), "--json"])
    output = capsys.readouterr()
    answer = json.loads(output.out)
    assert (ended.value.code, answer["status"]) == (2, 2)
    assert answer["error"]
    assert output.err.splitlines()[-1].endswith(answer["error"])


@pytest.mark.parametrize("line", BAD)
def test_without_it_an_error_is_one_line(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([word.format(tmp_path) for word in line.split()])
    output = capsys.readouterr()
    assert ended.value.code == 2
    assert len(output.err.splitlines()) == 1


def test_results_before_an_error_are_in_the_same_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.jsonl").write_text("no trace")
    corpus = ROOT / "tests" / "corpus" / "alone-java.jsonl.gz"
    with pytest.raises(SystemExit) as ended:
        main(["validate", str(corpus), str(tmp_path / "broken.jsonl"), "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert (ended.value.code, answer["status"], answer["counts"]["passed"]) == (2, 2, 1)
    assert "1 of 2 traces broken" in answer["error"]


KNOWN = ["EagerQuiet", "EagerFaults", "ConsumerQuiet", "C-JOIN-43", "kafka-4.3", "classic"]


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("EagerQiet", ["EagerQuiet"]),
        ("eagerquiet", ["EagerQuiet"]),
        ("c-join-44", ["C-JOIN-43"]),
        ("kafka-4,3", ["kafka-4.3"]),
        ("clasic", ["classic"]),
        ("zzz", []),
        ("nonsense", []),
        ("a", []),
        ("", []),
    ],
)
def test_only_similar_names_are_suggested(name: str, like: list[str]) -> None:
    assert nearest(name, KNOWN)[: len(like) or None] == like


def test_a_prefix_finds_the_names_that_begin_with_it() -> None:
    assert sorted(nearest("eagr", KNOWN)) == ["EagerFaults", "EagerQuiet"]


def test_where_nothing_is_like_it_no_guess_is_made() -> None:
    assert unknown("rule", "zzz", KNOWN, "there are some") == "no rule 'zzz'; there are some"


@pytest.mark.parametrize(
    ("line", "guess"),
    [
        ("check ConsumerQuite", "ConsumerQuiet"),
        ("check --size smal", "small"),
        ("conform --protocol clasic", "classic"),
        ("conform --profile intend", "intended"),
        ("conform --engine lokal", "local"),
        ("conform --target kafak:4.3.1", "kafka:4.3.1"),
        ("conform --target cor", "core"),
        ("validate tests/corpus/alone-java.jsonl.gz --profile kafka-43", "kafka-4.3"),
        ("mutants timer-of-removed-member-rebalance", "timer-of-removed-member-rebalances"),
        ("bench step", "steps"),
        ("findings wedgedgroup", "wedged-group"),
        ("diff core kafak:4.3.1", "kafka:4.3.1"),
        ("diagram clasic-group", "classic-group"),
        ("conforn", "conform"),
    ],
)
def test_every_command_suggests_similar_names(
    line: str, guess: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == 2
    assert f"did you mean {guess}" in capsys.readouterr().err

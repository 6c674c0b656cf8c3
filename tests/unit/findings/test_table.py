"""The pinned table, the page that shows it, the public tickets, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fencepost_conformance import cli
from fencepost_conformance.common.interruption import Terminated
from fencepost_conformance.judge.findings.catalogue import FINDINGS
from fencepost_conformance.judge.findings.judge import Judged, Verdict
from fencepost_conformance.judge.findings.table import as_markdown, changed, read_pinned, read_tickets, write_pinned
from fencepost_conformance.run.commands import findings as command
from fencepost_conformance.targets.jvm.releases import RELEASES

DOCS = Path(__file__).parents[3] / "docs"
FOLDER = DOCS / "findings"
NAMES = {each.name for each in FINDINGS}


def test_every_release_is_pinned_with_every_finding() -> None:
    pinned = read_pinned(FOLDER)
    assert tuple(pinned) == RELEASES
    assert all(set(rows) == NAMES for rows in pinned.values())


def test_every_finding_was_looked_up() -> None:
    assert set(read_tickets(FOLDER).findings) == NAMES


def test_the_page_shows_the_pinned_verdicts() -> None:
    table = as_markdown(FINDINGS, read_pinned(FOLDER), read_tickets(FOLDER))
    assert table in (DOCS / "findings.md").read_text(encoding="utf-8")


def test_a_verdict_that_is_not_the_pinned_one_is_a_change() -> None:
    pinned = {"one": Verdict.PRESENT, "two": Verdict.GONE}
    found = {name: Judged(Verdict.PRESENT, "why") for name in ("one", "two", "three")}
    assert changed(pinned, found) == ["two", "three"]


def test_pinned_verdicts_are_read_back(tmp_path: Path) -> None:
    assert read_pinned(tmp_path) == {}
    pinned = {"4.0.2": {"one": Verdict.PRESENT}, "4.4.0": {"one": Verdict.DIFFERENT}}
    write_pinned(tmp_path, pinned)
    assert read_pinned(tmp_path) == pinned


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        cli.main(["findings", *words])
    code = left.value.code
    assert isinstance(code, int)
    output = capsys.readouterr()
    return code, output.out, output.err


def test_a_verdict_that_is_not_pinned_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "wedged-group", "target-never-computed", "--target", "core:kafka-4.2", "--json")
    result = json.loads(out)
    assert (code, result["passed"], result["changed"], result["not_pinned"]) == (0, True, [], {"core:kafka-4.2": {}})
    verdicts = {row["name"]: row["verdicts"]["core:kafka-4.2"]["verdict"] for row in result["findings"]}
    assert verdicts == {"wedged-group": "present", "target-never-computed": "gone"}


def test_another_verdict_than_the_pinned_one_is_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "read_pinned", lambda _: {"core": {"wedged-group": Verdict.PRESENT}})
    code, out, _ = run(capsys, "wedged-group", "--target", "core", "--json")
    row = {"target": "core", "finding": "wedged-group", "pinned": "present", "verdict": "gone"}
    assert (code, json.loads(out)["changed"]) == (1, [row])
    code, out, _ = run(capsys, "wedged-group", "--target", "core")
    assert code == 1
    assert "core wedged-group: gone, pinned present" in out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("wedged-grup",), "did you mean wedged-group?"),
        (("--target", "core:kafka-4.9"), "no profile 'kafka-4.9'"),
        (("--target", "broker:4.3.1"), "findings are traces of events"),
        (("wedged-group", "--pin"), "leave out their names"),
        (("--pin", "--target", "core"), "core cannot be pinned"),
    ],
)
def test_an_impossible_run_is_reported(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], reason: str) -> None:
    code, _, err = run(capsys, *words)
    assert code == 2
    assert reason in err


def test_the_terminal_shows_the_table_in_eighty_columns(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--target", "core", "--target", "core:kafka-4.3")
    assert all(name in out for name in NAMES)
    assert max(map(len, out.splitlines())) <= 80


def _verdicts(verdict: Verdict) -> dict[str, Judged]:
    return {each.name: Judged(verdict) for each in FINDINGS}


def test_pinning_one_release_leaves_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pinned(tmp_path, {"4.0.2": {"wedged-group": Verdict.PRESENT}, "4.4.0": {"wedged-group": Verdict.PRESENT}})
    monkeypatch.setattr(command, "read_pinned", lambda _: read_pinned(tmp_path))
    monkeypatch.setattr(command, "write_pinned", lambda _, pinned: write_pinned(tmp_path, pinned))
    monkeypatch.setattr(command, "_play", lambda *args: args[3].update({"kafka:4.4.0": _verdicts(Verdict.GONE)}))
    code, _, _ = run(capsys, "--pin", "--target", "kafka:4.4.0", "--json")
    assert code == 0
    pinned = read_pinned(tmp_path)
    assert pinned["4.0.2"] == {"wedged-group": Verdict.PRESENT}
    assert pinned["4.4.0"] == dict.fromkeys(NAMES, Verdict.GONE)


def test_an_interrupted_run_reports_its_results_and_pins_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pinned(tmp_path, {"4.4.0": {"wedged-group": Verdict.PRESENT}})
    before = read_pinned(tmp_path)

    def cut_short(chosen: object, folder: object, targets: object, found: dict[str, Any], broken: object) -> None:
        found["kafka:4.4.0"] = _verdicts(Verdict.GONE)
        raise Terminated

    monkeypatch.setattr(command, "read_pinned", lambda _: read_pinned(tmp_path))
    monkeypatch.setattr(command, "write_pinned", lambda _, pinned: write_pinned(tmp_path, pinned))
    monkeypatch.setattr(command, "_play", cut_short)
    code, out, _ = run(capsys, "--pin", "--target", "kafka:4.4.0", "--target", "kafka:4.3.1", "--json")
    result = json.loads(out)
    assert (code, result["passed"]) == (1, False)  # one finding differs from its pinned verdict
    assert result["error"] == "interrupted; 1 of 2 targets done, and nothing was pinned"
    assert read_pinned(tmp_path) == before


def test_a_custom_build_is_compared_with_the_newest_release(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned = read_pinned(FOLDER)
    mine = {name: Judged(verdict) for name, verdict in pinned[RELEASES[-1]].items()} | {
        "target-never-computed": Judged(Verdict.GONE)
    }
    monkeypatch.setattr(command, "_play", lambda *comparison: comparison[3].update({"kafka:/a/build/of/my/own": mine}))
    code, out, _ = run(capsys, "--target", "kafka:/a/build/of/my/own")
    assert code == 0
    assert (
        f"no verdicts are pinned for it; its verdicts equal those of {RELEASES[-1]}, but target-never-computed is gone"
        in " ".join(out.split())
    )
    _, out, _ = run(capsys, "--target", "kafka:/a/build/of/my/own", "--json")
    comparison = {"compared_with": RELEASES[-1], "differing": ["target-never-computed"]}
    assert json.loads(out)["not_pinned"] == {"kafka:/a/build/of/my/own": comparison}

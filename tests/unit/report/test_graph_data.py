"""The data of the page on which a state graph is walked are those of the explored graph."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import pytest

from fencepost_conformance.cli import main
from fencepost_conformance.show.graph.data import graph_data, plain
from fencepost_conformance.show.graph.page import graph_page
from fencepost_model.explore.search import Limits
from fencepost_model.system.checking import explore_with
from fencepost_model.system.families import FAMILIES, family_of
from fencepost_model.system.manifest import read_manifest
from fencepost_model.system.variables import values_in
from fencepost_server.look.made import Made

MADE = Made("1.2.3", "", "today", "a test")

ENTRIES: Final = {entry.name: entry for entry in read_manifest(Path(__file__).parents[3] / "spec")}


@pytest.mark.parametrize("name", [family.base for family in FAMILIES])
def test_the_page_has_each_state_and_transition(name: str) -> None:
    explored = explore_with(ENTRIES[name], transitions=True, limits=Limits(states=500), stop_at_violation=False)
    graph, data = explored.found.graph, graph_data(name, explored)
    makers = family_of(explored.system.config).makers(explored.system)
    assert len(data["states"]) == graph.states
    for number in range(0, graph.states, 41):
        values = values_in(makers, graph.state(number))
        shown = [data["values"][place][at] for place, at in enumerate(data["states"][number])]
        assert shown == [plain(value) for value in values.values()]
    written = [
        (source, data["labels"][data["label"][each]], data["target"][each])
        for source in range(graph.states)
        for each in range(data["start"][source], data["start"][source + 1])
    ]
    assert written == [(source, " ".join(label), target) for source, label, _, target in graph.transitions()]
    ways = set(written)
    for number in range(graph.initial, graph.states):
        assert (data["parent"][number], data["labels"][data["via"][number]], number) in ways
    assert (data["expanded"] < graph.states) == bool(data["stopped"])


def test_a_broken_property_has_its_path() -> None:
    explored = explore_with(ENTRIES["KafkaStaticRefused"], transitions=True, stop_at_violation=False)
    (broken,) = graph_data("x", explored)["broken"]
    trace = explored.found.violations[0].trace
    assert broken["property"] == "NoReturningStaticMemberIsRejected"
    assert [explored.found.graph.state(number) for number in broken["path"]] == [step.state for step in trace]


def test_a_page_is_one_file_whatever_the_data_say() -> None:
    data = {"name": "</script><b>", "variables": ["client"], "values": [["</script>"]], "states": [[0]], "target": [],
            "stopped": ""}  # fmt: skip
    page = graph_page(data, MADE)
    assert page.count("</script>") == 2
    (embedded,) = re.findall(r'id="graph">(.*?)</script>', page, re.DOTALL)
    assert json.loads(embedded) == data
    assert "http" not in page


def test_the_page_is_served_on_loopback() -> None:
    command = [sys.executable, "-m", "fencepost_conformance.cli", "graph", "WitnessStable"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if "http" in line)
            assert line.startswith("http://127.0.0.1:")
            with urlopen(line.split()[0], timeout=30) as answer:
                assert b"WitnessStable" in answer.read()
        finally:
            process.terminate()


def test_a_property_that_raises_is_reported_and_the_page_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine, page = tmp_path / "mine.py", tmp_path / "graph.html"
    mine.write_text("def p(group):\n    return group.nothing\n")
    with pytest.raises(SystemExit) as ended:
        main(["graph", "EagerQuiet", "--property", str(mine), "-o", str(page)])
    assert ended.value.code == 2
    assert f"property p raised: {mine}:2: AttributeError: no field 'nothing'" in capsys.readouterr().err
    assert "EagerQuiet" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("words", [["graph"], ["graph", "EagerQuiet", "--config", "x.cfg"]])
def test_one_configuration_must_be_given(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "give one configuration" in capsys.readouterr().err

"""The examples of docs/traces.md are traces: they can be read and shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fencepost_conformance.cli import main

PAGE = Path(__file__).parents[3] / "docs" / "traces.md"


def examples() -> list[list[str]]:
    """Return the lines of each JSON block of the page."""
    return [block.splitlines() for block in re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)]


def whole(kind: str, block: list[str]) -> str:
    """Return the block as a trace of that kind, with the page's own header."""
    header = json.loads(examples()[0][0])
    return "\n".join([json.dumps({**header, "kind": kind}), *block, ""])


@pytest.mark.parametrize(("number", "kind"), [(1, "wire"), (2, "events")])
def test_an_example_is_replayed(number: int, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "example.jsonl"
    file.write_text(whole(kind, examples()[number]))
    with pytest.raises(SystemExit) as ended:
        main(["replay", str(file), "--json"])
    output = capsys.readouterr()
    assert ended.value.code == 0, output
    (trace,) = json.loads(output.out)["traces"]
    events = [line for line in examples()[number] if '"observed"' not in line]
    assert len(trace["steps"]) == len(events)

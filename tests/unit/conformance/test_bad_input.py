"""Bad input of a command gives one line and status 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fencepost_conformance.cli import main

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("conform --protocol nonsense", "no protocol 'nonsense'; known: classic, consumer, mixed, all"),
        ("conform --target nonsense", "no target 'nonsense'; known: core"),
        ("conform --target kafka:latest", "no release 'latest' of Kafka; write it as kafka:4.4.0"),
        ("conform --target localhost:1", "cannot connect to localhost:1"),
        ("conform --profile nonsense", "no profile 'nonsense'; known: intended"),
        ("conform localhost:1 --side member", "--side does not go with the named cases of localhost:1"),
        ("conform localhost:1 --engine spark", "--engine does not go with the named cases of localhost:1"),
        ("conform localhost:1 --no-model", "--no-model does not go with the named cases of localhost:1"),
        ("conform localhost:1 --target core", "--target does not go with the named cases of localhost:1"),
        ("conform localhost:1 --rows x", "--rows does not go with the named cases of localhost:1"),
        ("conform localhost:1 --family clasic", "no family of cases 'clasic'; did you mean classic?"),
        ("conform serve --client-config none", "--client-config is for a broker at HOST:PORT only"),
        ("conform --client x --html page.html", "--html does not go with --client"),
        ("conform --client x --traces 3", "--traces does not go with --client"),
        ("conform localhost:1", "cannot connect to localhost:1"),
        ("conform core", "the named cases are for a broker: kfake, serve, broker:RELEASE or HOST:PORT"),
        ("conform --html page.html", "--case, --family, --strict, --junit and --html belong to the named cases"),
        ("conform --traces 0", "--traces must be at least 1 (got 0)"),
        ("conform --target serve", "serve is started for the named cases, which random traces follow"),
        ("conform --engine nonsense", "no engine 'nonsense'; known: local, spark"),
        ("validate {}/none.jsonl", "no trace at"),
        ("validate {}", "no trace at"),
        ("validate {}/text.txt", "Invalid JSON"),
        ("validate {}/other.txt", "a JSON object with a 'type'"),
        ("validate {}/empty.txt", "the file contains no trace"),
        ("replay {}/none.jsonl", "give a seed (a number) or a file of traces"),
        ("replay {}", "Is a directory; give a seed (a number) or a file of traces"),
        ("replay {}/text.txt", "Invalid JSON"),
        ("replay 3 --target localhost:1", "cannot be replayed against a broker"),
        ("record --listen here --upstream there -o {}/t.jsonl", "--listen 'here' is not HOST:PORT"),
        ("check EagerQiet", "did you mean EagerQuiet"),
        ("check zzz", "fencepost check --list shows those of this engine"),
        ("check --size huge", "there are small, medium, large"),
        ("mutants nonsense", "see fencepost mutants --list"),
        ("rules ZZ", "no rule 'ZZ', and none with that prefix"),
        ("diagram nonsense", "no machine 'nonsense'; there are classic-group"),
        ("bench nonsense", "no benchmark 'nonsense'; there are core"),
    ],
)
def test_an_error_is_reported_in_the_last_line(
    words: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in (("text", "no trace"), ("other", "{}"), ("empty", "")):
        (tmp_path / f"{name}.txt").write_text(content)
    with pytest.raises(SystemExit) as ended:
        main([word.format(tmp_path) for word in words.split()])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"fencepost {words.split(maxsplit=1)[0]}: ")
    assert message in line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("tools.compaction --profile nonsense", "no profile 'nonsense'"),
        ("tools.compaction --kafka latest", "no release 'latest' of Kafka"),
        ("tools.evidence.traces many", "'many' is not a number of traces"),
        ("fencepost_conformance.run.falsify nowhere", "no trace at nowhere"),
        ("tools.corpus nonsense", "no trace begins with 'nonsense'"),
    ],
)
def test_likewise_where_a_module_is_run(words: str, message: str) -> None:
    module, *rest = words.split()
    command = [sys.executable, "-m", module, *rest]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1].partition(": ")[0] in module.split(".")
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr

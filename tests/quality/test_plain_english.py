"""The project's prose avoids phrases that are hard to read; the check itself finds each phrase and counts right."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import pytest
from plain_english import NOT_YET, ROOT, File, Passage, complaints, found, main, paths, phrases, read


@cache
def files() -> tuple[File, ...]:
    return tuple(read(path) for path in paths())


def test_the_prose_is_plain() -> None:
    assert complaints(files()) == []


def test_an_exception_is_still_needed() -> None:
    for place in NOT_YET:
        here = [file for file in files() if file.path.startswith(place)]
        assert complaints(here, ()), f"{place} is plain now: remove it from NOT_YET"


@pytest.mark.parametrize("phrase", phrases(), ids=lambda phrase: phrase.name)
def test_each_phrase_is_found_in_its_example(phrase) -> None:
    assert phrase.why
    assert phrase.instead
    for text, expected in ((phrase.wrong, True), (phrase.right, False)):
        for broken in (text, text.replace(" ", "\n")):
            hits = found(Passage(broken, 1, is_name=phrase.names), "somewhere.md")
            assert (phrase.name in {hit.phrase.name for hit in hits}) is expected, broken


#: A sentence with a phrase to avoid, on one line and on several.
WRONG: Final = next(phrase.wrong for phrase in phrases() if phrase.name == "continue")
FIRST, REST = WRONG.split(" ", 1)


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("page.md", f"# Heading\n\n{FIRST}\n{REST}\n\n```\n{WRONG}\n```\n\nCode is `{WRONG}`. {WRONG}\n", [4, 10]),
        ("code.py", f'"""A module.\n\n{WRONG}"""\n\nX = f"{{1}} {WRONG}"  # {FIRST}\n# {REST}\n# end\n', [3, 5, 6]),
        ("name.py", "def test_who_leads(): ...\n\n\ndef test_the_leader_assigns(): ...\n", [1]),
        ("spec.tla", f"x == 1 \\* {FIRST}\n       \\* {REST}\n(* {WRONG} *)\n", [2, 3]),
    ],
)
def test_hits_have_their_lines(name: str, text: str, lines: list[int], tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert [hit.line for hit in read(path, tmp_path).hits] == lines


def test_limits(tmp_path: Path) -> None:
    """A file may have one hit and one more for each 1,000 words, and all files together 0.3 for each 1,000."""
    (tmp_path / "long.md").write_text(f"{WRONG} " + "word " * 4_000, encoding="utf-8")
    (tmp_path / "short.md").write_text(f"{WRONG}\n{WRONG}\n", encoding="utf-8")
    long, short = (read(tmp_path / name, tmp_path) for name in ("long.md", "short.md"))
    assert complaints([long]) == []
    found_in_short = [line for line in complaints([long, short]) if line.startswith("short.md")]
    assert [line.partition(": ")[0] for line in found_in_short] == ["short.md:1", "short.md:2"]
    assert all("(continue); write: " in line for line in found_in_short)
    assert complaints([long, short])[-1].startswith("3 phrases in 4,0")


def test_the_command_prints_its_result(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["tests/quality/plain_english.py"]) == 0
    assert capsys.readouterr().out.endswith("of 1 files: passed\n")
    assert main(["Makefile"]) == 2
    assert capsys.readouterr().out == "Makefile is neither a folder nor a file with the suffix .md, .py, .tla\n"

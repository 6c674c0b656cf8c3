"""If artifacts cannot be fetched, one line names the remedy, and a log has the details."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.targets.jvm import jars

WANTED = "org.apache.kafka:kafka-group-coordinator:9.9.9"
ABSENT = "[ERROR] Failed to execute goal: org.apache.kafka:x:jar:9.9.9 was not found in central"
OFFLINE = "[ERROR] Could not transfer artifact org.apache.kafka:x:pom:9.9.9 from central: Unknown host"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path))
    monkeypatch.setattr(jars, "java", lambda: "java")
    return tmp_path


def programs(monkeypatch: pytest.MonkeyPatch, folder: Path, **said: str) -> None:
    """Install programs that print this; a program that leaves a jar prints nothing."""
    scripts = {"mvn": "", "Ivy": ""} | said

    def call(command: list[str], into: Path) -> str:
        name = "Ivy" if "-jar" in command else "mvn"
        if not scripts[name]:
            (into / f"{name}.jar").touch()
        return scripts[name]

    monkeypatch.setattr(jars, "_call", call)
    monkeypatch.setattr(jars.shutil, "which", lambda name: name if name in said else None)
    monkeypatch.setattr(jars, "_pyspark_ivy", lambda: folder / "ivy.jar" if "Ivy" in said else None)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({}, "install Maven"),
        ({"mvn": ABSENT}, "name a release that exists"),
        ({"mvn": ABSENT, "Ivy": "module not found: x"}, "name a release that exists"),
        ({"mvn": OFFLINE}, "check the network"),
        ({"mvn": OFFLINE, "Ivy": "Host repo not found. module not found: x"}, "check the network"),
        ({"mvn": ABSENT, "Ivy": "not finished after 600 s"}, "check the network"),
    ],
)
def test_one_line_names_the_remedy(
    said: dict[str, str], message: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs(monkeypatch, cache, **said)
    with pytest.raises(CannotRun, match=message) as complaint:
        jars.fetch(WANTED)
    line = str(complaint.value)
    assert WANTED in line
    assert "ERROR" not in line
    assert "\n" not in line
    if said:
        log = cache / "fetch.log"
        assert str(log) in line
        assert all(text in log.read_text() for text in said.values())


@pytest.mark.parametrize("said", [{"mvn": ""}, {"mvn": OFFLINE, "Ivy": ""}, {"Ivy": ""}])
def test_the_first_that_fetches_is_enough(said: dict[str, str], cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs(monkeypatch, cache, **said)
    assert [jar.stem for jar in jars.fetch(WANTED)] == [next(name for name, text in said.items() if not text)]

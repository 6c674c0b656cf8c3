"""The harness with a build of Kafka that it does not support: the error is one line."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.targets.jvm import compiled, jars
from fencepost_conformance.targets.jvm.builds import Build

PROGRAM = """
package fencepost;

import java.util.List;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.Outer.Nested;

public final class Main { }
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def jar(folder: Path, *names: str) -> Path:
    path = folder / "kafka-clients-1.2.3.jar"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(f"org/apache/kafka/common/{name}.class", b"")
    return path


def compiler(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Replaces javac, and keeps the sources that it got."""
    given: dict[str, str] = {}

    def keep(version: str, texts: dict[str, str], libraries: list[Path], folder: Path, served: object) -> None:
        del version, libraries, folder, served
        given.update(texts)

    monkeypatch.setattr(compiled, "_compile", keep)
    return given


def test_a_class_that_is_gone_is_named_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = compiler(monkeypatch)
    library = jar(tmp_path, "Uuid", "utils/LogContext")
    with pytest.raises(CannotRun) as raised:
        compiled.classes("harness", Build("1.2.3"), {"Main.java": PROGRAM}, [library])
    assert str(raised.value) == (
        "Kafka 1.2.3 has no org.apache.kafka.common.Outer.Nested: the supported releases are 4.0 to 4.4"
    )
    with pytest.raises(CannotRun, match=r"has no org.apache.kafka.common.Outer.Nested \(nor 1 other classes\): "):
        compiled.classes("harness", Build("1.2.3"), {"Main.java": PROGRAM}, [jar(tmp_path, "Uuid")])
    assert given == {}
    assert not any((jars.cache_root() / "classes").glob("*"))


def test_a_class_that_has_moved_is_imported_from_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = compiler(monkeypatch)
    before = jar(tmp_path, "Uuid", "Outer$Nested", "utils/LogContext")
    compiled.classes("harness", Build("1"), {"Main.java": PROGRAM}, [before])
    assert given["Main.java"] == PROGRAM
    since = jar(tmp_path, "Uuid", "Outer$Nested", "utils/internals/LogContext")
    compiled.classes("harness", Build("2"), {"Main.java": PROGRAM}, [since])
    assert given["Main.java"] == PROGRAM.replace(".utils.", ".utils.internals.")


def test_compiler_messages_are_kept_and_summed_up_in_one_line(tmp_path: Path, cache: Path) -> None:
    try:
        jars.java()
    except CannotRun as reason:
        pytest.skip(str(reason))
    library = jar(tmp_path, "Uuid", "Outer$Nested", "utils/LogContext")
    wrong = "package fencepost; public final class Main { Nowhere field; }"
    with pytest.raises(CannotRun) as raised:
        compiled.classes("harness", Build("1.2.3"), {"Main.java": wrong}, [library])
    assert str(raised.value) == (
        "Kafka 1.2.3 does not fit this harness, which supports the releases 4.0 to 4.4: Main.java:1: cannot "
        f"find symbol (full output: {cache / 'compile.log'})"
    )
    assert "class Nowhere" in (cache / "compile.log").read_text()

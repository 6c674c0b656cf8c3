"""A folder of jars is a target like its release: the jars of a release, as in an unpacked distribution."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from jvm_traces import require_harness

from fencepost_conformance.cli import main
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.targets.jvm import harness, jars
from fencepost_conformance.targets.jvm.builds import ARTIFACT, Build, in_folder
from fencepost_conformance.targets.jvm.releases import broker_artifacts

pytestmark = pytest.mark.jvm
RELEASE = "4.3.1"


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """The jars of a whole broker, and some other jars of a release, in ``libs``."""
    require_harness(RELEASE)
    try:
        whole = jars.fetch(*broker_artifacts(RELEASE))
    except CannotRun as reason:
        pytest.skip(str(reason))
    libs = tmp_path / f"kafka_2.13-{RELEASE}" / "libs"
    libs.mkdir(parents=True)
    for jar in whole:
        (libs / jar.name).symlink_to(jar)
    for beside in (f"kafka_2.13-{RELEASE}-sources.jar", f"kafka-group-coordinator-{RELEASE}-test.jar"):
        (libs / beside).write_bytes(b"no jar at all")
    return libs.parent


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[dict[str, object], str]:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--json"])
    said = capsys.readouterr()
    assert ended.value.code == 0, said
    return json.loads(said.out), said.err


@pytest.mark.parametrize("words", [("conform", "--traces", "12", "--protocol", "mixed"), ("replay", "3")])
def test_an_unpacked_release_is_a_target(unpacked: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    message = f"{unpacked} holds Kafka {RELEASE}; profile kafka-4.3"
    found, said = answer(capsys, *words, "--target", f"kafka:{unpacked}")
    assert found["build"] == {"version": RELEASE, "folder": str(unpacked), "profile": "kafka-4.3", "message": message}
    assert message in said.splitlines()


@pytest.mark.all
def test_spark_takes_a_folder_that_is_named_from_here(
    unpacked: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark", reason="needs PySpark")
    monkeypatch.chdir(unpacked)
    run = ("conform", "--traces", "60", "--workers", "2")
    by_folder, _ = answer(capsys, *run, "--engine", "spark", "--target", "kafka:libs")
    by_release, _ = answer(capsys, *run, "--target", f"kafka:{RELEASE}")
    for found in (by_folder, by_release):
        found["counts"].pop("steps_a_second")  # type: ignore[attr-defined]
    assert by_folder["build"]["folder"] == str(unpacked / "libs")  # type: ignore[index]
    assert (by_folder["counts"], by_folder["coverage"]) == (by_release["counts"], by_release["coverage"])


def test_a_rebuilt_jar_gets_its_own_classes(tmp_path: Path) -> None:
    """The same names with other content: classes compiled against the old jars do not run with the new ones."""
    require_harness(RELEASE)
    for jar in jars.fetch(f"{ARTIFACT}:{RELEASE}"):
        (tmp_path / jar.name).write_bytes(jar.read_bytes())
    build = in_folder(str(tmp_path))
    (before,) = _compiled(build)
    assert _compiled(build) == {before}
    with zipfile.ZipFile(tmp_path / f"kafka-coordinator-common-{RELEASE}.jar", "a") as jar_:
        jar_.writestr("more", "")
    assert before not in _compiled(in_folder(str(tmp_path)))


def _compiled(build: Build) -> set[str]:
    words = harness.command(build)
    return {path for path in words[words.index("-cp") + 1].split(":") if "/classes/" in path}

"""A folder of jars as a target: its build, its missing jars, and its profile."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.rows.job import Job
from fencepost_conformance.run.pipeline.plan import Plan
from fencepost_conformance.targets import registry
from fencepost_conformance.targets.jvm.builds import Build, in_folder

KAFKA = (
    "kafka-clients", "kafka-coordinator-common", "kafka-group-coordinator", "kafka-group-coordinator-api",
    "kafka-metadata", "kafka-server-common", "kafka-storage",
)  # fmt: skip
OTHERS = (
    "hash4j-0.22.0", "jackson-annotations-2.21", "jackson-core-2.21.7", "jackson-databind-2.21.7", "metrics-core-2.2.0",
    "pcollections-4.0.2", "re2j-1.8", "slf4j-api-1.7.36",
)  # fmt: skip


def fill(folder: Path, version: str = "4.3.1") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for artifact in KAFKA:
        with zipfile.ZipFile(folder / f"{artifact}-{version}.jar", "w") as jar:
            jar.writestr("kafka/kafka-version.properties", f"commitId=0\nversion={version}")
    for other in OTHERS:
        with zipfile.ZipFile(folder / f"{other}.jar", "w") as jar:
            jar.writestr("empty", "")
    return folder


def refusal(folder: Path | str) -> str:
    with pytest.raises(CannotRun) as raised:
        in_folder(str(folder))
    return str(raised.value).replace(f" {folder}", " DIR")


@pytest.mark.parametrize("version", ["4.0.2", "4.5.0-SNAPSHOT", "7.9.0-ccs"])
def test_the_jars_show_the_version(tmp_path: Path, version: str) -> None:
    build = in_folder(str(fill(tmp_path / "some", version)))
    assert build == Build(version, str(tmp_path / "some"))
    assert len(build.libraries()) == len(KAFKA) + len(OTHERS)


def test_an_unpacked_release_has_its_jars_in_libs(tmp_path: Path) -> None:
    libs = fill(tmp_path / "kafka" / "libs")
    for more in ("kafka_2.13-4.3.1.jar", "kafka-clients-4.3.1-test.jar", "kafka-group-coordinator-4.3.1-sources.jar"):
        (libs / more).touch()
    build = in_folder(str(tmp_path / "kafka"))
    names = {jar.name for jar in build.libraries()}
    assert build.version == "4.3.1"
    assert "kafka_2.13-4.3.1.jar" in names
    assert not {"kafka-clients-4.3.1-test.jar", "kafka-group-coordinator-4.3.1-sources.jar"} & names


def test_a_source_tree_has_its_jars_module_by_module(tmp_path: Path) -> None:
    """A module's own jar has priority over the copy that another module was built with."""
    jars = fill(tmp_path / "jars", "4.5.0-SNAPSHOT")
    tree = tmp_path / "tree"
    copies = tree / "core" / "build" / "dependant-libs-2.13.17"
    shutil.copytree(jars, copies)
    for artifact in KAFKA:
        module = "group-coordinator/api" if artifact.endswith("-api") else artifact.removeprefix("kafka-")
        own = tree / module / "build" / "libs"
        own.mkdir(parents=True)
        shutil.copy(jars / f"{artifact}-4.5.0-SNAPSHOT.jar", own)
        (own / f"{artifact}-4.5.0-SNAPSHOT-sources.jar").touch()
    build = in_folder(str(tree))
    found = {jar.name: jar for jar in build.libraries()}
    assert build.version == "4.5.0-SNAPSHOT"
    assert found.keys() == {jar.name for jar in jars.iterdir()}
    assert {jar.parent for jar in found.values() if jar.name.startswith("kafka-")}.isdisjoint({copies})


def test_a_wrong_folder_is_reported_in_one_line(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none") == "there is no folder DIR"
    (tmp_path / "file").touch()
    assert refusal(tmp_path / "file").endswith("is not a folder")
    (tmp_path / "empty").mkdir()
    assert refusal(tmp_path / "empty").startswith("no jars in DIR: give the libs folder")
    (tmp_path / "empty" / "slf4j-api-1.7.36.jar").touch()
    assert refusal(tmp_path / "empty") == "no kafka-clients-VERSION.jar among the jars in DIR"


def test_two_versions_are_not_mixed(tmp_path: Path) -> None:
    folder = fill(tmp_path / "mixed", "4.4.0")
    (folder / "kafka-group-coordinator-4.4.0.jar").rename(folder / "kafka-group-coordinator-4.3.1.jar")
    assert refusal(folder) == (
        "2 versions of Kafka in DIR: kafka-group-coordinator-4.3.1.jar, kafka-group-coordinator-api-4.4.0.jar"
    )
    named = fill(tmp_path / "named", "4.3.1")
    for artifact in KAFKA:
        (named / f"{artifact}-4.3.1.jar").rename(named / f"{artifact}-4.4.0.jar")
    assert refusal(named) == "two versions in DIR: kafka-clients-4.4.0.jar contains Kafka 4.3.1"


@pytest.mark.parametrize("artifact", [*KAFKA[1:], *(other.rpartition("-")[0] for other in OTHERS)])
def test_a_missing_jar_is_named(tmp_path: Path, artifact: str) -> None:
    folder = fill(tmp_path / "some")
    next(jar for jar in folder.iterdir() if jar.name.rpartition("-")[0] == artifact).unlink()
    assert refusal(folder) == f"Kafka 4.3.1 in DIR is incomplete: no jar of {artifact}"


def test_before_41_no_hash_is_computed(tmp_path: Path) -> None:
    folder = fill(tmp_path / "some", "4.0.2")
    (folder / "hash4j-0.22.0.jar").unlink()
    assert in_folder(str(folder)).version == "4.0.2"


def test_a_broken_jar_is_named(tmp_path: Path) -> None:
    folder = fill(tmp_path / "some")
    (folder / "kafka-clients-4.3.1.jar").write_bytes(b"no jar")
    assert refusal(folder) == f"{folder}/kafka-clients-4.3.1.jar is not a jar that can be read"


def test_a_jar_that_is_built_again_is_another_build(tmp_path: Path) -> None:
    """Neither old classes nor the rows of an old run may be reused."""
    folder = fill(tmp_path / "some", "4.5.0-SNAPSHOT")
    build = in_folder(str(folder))
    stamp, plan = build.stamp(), Plan(Job(f"kafka:{folder}", "kafka-4.3", 10), 0, 1)
    identity = plan.identity()
    assert (build.stamp(), plan.identity()) == (stamp, identity)
    with zipfile.ZipFile(folder / "kafka-group-coordinator-4.5.0-SNAPSHOT.jar", "a") as jar:
        jar.writestr("more", "")
    assert in_folder(str(folder)) == build
    assert build.stamp() != stamp
    assert plan.identity() != identity


@pytest.mark.parametrize(
    ("version", "profile"),
    [
        ("3.9.0", "kafka-4.0"), ("4.0.0", "kafka-4.0"), ("4.1.2", "kafka-4.1"), ("4.2.1", "kafka-4.2"),
        ("4.3.1", "kafka-4.3"), ("4.3.9-SNAPSHOT", "kafka-4.3"),
        ("4.2.2", "kafka-4.2.2"), ("4.4.0", "kafka-4.4"), ("9.0.0-SNAPSHOT", registry.NEWEST_KAFKA.name),
    ],
)  # fmt: skip
def test_a_version_takes_the_nearest_profile(version: str, profile: str) -> None:
    assert registry.profile_of_version(version) == profile


def test_the_build_that_was_found_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    newest = registry.NEWEST_KAFKA.name
    for version, wanted, message in (
        ("4.3.1", None, "profile kafka-4.3"),
        ("4.1.2", "kafka-4.3", "profile kafka-4.3 as requested (its own is kafka-4.1)"),
        ("9.0.0-SNAPSHOT", None, f"profile {newest}, the closest, since this version has none"),
    ):
        folder = fill(tmp_path / version, version)
        target = registry.parse_target(f"kafka:{folder}")
        registry.report_build(target, registry.profile_for(target, wanted))
        assert capsys.readouterr().err == f"{folder} holds Kafka {version}; {message}\n"
    registry.report_build(registry.parse_target("kafka:4.3.1"), "kafka-4.3")
    assert capsys.readouterr().err == ""


def test_a_name_that_is_neither_release_nor_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        CannotRun, match=r"no release 'latest' of Kafka; write it as kafka:4.* or kafka:DIR for a folder"
    ):
        registry.parse_target("kafka:latest")
    fill(tmp_path / "latest")
    assert registry.absolute("kafka:latest") == f"kafka:{tmp_path}/latest"
    with pytest.raises(CannotRun, match=r"there is no folder \./none"):
        registry.parse_target("kafka:./none")
    with pytest.raises(CannotRun, match=r"write it as broker:4.*[0-9]$"):
        registry.parse_target("broker:latest")
    assert registry.parse_target("kafka:9092") == registry.TargetName("broker", host="kafka", port=9092)

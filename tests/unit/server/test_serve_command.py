"""Errors of ``fencepost serve`` before it listens: one line, which says what to do."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost_conformance.cli import main


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--listen", "nowhere"), "--listen"),
        (("--topic", "orders"), "is not NAME:PARTITIONS, such as orders:4"),
        (("--topic", "a b:1"), "a topic name must consist of"),
        (("--profile", "kafka-9"), "no profile"),
        (("--setting", "group.max.size"), "is not NAME=VALUE"),
        (("--setting", "group.min.session.timeout.ms=9999999"), "contradict each other"),
        (("--superuser", "User:a"), "needs --acl"),
        (("--tls-key", "key.pem"), "need --tls-cert"),
        (("--log", "xml"), "known: text, json"),
        (("--users", "missing"), "missing: No such file"),
        (("--acl", "{bad}"), "line 1"),
        (("--users", "{bad}"), "line 1"),
        (("--tls-cert", "{bad}"), "--tls-cert"),
        (("--data", "{bad}"), "File exists"),
    ],
)
def test_bad_options(
    words: tuple[str, ...],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    bad = tmp_path / "bad"
    bad.write_text("nonsense\n")
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--listen", "127.0.0.1:0", *[word.format(bad=bad) for word in words]])
    errors = capsys.readouterr().err
    assert ended.value.code == 2
    assert message in errors
    assert len(errors.splitlines()) == 1


def test_serving_needs_the_packages_of_its_extra_alone() -> None:
    program = """
import sys
for name in ("transitions", "numpy", "pyspark", "pyarrow", "hypothesis"):
    sys.modules[name] = None
from fencepost_conformance.cli import main
main(["serve", "--listen", "nowhere"])
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert ended.stderr == "fencepost serve: --listen 'nowhere' is not HOST:PORT\n"


#: Prints as JSON the modules that were loaded when the port opened, and those when the server was ready.
LOADED = """
import json, os, socket, sys

at = []
listen = socket.socket.listen

def listened(self, *backlog):
    at.append(sorted(sys.modules))
    listen(self, *backlog)

class Output:
    def write(self, text):
        if "listening on" in text:
            os.write(1, json.dumps([at[0], sorted(sys.modules)]).encode())
            os._exit(0)

    def flush(self): ...

socket.socket.listen = listened
sys.stdout = Output()
from fencepost_conformance.cli import main
main(["serve", "--listen", "127.0.0.1:0"])
"""
#: Importing these takes most of a start.
SERVER = ("asyncio", "kio", "fencepost.coordinator", "fencepost.aio", "fencepost.store", "fencepost.protocol.messages")
#: A server has no members, and prints nothing with rich before it ends.
NEVER = ("fencepost.member", "fencepost.work", "fencepost.remote", "rich.progress", "fencepost_model")


def test_the_port_opens_before_the_server_is_imported() -> None:
    ran = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=60, check=True)
    opened, ready = map(set, json.loads(ran.stdout))
    assert "fencepost_server.net.port" in opened
    assert opened.isdisjoint({*SERVER, *NEVER})
    assert ready >= set(SERVER)
    assert ready.isdisjoint(NEVER)


def test_a_port_that_is_taken_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SystemExit) as ended:
            main(["serve", "--listen", address])
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"fencepost serve: cannot listen on {address}: address already in use\n"

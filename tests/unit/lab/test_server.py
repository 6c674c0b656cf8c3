"""The local server of the laboratory: its files, its answers to bad requests, and the command."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from threading import Thread
from typing import Any

import pytest

from fencepost_conformance.cli import main
from fencepost_conformance.run.lab.server import LabServer


@contextmanager
def served() -> Iterator[LabServer]:
    with LabServer(0) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(server: LabServer, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str, bytes]:
    connection = HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read()
    finally:
        connection.close()


def post(server: LabServer, path: str, data: Any) -> tuple[int, Any]:
    status, _, text = ask(server, "POST", path, json.dumps(data).encode(), Content_Type="application/json")
    return status, json.loads(text)


def test_the_page_is_served_with_everything_that_it_needs() -> None:
    with served() as server:
        assert server.server_address[0] == "127.0.0.1"
        for path, kind in {
            "/": "text/html",
            "/lab.js": "text/javascript",
            "/beside.js": "text/javascript",
            "/lab.css": "text/css",
            "/page.css": "text/css",
            "/options": "application/json",
            "/machine/consumer-group.svg": "image/svg+xml",
            "/machine/classic-group.svg": "image/svg+xml",
        }.items():
            status, kind_sent, text = ask(server, "GET", path)
            assert (status, kind_sent.split(";")[0]) == (200, kind), path
            assert b"http://" not in text.replace(b"http://www.w3.org", b""), path


def test_a_session_is_answered_with_its_view() -> None:
    with served() as server:
        status, view = post(
            server, "/view", {"start": {}, "actions": [{"do": "start", "client": "c1", "protocol": "eager"}]}
        )
        assert (status, view["lanes"]) == (200, ["c1", "coordinator"])


def test_a_bad_request_is_one_clear_line() -> None:
    good = b'{"start": {}, "actions": []}'
    with served() as server:
        for path, body, headers, status, reason in (
            ("/view", good.replace(b"[]", b'[{"do": "fly"}]'), {}, 400, "unknown action 'fly'"),
            ("/view", b"{", {}, 400, "the request is not JSON"),
            ("/view", b"\xff", {}, 400, "the request is not JSON"),
            ("/view", b"[" * 100_000, {}, 400, "the request is not JSON"),
            ("/view", b"[]", {}, 400, "a request is an object with the fields start and actions"),
            ("/view", good, {"Content_Type": "text/plain"}, 400, "the content type must be application/json"),
            ("/view", good, {"Content_Length": "x"}, 400, "Content-Length must be at most"),
            ("/view", good, {"Content_Length": "9999999"}, 400, "Content-Length must be at most"),
            ("/view", good, {"Host": "example.org"}, 403, "the host must be 127.0.0.1"),
            ("/nothing", good, {}, 404, "nothing is at /nothing"),
        ):
            got, _, text = ask(server, "POST", path, body, **{"Content_Type": "application/json", **headers})
            message = json.loads(text)["error"]
            assert got == status, message
            assert reason in message
            assert "\n" not in message
        assert ask(server, "GET", "/../cli.py")[0] == 404
        assert ask(server, "GET", "/machine/none.svg")[0] == 404
        assert ask(server, "GET", "/", Host="example.org")[0] == 403
        assert post(server, "/view", json.loads(good))[0] == 200


def test_a_port_in_use_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit) as ended:
            main(["lab", "--port", str(port)])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(
        f"fencepost lab: cannot listen on 127.0.0.1:{port}: Address already in use"
    )


def test_the_command_prints_its_address() -> None:
    command = [sys.executable, "-m", "fencepost_conformance.cli", "lab"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert line.startswith("http://127.0.0.1:")
            assert line.endswith("(Ctrl-C ends it)\n")
        finally:
            process.terminate()

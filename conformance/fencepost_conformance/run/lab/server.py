"""The local server: the files of the page, and the views of the sessions that it posts.

It listens on loopback only. A session is in the request, so the server has no state that matters. A request that a page
of another site sends is refused: its ``Host`` or its content type is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any, Final

from fencepost_model.diagram import svg
from fencepost_model.machines import MACHINES
from fencepost_server.look.made import made_now
from fencepost_server.look.page import STYLE

from ...common.errors import CannotRun
from ...generate.lab import Action, ActionError, Start, parse_actions, parse_start
from ...generate.lab.saving import events_trace, wire_trace
from ...show.lab.beside import releases_view
from ...show.lab.options import options
from ...show.lab.view import sides_view, view_of
from ...traces import convert
from ...traces.files import Trace, lines_of
from .sessions import Sessions

LOOPBACK: Final = "127.0.0.1"
#: the largest request, in bytes
_MOST_BYTES: Final = 1 << 20
_STATIC: Final = Path(__file__).parents[2] / "show" / "lab" / "static"
_FILES: Final[Mapping[str, tuple[str, str]]] = {
    "/": ("lab.html", "text/html; charset=utf-8"),
    "/lab.css": ("lab.css", "text/css; charset=utf-8"),
    "/lab.js": ("lab.js", "text/javascript; charset=utf-8"),
    "/beside.js": ("beside.js", "text/javascript; charset=utf-8"),
}
_JSON: Final = "application/json"
_LINES: Final = "application/jsonl; charset=utf-8"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src data:"
)


class LabServer(ThreadingHTTPServer):
    """The server. Raises ``CannotRun`` if the port is taken; port 0 is any free one."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        self.sessions = Sessions()
        self.lock = Lock()
        try:
            super().__init__((LOOPBACK, port), Handler)
        except OSError as reason:
            raise CannotRun(f"cannot listen on {LOOPBACK}:{port}: {reason.strerror}; choose another --port") from None
        self.url = f"http://{LOOPBACK}:{self.server_address[1]}/"

    def trace(self, start: Start, actions: tuple[Action, ...]) -> tuple[str, str]:
        return _LINES, _text(events_trace(self.sessions.lab(start, actions)))

    def wire(self, start: Start, actions: tuple[Action, ...]) -> tuple[str, str]:
        return _LINES, _text(wire_trace(self.sessions.lab(start, actions)))

    def sides(self, start: Start, actions: tuple[Action, ...]) -> tuple[str, str]:
        return _JSON, json.dumps(sides_view(self.sessions.lab(start, actions)))

    def releases(self, start: Start, actions: tuple[Action, ...]) -> tuple[str, str]:
        return _JSON, json.dumps(releases_view(self.sessions.lab(start, actions)))

    def view(self, start: Start, actions: tuple[Action, ...]) -> tuple[str, str]:
        return _JSON, json.dumps(view_of(self.sessions.lab(start, actions)))


def _text(trace: Trace) -> str:
    return "".join(f"{convert.text_of(line)}\n" for line in lines_of(trace))


def _with_foot(text: str) -> str:
    """Return the page with what made it. The page's script renews what changes with the session."""
    new = Start()
    facts: dict[str, object] = {"seed": new.seed, "target": "core", "profile": new.profile}
    made = made_now(**facts, **{"compared with": new.other, "session": "0 actions"})
    return text.replace("<!--made-->", made.html())


class Handler(BaseHTTPRequestHandler):
    """Answers one request of the page."""

    server: LabServer

    def do_GET(self) -> None:
        if not self._is_local():
            return
        path = self.path.partition("?")[0]
        machine = path.removeprefix("/machine/").removesuffix(".svg")
        if path == "/page.css":
            self._send(200, _FILES["/lab.css"][1], STYLE.encode())
        elif path in _FILES:
            name, kind = _FILES[path]
            text = (_STATIC / name).read_text(encoding="utf-8")
            self._send(200, kind, (_with_foot(text) if path == "/" else text).encode())
        elif path == "/options":
            self._send(200, _JSON, json.dumps(options()).encode())
        elif path == f"/machine/{machine}.svg" and machine in MACHINES:
            self._send(200, "image/svg+xml", svg(MACHINES[machine]).encode())
        else:
            self._fail(404, f"nothing is at {path}")

    def do_POST(self) -> None:
        if not self._is_local():
            return
        server = self.server
        answers: Mapping[str, Callable[[Start, tuple[Action, ...]], tuple[str, str]]] = {
            "/view": server.view,
            "/trace": server.trace,
            "/wire": server.wire,
            "/sides": server.sides,
            "/releases": server.releases,
        }
        answer = answers.get(self.path)
        if answer is None:
            self._fail(404, f"nothing is at {self.path}")
            return
        try:
            start, actions = self._session()
            with self.server.lock:
                kind, text = answer(start, actions)
        except ActionError as reason:
            self._fail(400, str(reason))
            return
        self._send(200, kind, text.encode())

    def _session(self) -> tuple[Start, tuple[Action, ...]]:
        if self.headers.get_content_type() != _JSON:
            raise ActionError(f"the content type must be {_JSON} (got {self.headers.get_content_type()})")
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or int(length) > _MOST_BYTES:
            raise ActionError(f"Content-Length must be at most {_MOST_BYTES} bytes (got {length or 'none'})")
        try:
            data: Any = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError) as reason:
            raise ActionError(f"the request is not JSON: {reason}") from None
        if not isinstance(data, dict) or data.keys() != {"start", "actions"}:
            raise ActionError("a request is an object with the fields start and actions")
        return parse_start(data["start"]), parse_actions(data["actions"])

    def _is_local(self) -> bool:
        """Refuse a request for another host: a page of another site may have sent it."""
        port = self.server.server_address[1]
        host = self.headers.get("Host", "")
        if host in (f"{LOOPBACK}:{port}", f"localhost:{port}"):
            return True
        self._fail(403, f"the host must be {LOOPBACK}:{port} (got {host!r})")
        return False

    def _fail(self, status: int, reason: str) -> None:
        self._send(status, _JSON, json.dumps({"error": reason}).encode())

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(data)),
            "Cache-Control": "no-store",
            "Content-Security-Policy": _POLICY,
            "X-Content-Type-Options": "nosniff",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing for a request."""

"""``fencepost graph``: serve or write a page on which the state graph of a configuration can be walked."""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated

import typer

from fencepost_model.explore.search import Limits
from fencepost_model.system.checking import explore_with
from fencepost_server.look.made import made_now

from ...common.counting import counted
from ...common.errors import CannotRun
from ...show.console import Result, finish, progress
from ...show.graph.data import graph_data
from ...show.graph.page import graph_page
from .check import Engine, named_profile, select, user_entries

#: the address that the page is served on; no other machine can read it
LOOPBACK = "127.0.0.1"


def graph(  # noqa: PLR0917 — options of a command line
    config: Annotated[str | None, typer.Argument(help="a name from spec/manifest.json")] = None,
    own: Annotated[
        Path | None, typer.Option("--config", help="your model: a TLC configuration, or a Python file")
    ] = None,
    properties: Annotated[
        list[Path] | None, typer.Option("--property", help="a Python file with your properties")
    ] = None,
    profile: Annotated[str | None, typer.Option(help="explore with this profile's switches")] = None,
    limit: Annotated[int, typer.Option("--limit-states", min=1, help="put so many states on the page")] = 20_000,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="write the page and serve nothing")] = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="port on 127.0.0.1; 0: any free one")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Walk a state graph in a browser: the current state, the enabled actions, the path so far, a search."""
    if (config is None) == (own is None):
        raise CannotRun("give one configuration: a name (fencepost check --list shows them), or --config FILE")
    entries = [] if config is None else select([config], "small", Engine.python)
    entries += user_entries([] if own is None else [own], properties or [], entries, Engine.python)
    (entry,) = entries
    with progress("exploring") as meter:
        explored = explore_with(
            entry,
            properties or (),
            profile=named_profile(profile),
            limits=Limits(states=limit),
            transitions=True,
            stop_at_violation=False,
            watch=lambda found, expanded, generated: meter.update(description=counted(found, "states")),
        )
    page = graph_page(graph_data(entry.name, explored), made_now(configuration=entry.name, profile=profile))
    found = explored.found
    if output is not None:
        output.write_text(page, encoding="utf-8")
    else:
        _serve(page, port)
    finish(
        Result(
            "graph",
            None,
            {"states": found.states, "transitions": found.generated},
            {
                "configuration": entry.name,
                "stopped": found.stopped,
                "violated": [each.property for each in found.violations],
                **({} if output is None else {"page": str(output)}),
            },
            done="served" if output is None else f"{output} written",
            stopped="; ".join(explored.raised.values()) or None,  # the page has the states, and the path to the error
        ),
        as_json=as_json,
    )


def _serve(page: str, port: int) -> None:
    """Serve the page until Ctrl-C. Raises CannotRun if the port is taken."""
    data = page.encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer every path with the page."""
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing for a request."""

    try:
        server = ThreadingHTTPServer((LOOPBACK, port), Handler)
    except OSError as reason:
        raise CannotRun(f"cannot listen on {LOOPBACK}:{port}: {reason.strerror}; choose another --port") from None
    with server:
        print(f"http://{LOOPBACK}:{server.server_address[1]}/ (Ctrl-C ends it)", file=sys.stderr, flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return

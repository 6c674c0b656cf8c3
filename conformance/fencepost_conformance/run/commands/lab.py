"""``fencepost lab``: serve a page on which a group of real members and the real coordinator is moved by hand."""

from __future__ import annotations

import sys
import webbrowser
from contextlib import suppress
from typing import Annotated

import typer

from ...show.console import Result, finish
from ..lab.server import LabServer


def lab(
    port: Annotated[int, typer.Option(min=0, max=65_535, help="port on 127.0.0.1; 0: any free one")] = 0,
    browse: Annotated[bool, typer.Option("--open", help="open the page in the default browser")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Play rebalances on a page: start, stop and crash clients, lose messages, move the coordinator, step by step."""
    with LabServer(port) as server:
        print(f"{server.url} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        if browse:
            webbrowser.open(server.url)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    finish(Result("lab", None, {}, {"url": server.url}, done="served"), as_json=as_json)

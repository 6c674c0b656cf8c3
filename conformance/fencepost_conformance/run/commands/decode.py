"""``fencepost decode``: print the records of an offsets topic as lines of JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from fencepost.codec import Codec, layout_of
from fencepost.protocol.profiles import PROFILES

from ...common.errors import CannotRun
from ...common.nearest import unknown
from ...traces.offsets_log.dump import line_of
from ...traces.offsets_log.rows import Notices
from ...traces.offsets_log.source import Source
from ...traces.wire.settings import ACCESS_HELP

#: the release whose record types are known
_NEWEST = "kafka-4.4"


def decode(
    source: Annotated[
        Path | None,
        typer.Argument(help="log segments: a broker's data folder, a folder __consumer_offsets-N, or one file"),
    ] = None,
    bootstrap: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="a broker of a running cluster, which is only read")
    ] = None,
    client_config: Annotated[Path | None, typer.Option(metavar="FILE", help=ACCESS_HELP)] = None,
    profile: Annotated[str, typer.Option(help="the release that wrote the records")] = _NEWEST,
    as_json: Annotated[bool, typer.Option("--json", help="accepted as by every command; the output is JSON")] = False,
) -> None:
    """Print each record as one line of JSON, also those that cannot be decoded: a dump, which history reads."""
    if profile not in PROFILES:
        raise CannotRun(unknown("profile", profile, PROFILES, f"known: {', '.join(sorted(PROFILES))}"))
    codec, notices = Codec(layout_of(PROFILES[profile])), Notices()
    write = sys.stdout.write
    for row in Source(source, bootstrap, client_config).rows(notices):
        write(json.dumps(line_of(row, codec), separators=(",", ":")) + "\n")
    sys.stdout.flush()
    for line in notices.lines():
        print(f"fencepost decode: {line}", file=sys.stderr)

"""Take the pictures of pages in ``docs/``: ``python -m tools.screenshots [FOLDER]``. It needs Chromium, and no network.

A picture of the documentation is 1280 pixels wide and at most 150 KiB large.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from threading import Thread
from typing import Any, Final

from fencepost.codec import Codec
from fencepost.coordinator.routing import APIS
from fencepost.protocol.messages import HeartbeatRequest
from fencepost.protocol.profiles import INTENDED
from fencepost_conformance import cli
from fencepost_conformance.common import repository
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.lab import Start
from fencepost_conformance.generate.lab.tours import TOURS
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.history.one_pass import history_of
from fencepost_conformance.run.lab.server import LabServer
from fencepost_conformance.show.history.page import history_page
from fencepost_conformance.traces.offsets_log.rows import LogRow
from fencepost_server.look.made import made_now

#: the largest picture, in bytes
MOST_BYTES: Final = 150 * 1024
_SIZE: Final = "1280,800"
#: when the history of the picture begins
_BEGIN_MS: Final = 1_767_323_040_000
_PATIENCE_S: Final = 120
#: the arguments of Chromium: no window, no sandbox (the script may run as root), and time for the page's script
_CHROMIUM: Final = (
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking",
    f"--window-size={_SIZE}", "--virtual-time-budget=5000",
)  # fmt: skip


def main(words: list[str]) -> None:
    """Take all pictures. The folder is ``docs`` of the checkout unless one is given."""
    docs = Path(words[0]) if words else repository.root() / "docs"
    with tempfile.TemporaryDirectory(prefix="fencepost-pages-") as name:
        folder = Path(name)
        _report(folder)
        _run("graph", "KafkaRefusalWaits", "--limit-states", "3000", "-o", str(folder / "graph.html"))
        _run("rules", "--html", str(folder / "rules.html"))
        (folder / "history.html").write_text(_history(), encoding="utf-8")
        for page in ("report", "history", "graph", "rules"):
            _shoot((folder / f"{page}.html").as_uri(), docs / f"page-{page}.png")
        with _lab() as address:
            _shoot(f"{address}#{_session()}", docs / "page-lab.png")


def _run(*words: str) -> None:
    """Run a command in this process; status 1 says that something differs, which a picture may show."""
    try:
        cli.main([*words, "--json"])
    except SystemExit as ended:
        if ended.code not in (0, 1):
            raise CannotRun(f"fencepost {' '.join(words)} ended with status {ended.code}") from None


def _report(folder: Path) -> None:
    """Write the report of a run on a core with a planted fault: it accepts heartbeats of the previous generation."""
    api = APIS[HeartbeatRequest]

    def accept(step: Any, request: Any, body: HeartbeatRequest) -> None:
        group = step.memory.groups.get(body.group_id)
        if group is not None and body.generation_id == group.generation - 1 > 0:
            body = replace(body, generation_id=group.generation)
        api.handle(step, request, body)

    APIS[HeartbeatRequest] = api._replace(handle=accept)
    try:
        size = ("--traces", "60", "--steps", "150", "--workers", "1")
        _run("conform", "--profile", "kafka-4.3", *size, "-o", str(folder))
    finally:
        APIS[HeartbeatRequest] = api


def _history() -> str:
    """Return the page of a group, from the records that the core writes in a random trace."""
    trace, codec = generate(3, INTENDED, 200, GroupProtocol.CONSUMER, offsets=0.3), Codec()
    written = [
        (event.at_ms, each) for event, seen in zip(trace.events, trace.observations, strict=False)
        for each in seen.records
    ]  # fmt: skip
    rows = [
        LogRow(0, place, _BEGIN_MS + at_ms, *codec.encode(each), each.producer, False)
        for place, (at_ms, each) in enumerate(written)
    ]
    found = history_of(rows, max(history_of(rows, keep_events=True).groups, key=lambda each: len(each.strips)).group)
    return history_page(found, found.groups[0], (), made_now("fencepost history … --html …"))


def _shoot(url: str, file: Path) -> None:
    """Write the picture of a page. Raises ``CannotRun`` if it is too large, or if there is no Chromium."""
    try:
        subprocess.run(
            [*_CHROMIUM, f"--screenshot={file}", url], capture_output=True, check=True, timeout=_PATIENCE_S
        )  # fmt: skip
    except FileNotFoundError:
        raise CannotRun("Chromium is not installed (package chromium)") from None
    size = file.stat().st_size
    if size > MOST_BYTES:
        raise CannotRun(f"{file} has {size:,} bytes; a picture may have {MOST_BYTES:,}")
    print(f"{file}: {size:,} bytes")


@contextmanager
def _lab() -> Iterator[str]:
    with LabServer(0) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.url
        finally:
            server.shutdown()
            thread.join()


def _session() -> str:
    """Return a session of the laboratory as its page puts it into the address: the tour of a reconciliation."""
    tour = TOURS["reconciliation"]
    actions = [dict(action) for chapter in tour.chapters[:3] for action in chapter.actions]
    data = json.dumps({"start": asdict(Start()) | dict(tour.start), "actions": actions}).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except CannotRun as reason:
        sys.exit(str(reason))

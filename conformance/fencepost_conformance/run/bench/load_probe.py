"""Loads the log in a file, and prints its processor time: ``load_probe FILE``.

Each input line starts one more load. The answer has the seconds to decode the bytes, the seconds of the coordinator to
apply the records, the number of stored offsets and their sum. It runs in its own process, with the core that is first
on its path. ``Loading.java`` describes the file.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from struct import Struct

from fencepost.aio.choices import RandomChoices
from fencepost.codec import Codec, RecordBytes
from fencepost.coordinator import initial_state, offsets_view, step
from fencepost.protocol.events import Load
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings

_SIZE = Struct(">i")


def write(path: Path, log: Iterable[RecordBytes]) -> None:
    """Write a log to a file."""
    with path.open("wb") as file:
        for pair in log:
            for part in pair:
                file.write(_SIZE.pack(-1 if part is None else len(part)) + (part or b""))


def read(path: Path) -> list[RecordBytes]:
    """Read a log from a file."""
    data, at, parts = path.read_bytes(), 0, []
    while at < len(data):
        (size,) = _SIZE.unpack_from(data, at)
        at += _SIZE.size
        parts.append(None if size < 0 else data[at : at + size])
        at += max(size, 0)
    return [(key, value) for key, value in zip(parts[::2], parts[1::2], strict=True) if key is not None]


def main(name: str) -> None:
    codec, log = Codec(), read(Path(name))
    gc.disable()  # as a loading host should do
    for _ in sys.stdin:
        gc.collect()
        began = time.process_time()
        records = codec.logged(log)
        between = time.process_time()
        state, _ = step(initial_state(Settings(), INTENDED), Load(0, leader_epoch=1, records=records), RandomChoices())
        ended = time.process_time()
        stored = offsets_view(state).committed
        print(between - began, ended - between, len(stored), sum(each.offset for each in stored), flush=True)
        del records, state, stored


if __name__ == "__main__":
    main(*sys.argv[1:])

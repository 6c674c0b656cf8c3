"""Log segments of a broker: the files ``NNNNNNNNNNNNNNNNNNNN.log`` of one or more partitions of the offsets topic.

A segment is read batch by batch, so that memory does not depend on its size. Unreadable parts are noted, and the
rest of the partition is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final

from fencepost_server.data.batches import CorruptBatch, OldBatch, batches

from ...common.errors import CannotRun
from .batches import Unreadable, rows_of
from .rows import TOPIC, LogRow, Notices

SUFFIX: Final = ".log"
_FOLDER: Final = re.compile(rf"{TOPIC}-(\d+)")
_PLACE: Final = Struct(">qi")
#: the largest batch; Kafka's own limit is that of its numbers
_LARGEST: Final = 1 << 30
_SMALLEST: Final = 49


def partitions_of(path: Path) -> list[tuple[int, list[Path]]]:
    """Return the partitions below ``path`` with their segments in order: ``path`` is a folder of data of a broker, the
    folder of a partition, or one segment. Empty if there are none. Raises ``OSError``."""
    if path.is_file():
        return [(_number(path.parent), [path])] if path.suffix == SUFFIX else []
    own = _segments(path)
    if own:
        return [(_number(path), own)]
    found = []
    for each in path.iterdir():
        named = _FOLDER.fullmatch(each.name)
        if named is not None and each.is_dir():
            found.append((int(named[1]), _segments(each)))
    return sorted(found)


def _segments(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.suffix == SUFFIX and each.stem.isdecimal())


def _number(folder: Path) -> int:
    named = _FOLDER.fullmatch(folder.resolve().name)
    return int(named[1]) if named is not None else 0


def read_partition(number: int, segments: list[Path], notices: Notices) -> Iterator[LogRow]:
    """Yield the records of a partition in order."""
    for segment in segments:
        try:
            yield from read_segment(number, segment, notices)
        except OSError as wrong:
            notices.add(f"{segment}: {wrong.strerror or wrong}; its records are missing")


def read_segment(number: int, segment: Path, notices: Notices) -> Iterator[LogRow]:
    """Yield the records of a segment. Raises ``OSError``."""
    with segment.open("rb") as file:
        at = 0
        while head := file.read(_PLACE.size):
            if len(head) < _PLACE.size:
                notices.add(f"{segment}: ends within a batch, at byte {at}")
                return
            base, length = _PLACE.unpack(head)
            if base == length == 0 and not any(head) and not any(file.read(_PLACE.size)):
                return  # space that the broker has reserved
            if not _SMALLEST <= length <= _LARGEST:
                notices.add(f"{segment}: no batch at byte {at} (a length of {length}); the rest of the file is missing")
                return
            body = file.read(length)
            if len(body) < length:
                notices.add(f"{segment}: ends within a batch, at byte {at}")
                return
            try:
                for batch in batches(head + body):
                    yield from rows_of(batch, number)
            except OldBatch as wrong:
                notices.add(f"{segment}: batches of an old message format are skipped ({wrong})")
            except CorruptBatch as wrong:
                notices.add(f"{segment}: {wrong}, at byte {at} (offset {base}); its records are missing")
            except Unreadable as wrong:
                notices.add(f"{segment}: {wrong}; these records are missing")
            at += _PLACE.size + length


def require_partitions(path: Path) -> list[tuple[int, list[Path]]]:
    """Return ``partitions_of(path)``. Raises ``CannotRun`` if there are none, and ``OSError``."""
    found = partitions_of(path)
    if not any(segments for _, segments in found):
        raise CannotRun(
            f"{path}: no log segments (*{SUFFIX}) of {TOPIC}; give the broker's data folder, the folder {TOPIC}-N of a "
            "partition, a segment, or a dump of fencepost decode"
        )
    return found

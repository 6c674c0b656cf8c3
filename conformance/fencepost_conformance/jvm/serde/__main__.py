"""``python -m fencepost_conformance.jvm.serde``: asks the serde of each release anew, and writes what is kept of it.

With a number behind it, that many random records are compared each way with each release, by a fresh seed; it ends with
status 1 if one differs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import SystemRandom

from fencepost.codec import LAYOUTS, Codec

from ...console import CannotRun
from . import compare, kept
from .client import KafkaSerde

BATCH = 2_000


@contextmanager
def opened(release: str) -> Iterator[KafkaSerde]:
    try:
        kafka = KafkaSerde(release)
    except CannotRun as reason:
        raise SystemExit(f"records: {reason}") from None
    try:
        yield kafka
    finally:
        kafka.close()


def write() -> None:
    rows = {}
    for name, release in kept.RELEASES.items():
        with opened(release) as kafka:
            rows[release] = kept.asked(kafka, Codec(LAYOUTS[name]), release)
    kept.write(rows)
    print(f"wrote {kept.FILE.name}: {sum(len(each.records) for each in rows.values())} records of {', '.join(rows)}")


def compared(count: int) -> int:
    """How many records differed; the first of each release is shown."""
    seed = str(SystemRandom().getrandbits(32))
    total = 0
    for name, release in kept.RELEASES.items():
        codec = Codec(LAYOUTS[name])
        found: list[compare.Difference] = []
        with opened(release) as kafka:
            for first in range(0, count, BATCH):
                size = min(BATCH, count - first)
                for each in (compare.writing, compare.reading, compare.markers):
                    found += each(kafka, codec, f"{seed} {first}", size)
        print(f"Kafka {release}, seed {seed}: {count} records each way, {len(found)} differ", flush=True)
        if found:
            print("\n".join(f"  {part}" for part in found[0]))
        total += len(found)
    return total


def main(words: Sequence[str]) -> int:
    if not words:
        write()
        return 0
    if len(words) > 1 or not words[0].isdecimal():
        raise SystemExit("records: name nothing, or how many records are to be compared")
    return int(compared(int(words[0])) > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

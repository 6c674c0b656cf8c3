"""Asks the serde of each release anew, and writes the file of what is kept of it."""

from __future__ import annotations

from fencepost.codec import LAYOUTS, Codec

from ...console import CannotRun
from . import kept
from .client import KafkaSerde


def main() -> None:
    rows = {}
    for name, release in kept.RELEASES.items():
        try:
            kafka = KafkaSerde(release)
        except CannotRun as reason:
            raise SystemExit(f"records: {reason}") from None
        try:
            rows[release] = kept.asked(kafka, Codec(LAYOUTS[name]), release)
        finally:
            kafka.close()
    kept.write(rows)
    print(f"wrote {kept.FILE.name}: {sum(len(each.records) for each in rows.values())} records of {', '.join(rows)}")


if __name__ == "__main__":
    main()

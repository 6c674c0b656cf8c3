"""Asks the serde of each release again, and writes the kept answers.

``python -m tools.serde`` also writes the rules by which the codec agrees with it, to
``conformance/evidence/records.json``.

With a number as its argument, it compares that many random records each way with each release, with a fresh seed. Its
exit status is 1 if one differs.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import SystemRandom

from fencepost.codec import LAYOUTS, Codec
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.common.repository import root
from fencepost_conformance.judge.rulebook.standing import RECORDS_EVIDENCE as EVIDENCE
from fencepost_conformance.judge.rulebook.standing import evidence_folder
from fencepost_conformance.judge.verdict import Tally, outcome_of
from fencepost_conformance.targets.jvm.serde import compare, kept
from fencepost_conformance.targets.jvm.serde.client import KafkaSerde

BATCH = 2_000


@contextmanager
def opened(release: str) -> Iterator[KafkaSerde]:
    kafka = KafkaSerde(release)
    try:
        yield kafka
    finally:
        kafka.close()


def write() -> int:
    """Return how many records differed; nothing is written if any did."""
    rows = {}
    rules: Counter[str] = Counter()
    total = 0
    for name, release in kept.RELEASES.items():
        codec = Codec(LAYOUTS[name])
        with opened(release) as kafka:
            rows[release] = kept.asked(kafka, codec, release)
            total += shown(release, differences(kafka, codec, "evidence", BATCH, rules))
            total += len(list(compare.places(kafka, "evidence", BATCH, rules)))
    if total:
        return total
    kept.write(rows)
    document = {"kafka": list(rows), "records each way": BATCH, "rules": dict(sorted(rules.items()))}
    (evidence_folder(root()) / EVIDENCE).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {kept.FILE.name}: {sum(len(each.records) for each in rows.values())} records of {', '.join(rows)}")
    return 0


def compared(count: int) -> int:
    """Return how many records differed, and print the first of each release."""
    seed = str(SystemRandom().getrandbits(32))
    print(f"seed {seed}, {count} records each way", flush=True)
    total = 0
    for name, release in kept.RELEASES.items():
        with opened(release) as kafka:
            total += shown(release, differences(kafka, Codec(LAYOUTS[name]), seed, count))
    return total


def differences(
    kafka: KafkaSerde, codec: Codec, seed: str, count: int, agreed: Counter[str] | None = None
) -> list[compare.Difference]:
    found = list(compare.names(kafka, codec, agreed))
    for first in range(0, count, BATCH):
        size = min(BATCH, count - first)
        for each in (compare.writing, compare.reading, compare.markers):
            found += each(kafka, codec, f"{seed} {first}", size, agreed)
    return found


def shown(release: str, found: Sequence[compare.Difference]) -> int:
    print(f"Kafka {release}: {len(found)} differ", flush=True)
    if found:
        print("\n".join(f"  {part}" for part in found[0]))
    return len(found)


def main(words: Sequence[str]) -> int:
    """Return the exit status: 1 if a record differs, 2 if a release could not be asked."""
    try:
        if len(words) > 1 or not all(word.isdecimal() for word in words):
            raise CannotRun("give no argument, or the number of records to compare")
        differ = compared(int(words[0])) if words else write()
    except CannotRun as reason:
        print(f"records: {reason}", file=sys.stderr)
        return 2
    return outcome_of(Tally(failed=differ) if differ else Tally(passed=1)).status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

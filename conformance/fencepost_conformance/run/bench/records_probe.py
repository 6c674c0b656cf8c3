"""Encodes and decodes records, and prints its processor time: ``records_probe KIND``.

Each input line starts one more round; the answer has the number of records, the seconds to encode them, and the seconds
to decode them. It runs in its own process, with the codec that is first on its path.
"""

from __future__ import annotations

import gc
import sys
import time
from random import Random

from fencepost.codec import Codec
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.profiles import KAFKA_4_4
from fencepost.protocol.records import Record

from ...generate.generator import generate
from ...generate.plan import GroupProtocol

OFFSETS = 20_000
TRACES = 40


def offsets() -> list[Record]:
    """Return commits of groups that read a few topics, as in a busy partition of the offsets topic."""
    draw = Random("offsets")
    topics = [(f"topic-{number}", draw.randbytes(16)) for number in range(20)]
    records = []
    for number in range(OFFSETS):
        topic, topic_id = draw.choice(topics)
        value = OffsetCommitValue(
            draw.randrange(10**9),
            leader_epoch=draw.randrange(50),
            commit_timestamp=1_700_000_000_000 + number,
            topic_id=topic_id,
        )
        records.append(Record(OffsetCommitKey(f"group-{draw.randrange(200)}", topic, draw.randrange(50)), value))
    return records


def groups() -> list[Record]:
    """Return the records of random traces of every kind of group."""
    return [
        record
        for protocol in GroupProtocol
        for seed in range(TRACES)
        for seen in generate(seed, KAFKA_4_4, protocol=protocol).observations
        for record in seen.records
    ]


KINDS = {"offsets": offsets, "groups": groups}


def main(kind: str) -> None:
    codec, records = Codec(), KINDS[kind]()
    for _ in sys.stdin:
        gc.collect()
        gc.disable()
        began = time.process_time()
        written = [codec.encode(record) for record in records]
        between = time.process_time()
        read = [codec.decode(key, value) for key, value in written]
        print(len(read), between - began, time.process_time() - between, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

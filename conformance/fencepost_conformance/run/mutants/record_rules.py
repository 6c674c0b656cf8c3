"""Records of offsets and groups with extreme fields, written and read again: one by one, and many together."""

from __future__ import annotations

from random import Random

from fencepost.codec import Codec, TornRecord
from fencepost.protocol.offset_messages import ZERO_ID
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import Record

from ...generate.edge_moves import text_of_units
from ...generate.simulate.broken import Broken, demand

_CODEC = Codec()
_RECORDS = 12
_MOST_64, _MOST_32 = (1 << 63) - 1, (1 << 31) - 1
_LONGEST = 0x7FFF
_ID = bytes(15) + b"\1"


def _text(rng: Random) -> str:
    """Draw a text of any length that fits, or exactly the longest, in bytes."""
    length = rng.choice((0, 1, 7, 126, 127, 128, 255, 256, 300, _LONGEST))
    if length == _LONGEST or rng.random() < 0.5:
        return "g" * length
    return text_of_units(rng, length)


def _value(rng: Random) -> OffsetCommitValue:
    expires = rng.choice((-1, -1, -1, 0, -2, 5, -_MOST_64 - 1, _MOST_64))
    epoch = rng.choice((-1, -1, 0, 3, _MOST_32, -_MOST_32 - 1))
    return OffsetCommitValue(
        rng.choice((-_MOST_64 - 1, -1, 0, _MOST_64)),
        leader_epoch=epoch,
        metadata=rng.choice(("", "", "", _text(rng))),
        commit_timestamp=rng.choice((0, _MOST_64)),
        expire_timestamp=expires,
        topic_id=rng.choice((ZERO_ID, _ID)),
        expires_at_minus_one=expires == -1 and rng.random() < 0.2,
    )


def _as_kept(value: OffsetCommitValue) -> OffsetCommitValue:
    """Return the value as it is stored: with an expiry it has no leader epoch and no topic id (F-REC-20)."""
    if value.expire_timestamp == -1 and not value.expires_at_minus_one:
        return value
    return OffsetCommitValue(
        value.offset,
        metadata=value.metadata,
        commit_timestamp=value.commit_timestamp,
        expire_timestamp=value.expire_timestamp,
        expires_at_minus_one=value.expires_at_minus_one,
    )


def check_records(seed: int) -> int:
    """Raise ``Broken`` if a record changes when it is written and read. Returns the number of records."""
    rng = Random(f"records {seed}")
    names = [_text(rng) for _ in range(2)]
    made = [
        Record(OffsetCommitKey(rng.choice(names), rng.choice(names), rng.choice((0, 1, -1, _MOST_32))), _value(rng))
        for _ in range(_RECORDS)
    ]
    kept = []
    for record in made:
        assert isinstance(record.value, OffsetCommitValue)
        kept.append(Record(record.key, _as_kept(record.value)))
    pairs = _CODEC.encoded_all(made)
    demand(pairs == [_CODEC.encode(record) for record in made], "F-REC-20", "many together have other bytes")
    try:
        decoded = [_CODEC.decode(key, value) for key, value in pairs]
    except TornRecord as torn:
        raise Broken("F-REC-22", f"a whole record cannot be read: {torn}") from None
    demand(decoded == kept, "F-REC-11", f"read {decoded} instead of {kept}")
    loaded = [*_CODEC.logged(pairs)]
    demand(loaded == kept, "F-REC-00", f"loaded {loaded} instead of {kept}")
    return _RECORDS

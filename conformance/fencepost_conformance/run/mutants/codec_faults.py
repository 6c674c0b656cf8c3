"""Faults of the codec, in encoding and decoding records."""

from __future__ import annotations

from .mutant import Mutant, Side
from .replacement import Replacement

B = Side.CODEC
READING, RECORDS, CONSUMER, CLASSIC, OFFSETS, MARKERS = (
    f"codec/{name}.py" for name in ("reading", "records", "consumer", "classic", "offsets", "markers")
)

WRITING = (
    Mutant(
        "no-null-for-classic-member", B, ("F-REC-05",), "",
        "a member of the consumer protocol is written without the tag that says that it is not a classic member",
        (Replacement(CONSUMER, "_classic_tag", "return tag_zero(_ABSENT)", "return NO_TAGS"),),
    ),
    Mutant(
        "host-before-client", B, ("F-REC-13",), "",
        "a member's host is written before its client id",
        (
            Replacement(
                CONSUMER, "write_member",
                "compact_text(value.client_id),\ncompact_text(value.client_host),",
                "compact_text(value.client_host),\ncompact_text(value.client_id),",
            ),
        ),
    ),
    Mutant(
        "expiry-in-newest-version", B, ("F-REC-20",), "",
        "a commit that expires is written in a version without an expiry field",
        (
            Replacement(
                OFFSETS, "written_version",
                "return _EXPIRING if has_expiry else layout.offset_commit_version",
                "return layout.offset_commit_version",
            ),
        ),
    ),
    Mutant(
        "zero-topic-id-written", B, ("F-REC-11",), "",
        "a commit without a topic id is written with one of zeros",
        (
            Replacement(
                OFFSETS, "write_offset",
                "layout.topic_ids and value.topic_id != ZERO_ID", "layout.topic_ids",
            ),
        ),
    ),
    Mutant(
        "no-epochs-is-null", B, ("F-REC-08",), "",
        "partitions without assignment epochs are written with a tag that says null",
        (
            Replacement(
                CONSUMER, "_write_assigned",
                "tag_zero(numbers(epochs)) if epochs else NO_TAGS", 'tag_zero(numbers(epochs) if epochs else b"\\0")',
            ),
        ),
    ),
    Mutant(
        "commit-and-abort-swapped", B, ("F-REC-26",), "",
        "a commit of a transaction is written as an abort, and an abort as a commit",
        (
            Replacement(
                MARKERS, "write_marker_key",
                "_COMMIT if key.committed else _ABORT", "_ABORT if key.committed else _COMMIT",
            ),
        ),
    ),
)  # fmt: skip
FAULTS = (
    *WRITING,
    Mutant(
        "missing-tag-is-no-classic-member", B, ("F-REC-05",), "",
        "a value without the tag is read as a member of the consumer protocol",
        (
            Replacement(
                CONSUMER, "read_member",
                "reader.tagged(_read_classic, _NO_CLASSIC_TAG)", "reader.tagged(_read_classic, None)",
            ),
        ),
    ),
    Mutant(
        "leader-epoch-in-version-2", B, ("F-REC-11",), "",
        "a leader epoch is read from a version older than the one that introduced it",
        (
            Replacement(
                OFFSETS, "read_offset",
                "reader.int32() if version >= 3", "reader.int32() if version >= 2",
            ),
        ),
    ),
    Mutant(
        "timestamp-in-version-1", B, ("F-REC-12",), "",
        "a group's timestamp is read from a version older than the one that introduced it",
        (
            Replacement(
                CLASSIC, "read_group",
                "reader.int64() if version >= 2", "reader.int64() if version >= 1",
            ),
        ),
    ),
    Mutant(
        "varint-without-sign", B, ("F-REC-22",), "",
        "a varint of 32 bits is read as a number outside Java's range",
        (
            Replacement(
                READING, "RecordReader.varint",
                "return number - (1 << 32) if number >> 31 else number", "return number",
            ),
        ),
    ),
    Mutant(
        "length-of-a-tag-trusted", B, ("F-REC-22",), "",
        "a known tagged field ends where its length says",
        (
            Replacement(
                READING, "RecordReader.tagged",
                "found = zero(self)", "end = self.at + size\nfound = zero(self)\nself.at = end",
            ),
        ),
    ),
    Mutant(
        "first-tag-stays", B, ("F-REC-22",), "",
        "the first of two equal tagged fields wins",
        (
            Replacement(
                READING, "RecordReader.tagged",
                "found = zero(self)", "again = zero(self)\nfound = again if found is missing else found",
            ),
        ),
    ),
    Mutant(
        "no-bound-for-tags", B, ("F-REC-23",), "",
        "a negative number of tagged fields counts as none, also for a release that rejects it",
        (
            Replacement(
                READING, "RecordReader.tagged",
                "most is not None and (count < 0 or count > most)", "most is not None and count > most",
            ),
        ),
    ),
    Mutant(
        "malformed-text-refused", B, ("F-REC-24",), "",
        "a text that is not UTF-8 is rejected",
        (Replacement(READING, "RecordReader._text", "return text_of(data)", 'raise self.torn("no UTF-8")'),),
    ),
    Mutant(
        "unknown-version-read", B, ("F-LOAD-02",), "",
        "a value of an unknown version is read as the newest one",
        (
            Replacement(
                RECORDS, "Codec.decode",
                "raise UnknownVersion(number, version)", "version = kind.highest",
            ),
        ),
    ),
    Mutant(
        "commit-and-abort-taken-alike", B, ("F-REC-26",), "",
        "every end of a transaction is read as a commit",
        (
            Replacement(
                MARKERS, "read_marker_key",
                "ControlKey(kind == _COMMIT)", "ControlKey(True)",
            ),
        ),
    ),
    Mutant(
        "unknown-type-is-torn", B, ("F-LOAD-02",), "",
        "a record of an unknown type counts as damaged, and so fails a load",
        (Replacement(RECORDS, "Codec.decode", "raise UnknownType(number)", 'raise TornRecord("no such type")'),),
    ),
)  # fmt: skip

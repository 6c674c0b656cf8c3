"""Conversion between records and the bytes of their keys and values, as in one Kafka release (F-REC-00…F-REC-26)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from struct import Struct, error
from typing import Final

from fencepost.protocol.logged import Logged, Row
from fencepost.protocol.offset_records import ControlKey, ControlValue, Producer
from fencepost.protocol.records import Record

from .bulk import Loading, written
from .errors import TornRecord, UnknownType, UnknownVersion, Unwritable
from .layout import NEWEST, Layout
from .markers import read_marker, read_marker_key, write_marker, write_marker_key
from .reading import ENDS_EARLY, RecordReader
from .table import BY_KEY, types_read

_INT16: Final = Struct(">h").pack
#: A key of four bytes with this start is that of a control record of version 0; no offset key is so short.
_CONTROL: Final = bytes(3)
#: Key and value of a record; a tombstone's value is None.
RecordBytes = tuple[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class Opaque:
    """A record of a type that the release knows but this project does not decode: of a share or streams group
    (F-REC-09). ``name``: Kafka's name of the type. Key and value are complete, with type and version."""

    number: int
    name: str
    key: bytes
    value: bytes | None


class Codec:
    """Decodes and encodes records like the release of a layout, by default the newest."""

    __slots__ = ("_read", "layout")

    def __init__(self, layout: Layout = NEWEST) -> None:
        self.layout = layout
        self._read = types_read(layout)

    def name_of(self, number: int) -> str | None:
        """Return Kafka's name of the record type with this number; None if the release does not know it."""
        kind = self._read.get(number)
        return self.layout.others.get(number) if kind is None else kind.name

    def encode(self, record: Record, version: int | None = None) -> RecordBytes:
        """Return Kafka's bytes for a record, optionally with an older ``version`` of its value (F-REC-20).

        Fields that the release does not know are left out: topic id, hash, timestamp. Raises ``Unwritable``."""
        key, value = record.key, record.value
        try:
            if isinstance(key, ControlKey):
                return write_marker_key(key), write_marker(value) if isinstance(value, ControlValue) else None
            kind = BY_KEY[type(key)]
            begin = _INT16(kind.number) + kind.write_key(key)
            if value is None:
                return begin, None
            if not isinstance(value, kind.value):
                raise Unwritable(f"a {kind.name} record cannot have a value of type {type(value).__name__}")
            if version is None:
                version = kind.written(value, self.layout)
            if not 0 <= version <= kind.highest:
                raise Unwritable(f"version of {kind.name} must be from 0 to {kind.highest} (got {version})")
            return begin, _INT16(version) + kind.write_value(value, version, self.layout)
        except error as reason:
            raise Unwritable(f"a number in a record of {key.group!r} does not fit: {reason}") from None

    def decode(self, key: bytes | None, value: bytes | None, producer: Producer | None = None) -> Record | Opaque:
        """Decode bytes to the record that Kafka would read; bytes after its last field are ignored (F-REC-22).

        ``producer``: the producer that wrote it in a transaction, from the header of its batch. For a record of a
        control batch use ``decode_marker``. Raises ``UnknownType``, ``UnknownVersion`` or ``TornRecord``."""
        if key is None:
            raise TornRecord("a record must have a key")
        if key[:3] == _CONTROL and len(key) == 4:
            raise TornRecord(f"key {key.hex()} is that of a control record (F-REPLAY-05); use decode_marker()")
        try:
            reader = RecordReader(key, self.layout)
            number = reader.int16()
            kind = self._read.get(number)
            if kind is None:
                name = self.layout.others.get(number)
                if name is None:
                    raise UnknownType(number)
                return Opaque(number, name, key, value)
            record_key = kind.read_key(reader)
            if value is None:
                return Record(record_key, None, producer)
            reader = RecordReader(value, self.layout)
            version = reader.int16()
            if not 0 <= version <= kind.highest:
                raise UnknownVersion(number, version)
            return Record(record_key, kind.read_value(reader, version), producer)
        except ENDS_EARLY:
            raise TornRecord(f"the bytes end within a number, after {len(reader.data)} bytes") from None

    def loaded(
        self, key: bytes | None, value: bytes | None, producer: Producer | None = None, *, control: bool = False
    ) -> Record | None:
        """Decode a log record as a load does. None: the load skips it, because it has an unknown type, belongs to a
        share or streams group, or is a control record that ends no transaction (F-LOAD-02, F-REC-09, F-REC-26).

        ``control``: it is in a control batch. Raises ``UnknownVersion`` or ``TornRecord`` for a record that fails a
        load."""
        if control:
            return self.decode_marker(key, value, producer)
        try:
            record = self.decode(key, value, producer)
        except UnknownType:
            return None
        return None if isinstance(record, Opaque) else record

    def loading(self) -> Loading:
        """Return a reader for many rows of a log: equal to ``loaded`` for each, but much faster if many are offsets. It
        raises the same errors."""
        return Loading(self.layout.topic_ids, self.loaded)

    def logged(self, rows: Iterable[Row]) -> Logged:
        """Decode a log without transactions, as a load does. Raises the same errors as ``loaded``."""
        loading = self.loading()
        loading.take(rows)
        return loading.done()

    def encoded_all(self, records: Iterable[Record]) -> list[RecordBytes]:
        """Encode records in order: equal to ``encode`` for each, but faster if many are offsets. Raises the same errors
        as ``encode``."""
        return written(records, self.layout.offset_commit_version, self.layout.topic_ids, self.encode)

    def decode_marker(self, key: bytes | None, value: bytes | None, producer: Producer | None = None) -> Record | None:
        """Decode the end of a transaction from a record of a control batch (F-REC-26); None for another kind of control
        record, which a load skips. A load does not use the value, so it is None if it cannot be decoded. Raises
        ``TornRecord`` for a key that cannot be decoded."""
        if key is None:
            raise TornRecord("a record must have a key")
        reader = RecordReader(key, self.layout)
        try:
            marker_key = read_marker_key(reader)
        except ENDS_EARLY:
            raise TornRecord(f"the bytes end within a number, after {len(key)} bytes") from None
        if marker_key is None:
            return None
        try:
            return Record(
                marker_key, None if value is None else read_marker(RecordReader(value, self.layout)), producer
            )
        except (TornRecord, *ENDS_EARLY):
            return Record(marker_key, None, producer)

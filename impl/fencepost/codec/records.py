"""Records to the bytes of their keys and values, and back, as one release of Kafka does it (F-REC-00…F-REC-26)."""

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
from .reading import ENDS_EARLY, Reader
from .table import BY_KEY, types_read

_INT16: Final = Struct(">h").pack
#: A key of four bytes that begins so is that of a control record of version 0: no offset has a key so short.
_CONTROL: Final = bytes(3)
#: Key and value of a record; the value of a tombstone is None.
RecordBytes = tuple[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class Opaque:
    """A record of a type that the release knows and this project does not read: of a share or a streams group
    (F-REC-09). ``name``: Kafka's, of the type. Key and value are whole, with their type and version."""

    number: int
    name: str
    key: bytes
    value: bytes | None


class Codec:
    """Reads and writes records as the release of a layout does; the newest one's, if none is named."""

    __slots__ = ("_read", "layout")

    def __init__(self, layout: Layout = NEWEST) -> None:
        self.layout = layout
        self._read = types_read(layout)

    def name_of(self, number: int) -> str | None:
        """What Kafka calls the type of this number; None if the release does not know it."""
        kind = self._read.get(number)
        return self.layout.others.get(number) if kind is None else kind.name

    def encode(self, record: Record, version: int | None = None) -> RecordBytes:
        """The bytes that Kafka writes for a record, or for one of an older ``version`` of its value (F-REC-20).

        What the release does not know is left out: a topic id, a hash, a time. Raises ``Unwritable``."""
        key, value = record.key, record.value
        try:
            if isinstance(key, ControlKey):
                return write_marker_key(key), write_marker(value) if isinstance(value, ControlValue) else None
            kind = BY_KEY[type(key)]
            begin = _INT16(kind.number) + kind.write_key(key)
            if value is None:
                return begin, None
            if not isinstance(value, kind.value):
                raise Unwritable(f"{kind.name} has no value of {type(value).__name__}")
            if version is None:
                version = kind.written(value, self.layout)
            if not 0 <= version <= kind.highest:
                raise Unwritable(f"{kind.name} has no version {version}; the highest is {kind.highest}")
            return begin, _INT16(version) + kind.write_value(value, version, self.layout)
        except error as reason:
            raise Unwritable(f"a number in a record of {key.group!r} does not fit: {reason}") from None

    def decode(self, key: bytes | None, value: bytes | None, producer: Producer | None = None) -> Record | Opaque:
        """The record that Kafka reads from these bytes; what follows behind its last field is not looked at (F-REC-22).

        ``producer``: who wrote it within a transaction, as the header of its batch says. A record of a control batch
        is for ``decode_marker``. Raises ``UnknownType``, ``UnknownVersion`` or ``TornRecord``."""
        if key is None:
            raise TornRecord("a record without a key")
        if key[:3] == _CONTROL and len(key) == 4:
            raise TornRecord(f"key {key.hex()} is that of a control record (F-REPLAY-05); read it with decode_marker()")
        try:
            reader = Reader(key, self.layout)
            number = reader.int16()
            kind = self._read.get(number)
            if kind is None:
                name = self.layout.others.get(number)
                if name is None:
                    raise UnknownType(number)
                return Opaque(number, name, key, value)
            told = kind.read_key(reader)
            if value is None:
                return Record(told, None, producer)
            reader = Reader(value, self.layout)
            version = reader.int16()
            if not 0 <= version <= kind.highest:
                raise UnknownVersion(number, version)
            return Record(told, kind.read_value(reader, version), producer)
        except ENDS_EARLY:
            raise TornRecord(f"ends within a number, after {len(reader.data)} bytes") from None

    def loaded(
        self, key: bytes | None, value: bytes | None, producer: Producer | None = None, *, control: bool = False
    ) -> Record | None:
        """What a load takes from one record of a log; None: it is passed over, being of an unknown type, or of a share
        or a streams group, or a control record that ends no transaction (F-LOAD-02, F-REC-09, F-REC-26).

        ``control``: it stands in a control batch. Raises ``UnknownVersion`` or ``TornRecord`` for what fails a load."""
        if control:
            return self.decode_marker(key, value, producer)
        try:
            told = self.decode(key, value, producer)
        except UnknownType:
            return None
        return None if isinstance(told, Opaque) else told

    def loading(self) -> Loading:
        """What takes the rows of a log, many at once: as ``loaded`` one by one, and much faster where many are offsets.
        Raises as ``loaded``."""
        return Loading(self.layout.topic_ids, self.loaded)

    def logged(self, rows: Iterable[Row]) -> Logged:
        """What a load takes from a log of which no record is of a transaction. Raises as ``loaded``."""
        loading = self.loading()
        loading.take(rows)
        return loading.done()

    def encoded_all(self, records: Iterable[Record]) -> list[RecordBytes]:
        """The bytes of records in order: as ``encode`` one by one, and faster where many are offsets. Raises as
        ``encode``."""
        return written(records, self.layout.offset_commit_version, self.layout.topic_ids, self.encode)

    def decode_marker(self, key: bytes | None, value: bytes | None, producer: Producer | None = None) -> Record | None:
        """The end of a transaction, from a record of a control batch (F-REC-26); None for one of another kind, which a
        load passes over. Nobody looks at the value on a load: it is None if it cannot be read. Raises ``TornRecord``
        for a key that cannot."""
        if key is None:
            raise TornRecord("a record without a key")
        reader = Reader(key, self.layout)
        try:
            told = read_marker_key(reader)
        except ENDS_EARLY:
            raise TornRecord(f"ends within a number, after {len(key)} bytes") from None
        if told is None:
            return None
        try:
            return Record(told, None if value is None else read_marker(Reader(value, self.layout)), producer)
        except (TornRecord, *ENDS_EARLY):
            return Record(told, None, producer)

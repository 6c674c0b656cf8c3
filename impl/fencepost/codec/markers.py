"""Control records, which end a transaction. They are in control batches and have separate type numbers (F-REC-26)."""

from __future__ import annotations

from struct import Struct
from typing import Final

from fencepost.protocol.offset_records import ControlKey, ControlValue

from .reading import RecordReader

_VERSION: Final = 0
_ABORT: Final = 0
_COMMIT: Final = 1
_KEY: Final = Struct(">hh").pack
_VALUE: Final = Struct(">hi").pack


def write_marker_key(key: ControlKey) -> bytes:
    """Write the version and the kind of the record."""
    return _KEY(_VERSION, _COMMIT if key.committed else _ABORT)


def write_marker(value: ControlValue) -> bytes:
    """Write the version and the epoch of the transaction coordinator."""
    return _VALUE(_VERSION, value.coordinator_epoch)


def read_marker_key(reader: RecordReader) -> ControlKey | None:
    """Read the key of a transaction's end; None for another kind of control record, which a load skips. Only a negative
    version is an error."""
    version = reader.int16()
    if version < 0:
        raise reader.torn(f"version {version} of a control record must be >= 0")
    kind = reader.int16()
    return ControlKey(kind == _COMMIT) if kind in (_ABORT, _COMMIT) else None


def read_marker(reader: RecordReader) -> ControlValue:
    """Read the epoch of the transaction coordinator; only a negative version is an error."""
    version = reader.int16()
    if version < 0:
        raise reader.torn(f"version {version} of the end of a transaction must be >= 0")
    return ControlValue(reader.int32())

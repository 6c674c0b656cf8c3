"""Records that end a transaction, which stand in control batches and have a numbering of their own (F-REC-26)."""

from __future__ import annotations

from struct import Struct
from typing import Final

from fencepost.protocol.offset_records import ControlKey, ControlValue

from .reading import Reader

_VERSION: Final = 0
_ABORT: Final = 0
_COMMIT: Final = 1
_KEY: Final = Struct(">hh").pack
_VALUE: Final = Struct(">hi").pack


def write_marker_key(key: ControlKey) -> bytes:
    """Version and kind of the record."""
    return _KEY(_VERSION, _COMMIT if key.committed else _ABORT)


def write_marker(value: ControlValue) -> bytes:
    """Version, and the epoch of the transaction's coordinator."""
    return _VALUE(_VERSION, value.coordinator_epoch)


def read_marker_key(reader: Reader) -> ControlKey | None:
    """The end of a transaction; None for a control record of another kind, which a load passes over. Its version
    counts only if it is negative."""
    version = reader.int16()
    if version < 0:
        raise reader.torn(f"version {version} of a control record")
    kind = reader.int16()
    return ControlKey(kind == _COMMIT) if kind in (_ABORT, _COMMIT) else None


def read_marker(reader: Reader) -> ControlValue:
    """The epoch of the transaction's coordinator; its version counts only if it is negative."""
    version = reader.int16()
    if version < 0:
        raise reader.torn(f"version {version} of the end of a transaction")
    return ControlValue(reader.int32())

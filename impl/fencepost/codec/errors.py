"""Errors of decoding and encoding records."""

from __future__ import annotations


class CodecError(ValueError):
    """The record cannot be decoded or encoded; the message says why. The arguments are unchanged."""


class UnknownType(CodecError):
    """The release does not know the record type at the start of the key. A load skips such a record (F-LOAD-02).
    ``number``: the type."""

    def __init__(self, number: int) -> None:
        super().__init__(f"record type {number} is unknown in this release")
        self.number = number


class UnknownVersion(CodecError):
    """The record type has no such version of a value; a log with such a record cannot be loaded (F-LOAD-02)."""

    def __init__(self, number: int, version: int) -> None:
        super().__init__(f"version {version} of record type {number} is unknown in this release")
        self.number = number
        self.version = version


class TornRecord(CodecError):
    """The bytes end early, contain an impossible length, or contain null where it is not allowed (F-REC-22). A log with
    such a record cannot be loaded (F-LOAD-02)."""


class Unwritable(CodecError):
    """A text is too long, a number does not fit, or the record has no type (F-REC-25)."""

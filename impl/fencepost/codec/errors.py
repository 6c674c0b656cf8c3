"""What bytes are refused for, and records that have no bytes."""

from __future__ import annotations


class CodecError(ValueError):
    """A record that cannot be read or written; the message says why. What was handed in is as it was."""


class UnknownType(CodecError):
    """The key begins with the number of a type that the release does not know. Who loads a log passes over such a
    record and goes on (F-LOAD-02). ``number``: of the type."""

    def __init__(self, number: int) -> None:
        super().__init__(f"a record of type {number}, which the release does not know")
        self.number = number


class UnknownVersion(CodecError):
    """The value begins with a version that its type does not have; a log that holds it is not loaded (F-LOAD-02)."""

    def __init__(self, number: int, version: int) -> None:
        super().__init__(f"a value of type {number} and version {version}, which the release does not know")
        self.number = number
        self.version = version


class TornRecord(CodecError):
    """The bytes end early, a length in them is impossible, or null stands where it may not (F-REC-22); a log that
    holds them is not loaded (F-LOAD-02)."""


class Unwritable(CodecError):
    """A text that is too long, a number that does not fit, or a record that has no type (F-REC-25)."""

"""A commit outside of transactions: the bytes of its values, and the outcome of its step (``logged.PlainCommit``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, Final

from .events import Outcome, Reply, TaskKey, TimerCommand
from .logged import PlainCommit
from .offset_messages import ZERO_ID
from .rebalances import RebalanceReport
from .records import Record

_BEGIN: Final = Struct(">hqiB").pack  #: up to the metadata, the same in both layouts
_BARE_END: Final = Struct(">qB").pack
_NAMED_END: Final = Struct(">qBBB16s").pack
_VERSION: Final = 4
_NO_TEXT: Final = 1  #: the length of an empty text, plus one


def packer(commit_timestamp: int, topic_id: bytes) -> Callable[[int, int], bytes]:
    """Return a function from an offset and a leader epoch to the bytes of a value without metadata, which commits it at
    that time to a topic with that id."""
    bare = topic_id == ZERO_ID
    end = _BARE_END(commit_timestamp, 0) if bare else _NAMED_END(commit_timestamp, 1, 0, 16, topic_id)

    def pack(offset: int, leader_epoch: int) -> bytes:
        return _BEGIN(_VERSION, offset, leader_epoch, _NO_TEXT) + end

    return pack


class CommitOutcome(Outcome):
    """The outcome of a plain commit, which equals that with its records; these are created on first use."""

    __slots__ = ("_commit",)
    _commit: PlainCommit

    def __init__(
        self,
        commit: PlainCommit,
        replies: tuple[Reply, ...] = (),
        timers: tuple[TimerCommand, ...] = (),
        tasks: tuple[TaskKey, ...] = (),
        rebalances: tuple[RebalanceReport, ...] = (),
    ) -> None:
        super().__init__((), replies, timers, tasks, rebalances)
        _set_commit(self, commit)

    @property
    def records(self) -> tuple[Record, ...]:
        """The records, in log order."""
        return self._commit.records

    @property
    def written(self) -> Sequence[Record]:
        """The commit itself."""
        return self._commit

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Outcome) and _fields(self) == _fields(other)

    def __hash__(self) -> int:
        return hash(_fields(self))

    def __repr__(self) -> str:
        return repr(Outcome(*_fields(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Outcome, _fields(self)


_set_commit: Final = CommitOutcome.__dict__["_commit"].__set__  #: the class is frozen


def _fields(outcome: Outcome) -> tuple[Any, ...]:
    return outcome.records, outcome.replies, outcome.timers, outcome.tasks, outcome.rebalances

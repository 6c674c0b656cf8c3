"""The observed behaviour of a target for one event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.events import Reply, TaskKey, TimerKey
from fencepost.protocol.offset_view import OffsetsView
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupView

#: How many alternatives a verdict prints.
SHOWN: Final = 4


class Observed(Protocol):
    """The observed behaviour of a target for one event. A part that was not observed is ``None``.

    - ``timers``: net change of the armed timers, key to absolute deadline in ms, None if no longer armed.
    - ``groups``: the classic groups that the event changed, with their view afterwards, None if removed.
    - ``consumer_groups``: the same for consumer groups.
    - ``tasks``: background tasks that were started.
    - ``offsets``: all offsets afterwards; None also if the event changed none.
    - ``error``: one of ``IMPOSSIBLE``, if the target refused the event; no other error is compared.
    """

    @property
    def records(self) -> Sequence[Record] | None: ...
    @property
    def replies(self) -> Sequence[Reply] | None: ...
    @property
    def timers(self) -> Mapping[TimerKey, int | None] | None: ...
    @property
    def groups(self) -> Mapping[str, GroupView | None] | None: ...
    @property
    def consumer_groups(self) -> Mapping[str, ConsumerGroupView | None] | None: ...
    @property
    def tasks(self) -> Sequence[TaskKey] | None: ...
    @property
    def offsets(self) -> OffsetsView | None: ...
    @property
    def error(self) -> str | None: ...

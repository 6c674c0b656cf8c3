"""The requests that have no answer yet, while a step answers them. Some wait for the log, some wait in a group."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from fencepost.protocol.events import Reply
from fencepost.protocol.messages import ResponseBody

from .persistent import changed, frozen, owned
from .state import ANSWERED, NOBODY, CoordinatorState, Group, Operation


class Requests:
    """``operations``: those that wait for the log, by number, in log order. ``replies``: the answers of this step."""

    __slots__ = ("_before", "_parked", "_parking", "operations", "replies")

    def __init__(self, state: CoordinatorState) -> None:
        self._before = state.operations
        self.operations = state.operations
        self._parked = state.parked
        self._parking: dict[int, str | None] = {}
        self.replies: list[Reply] = []

    def open(self, number: int, operation: Operation) -> None:
        """The operation of this number waits for its records."""
        self._own()[number] = operation

    def close(self, number: int) -> None:
        """The operation of this number is finished."""
        del self._own()[number]

    def reply(self, request_id: int, body: ResponseBody) -> None:
        """Answer a request, unless the operation layer has answered it already (C-JOIN-70)."""
        if request_id == ANSWERED:
            return
        operation = self.operations.get(request_id)
        if operation is not None:
            if operation.answered:
                return
            self._own()[request_id] = Operation(
                operation.request, operation.offset, operation.reply, operation.callback, True
            )
        self.replies.append(Reply(request_id, body))

    def answered(self, request_id: int) -> bool:
        """Whether this step has answered the request."""
        return any(reply.request_id == request_id for reply in self.replies)

    def park(self, parking: Mapping[int, str | None]) -> None:
        """Park these requests in the groups of these names; None means that the request no longer waits."""
        self._parking.update(parking)

    def repark(self, old: Group | None, new: Group | None) -> None:
        """Replace a group: the requests that wait in the old one stop waiting, those of the new one are parked."""
        if old is not None:
            self._parking.update(dict.fromkeys(old.parked()))
        if new is not None:
            self._parking.update(dict.fromkeys(new.parked(), new.group_id))

    def parked_in(self, number: int) -> str | None:
        """The name of the group in which the request waits, None if it waits in none."""
        return self._parking.get(number, self._parked.get(number))

    def forget(self) -> None:
        """Forget all waiting requests without answering them."""
        self._before = self.operations = {}
        self._parked = NOBODY
        self._parking.clear()

    def open_operations(self) -> Mapping[int, Operation]:
        """The operations that are open after the step."""
        return frozen(self.operations)

    def parked(self) -> Mapping[int, str]:
        """After the step: the waiting requests, each with the name of its group."""
        return changed(self._parked, self._parking) if self._parking else self._parked

    def _own(self) -> MutableMapping[int, Operation]:
        operations = self.operations = owned(self.operations, self._before)
        return operations

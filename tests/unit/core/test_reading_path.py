"""The path of a request through the coordinator enters few files, and seldom returns to one of them.

How it is counted: Python's profiler records the calls of some typical requests, from the handler of the request on.
The test orders these calls as a reader meets them: the reader reads a function up to its next call, reads the called
function, and returns. Each function counts once. A return is an entry into a file that the reader had left. The reader
does not follow calls into the kernel (log, timers, persistent maps, records that are applied) or into an assignor.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

from fencepost import coordinator
from fencepost.coordinator import routing
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.messages import JoinGroupRequest

from .consumer_scene import LATER, settled
from .mixed_scene import MixedScene
from .scene import Scene

CORE = Path(coordinator.__file__).parent
#: Interfaces at which the reader stops.
BELOW = ("kernel", "assignors")


class Function(NamedTuple):
    """A function of the coordinator: its file, and its name there."""

    file: str
    name: str


START = Function("", "")


class Reader:
    """Notes by function the calls in it, each with its place: line and instruction. ``reads``: whether it does."""

    def __init__(self) -> None:
        self.reads = True
        self.calls: dict[Function, dict[Function, tuple[int, int]]] = {}
        self._handler: FrameType | None = None
        self._below: FrameType | None = None

    def read(self, handler: Callable[..., object], *given: object) -> object:
        """Serve a request, and note the calls."""
        self._handler = sys._getframe()
        sys.setprofile(self._note)
        try:
            return handler(*given)
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "return" and frame is self._below:
            self._below = None
        called = _function(frame)
        if event != "call" or self._below is not None or called is None:
            return
        if any(part in BELOW for part in Path(called.file).parts):
            self._below = frame
            return
        caller = frame.f_back
        while caller is not None and caller is not self._handler and _function(caller) is None:
            caller = caller.f_back
        by = START if caller is None else _function(caller) or START
        place = (0, 0) if caller is None or by is START else (caller.f_lineno, caller.f_lasti)
        if by != called:
            known = self.calls.setdefault(by, {})
            known[called] = min(place, known.get(called, place))

    def path(self) -> list[Function]:
        """The functions in the order in which a reader meets them."""
        found: dict[Function, None] = {}

        def follow(function: Function) -> None:
            calls = self.calls.get(function, {})
            for called in sorted(calls, key=calls.__getitem__):
                if called not in found:
                    found[called] = None
                    follow(called)

        follow(START)
        return list(found)


def _function(frame: FrameType) -> Function | None:
    """The function of this frame, if it is one of the coordinator; a comprehension belongs to its function."""
    code = frame.f_code
    if not code.co_filename.startswith(str(CORE)):
        return None
    return Function(str(Path(code.co_filename).relative_to(CORE)), code.co_qualname.split(".<")[0])


def files_and_returns(path: list[Function]) -> tuple[int, int]:
    """The number of files that the reader enters, and how often it returns to one that it had left."""
    files = [each.file for each in path]
    entries = [file for before, file in zip([None, *files], files, strict=False) if file != before]
    return len(set(entries)), len(entries) - len(set(entries))


def heartbeats(_: Reader) -> None:
    """Members join, revoke, leave for a while, are replaced, use a regex; a classic group is upgraded."""
    scene = settled()
    scene.pass_time(LATER)
    scene.come("m3", "b", instance="i")
    scene.pass_time(LATER)
    scene.ok("m3", -2, instance="i")
    scene.come("m4", "b", instance="i")
    scene.ok("m1", scene.who("m1").member_epoch, regex="a.*")
    scene.resolved()
    scene.ok("m1", scene.who("m1").member_epoch)
    upgraded = MixedScene()
    upgraded.classic("i1", "i2")
    upgraded.come("m1", "a")


def joins(_: Reader) -> None:
    """Members join a new classic group, one of them joins again, and a static one joins and returns."""
    scene = Scene()
    first, second = scene.stable(2)
    scene.join("", instance="i")
    scene.join(first)
    scene.join(second)
    scene.join("", instance="i")


def joins_of_classic_members(reader: Reader) -> None:
    """Classic members of a consumer group join again."""
    scene = MixedScene()
    reader.reads = False
    first, second = scene.classic("i1", "i2")
    reader.reads = True
    scene.come("m1", "a")
    scene.rejoin(first, "a")
    scene.pass_time(LATER)
    scene.rejoin(second, "a", "b")


def path_of(request: type, scenes: Callable[[Reader], None], monkeypatch: pytest.MonkeyPatch) -> list[Function]:
    reader, api = Reader(), routing.APIS[request]

    def serve(*given: Any) -> object:
        leaves = getattr(given[2], "member_epoch", 0) < 0
        return reader.read(api.handle, *given) if reader.reads and not leaves else api.handle(*given)

    monkeypatch.setitem(routing.APIS, request, api._replace(handle=serve))
    scenes(reader)
    return reader.path()


@pytest.mark.skipif(Path(routing.__file__).suffix != ".py", reason="Python's profiler does not see compiled functions")
@pytest.mark.parametrize(
    ("request_type", "scenes", "most_files", "most_returns"),
    [
        pytest.param(ConsumerGroupHeartbeatRequest, heartbeats, 15, 13, id="ConsumerGroupHeartbeat"),
        pytest.param(JoinGroupRequest, joins, 8, 15, id="JoinGroup"),
        pytest.param(JoinGroupRequest, joins_of_classic_members, 14, 15, id="JoinGroup to a consumer group"),
    ],
)
def test_a_reader_stays_in_few_files(
    request_type: type,
    scenes: Callable[[Reader], None],
    most_files: int,
    most_returns: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = path_of(request_type, scenes, monkeypatch)
    files, returns = files_and_returns(path)
    assert len(path) > 30
    assert (files <= most_files, returns <= most_returns) == (True, True), (files, returns, path)


def test_returns_are_entries_into_a_file_that_was_left() -> None:
    path = [Function(file, str(number)) for number, file in enumerate("aabacb")]
    assert files_and_returns(path) == (3, 2)

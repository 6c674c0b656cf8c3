"""One sweep: the scenes play through the recorder and a tap on a broker; then the checker judges the trace."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from fencepost.protocol.profile import Profile
from fencepost.wire.frames import API_KEYS, MalformedFrame, request_schema

from ...common.addresses import Address
from ...traces.files import WireTrace, read_traces
from ...traces.recorder.run import record
from ...traces.wire.questions import Questions, questions
from .. import verdict as verdicts
from ..checker.check import check_trace
from ..checker.verdict import Verdict
from .scenes import APIS, SCENES, TOPIC, Scene
from .session import Books, NoSuchForm, Place, Session, Swept
from .tap import HOST, Tap

#: How many scenes play at the same time.
_TOGETHER: Final = 6
#: Errors of a broker that has just started: its coordinators are not ready yet.
_STARTING: Final = frozenset({14, 15, 16})
_PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one sweep. ``announced``: lowest and highest version of each swept API."""

    announced: dict[str, tuple[int, int]]
    books: Books
    verdict: Verdict

    @property
    def unreached(self) -> list[str]:
        """Versions that the broker announces, and that no exchange has used."""
        return [
            f"{api} v{version}"
            for api, (low, high) in self.announced.items()
            for version in range(low, high + 1)
            if not self.books.counts.get((api, version))
        ]

    @property
    def passed(self) -> verdicts.Verdict:
        """The verdict on the whole sweep: anything wrong fails it, even if the checker leaves the rest undecided."""
        if self.unreached or self.books.problems:
            return verdicts.Verdict.FAILED
        return self.verdict.verdict

    @property
    def wrong(self) -> list[str]:
        """All reasons why the sweep has not passed, in words."""
        words = [f"{each}: announced, and not reached" for each in self.unreached]
        words += self.books.problems
        words += [f"{each.group_id}, line {each.line}: {each.seen}; {each.allowed}" for each in self.verdict.refusals]
        if self.verdict.outcome not in ("accepted", "refused"):
            words.append(f"{self.verdict.outcome}, line {self.verdict.line}: {self.verdict.reason}")
        return words


async def sweep(broker: Address, folder: Path, profile: Profile, *, full: bool) -> Outcome:
    """Play every scene for every API, version and form, and judge what the recorder wrote.

    Args:
        broker: its address; no other recording may use it at the same time.
        folder: for the trace, ``sweep.jsonl.gz``.
        profile: the release of the broker.
        full: send every form; otherwise the plain one and one other for each version.
    """
    async with questions(broker.host, broker.port) as ask:
        announced = {api: ask.versions[API_KEYS[api]] for api in APIS if API_KEYS[api] in ask.versions}
        topic_id = await _prepared(ask)
    tap, path, until = Tap(broker.host, broker.port), folder / "sweep.jsonl.gz", asyncio.Event()
    await tap.start()
    ready: asyncio.Queue[Address] = asyncio.Queue()
    complaints: list[str] = []
    recording = asyncio.create_task(
        record(
            Address(HOST, 0), Address(HOST, tap.port), path, until,
            ready=ready.put_nowait, complain=complaints.append, replace=True,
        )
    )  # fmt: skip
    waiting = asyncio.ensure_future(ready.get())
    await asyncio.wait({recording, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if recording.done():
        waiting.cancel()
        recording.result()
    versions = {api: _highest_known(api, *bounds) for api, bounds in announced.items()}
    place = Place(waiting.result(), tap, versions, Books())
    try:
        await _play_all(place, announced, topic_id, full=full)
    finally:
        until.set()
        await recording
        await tap.stop()
    (trace,) = read_traces(path)
    if not isinstance(trace, WireTrace):
        raise MalformedFrame(f"the recorder has written a trace that cannot be read: {trace}")
    return Outcome(announced, place.books, check_trace(trace, str(path), profile=profile))


def _highest_known(api: str, low: int, high: int) -> int:
    for version in range(high, low - 1, -1):
        if _known(api, version):
            return version
    return -1


def _known(api: str, version: int) -> bool:
    try:
        request_schema(api, version)
    except MalformedFrame:
        return False
    return True


async def _prepared(ask: Questions) -> bytes:
    """Create the topic, wait until the coordinators of groups and transactions are ready, and return the topic's id."""
    row = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    made = await ask.ask("create_topics", 7, 7, topics=[row], timeout=10_000, validate_only=False)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _PATIENCE_S
    while True:
        found = [await ask.ask("find_coordinator", 4, 4, key_type=kind, coordinator_keys=["sweep"]) for kind in (0, 1)]
        codes = {int(each.coordinators[0].error_code.value) for each in found}
        if not codes & _STARTING:
            fetched = await ask.ask("offset_fetch", 7, 7, group_id="sweep", topics=None, require_stable=False)
            began = await ask.ask("init_producer_id", 4, 4, transactional_id="sweep", transaction_timeout=10_000)
            codes = {int(fetched.error_code.value), int(began.error_code.value)}
        if not codes & _STARTING:
            break
        if loop.time() > deadline:
            raise MalformedFrame(f"the broker has no coordinators after {_PATIENCE_S:g} s")
        await asyncio.sleep(0.2)
    topic_id: bytes = made.topics[0].topic_id.bytes
    return topic_id


async def _play_all(place: Place, announced: dict[str, tuple[int, int]], topic_id: bytes, *, full: bool) -> None:
    gate, names = asyncio.Semaphore(_TOGETHER), count(1)

    async def play(scene: Scene, swept: Swept) -> bool:
        """Play one scene; False if it has no such request, or the request no such form."""
        async with gate:
            session = Session(place, swept, f"s{next(names)}", topic_id)
            try:
                await scene.play(session)
            except NoSuchForm:
                return False
            finally:
                await session.close()
            return session.reached

    async def every_form(scene: Scene, api: str, version: int) -> None:
        for turn in count():
            form = 0
            while await play(scene, Swept(api, version, turn, form)):
                form += 1
            if not form:
                return

    async def one_form(scene: Scene, api: str, version: int) -> None:
        """Another form for each version, and the plain one for the newest."""
        form = 0 if version == announced[api][1] else version + 1
        if not await play(scene, Swept(api, version, 0, form)):
            await play(scene, Swept(api, version, 0, 0))

    some = every_form if full else one_form
    jobs = [
        some(scene, api, version)
        for scene in SCENES
        for api in scene.apis
        if api in announced
        for version in range(announced[api][0], announced[api][1] + 1)
        if _known(api, version)
    ]
    await asyncio.gather(*jobs)

"""Shares, commits and workers whose member the test plays: valid and late results, and notified callers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from fencepost.member.events import Call
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.offset_messages import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from fencepost.protocol.partitions import TopicPartition
from fencepost.work import CommitFailed, Share, ShareLost, Worker, WorkerFailed
from fencepost.work import offsets as asking
from fencepost.work.worker import worker_of

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Answers:
    """A link that answers commits with these errors, one after the other."""

    def __init__(self, *errors: ErrorCode) -> None:
        self.errors = list(errors)

    async def ask(self, group_id: str, body: Any, lane: str) -> OffsetCommitResponse:
        row = OffsetCommitResponsePartition(0, error_code=self.errors.pop(0))
        return OffsetCommitResponse((OffsetCommitResponseTopic(name="orders", partitions=(row,)),))


def commits(link: Answers, *epochs: int) -> None:
    """Commit as a member that has these epochs, one at each attempt, and the last one from then on."""
    left: Iterator[int] = iter(epochs)
    epoch = epochs[-1]

    def who() -> tuple[str, int]:
        return "ada", next(left, epoch)

    settings = worker_of(link, "g", ["orders"], {}).settings  # type: ignore[arg-type]
    asyncio.run(asyncio.wait_for(asking.commit(link, settings, who, {A: 1}, ""), 60))  # type: ignore[arg-type]


def test_a_commit_rejected_at_a_previous_epoch_is_sent_again() -> None:
    link = Answers(ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.NONE)
    commits(link, 1, 2)
    assert link.errors == []


def test_a_commit_rejected_at_the_current_epoch_is_fenced() -> None:
    with pytest.raises(asking.Fenced):
        commits(Answers(ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.NONE), 1)
    with pytest.raises(CommitFailed):
        commits(Answers(ErrorCode.INVALID_GROUP_ID, ErrorCode.NONE), 1, 2)


def test_an_error_of_any_topic_fails_the_commit() -> None:
    class TwoTopics:
        async def ask(self, group_id: str, body: Any, lane: str) -> OffsetCommitResponse:
            errors = {"orders": ErrorCode.NONE, "returns": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
            return OffsetCommitResponse(
                tuple(
                    OffsetCommitResponseTopic(
                        name=name, partitions=(OffsetCommitResponsePartition(0, error_code=code),)
                    )
                    for name, code in errors.items()
                )
            )

    with pytest.raises(CommitFailed):
        commits(TwoTopics(), 1)  # type: ignore[arg-type]


def test_an_offset_that_is_not_stable_is_asked_for_again() -> None:
    asked: list[Any] = []

    class Unstable:
        async def ask(self, group_id: str, body: Any, lane: str) -> OffsetFetchResponse:
            asked.append(body)
            error = ErrorCode.UNSTABLE_OFFSET_COMMIT if len(asked) == 1 else ErrorCode.NONE
            offset = -1 if error else 7
            row = OffsetFetchResponsePartition(0, committed_offset=offset, error_code=error)
            topics = (OffsetFetchResponseTopic(name="orders", partitions=(row,)),)
            return OffsetFetchResponse((OffsetFetchResponseGroup("g", topics=topics),))

    settings = worker_of(Unstable(), "g", ["orders"], {}).settings  # type: ignore[arg-type]
    found = asyncio.run(asking.committed(Unstable(), settings, frozenset({A})))  # type: ignore[arg-type]
    assert found == {A: 7}
    assert len(asked) == 2


def test_a_lost_share_stays_lost_and_says_so() -> None:
    share = Share(None, frozenset({A}), frozenset())  # type: ignore[arg-type]
    assert repr(share) == "Share(orders-0)"
    share.end()
    assert repr(share) == "Share(orders-0, over)"
    share.end(lost=True)
    share.end()
    assert share.lost
    assert repr(share) == "Share(orders-0, lost)"
    assert repr(Share(None, frozenset(), frozenset())) == "Share(nothing)"  # type: ignore[arg-type]


class Played:
    """A driver with a member that the test controls."""

    def __init__(self) -> None:
        self.member: Any = SimpleNamespace(
            assignment=frozenset(), generation=SimpleNamespace(reset=False, member_id="ada", generation_id=1)
        )
        self.failure: Any = None

    async def close(self, option: object) -> None:
        """The test calls the listeners itself."""


def play(scene: Callable[[Worker, Played], Any], link: Any = None) -> None:
    async def main() -> None:
        worker = worker_of(link, "g", ["orders"], {})
        played = Played()
        worker._driver = played  # type: ignore[assignment]
        async with asyncio.timeout(10):
            await scene(worker, played)

    asyncio.run(main())


async def gain(worker: Worker, played: Played, *partitions: TopicPartition) -> None:
    await worker._listens(Call.ASSIGNED, partitions)
    played.member.assignment |= frozenset(partitions)


def test_a_worker_has_a_share_from_the_first_on_until_it_is_lost() -> None:
    async def scene(worker: Worker, played: Played) -> None:
        assert worker.share is None
        await gain(worker, played, A)
        assert worker.share is not None
        await worker._listens(Call.REVOKED, (A,))
        assert worker.share is not None  # over, not lost
        await gain(worker, played, A)
        await worker._listens(Call.LOST, (A,))
        assert worker.share is None

    play(scene)


def test_a_share_that_ends_before_it_was_handed_out_is_not_handed_out() -> None:
    async def scene(worker: Worker, played: Played) -> None:
        await gain(worker, played, A)
        await worker._listens(Call.REVOKED, (A,))
        played.member.assignment = frozenset()
        waiting = asyncio.ensure_future(anext(worker))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        await gain(worker, played, B)
        assert (await waiting).partitions == {B}

    play(scene)


def test_a_share_is_renewed_when_something_has_changed_and_only_then() -> None:
    async def scene(worker: Worker, played: Played) -> None:
        await gain(worker, played, A, B)
        first = worker.share
        await worker._listens(Call.ASSIGNED, ())
        assert worker.share is first
        await worker._listens(Call.ASSIGNED, (A,))  # again: it was revoked and returned
        second = worker.share
        assert second is not first
        assert second is not None
        assert second.gained == {A}
        second.end()
        await worker._listens(Call.ASSIGNED, ())
        third = worker.share
        assert third is not second
        played.member.assignment = frozenset({A})
        await worker._listens(Call.ASSIGNED, ())
        assert worker.share is not third

    play(scene)


def test_a_worker_that_has_not_begun_leaves_immediately_and_leaves_once() -> None:
    async def main() -> None:
        await worker_of(None, "g", ["orders"], {}).leave()  # type: ignore[arg-type]

    asyncio.run(main())
    closed: list[object] = []

    class Counts(Played):
        async def close(self, option: object) -> None:
            closed.append(option)

    async def scene(worker: Worker, played: Played) -> None:
        worker._driver = Counts()  # type: ignore[assignment]
        await worker.leave()
        await worker.leave()

    play(scene)
    assert len(closed) == 1


def test_a_commit_of_partitions_that_were_taken_or_lost_meanwhile_is_not_sent_again() -> None:
    async def commit_and(taken: bool, lost: bool) -> None:
        async def scene(worker: Worker, played: Played) -> None:
            await gain(worker, played, A)
            share = worker.share
            assert share is not None
            committing = asyncio.ensure_future(share.commit({A: 1}))
            await asyncio.sleep(0.01)
            if taken:
                played.member.assignment = frozenset()
            if lost:
                share.end(lost=True)
            with pytest.raises(ShareLost):
                await committing

        link = Answers(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE)
        worker = worker_of(link, "g", ["orders"], {})  # type: ignore[arg-type]
        played = Played()
        worker._driver = played  # type: ignore[assignment]
        await scene(worker, played)
        assert link.errors == [ErrorCode.NONE]

    asyncio.run(commit_and(True, False))
    asyncio.run(commit_and(False, True))


@pytest.mark.parametrize("closing", [False, True])
def test_a_worker_that_leaves_has_lost_nothing_even_if_its_member_failed(closing: bool) -> None:
    async def scene(worker: Worker, played: Played) -> None:
        await gain(worker, played, A)
        share = worker.share
        assert share is not None
        if closing:
            await worker.leave()
        played.member.generation.reset = True
        worker._stepped()
        assert share.lost is not closing
        played.failure = SimpleNamespace(text="no", error=None, kind=None)
        if closing:
            await worker.ended()
            with pytest.raises(StopAsyncIteration):
                await anext(worker)
        else:
            with pytest.raises(WorkerFailed):
                await anext(worker)

    play(scene)


def test_the_callback_for_revoked_partitions_comes_after_the_work_on_them() -> None:
    happened: list[str] = []

    async def main() -> None:
        def revoked(partitions: frozenset[TopicPartition]) -> None:
            happened.append("revoked")

        worker = worker_of(None, "g", ["orders"], {"revoked": revoked})  # type: ignore[arg-type]
        played = Played()
        worker._driver = played  # type: ignore[assignment]

        async def program() -> None:
            async for _ in worker:
                await asyncio.sleep(0.05)
                happened.append("worked")

        await gain(worker, played, A)
        running = asyncio.ensure_future(program())
        await asyncio.sleep(0.01)
        await worker._listens(Call.REVOKED, (A,))
        running.cancel()

    asyncio.run(asyncio.wait_for(main(), 60))
    assert happened == ["worked", "revoked"]

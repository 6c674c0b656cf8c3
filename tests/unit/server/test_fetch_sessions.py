"""Fetch sessions (KIP-227): what a request means with those before it, and what its answer leaves out."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.errors import ErrorCode as Code

from fencepost_server.data.producers import Refused
from fencepost_server.data.sessions import STALE_S, FetchSessions

from .served import Client, play, running

A, B, C = ("t", 0), ("t", 1), ("u", 0)
NONE = (0, -1)


def answer(high: int = 5, records: bytes = b"", code: Code = Code.none, start: int = 0) -> dict[str, Any]:
    return {"error_code": code, "high_watermark": high, "log_start_offset": start, "records": records}


class Reader:
    """Fetches in sessions; ``answers``: what is answered about each partition from now on."""

    def __init__(self, slots: int = 10) -> None:
        self.sessions = FetchSessions(slots)
        self.answers = {A: answer(), B: answer(), C: answer()}
        self.now = 0.0

    def fetch(
        self, session: tuple[int, int], *named: Any, forgotten: Any = (), by_id: bool = False
    ) -> tuple[int, list[Any]]:
        """The session's id, and the partitions in the answer."""
        rows = {key: f"row of {key}" for key in named}
        context = self.sessions.context(*session, rows, forgotten, by_id=by_id, now=self.now)
        answers = [(key, dict(self.answers[key])) for key in context.partitions]
        number, fetched = self.sessions.answered(context, answers, {}, by_id=by_id, now=self.now)
        return number, [key for key, _ in fetched]

    def refused(self, *session: int, by_id: bool = False) -> Code:
        with pytest.raises(Refused) as reason:
            self.fetch(session, by_id=by_id)  # type: ignore[arg-type]
        return reason.value.code


def test_only_what_is_new_is_answered() -> None:
    reader = Reader()
    number, keys = reader.fetch((0, 0), A, B)
    assert number
    assert keys == [A, B]
    assert reader.fetch((number, 1)) == (number, [])
    reader.answers[B] = answer(high=6)
    assert reader.fetch((number, 2)) == (number, [B])
    reader.answers[A] = answer(start=2)
    assert reader.fetch((number, 3)) == (number, [A])
    reader.answers[B] = answer(high=6, records=b"more")
    assert [reader.fetch((number, epoch))[1] for epoch in (4, 5)] == [[B], [B]]
    reader.answers[B] = answer(high=-1, code=Code.unknown_topic_or_partition)
    assert [reader.fetch((number, epoch))[1] for epoch in (6, 7)] == [[B], [B]]
    reader.answers[B] = answer(high=6)
    assert [reader.fetch((number, epoch))[1] for epoch in (8, 9)] == [[B], []]


def test_a_partition_with_records_is_the_last_of_the_next_request() -> None:
    reader = Reader()
    number, _ = reader.fetch((0, 0), A, B)
    reader.answers = dict.fromkeys((A, B, C), answer(records=b"r"))
    reader.answers[B] = answer()
    assert reader.fetch((number, 1))[1] == [A]
    assert list(reader.sessions.context(number, 2, {}, (), by_id=False, now=0.0).partitions) == [B, A]


def test_partitions_come_and_go() -> None:
    reader = Reader()
    number, _ = reader.fetch((0, 0), A)
    assert reader.fetch((number, 1), B)[1] == [B]
    reader.answers = dict.fromkeys((A, B, C), answer(high=9))
    assert reader.fetch((number, 2), forgotten=[A])[1] == [B]
    assert reader.fetch((number, 3), forgotten=[B]) == (0, [])  # nothing is left of the session
    assert reader.refused(number, 4) is Code.fetch_session_id_not_found


def test_a_request_that_does_not_fit_is_rejected() -> None:
    reader = Reader()
    number, _ = reader.fetch((0, 0), A)
    assert reader.refused(number, 2) is Code.invalid_fetch_session_epoch
    assert reader.refused(number, 1, by_id=True) is Code.fetch_session_topic_id_error
    assert reader.refused(number + 1, 1) is Code.fetch_session_id_not_found
    assert reader.fetch((number, 1)) == (number, [])
    assert reader.refused(number, 1) is Code.invalid_fetch_session_epoch
    assert reader.fetch((number, -1), A) == (0, [A])  # ends it
    assert reader.refused(number, 2) is Code.fetch_session_id_not_found


def test_an_answer_to_an_older_request_is_rejected() -> None:
    reader = Reader()
    number, _ = reader.fetch((0, 0), A)
    older = reader.sessions.context(number, 1, {}, (), by_id=False, now=0.0)
    reader.fetch((number, 2))
    with pytest.raises(Refused) as reason:
        reader.sessions.answered(older, [(A, answer())], {}, by_id=False, now=0.0)
    assert reason.value.code is Code.invalid_fetch_session_epoch


def test_a_new_session_replaces_one_that_was_not_used_for_long() -> None:
    reader = Reader(slots=2)
    first, _ = reader.fetch((0, 0), A)
    second, _ = reader.fetch((0, 0), A)
    assert reader.fetch((0, 0), A) == (0, [A])
    reader.now = STALE_S + 1
    assert reader.fetch((first, 1)) == (first, [])
    third, _ = reader.fetch((0, 0), A)
    assert third
    assert reader.refused(second, 1) is Code.fetch_session_id_not_found
    assert reader.fetch((first, 2)) == (first, [])


def test_a_session_knows_the_name_of_a_topic_that_is_gone() -> None:
    """Kafka answers so, and not UNKNOWN_TOPIC_ID, for a topic that the session saw."""

    async def session() -> None:
        async with running(topics={"t": 2}) as ready:
            client = await Client.to(ready.listen)
            topic_id = (await client.ask("metadata", 12, topics=[{"name": "t"}])).topics[0].topic_id.bytes
            row = {"partition": 0, "partition_max_bytes": 100}
            asked: dict[str, Any] = {"max_wait": 0, "min_bytes": 0, "max_bytes": 100}
            topics = [{"topic_id": topic_id, "partitions": [row]}]
            begun = await client.ask("fetch", 15, **asked, session_id=0, session_epoch=0, topics=topics)
            codes = []
            other = [{"topic_id": topic_id, "partitions": [{**row, "partition": 1}]}]
            for epoch in (1, 2):
                if epoch == 1:
                    await client.ask("delete_topics", 5, topic_names=["t"], timeout=1_000)
                else:
                    rows = [{"name": "t", "num_partitions": 1, "replication_factor": 1}]
                    await client.ask("create_topics", 4, topics=rows, timeout=1_000)
                answer = await client.ask(
                    "fetch", 15, **asked, session_id=begun.session_id, session_epoch=epoch, topics=other
                )
                codes.append([each.error_code for each in answer.responses[0].partitions])
            new = Code.unknown_topic_id  # the partition has joined the session too late
            assert codes == [[Code.unknown_topic_or_partition, new], [Code.inconsistent_topic_id, new]]

    play(session())

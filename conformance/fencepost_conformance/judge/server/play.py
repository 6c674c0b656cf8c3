"""Play a script on one address, over one connection for each user.

Kafka answers some requests before their effect is complete. ``play`` waits until it is complete, so that both brokers
are compared in the same state: a topic has leaders or is gone, a transaction that has ended has its markers, and a
changed setting can be described. Like clients, it sends a request again that is answered CONCURRENT_TRANSACTIONS.

Nothing orders a Produce with ``acks=0``, which has no answer, and a request over another connection. So before the
other request, ``play`` sends one more over the connection of the Produce, and waits for its answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, TypeAlias

from fencepost.sharding import partition_for
from fencepost.wire.convert import plain
from fencepost.wire.fill import fill
from fencepost.wire.frames import API_KEYS, RequestHeader, framed, read_response, request_schema, write_request

from .lines import Line, Place
from .script import RAW, Move, Run, Script, Sent
from .settings import GROUP

#: words in place of an answer
CLOSED: Final = "the connection was closed"
SILENT: Final = "no answer"
NOT_ASKED: Final = "none is given"

#: the number of partitions of the offsets topic, on both brokers
OFFSETS_PARTITIONS: Final = 4
_PATIENCE_S: Final = 15.0
_WAITING_S: Final = 0.005
_MOST_WAITS: Final = 1_000
_CONCURRENT_TRANSACTIONS: Final = 51
#: the partition has no leader yet, or the coordinator is loading: only Kafka answers so
_SOON: Final = (5, 6, 14, 15, 16)
_NO_ACKS: Final = 0
#: the number of the connection that no request of a script uses
_OWN_LINE: Final = -1
#: the setting that a barrier changes, and a value below those that it gets
_TIMEOUT: Final = "consumer.session.timeout.ms"
_LEAST_TIMEOUT_MS: Final = 45_000
#: for a request that is sent in pieces
_PIECES: Final = 4
_BETWEEN_S: Final = 0.002
#: APIs whose requests may be sent in one packet
_AT_ONCE: Final = frozenset({
    "fetch", "list_offsets", "offset_for_leader_epoch", "metadata", "describe_topic_partitions", "describe_cluster",
    "offset_commit", "offset_fetch", "heartbeat", "sync_group", "leave_group", "describe_groups", "list_groups",
    "find_coordinator", "describe_configs", "api_versions",
})  # fmt: skip
#: a user, and which of the user's connections
_Place: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Logins:
    """The users of a broker. ``passwords``: by user; empty if the broker has no log-in. ``superuser``: the user that
    checks whether an effect is complete."""

    passwords: Mapping[str, str]
    superuser: str


NO_LOGINS: Final = Logins({}, "")


class _Ended:
    """A connection that the broker has closed."""

    def send(self, _: bytes) -> None: ...

    async def receive(self) -> None: ...

    async def close(self) -> None: ...


class Player:
    """A connection for each user; the next request opens it again if it was closed."""

    def __init__(self, place: Place, run: Run, logins: Logins = NO_LOGINS, client_id: str = "beside") -> None:
        self.run = run
        self.made: set[str] = set()
        self._place = place
        self._logins = logins
        self._client_id = client_id
        self._lines: dict[_Place, Line] = {}
        self._unanswered: set[_Place] = set()  #: connections whose last request has no answer
        self._count = 0
        self._changes = 0  #: of the barrier's setting

    async def ask(self, move: Move) -> Any:
        """Send a request until its answer is final; returns plain values, or one of the words above."""
        values = self.run.resolve(move.values)
        place = self._of(move)
        if move.sent is Sent.CUT:
            frame = self._frame(move.api, move.version, values)
            (await self._next(place)).send(frame[: -len(frame) // 2])
            await self._close(place)
            return NOT_ASKED
        for _ in range(_MOST_WAITS):
            answer, entity = await self._exchange(place, move.api, move.version, values, move.sent)
            if not {_CONCURRENT_TRANSACTIONS, *_SOON} & set(error_codes(answer)):
                break
            await asyncio.sleep(_WAITING_S)
        self._keep(move, entity)
        if isinstance(answer, dict):
            await self._settle(move, values, answer)
        return answer

    async def ask_together(self, moves: Sequence[Move]) -> list[Any]:
        """Send several requests of one connection in one packet; return the answers. None is sent again."""
        place = self._of(moves[0])
        line = await self._next(place)
        line.send(b"".join(self._frame(move.api, move.version, self.run.resolve(move.values)) for move in moves))
        answers = []
        for move in moves:
            answer, entity = (
                await self._answer(place, move.api, move.version) if place in self._lines else (CLOSED, None)
            )
            self._keep(move, entity)
            answers.append(answer)
        return answers

    def _of(self, move: Move) -> _Place:
        return move.user or self._logins.superuser, move.line

    def _keep(self, move: Move, entity: Any) -> None:
        for name, path in move.keeps.items():
            if (found := _at(entity, path)) is not None:
                self.run.keep(name, found)

    async def exchange(self, api: str, version: int, values: Any) -> tuple[Any, Any]:
        """Send one request of the superuser, over another connection than those of the script. Return the answer as
        plain values, or one of the words above; and as kio's message, or None."""
        return await self._exchange((self._logins.superuser, _OWN_LINE), api, version, values)

    async def _exchange(
        self, place: _Place, api: str, version: int, values: Any, sent: Sent = Sent.WHOLE
    ) -> tuple[Any, Any]:
        line = await self._next(place)
        frame = self._frame(api, version, values)
        if sent is Sent.PIECES:
            for at in range(0, len(frame), max(len(frame) // _PIECES, 1)):
                line.send(frame[at : at + max(len(frame) // _PIECES, 1)])
                await asyncio.sleep(0 if self._place.settled else _BETWEEN_S)
        else:
            line.send(frame)
        if api == "produce" and values["acks"] == _NO_ACKS:
            self._unanswered.add(place)
            return NOT_ASKED, None
        return await self._answer(place, api, version)

    async def _next(self, place: _Place) -> Line:
        """The connection for the next request, once the requests of others that have no answer are handled."""
        for other in self._unanswered - {place}:
            if other in self._lines:
                self._lines[other].send(self._frame("api_versions", 0, {}))
                if (await self._answer(other, "api_versions", 0))[0] == CLOSED:
                    self._lines[other] = _Ended()  # its next request shows it
        self._unanswered.clear()
        return await self._line(place)

    async def _line(self, place: _Place) -> Line:
        """The connection; opens it if needed."""
        line = self._lines.get(place)
        if line is None:
            line = self._lines[place] = await self._place.connect()
            if place[0]:
                await self._log_in(place)
        return line

    def _frame(self, api: str, version: int, values: Any) -> bytes:
        if api == RAW:
            data: bytes = values["data"]
            return data
        self._count += 1
        header = RequestHeader(API_KEYS[api], version, self._count, self._client_id)
        return framed(write_request(header, fill(request_schema(api, version), values)))

    async def _answer(self, place: _Place, api: str, version: int) -> tuple[Any, Any]:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                frame = await self._lines[place].receive()
        except TimeoutError:
            await self._close(place)
            return SILENT, None
        if frame is None:
            await self._close(place)
            return CLOSED, None
        if api == RAW:
            return frame.hex(), None
        entity = read_response(api, version, frame)
        return plain(entity), entity

    async def _log_in(self, place: _Place) -> None:
        user, _ = place
        await self._exchange(place, "sasl_handshake", 1, {"mechanism": "PLAIN"})
        token = f"\0{user}\0{self._logins.passwords[user]}".encode()
        answer, _ = await self._exchange(place, "sasl_authenticate", 2, {"auth_bytes": token})
        if answer == CLOSED or answer["error_code"]:
            raise ConnectionRefusedError(f"the broker rejects the log-in of {user}: {answer}")

    async def _settle(self, move: Move, values: Any, answer: Any) -> None:
        """Wait until the effect of the request is complete."""
        if move.api == "end_txn" and answer["error_code"] == 0:
            for _ in range(_MOST_WAITS):
                again, _ = await self._exchange(self._of(move), move.api, move.version, values)
                if again == CLOSED or again["error_code"] != _CONCURRENT_TRANSACTIONS:
                    break
                await asyncio.sleep(_WAITING_S)
        elif move.api in ("create_topics", "create_partitions") and not values.get("validate_only"):
            rows = answer["topics" if move.api == "create_topics" else "results"]
            made = {row["name"] for row in rows if row["error_code"] == 0}
            self.made |= made
            if made and not self._place.settled:
                counts = [(row["name"], _partitions(row)) for row in values["topics"] if row["name"] in made]
                await self._until_led({name: max(n for each, n in counts if each == name) for name in made})
        elif self._place.settled:
            return
        elif move.api == "delete_topics":
            gone = {row["name"] for row in answer["responses"] if row["error_code"] == 0 and row["name"]}
            await self._until_gone(sorted(gone))
            if gone:  # Kafka deletes their committed offsets later
                await self._change_setting()
                await self._until_written()
        elif move.api == "incremental_alter_configs" and not all(error_codes(answer)):
            await self.barrier()

    async def barrier(self) -> None:
        """Wait until the effects of earlier changes are complete. Kafka publishes changes in order, several together,
        and each is visible before its effects are complete. So a change that is sent when an earlier one is visible,
        and is then visible itself, shows that the effects of the earlier one are complete."""
        await self._change_setting()
        await self._change_setting()

    async def _change_setting(self) -> None:
        """Change the setting of a group that no script uses, and wait until the change is visible. It costs less than
        a new topic."""
        self._changes += 1
        value = str(_LEAST_TIMEOUT_MS + self._changes)
        await self._write_setting(value)
        asked = {**self._setting, "configuration_keys": [_TIMEOUT]}
        for _ in range(_MOST_WAITS):
            configs, _ = await self.exchange("describe_configs", 4, {"resources": [asked]})
            if isinstance(configs, str) or value in [row["value"] for row in configs["results"][0]["configs"]]:
                return
            await asyncio.sleep(_WAITING_S)

    async def _write_setting(self, value: str | None) -> None:
        change = {"name": _TIMEOUT, "config_operation": int(value is None), "value": value}
        rows = [{**self._setting, "configs": [change]}]
        await self.exchange("incremental_alter_configs", 1, {"resources": rows, "validate_only": False})

    @property
    def _setting(self) -> dict[str, Any]:
        return {"resource_type": GROUP, "resource_name": f"barrier-{self.run.prefix}"}

    async def clean(self) -> None:
        """Delete the topics of the script, since a broker with thousands of topics is slow, and the barrier's
        setting."""
        if self.made:
            await self.exchange("delete_topics", 5, {"topic_names": sorted(self.made), "timeout": 10_000})
        if self._changes:
            await self._write_setting(None)

    async def _until_written(self) -> None:
        """Wait until the group coordinators have written what was asked for before. They answer requests without a
        change only then (F-RT-07), such as the deletion of a group that does not exist."""
        names = (f"{self.run.prefix}none-{at}" for at in count())
        of_each: dict[int, str] = {}
        while len(of_each) < OFFSETS_PARTITIONS:
            of_each.setdefault(partition_for(name := next(names), OFFSETS_PARTITIONS), name)
        await self.exchange("delete_groups", 0, {"groups_names": sorted(of_each.values())})

    async def _until_led(self, partitions: Mapping[str, int]) -> None:
        """Wait until topics with these numbers of partitions have leaders. They have them in Metadata before that."""
        rows = [
            {"name": name, "partitions": [{"partition_index": at, "timestamp": -1} for at in range(number)]}
            for name, number in partitions.items()
        ]
        for _ in range(_MOST_WAITS):
            offsets, _ = await self.exchange("list_offsets", 1, {"replica_id": -1, "topics": rows})
            if not any(error_codes(offsets)):
                return
            await asyncio.sleep(_WAITING_S)

    async def _until_gone(self, names: list[str]) -> None:
        asked = {"topics": [{"name": name} for name in names]}
        for _ in range(_MOST_WAITS):
            if not names:
                return
            metadata, _ = await self.exchange("metadata", 8, asked)
            if all(row["error_code"] for row in metadata["topics"]):
                return
            await asyncio.sleep(_WAITING_S)

    async def _close(self, place: _Place) -> None:
        await self._lines.pop(place).close()

    async def close(self) -> None:
        """Close the connections; the next request opens another."""
        for place in list(self._lines):
            await self._close(place)


async def play(place: Place, script: Script, run: Run, logins: Logins = NO_LOGINS) -> list[Any]:
    """Play a script, and return the answers in order. Raises ``OSError`` if no broker listens at the address."""
    player = Player(place, run, logins)
    answers: list[Any] = []
    try:
        while len(answers) < len(script):
            together = _together(script, len(answers))
            answers += await player.ask_together(together) if len(together) > 1 else [await player.ask(together[0])]
        return answers
    finally:
        await player.clean()
        await player.close()


def _together(script: Script, at: int) -> Script:
    """The next requests that go into one packet."""
    end = at + 1
    while end < len(script) and script[end - 1].sent is Sent.AHEAD and _fit(script[end - 1], script[end]):
        end += 1
    return script[at:end]


def _fit(one: Move, other: Move) -> bool:
    """Whether both go over one connection, and the player need not wait between them."""
    return (
        (one.user, one.line) == (other.user, other.line)
        and other.sent in (Sent.WHOLE, Sent.AHEAD)
        and may_be_together(other)
    )


def may_be_together(move: Move) -> bool:
    """Whether every broker answers the request on the first try, and when its effect is complete."""
    return move.api in _AT_ONCE and move.values.get("acks", 1) != _NO_ACKS


def error_codes(answer: Any) -> Iterator[int]:
    """All error codes in an answer."""
    if isinstance(answer, dict):
        for key, value in answer.items():
            if isinstance(value, dict | list):
                yield from error_codes(value)
            elif key.endswith("error_code"):
                yield value
    elif isinstance(answer, list):
        for row in answer:
            yield from error_codes(row)


def _partitions(row: Any) -> int:
    if "count" in row:
        return int(row["count"])
    return len(row.get("assignments") or ()) or max(int(row["num_partitions"]), 1)


def _at(entity: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        try:
            entity = entity[step] if isinstance(step, int) else getattr(entity, step)
        except (IndexError, AttributeError):
            return None
    return entity if entity not in (-1, None) else None

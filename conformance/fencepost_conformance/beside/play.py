"""Play a script on one address, over one connection for each user.

Kafka answers some requests before their effect is complete. ``play`` waits until it is complete, so that both brokers
are compared in the same state: a topic has leaders or is gone, a transaction that has ended has its markers, and a
changed setting can be described. Like clients, it sends a request again that is answered CONCURRENT_TRANSACTIONS.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fencepost.wire.convert import plain
from fencepost.wire.fill import fill
from fencepost.wire.frames import (
    API_KEYS,
    MAX_RESPONSE_BYTES,
    MalformedFrame,
    RequestHeader,
    close,
    connect,
    framed,
    read_frame,
    read_response,
    request_schema,
    write_request,
)

from ..addresses import Address
from .script import Move, Run, Script

#: words in place of an answer
CLOSED: Final = "the connection was closed"
SILENT: Final = "no answer"
NOT_ASKED: Final = "none is given"

_PATIENCE_S: Final = 15.0
_WAITING_S: Final = 0.005
_MOST_WAITS: Final = 1_000
_CONCURRENT_TRANSACTIONS: Final = 51
#: the partition has no leader yet, or the coordinator is loading: only Kafka answers so
_SOON: Final = (5, 6, 14, 15, 16)
_NO_ACKS: Final = 0


@dataclass(frozen=True, slots=True)
class Logins:
    """The users of a broker. ``passwords``: by user; empty if the broker has no log-in. ``superuser``: the user that
    checks whether an effect is complete."""

    passwords: Mapping[str, str]
    superuser: str


NO_LOGINS: Final = Logins({}, "")


class Player:
    """A connection for each user; the next request opens it again if it was closed."""

    def __init__(self, address: Address, run: Run, logins: Logins = NO_LOGINS) -> None:
        self.run = run
        self.made: set[str] = set()
        self._address = address
        self._logins = logins
        self._streams: dict[str, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
        self._count = 0

    async def ask(self, move: Move) -> Any:
        """Send a request until its answer is final; returns plain values, or one of the words above."""
        values = self.run.resolve(move.values)
        for _ in range(_MOST_WAITS):
            answer, entity = await self.exchange(move.api, move.version, values, move.user)
            if not {_CONCURRENT_TRANSACTIONS, *_SOON} & set(error_codes(answer)):
                break
            await asyncio.sleep(_WAITING_S)
        for name, path in move.keeps.items():
            if (found := _at(entity, path)) is not None:
                self.run.keep(name, found)
        if isinstance(answer, dict):
            await self._settle(move, values, answer)
        return answer

    async def exchange(self, api: str, version: int, values: Any, user: str | None = None) -> tuple[Any, Any]:
        """Send one request; returns the answer as plain values, or one of the words above, and as kio's message, or
        None. ``user``: None for the superuser."""
        user = self._logins.superuser if user is None else user
        if user not in self._streams:
            self._streams[user] = await connect(self._address.host, self._address.port)
            if user:
                await self._log_in(user)
        reader, writer = self._streams[user]
        self._count += 1
        header = RequestHeader(API_KEYS[api], version, self._count, "beside")
        writer.write(framed(write_request(header, fill(request_schema(api, version), values))))
        if api == "produce" and values["acks"] == _NO_ACKS:
            return NOT_ASKED, None
        try:
            frame = await asyncio.wait_for(read_frame(reader, MAX_RESPONSE_BYTES), _PATIENCE_S)
        except TimeoutError:
            await self._close(user)
            return SILENT, None
        except (ConnectionError, MalformedFrame):
            frame = None
        if frame is None:
            await self._close(user)
            return CLOSED, None
        entity = read_response(api, version, frame)
        return plain(entity), entity

    async def _log_in(self, user: str) -> None:
        await self.exchange("sasl_handshake", 1, {"mechanism": "PLAIN"}, user)
        token = f"\0{user}\0{self._logins.passwords[user]}".encode()
        answer, _ = await self.exchange("sasl_authenticate", 2, {"auth_bytes": token}, user)
        if answer == CLOSED or answer["error_code"]:
            raise ConnectionRefusedError(f"the broker rejects the log-in of {user}: {answer}")

    async def _settle(self, move: Move, values: Any, answer: Any) -> None:
        """Wait until the effect of the request is complete."""
        if move.api == "end_txn" and answer["error_code"] == 0:
            for _ in range(_MOST_WAITS):
                again, _ = await self.exchange(move.api, move.version, values, move.user)
                if again == CLOSED or again["error_code"] != _CONCURRENT_TRANSACTIONS:
                    break
                await asyncio.sleep(_WAITING_S)
        elif move.api in ("create_topics", "create_partitions") and not values.get("validate_only"):
            rows = answer["topics" if move.api == "create_topics" else "results"]
            made = {row["name"] for row in rows if row["error_code"] == 0}
            self.made |= made
            for name in made:
                counts = [_partitions(row) for row in values["topics"] if row["name"] == name]
                await self._until_led(name, max(counts))
        elif move.api == "delete_topics":
            gone = {row["name"] for row in answer["responses"] if row["error_code"] == 0 and row["name"]}
            await self._until_gone(sorted(gone))
        elif move.api == "incremental_alter_configs" and not all(error_codes(answer)):
            await self.barrier()

    async def barrier(self) -> None:
        """Create a topic and wait for it: Kafka publishes changes in order, so earlier ones are then visible."""
        name = f"{self.run.prefix}barrier-{self._count}"
        rows = [{"name": name, "num_partitions": 1, "replication_factor": 1}]
        await self.exchange("create_topics", 4, {"topics": rows, "timeout": 10_000})
        await self._until_led(name, 1)
        await self.exchange("delete_topics", 5, {"topic_names": [name], "timeout": 10_000})
        await self._until_gone([name])

    async def _until_led(self, name: str, partitions: int) -> None:
        rows = [{"partition_index": at, "timestamp": -1} for at in range(partitions)]
        asked = {"replica_id": -1, "topics": [{"name": name, "partitions": rows}]}
        for _ in range(_MOST_WAITS):
            there, _ = await self.exchange("metadata", 8, {"topics": [{"name": name}]})
            told, _ = await self.exchange("list_offsets", 1, asked)
            if not any((*error_codes(told), *error_codes(there))):
                return
            await asyncio.sleep(_WAITING_S)

    async def _until_gone(self, names: list[str]) -> None:
        asked = {"topics": [{"name": name} for name in names]}
        for _ in range(_MOST_WAITS):
            if not names:
                return
            told, _ = await self.exchange("metadata", 8, asked)
            if all(row["error_code"] for row in told["topics"]):
                return
            await asyncio.sleep(_WAITING_S)

    async def _close(self, user: str) -> None:
        await close(self._streams.pop(user)[1])

    async def close(self) -> None:
        """Close the connections; the next request opens another."""
        for user in list(self._streams):
            await self._close(user)


async def play(address: Address, script: Script, run: Run, logins: Logins = NO_LOGINS) -> list[Any]:
    """Play a script, and return the answers in order. Raises ``OSError`` if no broker listens at the address."""
    player = Player(address, run, logins)
    try:
        return [await player.ask(move) for move in script]
    finally:
        await _clean(player)
        await player.close()


async def _clean(player: Player) -> None:
    """Delete the topics of the script, since a broker with thousands of topics is slow."""
    if player.made:
        await player.exchange("delete_topics", 5, {"topic_names": sorted(player.made), "timeout": 10_000})


def error_codes(answer: Any) -> Iterator[int]:
    """All error codes in an answer."""
    if isinstance(answer, dict):
        for key, value in answer.items():
            if key.endswith("error_code"):
                yield value
            else:
                yield from error_codes(value)
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

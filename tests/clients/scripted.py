"""A small consumer with a switch for each planted fault, which tests of the cases for clients start as a process.

It speaks the command line and the output of ``docs/clients.md``. ``--fault NAME`` breaks one promise.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID, uuid4

from fencepost.protocol.embedded import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from fencepost.protocol.partitions import TopicPartition
from fencepost.remote.connection import Connection
from fencepost_server.data.batches import batches

FAULTS: Final = (
    "assigns-twice", "claims-all", "claims-old", "commits-after-leave", "commits-as-nobody", "commits-forever",
    "commits-given-up", "commits-when-removed", "crashes-on-error", "dies-on-error", "floods", "forgets-commits",
    "gives-all-up", "hangs", "hangs-on-leave", "hurries", "ignores-rebalance", "impatient",
    "joins-again-without-partitions", "joins-forever", "keeps-epoch", "keeps-first-part", "keeps-generation",
    "keeps-id", "keeps-reading", "leaves-for-good", "logs-error", "mutters-on-error", "nameless", "never-fetches",
    "no-heartbeats", "no-leave", "no-rejoin", "overlaps-heartbeats", "reads-strangers", "says-error",
    "silent-on-error", "skips-revoked", "stays-fenced", "stops-committing", "stubborn", "waits-for-all-parts",
)  # fmt: skip
#: faults with which the client does nothing more after an error: what it writes to standard error then
SILENT: Final = {
    "silent-on-error": "", "mutters-on-error": "config: option client.rack is not set", "logs-error": "error: {}",
    "says-error": "",
}  # fmt: skip
ASK_S: Final = 3.0
POLL_S: Final = 0.05
Place = tuple[str, int]


class Gone(Exception):
    """The client stops: another process has its instance id, or the error is not to be retried."""


def say(event: str, **values: Any) -> None:
    print(json.dumps({"event": event, **values}), flush=True)


def say_partitions(event: str, places: Iterable[Place]) -> None:
    say(event, partitions=[list(each) for each in sorted(places)])


class Consumer:
    """A member of one group. Everything runs in one loop: heartbeats, then a rejoin, then records."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.fault: str = options.fault
        if self.fault == "nameless":
            options.instance_id = None
        self.session_s = (options.session_timeout or 6_000) / 1000
        self.interval_s = self.session_s / 4
        self.stopping = asyncio.Event()
        self.coordinator: Connection | None = None
        self.leader: Connection | None = None
        self.member_id = ""
        self.generation = -1
        self.protocol = ""
        self.joined = self.rejoin = False
        self.owned: set[Place] = set()
        self.gave_up: set[Place] = set()
        self.positions: dict[Place, int] = {}
        self.beat_at = self.busy_until = 0.0
        self.committed = 0
        self.counts: dict[str, int] = {}
        self.ids: dict[str, str] = {}
        self.buffer: list[tuple[Place, int]] = []
        self.removed = False

    # ---- connections ---------------------------------------------------------------------------------------------

    async def connect(self) -> Connection:
        host, _, port = self.options.bootstrap.rpartition(":")
        return await Connection.open(host, int(port), "scripted", None, None)

    async def ask(self, api: str, version: int, wait_s: float = ASK_S, **values: Any) -> Any:
        """Send a request to the coordinator, which is looked up first. Raises ``OSError``."""
        if self.fault == "impatient":
            wait_s = 0.2
        if self.coordinator is None or self.coordinator.broken:
            connection = await self.connect()
            asked = {"key": self.options.group, "key_type": 0}
            async with asyncio.timeout(ASK_S):
                found = await connection.ask("find_coordinator", 2, asked)
            if found.error_code.value:
                await connection.close()
                if self.fault == "dies-on-error":
                    raise Gone
                if self.fault in SILENT:
                    await self.silent(found.error_code.name)
                raise ConnectionError(f"no coordinator: {found.error_code.name}")
            self.coordinator = connection
        try:
            async with asyncio.timeout(wait_s):
                return await self.coordinator.ask(api, version, values)
        except TimeoutError:
            raise ConnectionError(f"no answer to {api}") from None

    async def moved(self) -> None:
        """Forget the coordinator."""
        if self.coordinator is not None:
            await self.coordinator.close()
            self.coordinator = None

    def identity(self) -> dict[str, Any]:
        return {
            "group_id": self.options.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.options.instance_id,
        }

    # ---- the group -----------------------------------------------------------------------------------------------

    def revoke(self, places: set[Place], event: str = "revoked") -> None:
        if places and self.fault != "skips-revoked":
            say_partitions(event, places)
        self.owned -= places
        self.gave_up |= places
        kept = [each for each in self.buffer if each[0] not in places]
        if self.fault == "keeps-reading":
            kept = [each for each in self.buffer if each[0] in places] + kept
        self.buffer = kept
        for place in places:
            self.positions.pop(place, None)

    def assign(self, places: set[Place]) -> None:
        say_partitions("assigned", places - self.owned)
        self.owned |= places

    def drop(self, *, keep_id: bool) -> None:
        """The group no longer has this member."""
        if self.fault in {"commits-when-removed", "stays-fenced"}:
            self.removed = True
            return
        self.revoke(set(self.owned), "lost")
        if not keep_id and self.fault != "keeps-id":
            self.member_id = ""
        if self.fault != "keeps-epoch":
            self.generation = -1
        self.joined, self.rejoin = False, self.fault != "no-rejoin"
        if self.fault == "no-rejoin":
            self.removed = True

    async def silent(self, code: str) -> None:
        """Do nothing more until the end; write what the fault says."""
        if line := SILENT[self.fault].format(code):
            print(line, file=sys.stderr, flush=True)
        if self.fault == "says-error":
            say("error", message=code)
        await self.stopping.wait()

    async def react(self, code: str) -> None:
        """React to an error of the coordinator."""
        if code != "none" and self.fault == "dies-on-error":
            raise Gone
        if code != "none" and self.fault in SILENT:
            await self.silent(code)
        if code != "none" and self.fault == "crashes-on-error":
            os.abort()
        match code:
            case "unknown_member_id" | "fenced_member_epoch":
                self.drop(keep_id=self.options.protocol == "consumer")
            case "illegal_generation":
                self.drop(keep_id=True)
            case "rebalance_in_progress" if self.fault != "ignores-rebalance":
                self.rejoin = True
            case "fenced_instance_id":
                if self.fault not in {"stays-fenced", "commits-when-removed"}:
                    raise Gone
                self.removed = True
            case "not_coordinator" | "coordinator_not_available":
                await self.moved()

    async def join(self) -> None:
        cooperative = self.options.assignor == "cooperative-sticky"
        if not cooperative or self.fault == "gives-all-up":
            self.revoke(set(self.owned))
        owned = set(self.owned)
        if self.fault == "claims-old" and self.gave_up:
            owned |= self.gave_up
        metadata = encode_subscription(
            Subscription(tuple(self.options.topic), owned_partitions=tuple(TopicPartition(*each) for each in owned))
        )
        asked = {
            "group_id": self.options.group,
            "session_timeout": int(self.session_s * 1000),
            "rebalance_timeout": 10_000,
            "member_id": self.member_id,
            "group_instance_id": self.options.instance_id,
            "protocol_type": "consumer",
            "protocols": [{"name": self.options.assignor or "range", "metadata": metadata}],
        }
        answer = await self.ask("join_group", 5, 15.0, **asked)
        code = answer.error_code.name
        if code == "member_id_required":
            self.member_id = answer.member_id
            return
        if code != "none":
            await self.react(code)
            self.rejoin = True
            await asyncio.sleep(0.1)
            return
        self.member_id = answer.member_id
        if self.fault != "keeps-generation" or self.generation < 0:
            self.generation = answer.generation_id
        self.beat_at = time.monotonic()
        rows = []
        if answer.leader == answer.member_id:
            rows = await self.shared({each.member_id: each.metadata for each in answer.members})
        synced = await self.ask("sync_group", 3, 15.0, **self.identity(), assignments=rows)
        if synced.error_code.name != "none":
            await self.react(synced.error_code.name)
            self.rejoin = True
            await asyncio.sleep(0.1)
            return
        given = {(each.topic, each.partition) for each in decode_assignment(synced.assignment).partitions}
        gone = self.owned - given
        self.joined, self.rejoin = True, bool(gone)
        self.revoke(gone)
        self.assign(given)

    async def shared(self, members: dict[str, bytes]) -> list[dict[str, Any]]:
        """The leader's assignment: what members own stays theirs up to their share; what they must give up waits for
        the next round."""
        connection = await self.reader()
        answer = await connection.ask("metadata", 7, {"topics": [{"name": each} for each in self.options.topic]})
        every = {(row.name, part.partition_index) for row in answer.topics for part in row.partitions}
        names = sorted(members)
        claims = {name: set(_owned(members[name])) & every for name in names}
        most = -(-len(every) // len(names))
        plan = {name: set(sorted(claims[name])[:most]) for name in names}
        held = set().union(*claims.values())
        free = sorted(every - held)
        for name in sorted(names, key=lambda each: len(plan[each])):
            while free and len(plan[name]) < most:
                plan[name].add(free.pop(0))
        if self.fault == "assigns-twice" and len(names) > 1:
            plan[names[0]] |= set(sorted(plan[names[1]])[:1])
        return [
            {
                "member_id": name,
                "assignment": encode_assignment(
                    Assignment(tuple(TopicPartition(*each) for each in sorted(plan[name])))
                ),
            }
            for name in names
        ]

    async def beat(self) -> None:
        self.beat_at = time.monotonic()
        answer = await self.ask("heartbeat", 3, **self.identity())
        if not self.removed:
            await self.react(answer.error_code.name)

    # ---- the consumer protocol -----------------------------------------------------------------------------------

    async def beat_848(self, epoch: int | None = None, owned: set[Place] | None = None) -> None:
        """Send ConsumerGroupHeartbeat: a join if there is no epoch, or with what changed."""
        self.beat_at = time.monotonic()
        self.member_id = self.member_id or str(uuid4())
        joins = epoch is None and (self.generation <= 0 or not self.joined)
        values: dict[str, Any] = {"group_id": self.options.group, "member_id": self.member_id}
        values |= {"instance_id": self.options.instance_id, "topic_partitions": None, "subscribed_topic_names": None}
        values["member_epoch"] = (
            (0 if self.fault != "keeps-epoch" else max(self.generation, 0)) if epoch is None else epoch
        )
        if joins:
            values |= {"rebalance_timeout": 10_000, "subscribed_topic_names": list(self.options.topic)}
            values["topic_partitions"] = self.rows(self.gave_up if self.fault == "claims-old" else set())
        else:
            values["rebalance_timeout"] = -1
            if epoch is None:
                values["member_epoch"] = self.generation
            if owned is not None:
                values["topic_partitions"] = self.rows(owned | (self.gave_up if self.fault == "claims-old" else set()))
        if self.fault == "claims-all" and values["topic_partitions"] is not None and not joins:
            values["topic_partitions"] = self.rows(
                {(topic, index) for topic in self.options.topic for index in range(4)}
            )
        if self.fault == "overlaps-heartbeats" and not joins and self.coordinator is not None:
            asking = asyncio.ensure_future(self.overlapping(values))
            await asyncio.sleep(0.02)
            answer = await asking
        else:
            answer = await self.ask("consumer_group_heartbeat", 1, **values)
        if epoch is not None or self.removed:
            return
        code = answer.error_code.name
        if code != "none":
            await self.react(code)
            await asyncio.sleep(0.1)
            return
        self.joined = True
        if self.fault != "keeps-generation" or self.generation <= 0:
            self.generation = answer.member_epoch
        self.interval_s = answer.heartbeat_interval.total_seconds() if hasattr(answer, "heartbeat_interval") else 0.3
        if answer.assignment is not None:
            await self.reconcile(await self.named(answer.assignment.topic_partitions))

    async def overlapping(self, values: dict[str, Any]) -> Any:
        """Send the same heartbeat twice without waiting, on a connection whose answers are read later."""
        from fencepost.wire.fill import fill  # noqa: PLC0415
        from fencepost.wire.frames import API_KEYS, RequestHeader, framed, request_schema, write_request  # noqa: PLC0415

        assert self.coordinator is not None
        _, writer = self.coordinator.streams
        request = fill(request_schema("consumer_group_heartbeat", 1), values)
        for number in (900, 901):
            header = RequestHeader(API_KEYS["consumer_group_heartbeat"], 1, number, "scripted")
            writer.write(framed(write_request(header, request)))
        await writer.drain()
        await asyncio.sleep(0.3)
        self.coordinator.break_()
        raise ConnectionError("the answers were not awaited")

    async def reconcile(self, target: set[Place]) -> None:
        """Give up, say so, and take: what is in process is finished first."""
        if self.fault == "waits-for-all-parts" and len(target) < 2:
            return
        if self.fault == "keeps-first-part" and self.owned:
            return
        if self.fault == "joins-again-without-partitions" and not target:
            self.drop(keep_id=True)
            return
        gone = self.owned - target
        if gone:
            while time.monotonic() < self.busy_until:
                await self.idle()
                if time.monotonic() - self.beat_at > self.interval_s:
                    await self.beat_848()
                    return
        self.revoke(gone)
        self.assign(target)
        await self.beat_848(owned=set(self.owned))

    def rows(self, places: set[Place]) -> list[dict[str, Any]]:
        by_topic: dict[str, list[int]] = {}
        for topic, index in sorted(places):
            by_topic.setdefault(topic, []).append(index)
        ids = {name: each for each, name in self.ids.items()}
        return [
            {"topic_id": UUID(ids[topic]).bytes, "partitions": indexes}
            for topic, indexes in by_topic.items() if topic in ids
        ]  # fmt: skip

    async def named(self, rows: Any) -> set[Place]:
        if not self.ids:
            connection = await self.reader()
            answer = await connection.ask("metadata", 12, {"topics": [{"name": each} for each in self.options.topic]})
            self.ids = {str(row.topic_id): row.name for row in answer.topics}
        return {(self.ids[str(row.topic_id)], index) for row in rows for index in row.partitions}

    # ---- records -------------------------------------------------------------------------------------------------

    async def reader(self) -> Connection:
        if self.leader is None or self.leader.broken:
            self.leader = await self.connect()
        return self.leader

    async def places_to_read(self) -> set[Place]:
        """Look up where to begin in new partitions; an error is tried again by the next turn."""
        new = sorted(self.owned - self.positions.keys())
        if new:
            topics = [{"name": topic, "partition_indexes": [i for t, i in new if t == topic]} for topic, _ in new[:1]]
            answer = await self.ask("offset_fetch", 5, group_id=self.options.group, topics=topics)
            if answer.error_code.name != "none":
                await self.react(answer.error_code.name)
                return set()
            for topic in answer.topics:
                for row in topic.partitions:
                    if row.error_code.value:
                        await self.react(row.error_code.name)
                        return set()
                    known = row.committed_offset if self.fault != "forgets-commits" else -1
                    self.positions[topic.name, row.partition_index] = max(known, 0)
        if self.fault == "never-fetches":
            return set(sorted(self.owned)[1:])
        return set(self.owned)

    async def fetch(self) -> None:
        places = await self.places_to_read()
        if not places:
            return
        connection = await self.reader()
        rows = [{"partition": i, "fetch_offset": self.positions[t, i], "partition_max_bytes": 4096} for t, i in places]
        topics = [{"topic": self.options.topic[0], "partitions": rows}]
        asked = {"max_wait": 20, "min_bytes": 1, "max_bytes": 65536, "topics": topics}
        answer = await connection.ask("fetch", 7, asked)
        for topic in answer.responses:
            for row in topic.partitions:
                place = topic.topic, row.partition_index
                for each in batches(row.records or b""):
                    first, last = each.base, each.last
                    self.buffer += [(place, at) for at in range(max(first, self.positions[place]), last + 1)]
                    self.positions[place] = max(self.positions[place], last + 1)

    async def process(self) -> None:
        """Process one record and commit it."""
        if not self.buffer:
            await self.fetch()
            await self.recommit()
            return
        place, offset = self.buffer.pop(0)
        self.busy_until = time.monotonic() + self.options.processing_ms / 1000
        while time.monotonic() < self.busy_until and not self.stopping.is_set():
            await self.idle()
            await self.beats()
        if place not in self.owned and self.fault != "keeps-reading":
            return
        said = place[1] + 100 if self.fault == "reads-strangers" else place[1]
        say("processed", topic=place[0], partition=said, offset=offset)
        await self.commit(place, offset + 1)

    async def recommit(self) -> None:
        """Faults of commits that do not need a new record."""
        if self.fault == "commits-given-up" and (old := self.gave_up - self.owned):
            await self.commit(sorted(old)[0], 1)
        elif self.fault == "commits-forever" or (self.fault == "commits-when-removed" and self.removed):
            place = sorted(self.owned or self.gave_up or {(self.options.topic[0], 0)})[0]
            await self.commit(place, 1)

    async def commit(self, place: Place, offset: int) -> None:
        nobody = self.fault == "commits-as-nobody"
        asked = {
            "group_id": self.options.group,
            "member_id": "" if nobody else self.member_id,
            "generation_id_or_member_epoch": self.generation,
            "group_instance_id": self.options.instance_id,
            "topics": [{"name": place[0], "partitions": [{"partition_index": place[1], "committed_offset": offset}]}],
        }
        for _ in range(20):
            answer = await self.ask("offset_commit", 9 if self.options.protocol == "consumer" else 7, **asked)
            code = answer.topics[0].partitions[0].error_code.name
            if code == "none":
                self.committed += 1
                say("committed", offsets=[[*place, offset]])
                return
            if self.removed or self.fault == "stops-committing":
                self.fault = "never-commits" if self.fault == "stops-committing" else self.fault
                return
            await self.react(code)
            if code not in {"coordinator_load_in_progress", "not_coordinator", "coordinator_not_available"}:
                return
            await asyncio.sleep(0.1)

    # ---- the loop ------------------------------------------------------------------------------------------------

    async def idle(self) -> None:
        try:
            async with asyncio.timeout(POLL_S if self.fault != "hurries" else 0.001):
                await self.stopping.wait()
        except TimeoutError:
            pass

    async def beats(self) -> None:
        """Send a heartbeat if one is due."""
        due = time.monotonic() - self.beat_at >= (self.interval_s if self.fault != "hurries" else 0.0)
        if not due or not self.joined or self.fault == "no-heartbeats":
            return
        if self.removed and self.fault in {"commits-when-removed", "no-rejoin"}:
            return
        self.rejoin = self.rejoin or self.fault == "joins-forever"
        await (self.beat() if self.options.protocol == "classic" else self.beat_848())

    async def turn(self) -> None:
        if not self.joined or (self.rejoin and self.options.protocol == "classic"):
            if not self.removed:
                await (self.join() if self.options.protocol == "classic" else self.beat_848())
            return
        await self.beats()
        if not self.joined or (self.rejoin and self.options.protocol == "classic"):
            return
        if self.fault == "hurries" and self.committed:
            return
        if self.fault == "never-commits":
            await self.fetch()
            self.buffer.clear()
            return
        await self.process()

    async def close(self) -> None:
        if self.joined and not self.removed and self.fault != "no-leave":
            if self.options.protocol == "consumer":
                await self.beat_848(-2 if self.options.instance_id and self.fault != "leaves-for-good" else -1)
            elif self.options.instance_id is None:
                rows = [{"member_id": self.member_id, "group_instance_id": None}]
                answer = await self.ask("leave_group", 3, group_id=self.options.group, members=rows)
                if answer.error_code.value and self.fault == "hangs-on-leave":
                    await asyncio.Event().wait()
            if self.fault == "commits-after-leave" and self.gave_up | self.owned:
                await self.commit(sorted(self.gave_up | self.owned)[0], 1)
        self.revoke(set(self.owned))
        say("closed")

    async def run(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.stopping.set)
        while self.fault == "floods":
            print("x" * 65536, flush=True)
        while self.fault == "hangs":
            await asyncio.sleep(0.1)
        while not self.stopping.is_set() or self.fault == "stubborn":
            try:
                await self.turn()
            except Gone:
                self.revoke(set(self.owned), "lost")
                return
            except OSError:
                if self.fault == "dies-on-error":
                    return
                await asyncio.sleep(0.1)
            await self.idle()
        try:
            await self.close()
        except OSError as wrong:
            print(wrong, file=sys.stderr)


def _owned(metadata: bytes) -> Iterable[Place]:
    return [(each.topic, each.partition) for each in decode_subscription(metadata).owned_partitions]


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("--bootstrap", "--group"):
        parser.add_argument(name, required=True)
    parser.add_argument("--topic", action="append", required=True)
    parser.add_argument("--protocol", choices=("classic", "consumer"), default="classic")
    parser.add_argument("--instance-id")
    parser.add_argument("--assignor")
    parser.add_argument("--session-timeout", type=int)
    parser.add_argument("--processing-ms", type=int, default=0)
    parser.add_argument("--commit", default="sync")
    parser.add_argument("--fault", choices=FAULTS)
    asyncio.run(Consumer(parser.parse_args()).run())


if __name__ == "__main__":
    main()

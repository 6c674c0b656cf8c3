"""Files of SQLite: torn, full, locked, foreign, newer, damaged. Each is a clear error, and no record is lost."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from fencepost.aio import GroupBroker
from fencepost.protocol import offset_messages as o
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import Record
from fencepost.store import (
    AppendError,
    DamagedStore,
    ForeignFile,
    InDoubt,
    LockedStore,
    NewerFormat,
    OtherPartitions,
    Put,
    PutBatch,
    SQLiteStore,
    StoreError,
    check_file,
)
from fencepost.store.sqlite import SqliteConnection


def play(path: Path, scene: Callable[[SQLiteStore], Awaitable[None]], partitions: int | None = 2) -> None:
    async def main() -> None:
        async with SQLiteStore(path, partitions) as store:
            await scene(store)

    asyncio.run(main())


async def nothing(store: SQLiteStore) -> None:
    pass


def record(number: int, size: int = 10) -> Record:
    value = OffsetCommitValue(number, commit_timestamp=1, metadata="x" * size)
    return Record(OffsetCommitKey("g", "t", number), value)


async def numbers(store: SQLiteStore) -> list[int]:
    return [each.key.partition for each in await store.load(0)]  # type: ignore[union-attr]


def write(path: Path, first: int, last: int) -> None:
    async def scene(store: SQLiteStore) -> None:
        epoch = await store.lead(0)
        for number in range(first, last):
            await store.append(0, [record(number), record(number + 1_000)], leader_epoch=epoch)

    play(path, scene)


def copy_of_the_running(path: Path, to: Path, appends: int) -> list[int]:
    """Copy the file and its log while the store is open, as a crash leaves them; return the length of the log after
    each append."""
    sizes = []

    async def scene(store: SQLiteStore) -> None:
        epoch = await store.lead(0)
        for number in range(appends):
            await store.append(0, [record(number), record(number + 1_000)], leader_epoch=epoch)
            sizes.append(Path(f"{path}-wal").stat().st_size)
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", f"{to}{end}")

    play(path, scene)
    return sizes


def test_a_torn_write_is_dropped_and_earlier_ones_stay(tmp_path: Path) -> None:
    sizes = copy_of_the_running(tmp_path / "a.db", tmp_path / "crashed.db", 4)
    assert sizes == sorted(set(sizes))
    log = (tmp_path / "crashed.db-wal").read_bytes()
    seen = set()
    steps = [*range(sizes[1], sizes[3] + 1, 211), *sizes[1:], *(size - 1 for size in sizes[2:])]
    for number, size in enumerate(steps):
        path = tmp_path / f"torn{number}.db"
        shutil.copy(tmp_path / "crashed.db", path)
        Path(f"{path}-wal").write_bytes(log[:size])
        there = sum(each <= size for each in sizes)
        found: list[int] = []

        async def scene(store: SQLiteStore, found: list[int] = found) -> None:
            found += await numbers(store)
            await store.append(0, [record(99)], leader_epoch=await store.lead(0))
            assert await numbers(store) == [*found, 99]

        play(path, scene)
        assert found == [each for number in range(there) for each in (number, number + 1_000)]
        seen.add(there)
    assert seen == {2, 3, 4}


def test_a_log_that_is_garbled_in_the_middle_ends_there(tmp_path: Path) -> None:
    """The data behind the damage look as if they were never written; that is a fault of the disk, not of the
    program."""
    sizes = copy_of_the_running(tmp_path / "a.db", tmp_path / "b.db", 4)
    log = bytearray((tmp_path / "b.db-wal").read_bytes())
    log[sizes[1] + 40] ^= 1
    (tmp_path / "b.db-wal").write_bytes(log)

    async def scene(store: SQLiteStore) -> None:
        assert await numbers(store) == [0, 1_000, 1, 1_001]

    play(tmp_path / "b.db", scene)


TOPIC = Topic("t", bytes(15) + b"\1", 100)


def commit(partition: int, size: int) -> o.OffsetCommitRequest:
    rows = (o.OffsetCommitRequestPartition(partition, committed_offset=partition, committed_metadata="x" * size),)
    return o.OffsetCommitRequest("g", topics=(o.OffsetCommitRequestTopic(name="t", partitions=rows),))


async def fill(store: SQLiteStore, room: Callable[[], None]) -> None:
    """A broker on a disk that fills up, and then has room again."""
    async with GroupBroker(store, topics=[TOPIC]) as groups:
        acknowledged = []
        for number in range(100):
            answer = await groups.commit_offsets(commit(number, 4_000))
            if answer.topics[0].partitions[0].error_code is not ErrorCode.NONE:
                break
            acknowledged.append(number)
        assert 3 < len(acknowledged) < 99
        assert answer.topics[0].partitions[0].error_code is ErrorCode.NOT_COORDINATOR
        assert [row.partition for row in groups.offsets_view("g").committed] == acknowledged
        many = [groups.submit(commit(number, 4_000), version=9) for number in range(50, 60)]
        for each in many:
            refused = await each
            assert isinstance(refused, o.OffsetCommitResponse)
            assert refused.topics[0].partitions[0].error_code is ErrorCode.NOT_COORDINATOR
        room()
        while True:
            answer = await groups.commit_offsets(commit(99, 4_000))
            if answer.topics[0].partitions[0].error_code is ErrorCode.NONE:
                break
            await asyncio.sleep(0.01)
        acknowledged.append(99)
        assert [row.partition for row in groups.offsets_view("g").committed] == acknowledged
        records = [each for place in range(2) for each in await store.load(place)]
        offsets = [each.key.partition for each in records if isinstance(each.key, OffsetCommitKey)]
        assert offsets == acknowledged


def test_when_the_disk_is_full_appends_are_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    """By a limit on the file's pages; SQLite reports it like a full disk."""

    async def scene(store: SQLiteStore) -> None:
        connection: Any = store._connection
        connection.run("PRAGMA max_page_count = 60")
        await fill(store, lambda: connection.run("PRAGMA max_page_count = 100000"))

    play(tmp_path / "a.db", scene)


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    async def scene(store: SQLiteStore) -> None:
        connection: Any = store._connection
        connection.run("PRAGMA max_page_count = 40")
        epoch = await store.lead(0)
        with pytest.raises(AppendError, match="the disk is full; free some space, acknowledged data is safe"):
            await store.append(0, [record(1, 30_000)] * 20, leader_epoch=epoch)
        await store.append(0, [record(2)], leader_epoch=epoch)
        with pytest.raises(AppendError, match="the disk is full"):
            await store.write([Put("kind", "name", "x" * 500_000)])
        await store.write([Put("kind", "name", "x")])
        # among others only the one that is too big fails, and the later ones in its partition
        other = await store.lead(1)
        asked = [
            store.append(0, [record(3)], leader_epoch=epoch),
            store.append(0, [record(4, 30_000)] * 20, leader_epoch=epoch),
            store.append(0, [record(5)], leader_epoch=epoch),
            store.append(1, [record(6)], leader_epoch=other),
        ]
        ended = await asyncio.gather(*asked, return_exceptions=True)
        assert [each is None for each in ended] == [True, False, False, True]
        assert await numbers(store) == [2, 3]

    play(tmp_path / "a.db", scene)


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can be mounted by root alone")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    filler = small_disk / "filler"

    async def scene(store: SQLiteStore) -> None:
        await fill(store, filler.unlink)

    filler.write_bytes(bytes(100_000))
    play(small_disk / "a.db", scene)


class Failing:
    """A file whose commits fail, before or after they have taken effect."""

    def __init__(self, file: sqlite3.Connection) -> None:
        self.file = file
        self.late = False

    def execute(self, statement: str, *values: Any) -> Any:
        if statement == "COMMIT":
            if self.late:
                self.file.execute(statement)
            failure = sqlite3.OperationalError("disk I/O error")
            failure.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise failure
        return self.file.execute(statement, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


@pytest.mark.parametrize("late", [False, True])
def test_loading_resolves_a_write_in_doubt_after_a_disk_failure(tmp_path: Path, late: bool) -> None:
    async def scene(store: SQLiteStore) -> None:
        connection: Any = store._connection
        epoch = await store.lead(0)
        await store.append(0, [record(1)], leader_epoch=epoch)
        failing = connection._file = Failing(connection._file)
        failing.late = late
        asked = [store.append(0, [record(number)], leader_epoch=epoch) for number in (2, 3)]
        ended = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(ended[0], InDoubt)
        assert not isinstance(ended[1], type(None))
        assert (await numbers(store))[: 1 + late] == [1, 2][: 1 + late]
        before = await numbers(store)
        await store.append(0, [record(4)], leader_epoch=epoch)  # the file was opened again
        assert await numbers(store) == [*before, 4]

    play(tmp_path / "a.db", scene)


HOLDS = """
import asyncio, sys
from fencepost.store import SQLiteStore
async def main():
    async with SQLiteStore(sys.argv[1], 2):
        print("open", flush=True)
        sys.stdin.read()
asyncio.run(main())
"""


def test_a_file_that_another_process_has_open_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.store.sqlite._PATIENCE", 0.1)
    path = tmp_path / "a.db"
    write(path, 0, 2)
    words = [sys.executable, "-c", HOLDS, str(path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(LockedStore, match="is in use by another process; stop that process, or use another file"):
            play(path, nothing)
        other.kill()
    play(path, nothing)


def test_two_stores_of_one_process_do_not_share_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.store.sqlite._PATIENCE", 0.1)

    async def scene(store: SQLiteStore) -> None:
        with pytest.raises(LockedStore):
            await SQLiteStore(store.path).open()
        epoch = await store.lead(0)
        await store.append(0, [record(1)], leader_epoch=epoch)

    play(tmp_path / "a.db", scene)


def test_a_file_that_is_not_a_store_is_rejected_and_unchanged(tmp_path: Path) -> None:
    text, other, folder = tmp_path / "text", tmp_path / "other.db", tmp_path / "folder"
    text.write_text("These are the notes of a user, and not a database.\n" * 40)
    with sqlite3.connect(other) as file:
        file.execute("CREATE TABLE cats (name TEXT)")
    file.close()
    folder.mkdir()
    before = text.read_bytes(), other.read_bytes()
    with pytest.raises(ForeignFile, match="is not a database; nothing in it was changed"):
        play(text, nothing)
    with pytest.raises(ForeignFile, match="is a database, but not a store; nothing in it was changed"):
        play(other, nothing)
    assert (text.read_bytes(), other.read_bytes()) == before
    for path in (folder, tmp_path / "nowhere" / "a.db"):
        with pytest.raises(StoreError, match="cannot be opened; check that its folder exists and is writable"):
            play(path, nothing)


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write(path, 0, 1)
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA user_version = 3")
    file.close()
    with pytest.raises(NewerFormat, match="has format 3, but this release reads formats up to 2; use the release that"):
        play(path, nothing)


def test_the_number_of_partitions_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    play(path, nothing)
    with pytest.raises(OtherPartitions, match="partitions must be 2, as when the store was created"):
        play(path, nothing, partitions=3)
    play(path, nothing, partitions=None)


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        ("UPDATE records SET data = x'00000000' WHERE place = 2", "partition 0, offset 2: wrong checksum, the records"),
        (
            "UPDATE records SET data = zeroblob(length(data)) WHERE place = 2",
            "partition 0, offset 2: wrong checksum, the records",
        ),
        (
            "UPDATE records SET producer_id = 3, producer_epoch = 0 WHERE place = 4",
            "offset 4: wrong checksum, the records",
        ),
        ("DELETE FROM records WHERE place = 2", "partition 0 must have 6 records"),
        ("UPDATE records SET place = 9 WHERE place = 4", "offset 9: wrong checksum, the records were changed"),
        (
            "UPDATE partitions SET next_offset = 4 WHERE number = 0",
            "partition 0 ends at offset 4, but has a record at 5",
        ),
    ],
)
def test_a_record_that_was_changed_is_found_before_it_is_served(tmp_path: Path, damage: str, found: str) -> None:
    path = tmp_path / "a.db"
    write(path, 0, 3)
    with sqlite3.connect(path) as file:
        file.execute(damage)
    file.close()

    async def scene(store: SQLiteStore) -> None:
        with pytest.raises(DamagedStore, match=found):
            await store.load(0)
        with pytest.raises(DamagedStore, match=found):
            async with GroupBroker(store):
                pass

    play(path, scene)
    checked = check_file(path)
    assert len(checked.faults) == 1
    assert re.search(found, checked.faults[0])


def command(*words: object) -> tuple[int, str, str]:
    ran = subprocess.run(
        [sys.executable, "-m", "fencepost_conformance.cli", "store", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return ran.returncode, ran.stdout, ran.stderr


def test_a_store_is_checked_from_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write(path, 0, 3)

    async def more(store: SQLiteStore) -> None:
        await store.write([Put("kind", "name", "text"), PutBatch(bytes(16), 0, 0, b"batch")])

    play(path, more)
    status, shown, _ = command("check", path)
    verdicts = "1 store, 1 passed, 0 failed, 0 undecided, 0 broken"
    result = f"store: passed ({verdicts}, 2 partitions, 6 records, 1 record set, 1 value)"
    assert (status, " ".join(shown.split())) == (0, result)
    with sqlite3.connect(path) as file:
        file.execute("UPDATE kept_values SET text = 'other'")
        file.execute("DELETE FROM records WHERE place = 2")
    file.close()
    status, shown, _ = command("check", path, "--json")
    result = json.loads(shown)
    assert (status, result["passed"]) == (1, False)
    assert result["faults"] == [
        "partition 0 must have 6 records (found 4)",
        "kind 'name': wrong checksum, the text was changed",
    ]
    for wrong, reason in (
        (tmp_path / "none", "does not exist, or is not a file"),
        (Path(__file__), "is not a database"),
    ):
        status, _, complaint = command("check", wrong)
        assert status == 2
        assert reason in complaint


def test_every_store_in_a_folder_is_checked(tmp_path: Path) -> None:
    for name in ("fencepost.db", "second.db"):
        write(tmp_path / name, 0, 3)
    (tmp_path / "notes.txt").write_text("not a store")
    status, shown, _ = command("check", tmp_path)
    assert status == 0
    assert [line for line in shown.splitlines() if ": intact (" in line] == [
        f"{tmp_path / name}: intact (2 partitions, 6 records)" for name in ("fencepost.db", "second.db")
    ]
    with sqlite3.connect(tmp_path / "second.db") as file:
        file.execute("DELETE FROM records WHERE place = 2")
    file.close()
    (tmp_path / "third.db").write_text("no database, and longer than a page's header of a database would be" * 20)
    status, shown, complaint = command("check", tmp_path)
    assert status == 1
    damaged, after = shown.split(f"{tmp_path / 'second.db'}: damaged\n")
    assert damaged.startswith(f"{tmp_path / 'fencepost.db'}: intact")
    assert "replace it by an earlier, undamaged copy" in after
    assert f"{tmp_path / 'third.db'} is not a database" in complaint
    result = json.loads(command("check", tmp_path, "--json")[1])
    assert (result["counts"]["stores"], result["counts"]["passed"], result["counts"]["failed"]) == (3, 1, 1)
    assert [bool(result["files"][str(tmp_path / name)]) for name in ("fencepost.db", "second.db")] == [False, True]
    assert [each["what"] for each in result["broken"]] == [str(tmp_path / "third.db")]


def test_a_folder_without_a_store_is_one_line(tmp_path: Path) -> None:
    status, _, complaint = command("check", tmp_path)
    assert (status, complaint) == (
        2,
        f"fencepost store: {tmp_path} has no store; give the folder of fencepost serve --data\n",
    )


def test_a_file_with_damaged_pages_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write(path, 0, 200)
    whole = path.read_bytes()
    refused = 0
    for page in range(1, len(whole) // 4096):
        garbled = bytearray(whole)
        garbled[page * 4096 : page * 4096 + 512] = os.urandom(512)
        path.write_bytes(garbled)

        async def scene(store: SQLiteStore) -> None:
            await store.load(0)
            await store.load(1)
            await store.kept()

        try:
            play(path, scene)
        except (DamagedStore, ForeignFile):
            refused += 1
            path.write_bytes(garbled)
            try:
                assert check_file(path).faults
            except StoreError:
                continue
    assert refused >= len(whole) // 4096 - 3  # some pages hold nothing


def test_acknowledged_records_survive_a_killed_process(tmp_path: Path) -> None:
    """The operating system has the data before they are acknowledged; a copy of the files is what a kill leaves."""
    to = tmp_path / "copy"
    to.mkdir()

    async def scene(store: SQLiteStore) -> None:
        assert store._connection.rows("PRAGMA synchronous") == [(1,)]  # type: ignore[attr-defined]
        await store.append(0, [record(1)], leader_epoch=await store.lead(0))
        for file in tmp_path.glob("a.db*"):
            (to / file.name).write_bytes(file.read_bytes())

    async def unflushed() -> None:
        async with SQLiteStore(tmp_path / "a.db", 2, flush=False) as store:
            await scene(store)

    asyncio.run(unflushed())

    async def again(store: SQLiteStore) -> None:
        assert list(await store.load(0)) == [record(1)]

    play(to / "a.db", again)


def test_durable_means_that_the_log_is_synced_at_each_commit(tmp_path: Path) -> None:
    """A kill does not show it, because the system keeps written data; so the test checks the setting itself."""

    async def scene(store: SQLiteStore) -> None:
        connection: Any = store._connection
        assert isinstance(connection, SqliteConnection)
        assert connection.rows("PRAGMA synchronous") == [(2,)]
        assert connection.rows("PRAGMA journal_mode") == [("wal",)]
        assert connection.rows("PRAGMA locking_mode") == [("exclusive",)]

    play(tmp_path / "a.db", scene)

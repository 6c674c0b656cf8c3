"""The records come from log segments or a dump; the report names those that cannot be read, and shows the rest."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import pytest
from kio.records.readers import read_batch

from fencepost.protocol.offset_records import ControlKey, ControlValue, OffsetCommitKey, OffsetCommitValue, Producer
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue, Record
from fencepost_conformance.cli import main
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.history.events import History, Kind
from fencepost_conformance.judge.history.one_pass import history_of
from fencepost_conformance.show.history.page import history_page
from fencepost_conformance.show.history.words import notices as about
from fencepost_conformance.show.history.words import sentence
from fencepost_conformance.traces.offsets_log.dump import line_ends, pieces, read_piece
from fencepost_conformance.traces.offsets_log.rows import LogRow, Notices
from fencepost_conformance.traces.offsets_log.source import rows_from
from fencepost_server.data.encoding import encode_batch
from fencepost_server.look.made import Made

from .logs import play, rows_of, write_segments

MADE = Made("1.2.3", "", "today", "a test")

BEGIN_MS = 1_700_000_000_000
PRODUCER = Producer(7, 1)


def commit(offset: int, partition: int = 0, group: str = "g", at_ms: int = BEGIN_MS) -> Record:
    return Record(OffsetCommitKey(group, "t", partition), OffsetCommitValue(offset, commit_timestamp=at_ms))


def in_transaction(offset: int) -> Record:
    return replace(commit(offset), producer=PRODUCER)


def end(*, committed: bool) -> Record:
    return Record(ControlKey(committed), ControlValue(1), PRODUCER)


def log(*records: Record, step_ms: int = 1_000) -> list[LogRow]:
    """Return a log with a record each ``step_ms``."""
    return [row for place, record in enumerate(records) for row in rows_of([record], BEGIN_MS + place * step_ms, place)]


def history_command(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any], str]:
    """Run the command with ``--json``; return the exit status, the object, and standard error."""
    with pytest.raises(SystemExit) as ended:
        main(["history", *words, "--json"])
    shown = capsys.readouterr()
    return int(ended.value.code or 0), json.loads(shown.out), shown.err


@cache
def written() -> list[LogRow]:
    """A log of the core with all protocols, in three partitions."""
    rows = []
    for partition, protocol in enumerate(GroupProtocol):
        played = next(iter(play(5, protocol, 200)))
        rows += [row._replace(partition=partition, at_ms=row.at_ms + BEGIN_MS) for row in played.rows]
    return rows


def test_segments_and_dump_have_the_same_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_segments(tmp_path / "log", written(), most=3)
    assert [*rows_from(folder, Notices())] == written()
    with pytest.raises(SystemExit) as ended:
        main(["decode", str(folder)])
    assert not ended.value.code
    (tmp_path / "dump").write_text(capsys.readouterr().out)
    assert [*rows_from(tmp_path / "dump", Notices())] == written()
    assert history_of(rows_from(folder / "__consumer_offsets-1", Notices())) == history_of(
        row for row in written() if row.partition == 1
    )


def test_batches_are_those_that_another_reader_reads() -> None:
    for row in written()[:50]:
        data = encode_batch([(row.offset, row.key, row.value)], row.at_ms)
        batch, size = read_batch(data, 0)
        assert size == len(data)
        (record,) = batch.records
        assert (record.offset, record.key, record.value) == (row.offset, row.key, row.value)


def only(rows: list[LogRow]) -> tuple[History, list[Kind], str]:
    """Return the history, the kinds of events of its one group, and the notices in a line each."""
    history = history_of(rows, keep_events=True)
    return history, [each.kind for each in history.groups[0].events], "\n".join(about(history))


def test_transactions_count_when_they_commit() -> None:
    history, kinds, _ = only(
        log(in_transaction(5), end(committed=True), in_transaction(3), end(committed=False), in_transaction(9))
    )
    (group,) = history.groups
    assert kinds == [Kind.APPEARED, Kind.ABORTED]
    assert (group.commits, group.aborted, group.offsets[0].offset) == (1, 1, 5)


@pytest.mark.parametrize(
    ("records", "commits", "back", "left"),
    [
        ([in_transaction(5), commit(8)], 1, 0, 8),
        ([in_transaction(8), commit(5)], 1, 0, 5),
        ([commit(8), in_transaction(5)], 2, 1, 5),
        ([in_transaction(5), commit(8), in_transaction(6)], 2, 1, 6),
    ],
)
def test_the_later_of_a_plain_commit_and_a_transaction_wins(
    records: list[Record], commits: int, back: int, left: int
) -> None:
    """The offsets of the two records decide, not that of the marker (O-TXN-08)."""
    history, kinds, _ = only(log(*records, end(committed=True)))
    (group,) = history.groups
    assert (group.commits, group.back, group.offsets[0].offset) == (commits, back, left)
    assert kinds == [Kind.APPEARED, *[Kind.COMMIT_BACK] * back]


def test_commits_that_go_back_and_pauses_are_measured() -> None:
    history, _, _ = only(log(commit(10), commit(4), commit(20), commit(19)))
    (row,) = history.groups[0].offsets
    assert (row.commits, row.back, row.furthest, row.pause_ms, row.offset) == (4, 2, 6, 1_000, 19)


def test_clock_that_runs_back_is_reported() -> None:
    _, _, said = only(log(commit(1), commit(2), commit(3), step_ms=-60_000))
    assert "the clock ran back 2 times, by up to 2.0 min" in said


def test_compacted_log_is_reported() -> None:
    rows = log(*[commit(place) for place in range(10)])
    _, _, said = only([row for row in rows if row.offset not in (0, 1, 4, 5, 7)])
    assert "the log begins at offset 2" in said
    assert "3 records are missing, in 2 gaps up to offset 8" in said


def classic(generation: int, *members: str, leader: str | None = None) -> Record:
    rows = [
        GroupMetadataMember(
            name, group_instance_id=None, client_id="c", client_host="/h", rebalance_timeout=9, session_timeout=9,
            subscription=b"", assignment=b"",
        )
        for name in members
    ]  # fmt: skip
    value = GroupMetadataValue(
        "work", generation=generation, protocol="p", leader=leader or (members[0] if members else None),
        current_state_timestamp=BEGIN_MS, members=tuple(rows),
    )  # fmt: skip
    return Record(GroupMetadataKey("g"), value)


def test_broken_rules_are_cited_and_uncertain_before_a_gap() -> None:
    rows = log(classic(3, "a"), classic(2, "a"), classic(4, "a", leader="b"), commit(1))
    history, _, _ = only(rows)
    assert [each.rule for each in history.groups[0].events if each.rule] == ["INV-GEN-02", "INV-MEM-04"]
    assert (history.groups[0].breaches, history.groups[0].uncertain) == (2, 0)
    gapped, _, _ = only([*rows[:2], rows[3]])
    assert (gapped.groups[0].breaches, gapped.groups[0].uncertain) == (1, 1)


def test_members_and_skipped_generations_of_a_classic_group() -> None:
    history, kinds, _ = only(log(classic(1, "a"), classic(2, "a", "b"), classic(5, "b"), classic(6)))
    events = history.groups[0].events
    assert kinds == [
        Kind.APPEARED, Kind.JOINED, Kind.GENERATION, Kind.JOINED, Kind.GENERATION, Kind.GONE, Kind.GENERATION,
        Kind.GONE, Kind.EMPTY,
    ]  # fmt: skip
    assert [each.epoch for each in events if each.kind is Kind.GENERATION] == [1, 2, 5]
    assert "2 generations before it got no assignment" in events[6].details
    assert history.groups[0].state == "Empty"


def test_deleted_group_and_offset() -> None:
    records = [classic(0), commit(4), Record(commit(0).key, None), Record(GroupMetadataKey("g"), None)]
    history, kinds, _ = only(log(*records))
    assert kinds == [Kind.APPEARED, Kind.OFFSETS_DELETED, Kind.DELETED]
    assert history.groups[0].state == "Dead"


def unknown_types() -> list[LogRow]:
    rows = log(commit(1), commit(2), commit(3), commit(4))
    odd = [b"\x00\x63\x00\x01g", b"\x00\x03\x00\x01g", None]
    return [rows[0], *[row._replace(key=key) for row, key in zip(rows[1:], odd, strict=True)]]


def test_records_of_unknown_types_and_torn_ones_are_counted() -> None:
    _, _, said = only(unknown_types())
    assert "1 record of unknown type 99 was skipped" in said
    assert said.count("1 record that cannot be decoded (") == 2


def test_reasons_of_skipped_records_are_limited() -> None:
    rows = log(*[commit(place) for place in range(300)])
    odd = [row._replace(key=b"\x01" + bytes([place % 256]) + b"g") for place, row in enumerate(rows)]
    (facts,) = history_of(odd).logs
    assert (len(facts.unknown), sum(facts.unknown.values())) == (101, 300)
    assert facts.unknown["records for other reasons"] == 300 - 100 - 44  # 44 types occur twice


def test_decode_prints_what_it_cannot_decode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_segments(tmp_path, unknown_types())
    with pytest.raises(SystemExit):
        main(["decode", str(folder)])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["type"] for line in lines] == ["OffsetCommit", None, None, None]
    assert all(line["problem"] for line in lines[1:])
    (tmp_path / "dump").write_text("\n".join(map(json.dumps, lines)))
    assert [*rows_from(tmp_path / "dump", Notices())] == [*rows_from(folder, Notices())]


def flip(data: bytes) -> bytes:
    return data[:70] + bytes([data[70] ^ 1]) + data[71:]


@pytest.mark.parametrize(
    ("damage", "said", "left"),
    [
        (flip, "wrong checksum, at byte 0", 3),
        (lambda data: data[:-5], "ends within a batch, at byte", 3),
        (lambda data: data[:-5] + data[-5:] + b"\x00" * 500, None, 4),
        (lambda data: data + b"\x00" * 8 + b"\x00\x00\x00\x07" + b"x" * 99, "no batch at byte", 4),
        (lambda data: data + b"xyz", "ends within a batch", 4),
    ],
)
def test_damaged_segment(tmp_path: Path, damage: Callable[[bytes], bytes], said: str | None, left: int) -> None:
    folder = write_segments(tmp_path, log(*[commit(place) for place in range(4)]))
    (segment,) = folder.glob("*/*.log")
    segment.write_bytes(damage(segment.read_bytes()))
    notices = Notices()
    assert len([*rows_from(folder, notices)]) == left
    assert [said is not None and said in line for line in notices.lines()] == ([] if said is None else [True])


def test_compressed_batch(tmp_path: Path) -> None:
    """gzip is read; the report names a codec that cannot be read."""
    import crc32c  # noqa: PLC0415

    rows = log(commit(1), commit(2))
    plain = encode_batch([(row.offset, row.key, row.value) for row in rows], BEGIN_MS)
    for codec, body, left in ((1, gzip.compress(plain[61:]), 2), (2, plain[61:], 0)):
        rest = codec.to_bytes(2, "big") + plain[23:61] + body
        data = (
            plain[:8]
            + (len(rest) + 9).to_bytes(4, "big")
            + plain[12:17]
            + crc32c.crc32c(rest).to_bytes(4, "big")
            + rest
        )
        (tmp_path / "0.log").write_bytes(data)
        notices = Notices()
        assert len([*rows_from(tmp_path, notices)]) == left
        assert ["snappy" in line for line in notices.lines()] == [True] * (not left)


def test_log_that_a_broker_compacts_meanwhile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cleaner writes new files beside the old ones, and renames and deletes files while they are read."""
    folder = write_segments(tmp_path, log(*[commit(place) for place in range(8)]), most=2)
    below = folder / "__consumer_offsets-0"
    first, second, third, last = sorted(below.iterdir())
    for suffix in (".cleaned", ".swap", ".deleted"):
        (below / f"{last.name}{suffix}").write_bytes(last.read_bytes())
    (below / "00000000000000000000.timeindex").write_bytes(b"x")
    first.write_bytes(first.read_bytes() + second.read_bytes())  # a new first segment, before the old one is deleted
    rows = rows_from(folder, notices := Notices())
    third.unlink()
    history = history_of(rows)
    assert [row.offset for row in history.groups[0].offsets] == [7]
    assert [line.partition(": ")[2] for line in notices.lines()] == [
        "No such file or directory; its records are missing"
    ]
    said = "\n".join(about(history))
    assert "2 records are not in the order of their offsets, and were skipped" in said
    assert "2 records are missing, in 1 gap up to offset 6: it was compacted" in said
    with pytest.raises(SystemExit) as ended:
        main(["decode", str(folder)])
    assert not ended.value.code
    assert len(capsys.readouterr().out.splitlines()) == 8


def test_group_in_two_partitions_has_two_histories(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Logs of two clusters, or of one whose offsets topic got more partitions."""
    rows = [*log(commit(1), commit(2)), *[row._replace(partition=7) for row in log(commit(9), commit(8), commit(7))]]
    status, shown, _ = history_command(capsys, "g", "--log", str(write_segments(tmp_path, rows)))
    assert status == 0
    assert [(each["partition"], each["commits"], each["back"]) for each in shown["groups"]] == [(7, 3, 2), (0, 2, 0)]
    assert shown["notices"] == ["group 'g' has records in partitions 0 and 7; each partition has its own history"]
    with pytest.raises(SystemExit):
        main(["history", "g", "--log", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("partition")] == ["partition 7", "partition 0"]


def test_empty_group_has_a_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of groups that never had a member or a name, or only their deletion is left."""
    rows = log(classic(0), commit(1, group=""), Record(GroupMetadataKey("gone"), None))
    folder = str(write_segments(tmp_path, rows))
    for name, protocol, state in (("g", "classic", "Empty"), ("", "offsets only", ""), ("gone", "offsets only", "")):
        status, shown, _ = history_command(capsys, name, "--log", folder)
        (group,) = shown["groups"]
        assert (status, group["group"], group["protocol"], group["state"]) == (0, name, protocol, state)
        assert group["members"] == []
        assert group["events"]


def test_pieces_of_a_dump_have_each_line_once(tmp_path: Path) -> None:
    good = [json.dumps({"partition": 0, "offset": place, "key_bytes": None, "value_bytes": None}) for place in range(6)]
    text = "\n".join([*good[:2], "", "{", good[2], "é" * 40, *good[3:], good[0][:-7]])
    for ends in ("", "\n"):
        path = tmp_path / "dump"
        path.write_text(text + ends)
        whole = Notices()
        rows = [*rows_from(path, whole)]
        assert [row.offset for row in rows] == [*range(6)]
        assert len(whole.lines()) == 3
        for size in (1, 2, 7, 60, 64, 90, 10_000):
            found, notices = [], Notices()
            some = pieces(path.stat().st_size, size)
            counts = [line_ends(path, piece) for piece in some]
            for place, piece in enumerate(some):
                unread = Notices()
                found += [row for _, row in read_piece(path, piece, sum(counts[:place]), unread)]
                notices.extend(unread)
            assert (found, notices) == (rows, whole), size


@pytest.mark.parametrize(
    "line", ["{", '{"partition": "x"}', '{"partition": 0, "offset": 1, "key_bytes": "!"}', "7", "[]"]
)
def test_broken_line_of_a_dump(tmp_path: Path, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    good = json.dumps({"partition": 0, "offset": 1, "key_bytes": None, "value_bytes": None})
    (tmp_path / "dump").write_text(f"{good}\n{line}\n")
    status, shown, _ = history_command(capsys, "--log", str(tmp_path / "dump"))
    assert (status, shown["counts"]["records"]) == (0, 1)
    assert f"{tmp_path / 'dump'}:2: not a record of fencepost decode" in shown["notices"][0]


def test_unreadable_sources_give_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("no dump")
    folder = write_segments(tmp_path / "log", log(commit(1, group="orders")))
    noise = tmp_path / "log" / "noise.log"
    noise.write_bytes(b"\xff" * 200)
    for words, said in (
        (["--log", str(tmp_path / "none")], "no such file or folder"),
        (["--log", str(tmp_path / "text")], "neither a log segment (.log) nor a dump"),
        (["--log", str(tmp_path)], "no log segments"),
        (["--log", str(noise)], "no record could be read: "),
        (["g", "--log", str(noise)], "no batch at byte 0"),
        ([], "say where the records are"),
        (["--log", str(folder), "--bootstrap", "x:1"], "say where the records are"),
        (["--log", str(folder), "--client-config", "x"], "--client-config is for --bootstrap only"),
        (["order", "--log", str(folder)], "no group 'order'; did you mean orders?"),
        (["--bootstrap", "127.0.0.1"], "--bootstrap '127.0.0.1' is not HOST:PORT"),
        (["--log", str(folder), "--engine", "sparc"], "no engine 'sparc'; did you mean spark?"),
        (["--log", str(folder), "--master", "local[1]"], "--master needs --engine spark"),
        (["--bootstrap", "127.0.0.1:1", "--engine", "spark"], "--engine spark reads a path"),
        (["--log", str(tmp_path), "--engine", "spark"], "no log segments"),
    ):
        status, shown, err = history_command(capsys, *words)
        assert (status, err.count("\n")) == (2, 1), words
        assert said in err
        assert shown["error"] in err


def test_decode_says_in_a_line_what_it_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("no dump")
    for words, said in (
        ([str(tmp_path / "none")], "no such file or folder"),
        ([str(tmp_path / "text")], "neither a log segment (.log) nor a dump"),
        ([str(tmp_path)], "no log segments"),
        ([], "say where the records are"),
        (["--bootstrap", "127.0.0.1:1"], "127.0.0.1:1: "),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["decode", *words])
        err = capsys.readouterr().err
        assert (ended.value.code, err.count("\n")) == (2, 1), words
        assert said in err


def test_terminal_shows_the_life_and_the_notices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [classic(1, "a"), classic(2, "a", "b"), commit(5), commit(3)]
    rows = log(*records)
    folder = write_segments(tmp_path, [*rows[:1], *[row._replace(offset=row.offset + 2) for row in rows[1:]]])
    for words in (["g"], []):
        with pytest.raises(SystemExit) as ended:
            main(["history", *words, "--log", str(folder)])
        assert not ended.value.code
        shown = " ".join(capsys.readouterr().out.split())
        assert "2 records are missing" in shown
    assert "g" in shown
    with pytest.raises(SystemExit):
        main(["history", "g", "--log", str(folder)])
    shown = " ".join(capsys.readouterr().out.split())
    for said in ("b joined", "generation 2: b joined", "commit of t-0 went back from 5 to 3", "Committed offsets"):
        assert said in shown


def test_terminal_shows_no_control_characters_of_clients(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "\x1b[31mg\x07\u202e"
    folder = write_segments(tmp_path, log(commit(5, group=name), classic(1, name), classic(2, name, "b")))
    for words in (["g"], [name], []):
        with pytest.raises(SystemExit) as ended:
            main(["history", *words, "--log", str(folder)])
        assert not ended.value.code
        out = capsys.readouterr().out
        assert not [each for each in out if not each.isprintable() and each != "\n"]
    assert "\\x1b[31mg\\x07\\u202e" in out


def test_events_of_one_group_are_limited_but_counted() -> None:
    rows = log(*[commit(place) for place in (9, 8) * 100])
    kept = history_of(rows, "g").groups[0]
    assert (len(kept.events), kept.left_out, kept.back) == (101, 0, 100)
    none = history_of(rows).groups[0]
    assert (len(none.events), none.left_out, none.back) == (0, 101, 100)


def test_page_shows_owners_and_events_and_names_are_escaped() -> None:
    rows = [row for row in written() if row.partition == 1]
    name = next(each.group for each in history_of(rows, keep_events=True).groups if each.strips)
    history = history_of([*rows, *rows_of([commit(1, group=name), commit(0, group=name)], BEGIN_MS, 10_000, 1)], name)
    (group,) = history.groups
    html = history_page(history, group, ["<script>"], MADE)
    titles = re.findall("<title>([^<]*)</title>", html)[1:]
    ended = [int(found[1] or 1) for title in titles if (found := re.match(r"(?:(\d+) )?rebalances? to ", title))]
    owners = [int(found[1] or 1) for title in titles if (found := re.search(r": (?:(\d+) owners|.*), \d", title))]
    assert sum(ended) == sum(each.duration_ms is not None for each in group.events)
    assert sum(owners) == len(group.strips)
    for event in group.events:
        assert f'id="o{event.offset}"' in html
        assert escape(sentence(event, history.names)) in html
    assert "&lt;script&gt;" in html
    everything = history_page(history_of(rows), None, [], MADE)
    assert all(escape(each.group) in everything for each in history_of(rows).groups)


def test_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_segments(tmp_path / "log", log(classic(1, "a"), commit(5)))
    status, _, _ = history_command(capsys, "g", "--log", str(folder), "--html", str(tmp_path / "page.html"))
    assert status == 0
    assert "generation 1: a joined" in (tmp_path / "page.html").read_text()
    status, _, err = history_command(capsys, "g", "--log", str(folder), "--html", str(tmp_path))
    assert (status, err.count("\n")) == (2, 1)

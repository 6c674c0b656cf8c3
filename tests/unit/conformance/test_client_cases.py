"""The named cases for clients: a right client passes them, and each planted fault of a client makes one fail."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from fencepost.protocol.errors import ErrorCode
from fencepost_conformance.common.addresses import Address
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.cases.play import Ending, Played
from fencepost_conformance.judge.client_cases.case import CLIENT_CASES
from fencepost_conformance.judge.client_cases.cases.final import is_named
from fencepost_conformance.judge.client_cases.catalogue import chosen
from fencepost_conformance.judge.client_cases.play import play_all
from fencepost_conformance.judge.client_cases.process import filled, words_of
from fencepost_conformance.judge.client_cases.stage import ClientUnderTest, Stage, served, settings_for
from fencepost_conformance.show.report.cases import table
from fencepost_server.faults import Fault
from fencepost_server.options import Address as Listen
from fencepost_server.options import Options
from fencepost_server.run import Setup

SCRIPT = Path(__file__).parents[2] / "clients" / "scripted.py"
PLACES = "--bootstrap {bootstrap} --group {group} --topic {topic}"
#: short, since the tests wait for it; heartbeats of the scripted client come every quarter of it
SESSION_MS = 2_000


def client(fault: str = "", patience_s: float = 15.0) -> ClientUnderTest:
    command = f"{sys.executable} {SCRIPT} {PLACES}" + (f" --fault {fault}" if fault else "")
    return ClientUnderTest(tuple(words_of(command)), SESSION_MS, patience_s)


def played(names: Sequence[str], under_test: ClientUnderTest) -> list[Played]:
    return asyncio.run(play_all(chosen(names), under_test))


#: a fault of the scripted client, the case that finds it, and a part of what the report says
FAULTS = [
    ("never-fetches", "client.join.1", "expected a Fetch from each assigned partition"),
    ("no-leave", "client.join.2", "ended without leaving its group"),
    ("no-leave", "client.join.1", "ended without leaving its group"),
    ("commits-after-leave", "client.join.1", "the member left at"),
    ("commits-as-nobody", "client.join.1", "without a member id"),
    ("reads-strangers", "client.join.2", "records only of partitions that it was assigned"),
    ("claims-all", "client.join.7", "that it owns"),
    ("claims-old", "client.rejoin.4", "expected nothing, since it joins"),
    ("claims-old", "client.cooperative.1", "saying that it owns"),
    ("assigns-twice", "client.join.6", "to two members"),
    ("commits-given-up", "client.join.7", "expected commits of"),
    ("commits-given-up", "client.join.6", "expected commits of"),
    ("commits-when-removed", "client.rejoin.1", "expected JoinGroup, or nothing: UNKNOWN_MEMBER_ID"),
    ("commits-when-removed", "client.rejoin.4", "expected a join with epoch 0, or nothing: FENCED_MEMBER_EPOCH"),
    ("stays-fenced", "client.fence.1", "FENCED_INSTANCE_ID"),
    ("stays-fenced", "client.fence.2", "FENCED_INSTANCE_ID"),
    ("no-rejoin", "client.rejoin.2", "expected a JoinGroup, or a heartbeat with epoch 0"),
    ("keeps-id", "client.session.1", "JoinGroup with an empty member id"),
    ("keeps-generation", "client.rejoin.3", "expected generation 2"),
    ("keeps-epoch", "client.rejoin.5", "expected a join with epoch 0"),
    ("no-heartbeats", "client.heartbeat.1", "sent no heartbeat for"),
    ("no-heartbeats", "client.heartbeat.2", "sent no heartbeat for"),
    ("hurries", "client.heartbeat.1", "50 times within a second"),
    ("joins-forever", "client.heartbeat.1", "though the group was stable"),
    ("overlaps-heartbeats", "client.heartbeat.2", "its answer first"),
    ("ignores-rebalance", "client.join.6", "expected a member that joins"),
    ("dies-on-error", "client.error.3", "exited with status 0"),
    ("stops-committing", "client.commit.3", "an OffsetCommit that the coordinator accepts"),
    ("forgets-commits", "client.resume.1", "which client 1 committed last"),
    ("gives-all-up", "client.cooperative.1", "gave up 4 partitions"),
    ("keeps-reading", "client.revoke.2", "expected commits of"),
    ("skips-revoked", "client.revoke.1", "still held"),
    ("stubborn", "client.close.1", "was still running"),
    ("hangs-on-leave", "client.error.44", "was still running"),
    ("waits-for-all-parts", "client.partial.1", "a Fetch from each assigned partition"),
    ("joins-again-without-partitions", "client.partial.2", "though the group was stable"),
    ("keeps-first-part", "client.partial.3", "a Fetch from each assigned partition"),
    ("silent-on-error", "client.final.2", "a commit of new records, an error event, a log line with"),
    ("silent-on-error", "client.final.9", "a commit of new records, an error event, a log line with"),
    ("silent-on-error", "client.final.21", "a commit of new records, an error event, a log line with"),
    ("silent-on-error", "client.final.50", "a commit of new records, an error event, a log line with"),
    ("mutters-on-error", "client.final.9", "a log line with GROUP_MAX_SIZE_REACHED"),
    ("crashes-on-error", "client.final.9", "was ended by signal 6"),
    ("dies-on-error", "client.join.3", "exited with status 0"),
    ("dies-on-error", "client.join.4", "exited with status 0"),
    ("impatient", "client.join.5", "a member that joins"),
    ("no-leave", "client.join.8", "ended without leaving its group"),
    ("no-leave", "client.join.9", "ended without leaving its group"),
    ("forgets-commits", "client.resume.2", "which client 1 committed last"),
    ("no-heartbeats", "client.heartbeat.3", "sent no heartbeat for"),
    ("no-heartbeats", "client.heartbeat.4", "sent no heartbeat for"),
    ("no-heartbeats", "client.heartbeat.5", "sent no heartbeat for"),
    ("no-heartbeats", "client.heartbeat.6", "sent no heartbeat for"),
    ("dies-on-error", "client.heartbeat.7", "exited with status 0"),
    ("dies-on-error", "client.heartbeat.8", "exited with status 0"),
    ("dies-on-error", "client.heartbeat.9", "exited with status 0"),
    ("dies-on-error", "client.rejoin.6", "exited with status 0"),
    ("commits-when-removed", "client.rejoin.7", "expected a JoinGroup"),
    ("keeps-epoch", "client.session.2", "epoch 0"),
    ("dies-on-error", "client.coordinator.1", "exited with status 0"),
    ("dies-on-error", "client.coordinator.2", "exited with status 0"),
    ("nameless", "client.static.1", "joined with the instance id None"),
    ("leaves-for-good", "client.static.2", "sent no epoch -2"),
    ("assigns-twice", "client.cooperative.2", "to two members"),
    ("dies-on-error", "client.commit.1", "exited with status 0"),
    ("dies-on-error", "client.commit.2", "exited with status 0"),
    ("stubborn", "client.close.2", "was still running"),
    ("commits-after-leave", "client.close.3", "the member left at"),
    ("commits-after-leave", "client.close.4", "the member left at"),
]
#: played by ``make test``; ``make test-all`` plays all
QUICK = {
    ("never-fetches", "client.join.1"), ("commits-after-leave", "client.join.1"), ("no-leave", "client.join.2"),
    ("mutters-on-error", "client.final.9"),
}  # fmt: skip
#: the families of the sweep of error codes, whose cases fail with a client that does nothing after an error
SWEEP = ("client.error", "client.final")
#: codes that the versions of the scripted client do not have
NEWER = "; Kafka answers"


def test_a_right_client_passes() -> None:
    """Some cases here; ``make test-all`` plays them all."""
    some = ["client.join.1", "client.join.2", "client.rejoin.4", "client.partial.1", "client.final.5"]
    for each in played(some, client()):
        assert each.ending is Ending.PASSED, f"{each.case.name}: {each.why}"


@pytest.mark.all
def test_a_right_client_passes_all_cases() -> None:
    done = played([], client())
    assert [f"{each.case.name}: {each.why}" for each in done if each.ending is not Ending.PASSED] == []


@pytest.mark.parametrize(
    ("fault", "name", "text"),
    [each if each[:2] in QUICK else pytest.param(*each, marks=pytest.mark.all) for each in FAULTS],
)
def test_a_planted_fault_makes_a_case_fail(fault: str, name: str, text: str) -> None:
    patience_s = 20.0 if name.startswith("client.session") else 8.0  # it rejects heartbeats for a session and 2 s more
    (found,) = played([name], client(fault, patience_s=patience_s))
    assert found.ending is Ending.FAILED, found.why
    assert text in found.why, found.why
    assert found.exchanges
    assert found.mismatch is not None


@pytest.mark.all
def test_silence_after_an_error_makes_each_case_of_the_sweep_fail() -> None:
    leaves = [each.name for each in chosen(SWEEP) if " LeaveGroup " in each.text]
    others = [each.name for each in chosen(SWEEP) if each.name not in leaves]
    found = asyncio.run(play_all(chosen(others), client("silent-on-error"), at_once=12))
    found += asyncio.run(play_all(chosen(leaves), client("hangs-on-leave", 6.0), at_once=12))
    odd = [each for each in found if each.ending is not Ending.FAILED]
    assert [f"{each.case.name}: {each.ending}, {each.why}" for each in odd if NEWER not in each.why] == []
    assert len(odd) <= 5


def test_each_case_has_a_fault_that_makes_it_fail() -> None:
    planted = {name for _, name, _ in FAULTS}
    assert {each.name for each in CLIENT_CASES.values() if each.family not in SWEEP} - planted == set()


@pytest.mark.parametrize(
    ("fault", "remark"),
    [("logs-error", "shows GROUP_MAX_SIZE_REACHED on standard error only"), ("says-error", "")],
)
def test_a_case_says_whether_an_error_is_only_logged(fault: str, remark: str) -> None:
    (found,) = played(["client.final.9"], client(fault))
    assert found.ending is Ending.PASSED, found.why
    assert remark in found.why
    assert bool(found.why) is bool(remark)
    console = Console(file=io.StringIO(), width=300)
    console.print(table([found], "again"))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert ("passed, but client.final.9: client 1 shows" in text) is bool(remark)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("InvalidSessionTimeoutError: the timeout is not in its range", True),
        ("Broker: Invalid session timeout", True),
        ("join group failed: [Error 26] the timeout is not in its range", True),
        ("join group failed: error code 26", True),
        ("join group failed: [Error 260]", False),
        ("config: option session.timeout.ms is not set", False),
        ("26 members", False),
    ],
)
def test_a_log_line_names_an_error(line: str, named: bool) -> None:
    assert is_named(ErrorCode.INVALID_SESSION_TIMEOUT, line) is named


def test_a_failure_shows_the_request_the_rules_and_how_to_repeat_it() -> None:
    (found,) = played(["client.join.1"], client("commits-as-nobody", patience_s=4.0))
    console = Console(file=io.StringIO(), width=300)
    console.print(table([found], "fencepost conform --client '…'"))
    text = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "OffsetCommit" in text
    assert "K-OFF-02: With group subscription, commits are sent only in STABLE" in text
    assert "again: fencepost conform --client '…' --case client.join.1" in text


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("raise SystemExit('no broker today')", "exited with status 1 before it looked for its coordinator (no broker"),
        ("raise SystemExit(64)", "the client says that it lacks what the case needs"),
        ("import signal; signal.alarm(60); signal.pause()", "did nothing of the kind for 2 s"),
        ("while True: print('x' * 60_000)", "wrote more than 16 MiB"),
        (
            "print('x' * 2_000_000); import signal; signal.alarm(60); signal.pause()",
            "wrote more than 16 MiB, or a line without an end",
        ),
    ],
)
def test_a_command_that_is_not_a_client_is_reported_in_one_line(script: str, text: str, tmp_path: Path) -> None:
    program = tmp_path / "client.py"
    program.write_text(script)
    under_test = ClientUnderTest((sys.executable, str(program), *PLACES.split()), SESSION_MS, 2.0)
    for found in played(["client.join.1", "client.join.2"], under_test):
        assert found.ending in {Ending.NOT_REACHED, Ending.NOT_SUPPORTED}
        assert text in found.why
        assert "\n" not in found.why


@pytest.mark.parametrize(
    ("fault", "name", "ending"),
    [
        ("", "client.error.5", Ending.PASSED),
        pytest.param("", "client.join.3", Ending.PASSED, marks=pytest.mark.all),
        pytest.param("", "client.coordinator.1", Ending.PASSED, marks=pytest.mark.all),
        pytest.param("dies-on-error", "client.error.5", Ending.FAILED, marks=pytest.mark.all),
    ],
)
def test_the_same_cases_are_played_in_front_of_another_broker(fault: str, name: str, ending: Ending) -> None:
    """The relay makes the trouble there: an error, a lost connection, and a coordinator that moves."""

    async def beside() -> Played:
        options = Options(node_id=1, listen=Listen(host="127.0.0.1", port=0), offsets_partitions=4)
        async with served(Setup(options=options, settings=settings_for(SESSION_MS))) as ready:
            there = replace(client(fault, 8.0), broker=Address("127.0.0.1", ready.listen.port))
            return (await play_all(chosen([name]), there))[0]

    found = asyncio.run(beside())
    assert found.ending is ending, found.why


def test_a_member_of_the_suite_leaves_after_its_last_answer() -> None:
    """It waits for the answer first, so that its connection is not broken."""

    async def leaves() -> None:
        async with Stage(client()) as stage:
            await stage.broker(Fault(do="delay", api="consumer_group_heartbeat", ms=300))
            member = await stage.companion()
            await member.join()
            await asyncio.sleep(0.35)  # its next heartbeat waits for the answer
            await member.leave()

    asyncio.run(leaves())


def test_every_process_is_ended(tmp_path: Path) -> None:
    """A client that ignores SIGTERM, and has started a process itself. Left alone, that one ends after a while and
    leaves a file."""
    program, pids, outlived = tmp_path / "client.py", tmp_path / "pids", tmp_path / "outlived"
    child = (
        "import pathlib, signal; "
        f"signal.signal(signal.SIGALRM, lambda *_: pathlib.Path({str(outlived)!r}).touch()); "
        "signal.alarm(20); signal.pause()"
    )
    program.write_text(
        "import os, signal, subprocess, sys\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "signal.alarm(60)\nsignal.pause()\n"
    )
    played(["client.join.1"], ClientUnderTest((sys.executable, str(program), *PLACES.split()), SESSION_MS, 2.0))
    deadline = time.monotonic() + 5  # a killed process takes a moment to end
    while any(map(_runs, map(int, pids.read_text().split()))):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not outlived.exists(), "the process of the client was left to end by itself"


def _runs(pid: int) -> bool:
    """Whether a process runs: an ended process that is still to be waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("client --bootstrap {bootstrap} --topic {topic}", "lacks {group}"),
        (f"no-such-program {PLACES}", "there is no program 'no-such-program'"),
        (f"client '{PLACES}", "cannot be split into words"),
    ],
)
def test_a_command_that_cannot_run_is_refused(command: str, text: str) -> None:
    with pytest.raises(CannotRun, match=text):
        words_of(command)


def test_options_follow_the_command_or_take_their_place() -> None:
    options = ["--protocol", "classic"]
    assert filled(["run", "{bootstrap}"], "h:1", "g", "t", options) == ["run", "h:1", "--protocol", "classic"]
    assert filled(["sh", "-c", "run {options} {group}"], "h:1", "g", "t", options) == [
        "sh", "-c", "run --protocol classic g",
    ]  # fmt: skip


def test_each_case_is_in_the_docs_and_the_families_are() -> None:
    docs = (Path(__file__).parents[3] / "docs" / "clients.md").read_text()
    families = {case.family for case in CLIENT_CASES.values()}
    assert {family for family in families if f"`{family}`" not in docs} == set()
    assert f"{len(CLIENT_CASES)} cases" in docs


@pytest.mark.all
@pytest.mark.parametrize(("fault", "status"), [("", 0), ("no-leave", 1), ("hangs", 2)])
def test_the_command_ends_with_the_status_of_its_cases(fault: str, status: int, tmp_path: Path) -> None:
    command = " ".join(client(fault).words)
    words = ["conform", "--client", command, "--case", "client.join.1", "--json", "--junit", str(tmp_path / "j.xml")]
    run = [sys.executable, "-m", "fencepost_conformance.cli", *words]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == status, ended.stderr
    (case,) = json.loads(ended.stdout)["cases"]
    assert case["ending"] == {0: "passed", 1: "failed", 2: "not reached"}[status]
    assert 'name="client.join.1"' in (tmp_path / "j.xml").read_text()

"""Kafka's own members run the schedules of the core's members, and behave alike at every event."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import PROFILES
from fencepost_conformance.cli import main
from fencepost_conformance.judge.client import consumer_schedule
from fencepost_conformance.judge.client import schedule as classic_schedule
from fencepost_conformance.judge.client.judge import judge
from fencepost_conformance.judge.client.kinds import MemberProtocol
from fencepost_conformance.judge.client.schedule import Schedule
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.run.mutants.mutant import planted
from fencepost_conformance.targets.jvm.builds import Build
from fencepost_conformance.targets.jvm.releases import NEWEST

PROFILE = PROFILES[f"kafka-{'.'.join(NEWEST.split('.')[:2])}"]
#: Among them: a former leader that follows (12), a look-up with a permanent error (51), a fenced instance that polls
#: (135), a listener during which a heartbeat is due (309), a failed look-up that was repeated (171), failures that a
#: new heartbeat thread counts on (1093), a session that ends (23).
SEEDS = (*range(24), *range(50, 60), 78, 84, 135, 149, 171, 210, 213, 309, 541, 629, 1093, 1931, 102741)


#: Among them: an unsubscribe that throws (13) or overlooks an error (0), a close that calls the listener again (21), a
#: leave that waits for an answer (155), an assignment that outlives a membership (113), a late answer, loss or new
#: coordinator (58, 128, 248), errors in states that no error ends (141, 202), an interval that counts from the request
#: (1043), a topic that cannot be resolved (446), an error that an unsubscribe leaves to a poll because it has ignored
#: another (61000276).
CONSUMER_SEEDS = (*range(30), 46, 58, 96, 113, 128, 141, 155, 202, 248, 303, 446, 896, 1043, 61000276)


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("protocol", "seeds"),
    [(MemberProtocol.CLASSIC, SEEDS), (MemberProtocol.CONSUMER, CONSUMER_SEEDS)],
)
def test_kafkas_member_does_the_same(protocol: MemberProtocol, seeds: tuple[int, ...]) -> None:
    judged = list(judge(Build(NEWEST), PROFILE, seeds, 60, protocol))
    assert [each.difference for each in judged if each.difference] == []
    assert sum(each.steps for each in judged) > 1_000


@pytest.mark.parametrize("made", [classic_schedule.schedule, consumer_schedule.schedule])
def test_a_schedule_is_made_the_same_twice(made: Callable[[int, int, Profile], Schedule]) -> None:
    one, other = (made(7, 40, PROFILE) for _ in range(2))
    assert one.events == other.events
    assert one.outcomes == other.outcomes


def conformed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    with pytest.raises(SystemExit) as left:
        main(["conform", "--side", "member", "--json", "--workers", "1", *words])
    assert isinstance(left.value.code, int)
    return left.value.code, json.loads(capsys.readouterr().out)


@pytest.mark.jvm
def test_the_command_reports_differences(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ("--target", f"kafka:{NEWEST}", "--traces", "8", "--protocol", "classic")
    status, result = conformed(capsys, *words)
    assert (status, result["passed"], result["counts"]["failed"]) == (0, True, 0)
    with planted(MUTANTS["lost-partitions-not-reported"]):
        status, result = conformed(capsys, *words, "-o", str(tmp_path))
        assert (status, result["passed"]) == (1, False)
        groups = result["protocols"]["classic"]["groups"]
        assert sum(each["schedules"] for each in groups) == result["counts"]["failed"] > 0
        assert json.loads((tmp_path / "member.json").read_text()) == result
        known = tmp_path / "known"
        known.write_text("".join(f"{each['group']} -- planted\n" for each in groups))
        assert conformed(capsys, *words, "--known", str(known))[0] == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--target", "core"], "--target kafka:RELEASE"),
        (["--target", f"broker:{NEWEST}"], "--target kafka:RELEASE"),
        (["--target", f"kafka:{NEWEST}", "--protocol", "mixed"], "no protocol 'mixed'"),
        (["--target", f"kafka:{NEWEST}", "--engine", "spark"], "leave out --engine"),
        (["--side", "members"], "did you mean member?"),
    ],
)
def test_an_impossible_comparison_is_rejected(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, result = conformed(capsys, *words)
    assert status == 2
    assert says in result["error"]

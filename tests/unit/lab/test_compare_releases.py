"""The session under another release: what differs, and why."""

from __future__ import annotations

from typing import Any

import pytest
from test_lab import EVERYTHING, played, run, start

from fencepost_conformance.generate.lab import Lab, parse_actions, parse_start
from fencepost_conformance.generate.lab.sides import under_other_release
from fencepost_conformance.generate.lab.tours import TOURS
from fencepost_conformance.show.lab.beside import releases_view


def compared(tour: str, other: str) -> dict[str, Any]:
    actions = [dict(action) for chapter in TOURS[tour].chapters for action in chapter.actions]
    return releases_view(Lab(parse_start({**TOURS[tour].start, "other": other})).play(parse_actions(actions)))


def test_under_the_same_release_the_session_is_the_same() -> None:
    lab = played(EVERYTHING, profile="kafka-4.3", other="kafka-4.3")
    again = under_other_release(lab)
    assert again.skipped == ()
    assert again.lab.journal.rows == lab.journal.rows
    assert again.lab.journal.messages == lab.journal.messages
    view = releases_view(lab)
    assert (view["count"], view["causes"], view["skipped"]) == (0, [], [])
    assert view["equal"] > 100


def test_a_step_that_differs_has_both_sides_and_its_cause() -> None:
    view = compared("fail-over", "kafka-4.4")
    (one,) = view["differences"]
    records = next(part for part in one["parts"] if part[0] == "records")
    assert [each for each in records[2] if each not in records[1]] == ["TargetEpoch billing: assignment epoch 5"]
    assert [each for each in records[1] if each not in records[2]] == []
    assert "no member is left" in dict(one["rules"])["M-LEAVE-08"]
    (cause,) = view["causes"]
    assert (cause["switch"], cause["release"]) == ("old_emptied_group_keeps_target_epoch", "kafka-4.3")
    assert all(text for _, text in cause["rules"])


def test_a_step_that_several_switches_change_names_each_of_them() -> None:
    view = compared("reconciliation", "kafka-4.0")
    named = {each["switch"] for each in view["causes"]}
    assert {"old_epochs_start_at_zero", "old_partition_metadata"} <= named
    assert {each["release"] for each in view["causes"]} == {"kafka-4.0"}
    assert view["count"] > 10
    assert all(each["parts"] for each in view["differences"])


def test_a_step_of_one_session_alone_and_a_skipped_action_are_shown() -> None:
    view = releases_view(played(EVERYTHING, profile="kafka-4.3", other="intended"))
    assert {each["only"] for each in view["differences"]} == {"", "kafka-4.3", "intended"}
    assert all((each["row"] is None) == (each["only"] == "intended") for each in view["differences"])
    assert any("delay at " in reason for reason in view["skipped"])
    assert [side["release"] for side in view["sides"]] == ["kafka-4.3", "intended"]


@pytest.mark.parametrize("protocol", ["eager", "consumer"])
def test_an_action_within_a_moment_is_played_at_the_same_place(protocol: str) -> None:
    """A step ends between two things of the same time; what the user does there happens there again."""
    lab = played(
        [start("c1", protocol), start("c2", protocol), {"do": "step"}, {"do": "step"}, {"do": "lose"}, run(4_000)],
        other="kafka-4.3",
    )
    again = under_other_release(lab)
    assert (again.skipped, again.lab.journal.rows) == ((), lab.journal.rows)

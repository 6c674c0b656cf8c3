"""Every combination of choices is taken once, even if later choices depend on earlier ones."""

from __future__ import annotations

from fencepost_model.classic.choice import Chooser, every


def test_no_choice_is_one_run() -> None:
    runs: list[Chooser] = []

    def run(chooser: Chooser) -> str:
        runs.append(chooser)
        return chooser.pick("only", ["a"])

    assert list(every(run)) == [("", "a")]
    assert len(runs) == 1


def test_all_combinations_in_order() -> None:
    def run(chooser: Chooser) -> str:
        return chooser.pick("x", ["a", "b"]) + chooser.pick("y", ["1", "2", "3"])

    assert [result for _, result in every(run)] == ["a1", "a2", "a3", "b1", "b2", "b3"]


def test_choices_that_depend_on_choices() -> None:
    def run(chooser: Chooser) -> str:
        first = chooser.pick("x", ["a", "b", "c"])
        if first == "b":
            return first + chooser.pick("y", ["1", "2"])
        return first

    assert list(every(run)) == [("x=a", "a"), ("x=b,y=1", "b1"), ("x=b,y=2", "b2"), ("x=c", "c")]

"""Both engines give the same verdict on every configuration about liveness, and these have every kind of fault.

E1 compares graphs, and fairness is not part of a graph. So each verdict is compared here: that of TLC, and that of the
model's search for fair cycles.
"""

from __future__ import annotations

import re
from typing import Final

import pytest
from graphs import SPEC

from fencepost_model.system.checking import check_python, check_tlc
from fencepost_model.system.manifest import Entry, read_manifest, read_problem

LIVE: Final = {entry.name: entry for entry in read_manifest(SPEC) if entry.has_model and read_problem(entry).fair}
#: One that passes and one that fails, in every run; the others in ``make test-all``.
SAMPLE: Final = frozenset({"StaticSettles", "KafkaUpgradeLeavesPartitions"})
#: Each protocol has a configuration with one of these groups of faults that passes.
FAULTS: Final = {
    "classic": [
        {"CoordinatorFailsOver"},
        {"SessionTimerFiresEarly", "JoinTimerFiresEarly"},
        {"RequestLost", "ReplyLost"},
    ],
    "consumer": [
        {"CoordinatorFailsOver"},
        {"SessionTimerFiresEarly", "RebalanceTimerFiresEarly"},
        {"RequestLost", "ReplyLost"},
        {"TopicGrows"},
    ],
    "mixed": [
        {"CoordinatorFailsOver"},
        {"SessionTimerFiresEarly", "JoinTimerFiresEarly"},
        {"RequestLost", "ReplyLost"},
    ],
}


def verdicts(entry: Entry) -> tuple[bool, bool]:
    """Return whether the model and TLC find a counter-example. Both must be as the manifest says."""
    model, tlc = check_python(entry), check_tlc(entry, workers=2)
    assert (model.wrong, tlc.wrong) == ([], [])
    if not model.violated:
        assert model.states == tlc.states
    return bool(model.violated), bool(tlc.violated)


@pytest.mark.tlc
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in SAMPLE else pytest.mark.all) for name in sorted(LIVE)]
)
def test_both_engines_give_the_same_verdict(name: str, tlc: None) -> None:
    entry = LIVE[name]
    assert verdicts(entry) == (entry.expected == "temporal", entry.expected == "temporal")


@pytest.mark.parametrize("protocol", FAULTS)
def test_liveness_is_checked_with_every_kind_of_fault(protocol: str) -> None:
    passing = [entry for entry in LIVE.values() if entry.protocol == protocol and entry.expected == "holds"]
    allowed = [read_problem(entry).config.allowed for entry in passing]
    for faults in FAULTS[protocol]:
        assert any(faults <= each for each in allowed), f"{protocol} groups, {', '.join(sorted(faults))}"


def test_no_promise_of_liveness_excuses_a_state() -> None:
    """A promise that excuses states in which ids have run out says nothing about runs that end in them."""
    for module in ("Classic", "Consumer", "Mixed"):
        text = (SPEC / f"{module}Properties.tla").read_text(encoding="utf-8")
        promises = re.findall(r"^(?:The\w+ == <>\[\](.*)|EveryWaitEnds == .* ~> (.*))$", text, re.MULTILINE)
        assert len(promises) == 2, module
        assert [goal for each in promises for goal in each if "\\/" in goal] == [], module

"""Another release under which everything passes that failed: then the broker most likely is of that release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fencepost.protocol.profiles import PROFILES

from ...judge.cases.case import Case
from ...judge.cases.peer import BrokerUnderTest
from ...judge.cases.play import Ending, Played, play_all
from ...judge.rows.otherwise import all_pass, other_profiles
from ...judge.rows.summary import Summary
from ...judge.verdict import Verdict
from ...traces.files import WireTrace

#: A broker with more failures differs by more than its release.
_MOST: Final = 20


async def advice(played: Sequence[Played], traces: Sequence[Summary], broker: BrokerUnderTest) -> str:
    """Return a sentence that names the newest other profile under which all failed cases and traces pass; empty if
    there is none, or too many failures. Plays the failed cases again, under each profile until one explains them."""
    cases = [each.case for each in played if each.ending is Ending.FAILED]
    recorded = [
        summary.recorded[row.seed] for summary in traces for row in summary.failures if row.seed in summary.recorded
    ]
    if not 0 < len(cases) + len(recorded) <= _MOST or len(recorded) < sum(
        summary.verdicts[Verdict.FAILED] for summary in traces
    ):
        return ""
    name = await _other_release(cases, recorded, broker)
    if not name:
        return ""
    release = f"a Kafka {name.removeprefix('kafka-')}" if name.startswith("kafka-") else "like that"
    return f"Everything that failed passes under profile {name}: if the broker is {release}, use --profile {name}."


async def _other_release(cases: Sequence[Case], recorded: Sequence[WireTrace], broker: BrokerUnderTest) -> str:
    for profile in other_profiles(broker.profile.name, PROFILES):
        if all_pass(recorded, profile):
            again = await play_all(cases, replace(broker, profile=profile))
            if all(each.ending in (Ending.PASSED, Ending.KNOWN_FAULT) for each in again):
                return profile.name
    return ""

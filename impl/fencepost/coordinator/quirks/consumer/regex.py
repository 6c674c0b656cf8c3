"""Regexes that a member adopts or gives up."""

from __future__ import annotations

from fencepost.quirks import quirk

from ...consumer import regex
from ...kernel.step import Step


@quirk("old_regex_removal_keeps_epoch", of=regex.given_up)
def given_up_for_nothing(step: Step) -> regex.RegexChange:
    """In 4.0 giving up a regex begins no epoch (V-33)."""
    return regex.RegexChange.UNRESOLVED


@quirk("fault_resolved_regex_change_no_bump", of=regex.loses_topics)
def topics_go_to_nobody(step: Step, before: frozenset[str], now: frozenset[str]) -> bool:
    """Kafka takes the topics of the old regex from the member at once (M-REC-25) and begins no epoch: they stay in its
    target, and no member owns them (LIV-15)."""
    return False


@quirk("old_whole_target", of=regex.loses_topics)
def topics_stay(step: Step, before: frozenset[str], now: frozenset[str]) -> bool:
    """Up to 4.1 the member keeps everything until there is a new target, so nothing is lost (V-51)."""
    return False

"""The catalogue names every rule of consumer groups: reachable, or with a reason why it is not reached."""

from __future__ import annotations

import re
from pathlib import Path

from fencepost_conformance.coverage.rules_consumer import CONSUMER_RULES, UNREACHED_CONSUMER_RULES

BOOK = Path(__file__).resolve().parents[3] / "docs" / "rules" / "04-consumer.md"


def test_each_rule_is_in_the_catalogue_or_has_a_reason() -> None:
    found = set(re.findall(r"^(?:\| |- \*\*)(M-[A-Z]+-\d+)", BOOK.read_text(), re.MULTILINE))
    assert found == {*CONSUMER_RULES, *UNREACHED_CONSUMER_RULES}
    assert not {*CONSUMER_RULES} & {*UNREACHED_CONSUMER_RULES}

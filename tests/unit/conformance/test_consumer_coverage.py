"""The catalogue names every rule of consumer groups: reachable, or with the reason why it is not reached."""

from __future__ import annotations

import re
from pathlib import Path

from fencepost.protocol.profiles import INTENDED, KAFKA_4_3, KAFKA_4_4
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.coverage import catalogue
from fencepost_conformance.judge.coverage.rules_consumer import CONSUMER_RULES, UNREACHED_CONSUMER_RULES

BOOK = Path(__file__).resolve().parents[3] / "docs" / "rules" / "04-consumer.md"


def test_each_rule_is_in_the_catalogue_or_has_a_reason() -> None:
    found = set(re.findall(r"^(?:\| |- \*\*)(M-[A-Z]+-\d+)", BOOK.read_text(), re.MULTILINE))
    assert found == {*CONSUMER_RULES, *UNREACHED_CONSUMER_RULES}
    assert not {*CONSUMER_RULES} & {*UNREACHED_CONSUMER_RULES}


def test_rules_of_some_releases_have_a_reason_in_the_others() -> None:
    """The catalogue asks for no rule that the release does not implement (V-120…123)."""
    of_old, of_new = {"rule M-STATIC-13", "rule M-VAL-28"}, {"rule M-HB-14", "rule M-LEAVE-08"}
    for profile, missing in ((KAFKA_4_3, of_new), (KAFKA_4_4, of_old), (INTENDED, of_old)):
        reasons = {*catalogue.reasons_of(GroupProtocol.CONSUMER, profile)}
        assert (of_old | of_new) & reasons == missing, profile.name

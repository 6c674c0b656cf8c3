"""Values that core, model and suite share equal those of Kafka's own classes: the defaults of settings, and the
embedded bytes.

No comparison of the three can find a fault in these values. They were read from Kafka (``python -m
tools.kafka_values``), and ``tests/wire/test_jvm_values.py`` reads them again.
"""

from __future__ import annotations

from typing import Any

import pytest

from fencepost.member.settings import MemberSettings
from fencepost.protocol.embedded import (
    SchemaError,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from fencepost.protocol.settings import Settings
from fencepost_conformance.common import repository
from tools import kafka_values as values

KEPT = values.kept(repository.root())
RELEASES = sorted(KEPT["defaults"])


@pytest.mark.parametrize("release", RELEASES)
def test_defaults_are_those_of_every_release_that_has_the_setting(release: str) -> None:
    mine = values.ours(Settings(), MemberSettings("g"))
    for kind, settings in KEPT["defaults"][release].items():
        assert settings == {name: mine[kind][name] for name in settings}


def test_the_newest_release_has_every_setting() -> None:
    newest = KEPT["defaults"][RELEASES[-1]]
    mine = values.ours(Settings(), MemberSettings("g"))
    assert {kind: sorted(settings) for kind, settings in newest.items()} == {
        kind: sorted(settings) for kind, settings in mine.items()
    }


@pytest.mark.parametrize("row", KEPT["embedded"]["written"], ids=lambda row: row["bytes"][:24])
def test_writes_the_bytes_that_kafka_writes(row: dict[str, Any]) -> None:
    value = values.meant(row)
    if isinstance(value, Subscription):
        assert encode_subscription(value, row["version"]).hex() == row["bytes"]
    else:
        assert encode_assignment(value, row["version"]).hex() == row["bytes"]


def test_values_are_read_and_rejected_as_by_kafka() -> None:
    refused = 0
    for row in KEPT["embedded"]["read"]:
        decode = decode_subscription if row["as"] == "subscription" else decode_assignment
        data = bytes.fromhex(row["bytes"])
        if row["read"] is None:
            refused += 1
            with pytest.raises(SchemaError):
                decode(data)
        else:
            assert decode(data) == values.meant(row["read"]), row["bytes"]
    assert 20 < refused < len(KEPT["embedded"]["read"]) - 20

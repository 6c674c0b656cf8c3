"""Every setting of a coordinator in Kafka reaches every edge of the suite: the option, the broker's answer, the header
of a trace, the assumptions."""

from __future__ import annotations

import asyncio
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from fencepost.protocol.kafka_names import BROKER_NAMES, CONSTANTS, broker_rows, text_of, value_of
from fencepost.protocol.settings import Settings
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.traces.files import WireTrace, read_traces
from fencepost_conformance.traces.wire.settings import changed, fitting, given, settle

from .fake_broker import FakeBroker
from .test_record import recording

ALL = tuple(field.name for field in fields(Settings))
USUAL = Settings()


def another(field: str) -> str:
    """Return another value than the default, as Kafka writes it."""
    if field == "consumer_protocol_enabled":
        return "classic"
    if field == "group_consumer_assignors":
        return "range"
    if field == "group_consumer_migration_policy":
        return "upgrade"
    return str(int(text_of(field, getattr(USUAL, field))) + (-1 if "max_size" in field else 1))


def test_every_field_has_kafkas_name_or_is_a_constant_of_kafka() -> None:
    assert sorted([*BROKER_NAMES, *CONSTANTS]) == sorted(ALL)


@pytest.mark.parametrize("field", BROKER_NAMES)
def test_settings_are_read_and_written_like_kafkas(field: str) -> None:
    name, text = BROKER_NAMES[field], another(field)
    found = given([f"{name}={text}"])
    assert list(found) == [field]
    settings = changed(USUAL, fitting(USUAL, found, ALL))
    assert getattr(settings, field) == value_of(name, text) != getattr(USUAL, field)
    assert dict(broker_rows(settings))[name] == text


def test_a_wrong_value_is_reported() -> None:
    for option in (
        "group.coordinator.rebalance.protocols=consumer",
        "group.coordinator.rebalance.protocols=classic,new",
    ):
        with pytest.raises(CannotRun, match=r"is not a value of group\.coordinator\.rebalance\.protocols"):
            given([option])
    with pytest.raises(CannotRun, match=r"is not a value of offsets\.retention\.minutes"):
        given(["offsets.retention.minutes=0.5"])


def test_a_retention_that_is_not_in_minutes_is_not_reported() -> None:
    """Kafka cannot have this value, so no broker reports it in Kafka's words."""
    assert "offsets.retention.minutes" not in dict(broker_rows(Settings(offsets_retention_ms=1)))


def header(path: Path) -> tuple[dict[str, Any], WireTrace]:
    (trace,) = read_traces(path)
    assert isinstance(trace, WireTrace)
    return json.loads(path.read_text().splitlines()[0]), trace


def test_a_recorder_asks_for_every_one(tmp_path: Path) -> None:
    """Reported settings are in the header, which names the others."""
    wanted = changed(
        USUAL, fitting(USUAL, given([f"{BROKER_NAMES[each]}={another(each)}" for each in BROKER_NAMES]), ALL)
    )

    async def run(path: Path, unreported: tuple[str, ...]) -> None:
        async with FakeBroker(unreported=unreported) as broker:
            broker.config = {name: text for name, text in broker_rows(wanted) if name not in unreported}
            async with recording(broker, path) as (connect, _):
                await (await connect()).beat()

    asyncio.run(run(tmp_path / "reported.jsonl", ()))
    first_line, trace = header(tmp_path / "reported.jsonl")
    assert trace.settings == wanted
    assert first_line["assumed"] == []
    asyncio.run(run(tmp_path / "unreported.jsonl", tuple(BROKER_NAMES.values())))
    first_line, trace = header(tmp_path / "unreported.jsonl")
    assert trace.settings == USUAL
    assert first_line["assumed"] == list(BROKER_NAMES)


def test_every_one_can_be_assumed_and_given() -> None:
    known = settle({}, {})
    assert list(known.assumed) == list(BROKER_NAMES)
    for field in BROKER_NAMES:
        assert field not in settle({}, given([f"{BROKER_NAMES[field]}={another(field)}"])).assumed

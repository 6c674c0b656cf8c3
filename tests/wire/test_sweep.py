"""Every API in every version through the recorder: nothing is lost or changed, and the trace is accepted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from kio.index import load_request_schema

from fencepost_conformance.common import repository
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.sweep import matrix
from fencepost_conformance.judge.sweep.brokers import ALL, SERVE, profile_of, running
from fencepost_conformance.judge.sweep.forms import forms
from fencepost_conformance.judge.sweep.run import Outcome, sweep
from fencepost_conformance.judge.sweep.scenes import APIS
from fencepost_server.apis.table import TABLE

KEPT = matrix.read(repository.root())


def swept(broker: str, folder: Path, *, full: bool) -> Outcome:
    try:
        with running(broker) as address:
            return asyncio.run(sweep(address, folder, profile_of(broker), full=full))
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])


def passes(broker: str, folder: Path, *, full: bool) -> None:
    outcome = swept(broker, folder, full=full)
    assert not outcome.wrong
    assert matrix.column(outcome) == KEPT[broker]


def test_serve(tmp_path: Path) -> None:
    passes(SERVE, tmp_path, full=False)


@pytest.mark.broker
@pytest.mark.slow
def test_kafka(tmp_path: Path) -> None:
    passes("4.3.1", tmp_path, full=False)


@pytest.mark.all
@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.parametrize("broker", ALL)
def test_every_form(tmp_path: Path, broker: str) -> None:
    passes(broker, tmp_path, full=True)


def test_the_table_is_of_all_brokers_and_of_all_that_serve_has() -> None:
    assert tuple(KEPT) == ALL
    bounds = {api.name: (api.low, api.high) for api in TABLE.values() if api.name in APIS}
    assert KEPT[SERVE] == {
        matrix.kafka_name(name): str(low) if low == high else f"{low}–{high}" for name, (low, high) in bounds.items()
    }


def test_forms_change_one_field_each() -> None:
    """OffsetFetch v9: groups, each with a member that may be null, and topics that may be null."""
    plain = {
        "groups": [
            {
                "group_id": "g",
                "member_id": None,
                "member_epoch": -1,
                "topics": [{"name": "t", "partition_indexes": [0]}],
            }
        ]
    }
    made = list(forms(load_request_schema(9, 9), plain))
    labels = [form.label for form in made]
    assert labels[0] == "plain"
    assert len(labels) == len(set(labels))
    assert {
        "groups empty", "groups.group_id empty", "groups.member_id present", "groups.topics null",
        "groups.topics empty", "groups.topics.name empty",
        "groups.topics.partition_indexes empty", "require_stable true",
    } <= set(labels)  # fmt: skip
    by_label = {form.label: form.values for form in made}
    assert by_label["groups.topics null"]["groups"][0]["topics"] is None
    assert by_label["groups.member_id present"]["groups"][0]["member_id"] == "other"
    assert plain["groups"][0]["topics"]

"""Known faults of brokers are found over the wire."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from faulty_serve import FAULTS
from served import Served

from fencepost_conformance.cli import main

pytestmark = pytest.mark.slow
PROGRAM = str(Path(__file__).with_name("faulty_serve.py"))
TRACES = {"any-session-timeout": "24"}  #: such a request is rarer
SETTING = ("--setting", "group.initial.rebalance.delay.ms=0")


@pytest.mark.parametrize(
    ("fault", "protocol"),
    [
        ("commits-not-fenced", "consumer"),
        *(pytest.param(fault, "classic", marks=pytest.mark.all) for fault in FAULTS),
        pytest.param("commits-not-fenced", "mixed", marks=pytest.mark.all),
        pytest.param("lists-no-group", "consumer", marks=pytest.mark.all),
        pytest.param("lists-all-as-empty", "consumer", marks=pytest.mark.all),
    ],
)
def test_a_broker_with_a_fault_is_refused(fault: str, protocol: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Served("--profile", "kafka-4.4", *SETTING, program=(PROGRAM, fault)) as served:
        words = ["conform", "--target", served.bootstrap, "--protocol", protocol, "--profile", "kafka-4.4", "--json"]
        with pytest.raises(SystemExit) as left:
            main([*words, "--traces", TRACES.get(fault, "12"), "--seed", "100", "--steps", "30", "--workers", "2"])
    result = json.loads(capsys.readouterr().out)
    assert (left.value.code, result["counts"]["failed"] > 0) == (1, True)

"""Brokers that offer only some APIs: each run checks them and names the skipped parts, or names the API that the
protocol needs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from partial import partial_broker
from served import Served

from fencepost_conformance.cli import main
from fencepost_conformance.common.addresses import Address
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.generate.wire.asking import CLIENTS
from fencepost_conformance.traces.api_names import api_name
from fencepost_conformance.traces.recorder.upstream import inspect

pytestmark = pytest.mark.slow

DELAY = "group.initial.rebalance.delay.ms=0"
METADATA, CREATE_TOPICS, DESCRIBE_CONFIGS = 3, 19, 32
#: APIs that the suite uses beside those of clients
OTHERS = (8, 9, 10, 15, 16, 20, 22, 25, 26, 28, 32, 37, 42, 47, 69)
Versions = dict[int, tuple[int, int]]


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, Versions]]:
    """Return the address of a coordinator, and its versions."""
    with Served("--profile", "kafka-4.4", "--setting", DELAY) as here:
        host, _, port = here.bootstrap.rpartition(":")
        yield here.bootstrap, asyncio.run(inspect(Address(host, int(port)))).versions


def judged(
    served: tuple[str, Versions], offered: Versions, protocol: str, capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[int | str | None, str, str]:
    """Return exit status, standard output in one line, and the last line of standard error."""
    with partial_broker(served[0], offered) as (address, refused):
        words = [
            "conform",
            "--target",
            address,
            "--protocol",
            protocol,
            "--traces",
            "1",
            "--steps",
            "15",
            "--seed",
            "7",
        ]
        with pytest.raises(SystemExit) as left:
            main([*words, "--workers", "1", *more])
    assert not refused, "it asks for what is not offered"
    output = capsys.readouterr()
    return left.value.code, " ".join(output.out.split()), output.err.strip().splitlines()[-1] if output.err else ""


def test_a_broker_with_the_consumer_protocol_alone_is_judged(
    served: tuple[str, Versions], capsys: pytest.CaptureFixture[str]
) -> None:
    keys = (3, 10, 68, 8, 9, 19, 20)
    offered = {key: served[1][key] for key in keys}
    status, out, err = judged(served, offered, "consumer", capsys)
    assert status == 0, (out, err)
    assert "the broker does not offer ConsumerGroupDescribe, DescribeGroups, ListGroups, DeleteGroups" in out


def test_all_protocols_check_the_offered_ones_and_name_the_others(
    served: tuple[str, Versions], capsys: pytest.CaptureFixture[str]
) -> None:
    offered = {key: bounds for key, bounds in served[1].items() if key not in (68, 69)}
    status, out, err = judged(served, offered, "all", capsys)
    assert status == 0, (out, err)
    assert "consumer groups: skipped: " in out
    assert "does not offer ConsumerGroupHeartbeat, which --protocol mixed needs" in out


@pytest.mark.parametrize(
    "protocol",
    ["consumer", pytest.param("classic", marks=pytest.mark.all), pytest.param("mixed", marks=pytest.mark.all)],
)
def test_topics_that_exist_serve_a_broker_that_creates_none(
    served: tuple[str, Versions], protocol: str, capsys: pytest.CaptureFixture[str]
) -> None:
    offered = {key: bounds for key, bounds in served[1].items() if key not in (19, 20, 37)}
    status, out, err = judged(served, offered, protocol, capsys, "--topic", "orders")
    assert status == 0, (out, err)
    status, _, err = judged(served, offered, protocol, capsys, "--topic", "no-such-topic")
    assert status == 2
    assert "--topic no-such-topic: the broker has no such topic" in err


def swept(served: tuple[str, Versions], protocol: str, key: int, capsys: pytest.CaptureFixture[str]) -> None:
    offered = {each: bounds for each, bounds in served[1].items() if each != key}
    settings = ("--setting", DELAY) if key == DESCRIBE_CONFIGS else ()  # it cannot say so itself then
    status, out, err = judged(served, offered, protocol, capsys, *settings)
    needed = {*CLIENTS[GroupProtocol(protocol)], METADATA, *({CREATE_TOPICS} if protocol != "classic" else ())}
    if key in needed:
        assert status == 2, out
        assert (api_name(key) if key != METADATA else "metadata") in err
    else:
        assert status == 0, (out, err)
        assert key == DESCRIBE_CONFIGS or api_name(key) in out.partition("the broker does not offer")[2], out


@pytest.mark.parametrize(("protocol", "key"), [("consumer", CREATE_TOPICS), ("classic", 13), ("classic", 47)])
def test_a_single_api_that_is_absent_is_named(
    served: tuple[str, Versions], protocol: str, key: int, capsys: pytest.CaptureFixture[str]
) -> None:
    swept(served, protocol, key, capsys)


@pytest.mark.all
@pytest.mark.parametrize("protocol", ["classic", "consumer", "mixed"])
@pytest.mark.parametrize("key", [11, 12, 13, 14, 68, METADATA, CREATE_TOPICS, *OTHERS])
def test_each_api_that_is_absent_is_named(
    served: tuple[str, Versions], protocol: str, key: int, capsys: pytest.CaptureFixture[str]
) -> None:
    of_others = {"classic": (68, 69, CREATE_TOPICS), "consumer": (11, 12, 13, 14)}
    if key in of_others.get(protocol, ()):
        return
    swept(served, protocol, key, capsys)

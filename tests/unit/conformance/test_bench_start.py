"""``fencepost bench start``: each figure of a start is printed beside that of another server, and missing figures are
reported."""

from __future__ import annotations

import sys

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.run.bench import start
from fencepost_conformance.run.bench.served import Server
from fencepost_conformance.run.bench.start import Start

#: Opens its port, and answers with a length and the correlation id.
SERVER = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listening:
    connection = listening.accept()[0]
    with connection:
        connection.recv(14)
        connection.sendall(bytes(3) + bytes([4]) + bytes(3) + bytes([1]))
        connection.recv(1)
"""


def test_of_several_starts_the_least_of_each_figure_counts() -> None:
    assert Start.least([Start(1, 4, 5, 8), Start(2, 3, 6, 7)]) == Start(1, 3, 5, 7)


def test_each_figure_is_beside_the_same_of_the_other() -> None:
    rows = [*start.rows("ours", Start(0.2, 0.1, 0.4, 0.3), "theirs", Start(0.1, 0.1, 0.1, 0.1))]
    assert [(row.value, row.versus_value, row.ratio) for row in rows] == [
        (pytest.approx(ours), pytest.approx(100), pytest.approx(ours / 100)) for ours in (200, 100, 400, 300)
    ]
    alone = [*start.rows("ours", Start(0.2, 0.1, 0.4, 0.3), "kfake: Go is not installed", None)]
    assert {(row.versus, row.versus_value, row.ratio) for row in alone} == {("kfake: Go is not installed", None, None)}


def test_both_starts_are_beside_kfake_and_kafka() -> None:
    found = start.Starts(Start(0.2, 0.1, 0.4, 0.3), Start(0.3, 0.2, 0.6, 0.5), Start(0.1, 0.1, 0.1, 0.1), "")
    rows = [*start.beside(found, Server("Kafka 4.4.0", "", 1, 4.0, 10.0))]
    ratios = {(row.name, row.what, row.versus): row.ratio for row in rows}
    answer = "start: until the first answer"
    assert ratios[answer, "fencepost", "Kafka 4.4.0"] == pytest.approx(0.1)
    assert ratios[f"{answer}, processor time", "fencepost with a folder", "Kafka 4.4.0"] == pytest.approx(0.05)
    assert ratios["start: until the port is open", "fencepost with a folder", "kfake"] == pytest.approx(3)
    assert len(ratios) == len(rows) == 12
    alone = [*start.beside(found, None, "Kafka: Java is not installed")]
    assert {row.ratio for row in alone if row.versus == "Kafka: Java is not installed"} == {None}


def test_a_start_is_timed_until_the_port_is_open_and_until_it_answers() -> None:
    found = start.measured([sys.executable, "-c", SERVER, "{port}"], {})
    assert 0 < found.open_s <= found.answer_s
    assert 0 <= found.open_cpu_s <= found.answer_cpu_s


@pytest.mark.parametrize(
    ("program", "message"),
    [("pass", "did not open its port"), (SERVER.replace("connection.recv(14)", "raise SystemExit"), "does not answer")],
)
def test_a_server_that_does_not_start_is_reported(program: str, message: str) -> None:
    with pytest.raises(CannotRun, match=message):
        start.measured([sys.executable, "-c", program, "{port}"], {})

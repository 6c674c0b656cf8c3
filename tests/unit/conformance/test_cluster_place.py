"""Where Spark runs: the meaning of the options, rejected values, and that no port listens beyond loopback by
default."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from fencepost_conformance.cli import main
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.run.cluster import session
from fencepost_conformance.run.cluster.folder import is_url
from fencepost_conformance.run.cluster.place import (
    Place,
    driver_address,
    is_cluster,
    place_of,
    require_reachable,
    submitted,
)

LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


@pytest.mark.parametrize(
    ("master", "cluster"),
    [
        ("local", False),
        ("local[*]", False),
        ("local[3]", False),
        ("local[3,2]", False),
        ("spark://one:7077", True),
        ("spark://one:7077,two:7077", True),
        ("yarn", True),
        ("k8s://https://api.example:6443", True),
        ("k8s://api.example", True),
    ],
)
def test_masters(master: str, cluster: bool) -> None:
    assert place_of(master, ["spark.executor.memory=4g"]) == Place(master, (("spark.executor.memory", "4g"),))
    assert is_cluster(master) is cluster


@pytest.mark.parametrize(
    ("master", "conf", "workers", "message"),
    [
        ("mesos://one:5050", (), 0, "no Spark master 'mesos://one:5050'; known: local"),
        ("spark://one", (), 0, "no Spark master"),
        ("spark://one:7077/", (), 0, "no Spark master"),
        ("local[x]", (), 0, "no Spark master"),
        ("spark://one:7077", (), 2, "--conf spark.cores.max=N"),
        ("local[2]", (), 2, "use local"),
        (None, ["executor.memory=4g"], 0, "spark.NAME=VALUE"),
        (None, ["spark.executor.memory"], 0, "spark.NAME=VALUE"),
        (None, ["spark.master=yarn"], 0, "set the master with --master"),
    ],
)
def test_meaningless_places_are_rejected(master: str | None, conf: list[str], workers: int, message: str) -> None:
    with pytest.raises(CannotRun, match=message.replace("[", r"\[")):
        place_of(master, conf, workers)


def test_cores_of_this_machine() -> None:
    assert Place(cores=3).here == "local[3]"
    assert place_of(None, (), 3).cores == 3


@pytest.mark.parametrize(
    ("place", "environment", "expected"),
    [
        (Place(), {}, LOOPBACK),
        (Place(), {"SPARK_LOCAL_IP": "10.0.0.1"}, LOOPBACK),
        (Place("spark://127.0.0.1:7077"), {}, LOOPBACK),
        (Place("spark://localhost:7077"), {}, LOOPBACK),
        (Place("spark://10.0.0.9:7077", (("spark.driver.host", "10.0.0.1"),)), {}, {}),
        (Place("yarn", (("spark.driver.bindAddress", "0.0.0.0"),)), {}, {}),
        (Place("yarn"), {"SPARK_LOCAL_IP": "10.0.0.1"}, {}),
    ],
)
def test_the_driver_listens_on_loopback_by_default(
    place: Place, environment: dict[str, str], expected: dict[str, str]
) -> None:
    assert driver_address(place, environment) == expected


@pytest.mark.parametrize(
    "master", ["spark://10.0.0.9:7077", "spark://localhost:7077,10.0.0.9:7077", "yarn", "k8s://https://api.example"]
)
def test_executors_on_other_machines_need_the_address_of_the_driver(master: str) -> None:
    with pytest.raises(CannotRun, match=r"--conf spark\.driver\.host=ADDRESS"):
        driver_address(Place(master), {})


def test_an_unreachable_master_is_reported_immediately() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(CannotRun, match=rf"no Spark master at spark://127\.0\.0\.1:{port} .*refused"):
            require_reachable(f"spark://127.0.0.1:{port}")
        with pytest.raises(CannotRun, match="refused"):
            require_reachable(f"k8s://http://127.0.0.1:{port}")
        with socket.create_server(("127.0.0.1", 0)) as there:
            require_reachable(
                f"spark://127.0.0.1:{port},127.0.0.1:{there.getsockname()[1]}"
            )  # one of several is enough
    with pytest.raises(CannotRun, match="HADOOP_CONF_DIR or YARN_CONF_DIR"):
        require_reachable("yarn", {})
    require_reachable("yarn", {"YARN_CONF_DIR": "/etc/hadoop"})


def test_spark_submit_is_noticed() -> None:
    assert submitted({"PYSPARK_GATEWAY_PORT": "1"})
    assert not submitted({"PYSPARK_PYTHON": "python3"})


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("hdfs://one/rows", True),
        ("s3a://bucket/rows", True),
        ("file:///rows", True),
        ("file:/rows", True),
        ("out/rows", False),
        ("/out", False),
        ("C:rows", False),
    ],
)
def test_urls(name: str, url: bool) -> None:
    assert is_url(name) is url


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["conform", "--master", "yarn"], "--master needs --engine spark"),
        (["validate", "x", "--conf", "spark.a=b"], "--conf needs --engine spark"),
        (["check", "EagerQuiet", "--master", "yarn"], "--master needs --engine spark"),
        (["conform", "--rows", "hdfs://one/rows"], "--rows needs --engine spark"),
        (["conform", "--engine", "spark", "--master", "spark://127.0.0.1:1"], "--rows hdfs://"),
        (["conform", "--engine", "spark", "--master", "yarn", "-o", "out", "--rows", "out"], "--rows hdfs://"),
        (["validate", "hdfs://one/traces"], "only Spark reads URLs; add --engine spark"),
        (["conform", "--engine", "spark", "--master", "mars"], "no Spark master 'mars'"),
    ],
)
def test_commands_report_it_in_one_line(
    words: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.strip().splitlines()) == 1


def test_on_one_machine_the_jvm_of_light_work_takes_few_of_its_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given options come last, so that they override the defaults."""
    monkeypatch.setattr(session, "_choose_python", lambda _: None)
    own = (("spark.driver.extraJavaOptions", "-Xmx1g"),)
    name = "spark.driver.extraJavaOptions"
    assert session._settings(Place(conf=own), tmp_path, light=True)[name].endswith(f"{session._LIGHT} -Xmx1g")
    assert session._LIGHT not in session._settings(Place(conf=own), tmp_path, light=False)[name]
    place = Place("spark://127.0.0.1:7077", (*own, ("spark.driver.host", "127.0.0.1")))
    assert session._LIGHT not in session._settings(place, tmp_path, light=True)[name]

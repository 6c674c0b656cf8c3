"""The suite and the recorder with a broker that requires TLS, a certificate and a log-in."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from served import Served

from fencepost_conformance.cli import main
from fencepost_conformance.common.addresses import Address
from fencepost_conformance.targets.broker import Broker
from fencepost_conformance.traces.recorder.run import record
from fencepost_conformance.traces.wire.access import read_access
from fencepost_conformance.traces.wire.questions import questions

LOGIN = {"security.protocol": "SASL_SSL", "sasl.username": "alice", "sasl.password": "secret-1"}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a CA, a server and a client certificate that it has signed, and an unknown CA."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("needs openssl to make certificates")
    folder = tmp_path_factory.mktemp("keys")

    def openssl(*words: str) -> None:
        subprocess.run([program, *words], cwd=folder, check=True, capture_output=True)

    for name in ("ca", "other"):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem",
                "-days", "2", "-subj", f"/CN={name}")  # fmt: skip
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1")
    for name in ("server", "client"):
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr",
                "-subj", f"/CN={name}")  # fmt: skip
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-out", f"{name}.crt", "-days", "2", "-extfile", "names")  # fmt: skip
        both = (folder / f"{name}.crt").read_text() + (folder / f"{name}.key").read_text()
        (folder / f"{name}.pem").write_text(both)
    (folder / "users").write_text("alice:secret-1\n")
    return folder


def config(keys: Path, mechanism: str = "PLAIN", **changes: str | None) -> Path:
    said: dict[str, str | None] = {
        **LOGIN,
        "sasl.mechanism": mechanism,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(keys / "ca.pem"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys / "client.pem"),
        **{name.replace("_", "."): value for name, value in changes.items()},
    }
    path = keys / "client.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in said.items() if value is not None))
    return path


def conform(capsys: pytest.CaptureFixture[str], target: str, path: Path, *words: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as left:
        main(["conform", "--target", target, "--client-config", str(path), "--json", *words])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found | {"status": left.value.code}


def why(target: str, path: Path | None) -> str:
    """Why the test cannot run."""

    async def ask() -> None:
        host, port = target.split(":")
        async with questions(host, int(port), read_access(path)) as broker:
            await broker.ask("metadata", 0, 13, topics=(), allow_auto_topic_creation=False)

    with pytest.raises(Exception) as failure:  # noqa: PT011 — an OSError or a MalformedFrame
        asyncio.run(ask())
    return str(failure.value)


def reports_what_is_wrong(target: str, keys: Path) -> None:
    assert "rejects the login of alice" in why(target, config(keys, "SCRAM-SHA-512", sasl_password="wrong"))
    assert "is not trusted" in why(target, config(keys, ssl_truststore_location=str(keys / "other.pem")))
    assert "a certificate (--client-config)" in why(target, config(keys, ssl_keystore_location=None))
    assert "wants a log-in (--client-config)" in why(target, config(keys, security_protocol="SSL"))
    assert "TLS (--client-config)" in why(target, None)


def test_a_server_that_wants_all_of_it(keys: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = ("--tls-cert", "server.pem", "--tls-client-ca", "ca.pem", "--users", "users")
    paths = [each if each.startswith("--") else str(keys / each) for each in options]
    with Served("--profile", "kafka-4.4", "--setting", "group.initial.rebalance.delay.ms=100", *paths) as server:
        reports_what_is_wrong(server.bootstrap, keys)
        words = ("--profile", "kafka-4.4", "--protocol", "mixed", "--traces", "2", "--steps", "20")
        found = conform(capsys, server.bootstrap, config(keys, "SCRAM-SHA-256"), *words)
        assert (found["passed"], found["status"]) == (True, 0), found
        asyncio.run(recorded(server.bootstrap, config(keys), tmp_path / "trace.jsonl"))


async def recorded(upstream: str, path: Path, trace: Path) -> None:
    """A client without security speaks to the recorder, which uses all of it towards the broker."""
    until, here = asyncio.Event(), asyncio.get_running_loop().create_future()
    host, port = upstream.split(":")
    recording = asyncio.create_task(
        record(
            Address("127.0.0.1", 0), Address(host, int(port)), trace, until,
            ready=here.set_result, complain=lambda _: None, access=read_access(path),
        )
    )  # fmt: skip
    ready = await here
    async with questions(ready.host, ready.port) as broker:
        answer = await broker.ask("heartbeat", 0, 4, group_id="g", generation_id=1, member_id="m")
        assert answer.error_code.value == 25
    until.set()
    assert (await recording).events == 4


def test_a_server_that_speaks_no_tls(keys: Path) -> None:
    with Served() as server:
        assert "no TLS is spoken there" in why(server.bootstrap, config(keys))


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.all
def test_a_kafka_that_wants_all_of_it(keys: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stores = {"keystore.type": "PEM", "keystore.location": str(keys / "server.pem"), "client.auth": "required",
              "truststore.type": "PEM", "truststore.location": str(keys / "ca.pem")}  # fmt: skip
    secured = {f"listener.name.secured.ssl.{name}": value for name, value in stores.items()}
    with Broker(initial_rebalance_delay_ms=100, settings=secured, logins={"alice": "secret-1"}) as broker:
        target = f"127.0.0.1:{broker.secured_port}"
        reports_what_is_wrong(target, keys)
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            found = conform(capsys, target, config(keys, mechanism), "--protocol", "mixed", "--traces", "2")
            assert (found["passed"], found["status"]) == (True, 0), found

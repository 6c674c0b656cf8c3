"""TLS and log-in of a broker, from the file that Kafka's own tools read."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fencepost.wire.frames import MalformedFrame, read_frame
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.traces.wire.access import OPEN, Access, read_access


def said(folder: Path, *lines: str) -> Access:
    path = folder / "client.properties"
    path.write_text("\n".join(lines) + "\n")
    return read_access(path)


def test_without_a_file_and_without_security_it_is_open(tmp_path: Path) -> None:
    assert read_access(None) is OPEN
    assert said(tmp_path, "bootstrap.servers=here:9092", "group.id=g") == OPEN
    assert OPEN.hint == "; perhaps it wants a log-in or TLS (--client-config)"


@pytest.mark.parametrize(
    "lines",
    [
        ("sasl.username=alice", "sasl.password=se;cret"),
        ('sasl.jaas.config=a.b.ScramLoginModule required username="alice" password="se;cret";',),
        (
            "! as Java writes it",
            "sasl.jaas.config : a.b.Module required \\",
            "    username='alice' password='se;cret' ;",
        ),
    ],
)
def test_a_login_may_be_given_in_either_form(lines: tuple[str, ...], tmp_path: Path) -> None:
    found = said(tmp_path, "# mine", "security.protocol=sasl_plaintext", "sasl.mechanism = scram-sha-256", *lines)
    assert found.tls is None
    assert found.sasl is not None
    assert (found.sasl.mechanism, found.sasl.username, found.sasl.password) == ("SCRAM-SHA-256", "alice", "se;cret")


@pytest.mark.parametrize("value", ["https", "", "none"])
def test_host_names_are_verified_by_default(value: str, tmp_path: Path) -> None:
    found = said(tmp_path, "security.protocol=SSL", f"ssl.endpoint.identification.algorithm={value}")
    assert found.tls is not None
    assert found.tls.check_hostname is (value == "https")
    assert found.hint == "; perhaps it wants a log-in or a certificate (--client-config)"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (("security.protocol=SLL",), "no security.protocol 'SLL'"),
        (("security.protocol=SSL", "ssl.trustore.location=x"), "ssl.trustore.location"),
        (("security.protocol=SSL", "ssl.truststore.location=x.jks"), "PEM can"),
        (("security.protocol=SSL", "ssl.ca.location=/nowhere/ca.pem"), "/nowhere/ca.pem: No such file"),
        (("security.protocol=SASL_PLAINTEXT",), "GSSAPI"),
        (("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", "sasl.username=a"), "a password"),
    ],
)
def test_unknown_and_missing_properties_are_reported(lines: tuple[str, ...], why: str, tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match=r"--client-config .*client.properties: ") as failure:
        said(tmp_path, *lines)
    assert why in str(failure.value)


def test_an_unreadable_file_of_properties_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="No such file"):
        read_access(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(CannotRun, match="not a file of properties"):
        read_access(tmp_path / "bytes")


@pytest.mark.parametrize("begins", [b"\x16\x03\x01\x02\x00", b"\x15\x03\x03\x00\x02"])
def test_bytes_of_tls_are_distinguished_from_a_frame(begins: bytes) -> None:
    async def read() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(begins)
        reader.feed_eof()
        await read_frame(reader, 1 << 20)

    with pytest.raises(MalformedFrame, match="speaks TLS"):
        asyncio.run(read())

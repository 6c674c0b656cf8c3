"""A port that is open before the server is ready."""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
from typing import Any

import pytest

from fencepost_server.net.port import open_port
from fencepost_server.options import Address

from .served import LOOPBACK, running

#: ApiVersions v0 without a client id
ASKED = struct.pack(">ihhih", 10, 18, 0, 7, -1)
BOTH = "both"


def resolve(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """The name ``BOTH`` has these addresses."""
    original = socket.getaddrinfo

    def found(_: str, port: int, **options: Any) -> list[Any]:
        return [original(each, port, **options)[0] for each in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", found)


def test_a_client_that_connects_before_the_server_runs_is_answered() -> None:
    async def session() -> None:
        with open_port(LOOPBACK) as port:
            early = socket.create_connection((port.address.host, port.address.port), timeout=5)
            early.sendall(ASKED)
            async with running(port=port) as ready:
                assert ready.listen == port.address
                reader, writer = await asyncio.open_connection(sock=early)
                size, correlation = struct.unpack(">ii", await asyncio.wait_for(reader.readexactly(8), 30))
                assert (size > 4, correlation) == (True, 7)
                writer.close()
                await writer.wait_closed()
            assert all(each.fileno() == -1 for each in port.sockets)

    asyncio.run(session())


def test_a_host_with_two_addresses_has_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(monkeypatch, "127.0.0.1", "127.0.0.2")
    with open_port(Address(host=BOTH, port=0)) as port:
        names = [each.getsockname() for each in port.sockets]
    assert names == [("127.0.0.1", port.address.port), ("127.0.0.2", port.address.port)]


def test_an_address_that_the_machine_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(monkeypatch, "192.0.2.1", "127.0.0.1")
    with open_port(Address(host=BOTH, port=0)) as port:
        assert [each.getsockname()[0] for each in port.sockets] == ["127.0.0.1"]


@pytest.mark.parametrize(
    ("host", "message"),
    [("192.0.2.1", "cannot assign requested address"), ("no.such.host.invalid", "cannot listen on")],
)
def test_a_host_of_no_address_here_is_refused(host: str, message: str) -> None:
    with pytest.raises(OSError, match=message):
        open_port(Address(host=host, port=0))


def test_a_port_that_is_taken_on_one_address_is_left_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.2", 0)) as taken:
        at = taken.getsockname()[1]
        resolve(monkeypatch, "127.0.0.1", "127.0.0.2")
        with pytest.raises(OSError, match=f"cannot listen on both:{at}: address already in use") as refused:
            open_port(Address(host=BOTH, port=at))
        assert refused.value.errno == errno.EADDRINUSE
        monkeypatch.undo()
        with socket.create_server(("127.0.0.1", at)):
            pass

"""A port that is open before its server is loaded."""

from __future__ import annotations

import errno
import os
import socket
from dataclasses import dataclass
from typing import Final, Self

from fencepost_server.options import Address

#: connections that the operating system queues until they are accepted
BACKLOG: Final = 1024


@dataclass(frozen=True, slots=True)
class Port:
    """Listening sockets, one for each address of the host. The operating system queues connections until they are
    accepted, so clients may connect before the server can answer. As a context manager, it closes the sockets."""

    address: Address
    sockets: tuple[socket.socket, ...]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.sockets:
            each.close()


def open_port(listen: Address) -> Port:
    """Listen on an address; port 0 picks a free one, the same for each address of the host.

    Raises:
        OSError: the host has no address, or the port is taken on one of them.
    """
    try:
        found = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as unknown:
        raise OSError(unknown.errno, f"cannot listen on {listen}: {unknown.strerror or unknown}") from None
    sockets: list[socket.socket] = []
    port = listen.port
    absent = None
    for family, kind, protocol, _, at in dict.fromkeys(found):
        try:
            sockets.append(_listening(family, kind, protocol, (at[0], port, *at[2:])))
            port = sockets[-1].getsockname()[1]
        except OSError as reason:
            if reason.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                absent = reason  # a name may have an IPv6 address on a machine without IPv6
                continue
            for each in sockets:
                each.close()
            raise _cannot(listen, reason) from None
    if not sockets:
        raise _cannot(listen, absent or OSError(errno.EADDRNOTAVAIL, ""))
    return Port(Address(host=listen.host, port=port), tuple(sockets))


def _listening(family: int, kind: int, protocol: int, at: tuple[object, ...]) -> socket.socket:
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(at)
        made.listen(BACKLOG)
    except OSError:
        made.close()
        raise
    return made


def _cannot(listen: Address, reason: OSError) -> OSError:
    number = reason.errno or errno.EADDRNOTAVAIL
    return OSError(number, f"cannot listen on {listen}: {os.strerror(number).lower()}")

"""Workers log in to a broker that requires it; errors in a login are one line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from fencepost.remote import Groups, LoginFailed, Refused, Sasl
from fencepost.remote.cluster import Cluster
from fencepost.remote.sasl import Mechanism
from fencepost.wire.frames import API_KEYS
from fencepost_server.apis import login
from fencepost_server.apis.table import TABLE
from fencepost_server.options import Address, Options
from fencepost_server.run import Ready, Setup, serve
from fencepost_server.security.sasl import Users

from .teams import EVERY, QUICK, Team, until

MECHANISMS: list[Mechanism] = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
#: from RFC 7677, section 3
RFC_NONCE = "rOprNGfwEbeRWgbNEkqO"
RFC_SERVER = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
RFC_PROOF = b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
RFC_VERIFIER = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@asynccontextmanager
async def guarded(*mechanisms: str) -> AsyncIterator[Address]:
    """A server on which alice may log in."""
    loop = asyncio.get_running_loop()
    there: asyncio.Future[Ready] = loop.create_future()
    stop = asyncio.Event()
    setup = Setup(
        options=Options(listen=Address(host="127.0.0.1", port=0)),
        settings=QUICK,
        topics={"orders": 6},
        users=Users({"alice": "s,e=crét"}, mechanisms or tuple(MECHANISMS)),
    )
    running = loop.create_task(serve(setup, there.set_result, stop))
    try:
        yield (await there).listen
    finally:
        stop.set()
        await running


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_worker_logs_in(mechanism: Mechanism) -> None:
    async def story() -> None:
        async with guarded() as at, Groups(str(at), sasl=Sasl("alice", "s,e=crét", mechanism)) as groups:
            team = Team(groups.worker, "consumer")
            async with asyncio.TaskGroup() as running, team.member() as one:
                running.create_task(team.works("one", one))
                await until(lambda: min(team.done.values()) > 1)
                assert team.holding("one") == EVERY

    asyncio.run(story())


def test_a_wrong_login_is_reported() -> None:
    async def tries(at: Address, sasl: Sasl | None) -> None:
        async with Groups(str(at), sasl=sasl):
            pass

    async def story() -> None:
        async with guarded("PLAIN", "SCRAM-SHA-256") as at:
            for mechanism in ("PLAIN", "SCRAM-SHA-256"):
                with pytest.raises(Refused, match="rejects the login of alice: Authentication failed"):
                    await tries(at, Sasl("alice", "guess", mechanism))  # type: ignore[arg-type]
            with pytest.raises(Refused, match="mechanism SCRAM-SHA-512; it supports PLAIN, SCRAM-SHA-256"):
                await tries(at, Sasl("alice", "s,e=crét"))
            with pytest.raises(Refused, match="closed the connection instead of responding to metadata"):
                await tries(at, None)

    asyncio.run(story())
    with pytest.raises(ValueError, match=r"must be PLAIN or SCRAM-SHA-256 or SCRAM-SHA-512 .*'GSSAPI'"):
        Sasl("alice", "secret", "GSSAPI")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs a user name and a password"):
        Sasl("alice", "")
    for name, password in (("", "secret"), ("al\0ice", "secret"), ("alice", "sec\0ret")):
        with pytest.raises(ValueError, match="needs a user name and a password, both without zero bytes"):
            Sasl(name, password)
    assert "secret" not in repr(Sasl("alice", "secret"))


def test_scram_is_that_of_its_rfc() -> None:
    exchange = Sasl("user", "pencil", "SCRAM-SHA-256").exchange(lambda: RFC_NONCE)
    assert next(exchange) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert exchange.send(RFC_SERVER).endswith(RFC_PROOF)
    with pytest.raises(StopIteration):
        exchange.send(RFC_VERIFIER)


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        (RFC_SERVER, RFC_VERIFIER.replace(b"6", b"7"), "has not proved that it knows the user"),
        (RFC_SERVER, b"e=other-error", "has not proved that it knows the user: other-error"),
        (RFC_SERVER, b"", "has not proved that it knows the user"),
        (RFC_SERVER.replace(b"rOpr", b"xOpr"), b"", "does not extend the client nonce"),
        (RFC_SERVER.replace(b"%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", b""), b"", "does not extend the client nonce"),
        (RFC_SERVER.replace(b"4096", b"1"), b"", "the broker asks for 1"),
        (RFC_SERVER.replace(b"4096", b"99999999"), b"", "the broker asks for 99999999"),
        (RFC_SERVER.replace(b"W22", b"!"), b"", "first SCRAM message is malformed"),
        (b"\xff", b"", "first SCRAM message is malformed"),
    ],
)
def test_a_broker_that_only_pretends_is_refused(first: bytes, last: bytes, words: str) -> None:
    exchange = Sasl("user", "pencil", "SCRAM-SHA-256").exchange(lambda: RFC_NONCE)
    next(exchange)

    def broker_says() -> None:
        exchange.send(first)
        exchange.send(last)

    with pytest.raises(LoginFailed, match=words):
        broker_says()


@pytest.mark.parametrize(("lifetime_ms", "renewed"), [(0, False), (60_000, False), (1, True)])
def test_a_login_is_renewed_on_its_connection_when_it_ends(
    monkeypatch: pytest.MonkeyPatch, lifetime_ms: int, renewed: bool
) -> None:
    """Logins that expire (KIP-368), with a server that announces their duration (0: never) and counts them."""
    logins: list[object] = []
    handshake, authenticate = login.handshake, login.authenticate

    async def again(call: Any, request: Any) -> Any:
        call.session.logged_in = False
        logins.append(call.session)
        return await handshake(call, request)

    async def for_a_while(call: Any, request: Any) -> Any:
        return {**await authenticate(call, request), "session_lifetime": lifetime_ms}

    for name, handler in {"sasl_handshake": again, "sasl_authenticate": for_a_while}.items():
        monkeypatch.setitem(TABLE, API_KEYS[name], replace(TABLE[API_KEYS[name]], handler=handler))

    async def story() -> list[int]:
        counts = []
        async with guarded() as at:
            cluster = Cluster([(at.host, at.port)], "worker", None, Sasl("alice", "s,e=crét"))
            for _ in range(4):
                await cluster.topics()
                counts.append(len(logins))
                await asyncio.sleep(0.01)
            await cluster.close()
        return counts

    first, *later = asyncio.run(story())
    assert first >= 1
    assert later == [first + more * renewed for more in (1, 2, 3)]
    assert len({id(each) for each in logins}) == 1

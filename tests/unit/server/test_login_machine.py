"""SASL exchanges compared with what RFC 4616, RFC 5802 and Kafka's SaslServerAuthenticator allow."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fencepost.server.apis.call import Call
from fencepost.server.apis.login import authenticate, bare_message, handshake
from fencepost.server.security.sasl import MECHANISMS, Users
from fencepost.server.security.session import ANONYMOUS, LoginRefused, Session
from fencepost.server.wire.frames import API_KEYS, MalformedFrame, RequestHeader

from .scram_client import DIGESTS, ScramClient, saslname
from .waitless import now

SPECIAL: Final = ("alice", "bob", "=2C", "=3D", "=3D2C", ",", "=", "a=b,c", "n=x,r=y", "grüße", "Ａ", " a ")
#: All of Unicode but for NUL, which RFC 4616 and RFC 5802 exclude from names and passwords.
TEXTS: Final = st.one_of(
    st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=8),
    st.text("=,23CDa", min_size=1, max_size=6),
    st.sampled_from(SPECIAL),
)
NONCES: Final = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters=","), min_size=1, max_size=12
)


class LoginMachine(RuleBasedStateMachine):
    """One connection after another."""

    @initialize(
        users=st.dictionaries(st.one_of(st.sampled_from(SPECIAL), TEXTS), TEXTS, min_size=1, max_size=3),
        mechanisms=st.sampled_from((MECHANISMS, MECHANISMS, ("PLAIN",), MECHANISMS[1:2])),
    )
    def begin(self, users: dict[str, str], mechanisms: tuple[str, ...]) -> None:
        self.users, self.mechanisms = users, mechanisms
        self.node = SimpleNamespace(users=Users(users, mechanisms))
        self.nonces: set[str] = set()
        for mechanism in mechanisms:
            for name, password in users.items():
                self._connect()
                self._shake_hands(mechanism, 1)
                if mechanism == "PLAIN":
                    self._send(f"\0{name}\0{password}".encode(), succeeds=True, done=name)
                else:
                    client = ScramClient(mechanism, name, password, "n0nce", authzid=name)
                    proof = client.final(self._send(client.first(), succeeds=True))
                    assert client.is_server(self._send(proof, succeeds=True, done=name))
        self._connect()

    @rule()
    def connect(self) -> None:
        self._connect()

    def _connect(self) -> None:
        self.session = Session("10.0.0.1", 0.0)
        self.mechanism: str | None = None  #: of the exchange that was begun
        self.client: ScramClient | None = None  #: whose first message was answered
        self.server_first = b""
        self.principal = ANONYMOUS
        self.over = False  #: Kafka closes the connection

    def _ask(self, api: str, version: int, **values: Any) -> dict[str, Any]:
        handler = handshake if api == "sasl_handshake" else authenticate
        call = Call(self.node, RequestHeader(API_KEYS[api], version, 1, "client"), self.session)  # type: ignore[arg-type]
        answer = now(handler(call, SimpleNamespace(**values)))
        assert isinstance(answer, dict)
        return answer

    def _code(self, answer: dict[str, Any]) -> str:
        return answer["error_code"].name if "error_code" in answer else "none"

    @precondition(lambda self: not self.over)
    @rule(mechanism=st.sampled_from((*MECHANISMS, *MECHANISMS, "GSSAPI", "plain", "")), version=st.integers(0, 1))
    def shake_hands(self, mechanism: str, version: int) -> None:
        if not self.session.bare:
            self._shake_hands(mechanism, version)

    def _shake_hands(self, mechanism: str, version: int) -> None:
        answer = self._ask("sasl_handshake", version, mechanism=mechanism)
        if self.mechanism is not None or self.principal != ANONYMOUS:
            assert self._code(answer) == "illegal_sasl_state"
        elif mechanism not in self.mechanisms:
            assert self._code(answer) == "unsupported_sasl_mechanism"
        else:
            assert self._code(answer) == "none"
            self.mechanism = mechanism
        assert tuple(answer["mechanisms"]) == self.mechanisms

    def _send(self, message: bytes, *, succeeds: bool, done: str | None = None) -> bytes:
        """A message of the exchange: its answer, if it is a good one."""
        if self.session.bare:
            if succeeds:
                answered = bare_message(self.session, message)
            else:
                with pytest.raises(MalformedFrame):
                    bare_message(self.session, message)
                answered = b""
        else:
            answer = self._ask("sasl_authenticate", 2, auth_bytes=message)
            assert self._code(answer) == ("none" if succeeds else "sasl_authentication_failed")
            answered = answer["auth_bytes"]
        self.over = not succeeds
        if done is not None and succeeds:
            self.principal, self.mechanism, self.client = f"User:{done}", None, None
        return answered

    @precondition(lambda self: not self.over and self.mechanism is None)
    @rule()
    def authenticate_out_of_turn(self) -> None:
        answer = self._ask("sasl_authenticate", 2, auth_bytes=b"\0a\0b")
        assert self._code(answer) == "illegal_sasl_state"

    def _begun(self, mechanism: str, version: int) -> None:
        """On a new connection, unless an exchange of the mechanism waits for its first message."""
        if self.over or self.mechanism != mechanism or self.client is not None or self.principal != ANONYMOUS:
            self._connect()
            self._shake_hands(mechanism, version)

    # PLAIN

    @precondition(lambda self: "PLAIN" in self.mechanisms)
    @rule(
        data=st.data(),
        wrong=st.sampled_from((None, None, "name", "password", "prefix", "authzid", "none", "two", "four", "bytes")),
        named=st.booleans(),
        version=st.integers(0, 1),
    )
    def be_plain(self, data: Any, wrong: str | None, named: bool, version: int) -> None:
        self._begun("PLAIN", version)
        name = data.draw(st.sampled_from(sorted(self.users)))
        password, authzid, other = self.users[name], name if named else "", data.draw(TEXTS)
        said = [authzid, name, password]
        if wrong == "name":
            said[1:2] = [other]
        elif wrong == "password":
            said[2] = other
        elif wrong == "prefix":
            said[2] = password[:-1]
        elif wrong == "authzid":
            said[0] = data.draw(st.sampled_from((other, *self.users)))
        elif wrong == "none":
            said[2] = ""
        elif wrong == "two":
            del said[0]
        elif wrong == "four":
            said.append("")
        message = "\0".join(said).encode() + (b"\xff" if wrong == "bytes" else b"")
        good = (
            wrong != "bytes"
            and len(said) == 3
            and self.users.get(said[1], "") == said[2] != ""
            and said[0] in ("", said[1])
        )
        assert self._send(message, succeeds=good, done=said[1] if good else None) == b""

    # SCRAM

    @precondition(lambda self: self.mechanisms != ("PLAIN",))
    @rule(
        data=st.data(),
        version=st.integers(0, 1),
        nonce=NONCES,
        authzid=st.sampled_from((None, None, "own", "other")),
        flag=st.sampled_from(("n", "n", "y")),
        wrong=st.sampled_from(
            (None,) * 4 + ("name", "password", "escape", "raw", "flag", "no nonce", "no name", "bytes")
        ),
    )
    def begin_scram(
        self, *, data: Any, version: int, nonce: str, authzid: str | None, flag: str, wrong: str | None
    ) -> None:
        mechanism = data.draw(st.sampled_from([each for each in self.mechanisms if each != "PLAIN"]))
        self._begun(mechanism, version)
        name, other = data.draw(st.sampled_from(sorted(self.users))), data.draw(TEXTS)
        said = other if wrong == "name" else name
        actor = {None: None, "own": said, "other": other}[authzid]
        self.right = wrong != "password" or other == self.users[name]
        password = other if wrong == "password" else self.users.get(said, "")
        client = ScramClient(mechanism, said, password, nonce, authzid=actor, flag=flag)
        message = client.first()
        good = said in self.users and actor in (None, said)
        if wrong == "escape":
            message = message.replace(b"n=" + saslname(said).encode(), b"n=" + saslname(said).encode() + b"=2D")
            good = False
        elif wrong == "raw" and re.search("=(?!2C|3D)", said):
            message = message.replace(b"n=" + saslname(said).encode(), b"n=" + said.replace(",", "=2C").encode())
            good = False
        elif wrong == "flag":
            message, good = b"p=tls-unique" + message[1:], False
        elif wrong == "no nonce":
            message, good = message.rpartition(b",r=")[0], False
        elif wrong == "no name":
            message, good = f"n,,r={nonce}".encode(), False
        elif wrong == "bytes":
            message, good = message + b"\xff", False
        answered = self._send(message, succeeds=good)
        if good:
            self.client, self.name, self.server_first = client, said, answered
            asked = answered.decode().split(",")[0]
            assert asked not in self.nonces
            self.nonces.add(asked)

    @precondition(lambda self: not self.over and self.client is not None)
    @rule(wrong=st.sampled_from((None,) * 5 + ("nonce", "longer nonce", "base64", "short", "bit", "no proof", "first")))
    def finish_scram(self, wrong: str | None) -> None:
        assert self.client is not None
        client, nonce = self.client, self.server_first.decode().split(",")[0][2:]
        given = {"nonce": client.nonce, "longer nonce": nonce + "a"}.get(wrong or "")
        message = client.final(self.server_first, nonce=given)
        if wrong == "base64":
            message = message[:-5] + b"*" + message[-4:]
        elif wrong == "short":
            message = message[: message.index(b",p=")] + b",p=AAAA"
        elif wrong == "bit":
            at = message.index(b",p=") + 5
            message = message[:at] + (b"B" if message[at : at + 1] != b"B" else b"C") + message[at + 1 :]
        elif wrong == "no proof":
            message = message[: message.index(b",p=")]
        elif wrong == "first":
            message = client.first()
        good = wrong is None and self.right
        answered = self._send(message, succeeds=good, done=self.name)
        if good:
            assert client.is_server(answered)

    @invariant()
    def the_principal_is_proven(self) -> None:
        assert self.session.principal == self.principal
        assert self.session.logged_in == (self.principal != ANONYMOUS)


def chosen(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
    )


def test_exchanges_are_those_of_the_rfcs() -> None:
    run_state_machine_as_test(LoginMachine, settings=chosen(60, 20))


@pytest.mark.all
def test_more_exchanges_are_those_of_the_rfcs() -> None:
    run_state_machine_as_test(LoginMachine, settings=chosen(2_000, 30))


@pytest.mark.parametrize("name", SPECIAL)
def test_every_name_logs_in_for_itself_alone(name: str) -> None:
    users = Users({name: "p=,x", "other": "q"})
    assert users.begin("PLAIN").step(f"{name}\0{name}\0p=,x".encode()) == (b"", name)
    with pytest.raises(LoginRefused, match="authorization id"):
        users.begin("PLAIN").step(f"other\0{name}\0p=,x".encode())
    for mechanism in DIGESTS:
        client, exchange = ScramClient(mechanism, name, "p=,x", "n", authzid=name), users.begin(mechanism)
        server_first, _ = exchange.step(client.first())
        server_final, done = exchange.step(client.final(server_first))
        assert client.is_server(server_final)
        assert done == name
        with pytest.raises(LoginRefused, match="authorization id"):
            users.begin(mechanism).step(ScramClient(mechanism, name, "p=,x", "n", authzid="other").first())

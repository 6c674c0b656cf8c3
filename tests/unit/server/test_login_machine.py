"""SASL exchanges compared with RFC 4616, RFC 5802 and Kafka's SaslServerAuthenticator."""

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
from kio.schema.errors import ErrorCode as Code

from fencepost.wire.fill import fill
from fencepost.wire.frames import (
    API_KEYS,
    MalformedFrame,
    RequestHeader,
    read_response,
    request_schema,
    write_request,
)
from fencepost_server.apis.table import ANNOUNCED
from fencepost_server.dispatch import Dispatch
from fencepost_server.options import Options
from fencepost_server.security.sasl import MECHANISMS, Users
from fencepost_server.security.session import ANONYMOUS, LoginRefused, Session

from .scram_client import DIGESTS, ScramClient, saslname
from .waitless import now

SPECIAL: Final = ("alice", "bob", "=2C", "=3D", "=3D2C", ",", "=", "a=b,c", "n=x,r=y", "grüße", "Ａ", " a ")
#: All of Unicode except NUL, which RFC 4616 and RFC 5802 exclude from names and passwords.
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
        node: Any = SimpleNamespace(users=Users(users, mechanisms), announced=ANNOUNCED, leads=True, options=Options())
        self.dispatch = Dispatch(node)
        self.nonces: set[str] = set()
        for mechanism in mechanisms:
            for name, password in users.items():
                self._connect()
                self._shake_hands(mechanism, 1)
                if mechanism == "PLAIN":
                    self._send(f"\0{name}\0{password}".encode(), succeeds=True, done=name)
                    continue
                client = ScramClient(
                    mechanism, name, password, "n0nce", authzid=name if saslname(name) == name else None
                )
                first = self._send(client.first(), succeeds=name.isascii())
                if name.isascii():
                    assert client.is_server(self._send(client.final(first), succeeds=True, done=name))
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
        self.versions_known = False
        self.drained: list[None] = []

    def _ask(self, api: str, version: int, **values: Any) -> Any:
        """Return the answer; None if the connection is closed without one."""
        header = RequestHeader(API_KEYS[api], version, 1, "client")
        answered = self._frame(write_request(header, fill(request_schema(api, version), values)))
        return None if answered is None else read_response(api, version, answered)

    def _frame(self, frame: bytes) -> bytes | None:
        connection: Any = SimpleNamespace(session=self.session, drain=lambda: self.drained.append(None))
        try:
            return now(self.dispatch(connection, frame))
        except MalformedFrame:
            self.drained.append(None)
            return None

    @invariant()
    def it_is_closed_after_an_error(self) -> None:
        assert bool(self.drained) == self.over

    @precondition(lambda self: not self.over)
    @rule(mechanism=st.sampled_from((*MECHANISMS, *MECHANISMS, "GSSAPI", "plain", "")), version=st.integers(0, 1))
    def shake_hands(self, mechanism: str, version: int) -> None:
        if not self.session.bare:
            self._shake_hands(mechanism, version)

    def _shake_hands(self, mechanism: str, version: int) -> None:
        answer = self._ask("sasl_handshake", version, mechanism=mechanism)
        if self.mechanism is not None or self.principal != ANONYMOUS:
            assert (answer.error_code, answer.mechanisms) == (Code.illegal_sasl_state, ())
            self.over = self.principal == ANONYMOUS
            return
        assert answer.mechanisms == self.mechanisms
        if mechanism not in self.mechanisms:
            assert answer.error_code == Code.unsupported_sasl_mechanism
            self.over = True
        else:
            assert answer.error_code == Code.none
            self.mechanism = mechanism

    def _send(self, message: bytes, *, succeeds: bool, done: str | None = None, answers: bool = True) -> bytes:
        """Send a message of the exchange; return the answer, if it is valid. ``answers``: Kafka answers an invalid
        one."""
        if self.session.bare:
            answered = self._frame(message)
            assert (answered is not None) == succeeds
        else:
            answer = self._ask("sasl_authenticate", 2, auth_bytes=message)
            assert (answer is not None) == (succeeds or answers)
            if answer is not None:
                assert answer.error_code == (Code.none if succeeds else Code.sasl_authentication_failed)
            answered = answer.auth_bytes if succeeds else b""
        self.over = not succeeds
        if done is not None and succeeds:
            self.principal, self.mechanism, self.client = f"User:{done}", None, None
        return answered or b""

    @precondition(lambda self: not self.over and self.mechanism is None)
    @rule()
    def authenticate_out_of_turn(self) -> None:
        answer = self._ask("sasl_authenticate", 2, auth_bytes=b"\0a\0b")
        self.over = self.principal == ANONYMOUS
        assert answer is None if self.over else answer.error_code == Code.illegal_sasl_state

    @precondition(lambda self: not self.over and self.principal == ANONYMOUS and not self.session.bare)
    @rule(version=st.integers(0, 2))
    def ask_for_versions(self, version: int) -> None:
        answer = self._ask("api_versions", version)
        if self.mechanism is not None:
            assert answer.error_code == Code.illegal_sasl_state
            self.over = True
        elif self.versions_known:
            assert answer is None
            self.over = True
        else:
            assert answer.error_code == Code.none
            self.versions_known = True

    @precondition(lambda self: not self.over and self.principal == ANONYMOUS and not self.session.bare)
    @rule()
    def ask_for_something_else(self) -> None:
        answer = self._ask("heartbeat", 4, group_id="g", generation_id=1, member_id="m")
        self.over = True
        assert answer is None if self.mechanism is None else answer.error_code == Code.illegal_sasl_state

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
        good = said in self.users and said.isascii() and flag == "n" and (actor is None or saslname(actor) == said)
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
        answered = self._send(message, succeeds=good, done=self.name, answers=wrong != "short")
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


def test_exchanges_follow_the_rfcs() -> None:
    run_state_machine_as_test(LoginMachine, settings=chosen(60, 20))


@pytest.mark.all
def test_more_exchanges_follow_the_rfcs() -> None:
    run_state_machine_as_test(LoginMachine, settings=chosen(2_000, 30))


@pytest.mark.parametrize("name", SPECIAL)
def test_every_name_logs_in_for_itself_alone(name: str) -> None:
    users = Users({name: "p=,x", "other": "q"})
    assert users.begin("PLAIN").step(f"{name}\0{name}\0p=,x".encode()) == (b"", name)
    with pytest.raises(LoginRefused, match="authorization id"):
        users.begin("PLAIN").step(f"other\0{name}\0p=,x".encode())
    for mechanism in DIGESTS:
        client, exchange = ScramClient(mechanism, name, "p=,x", "n"), users.begin(mechanism)
        if not name.isascii():
            with pytest.raises(LoginRefused, match="invalid SCRAM message"):
                exchange.step(client.first())
            continue
        server_first, _ = exchange.step(client.first())
        server_final, done = exchange.step(client.final(server_first))
        assert client.is_server(server_final)
        assert done == name
        itself, other = (ScramClient(mechanism, name, "p=,x", "n", authzid=each).first() for each in (name, "other"))
        with pytest.raises(LoginRefused, match="authorization id"):
            users.begin(mechanism).step(other)
        if saslname(name) == name:
            assert users.begin(mechanism).step(itself)[1] is None

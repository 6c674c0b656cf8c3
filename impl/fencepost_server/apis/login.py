"""The SASL APIs: the handshake, and the messages of an exchange."""

from __future__ import annotations

import asyncio

from kio.schema.errors import ErrorCode as Code

from fencepost.wire.frames import MalformedFrame
from fencepost_server.apis.call import Call, Values
from fencepost_server.apis.requests import SaslAuthenticateRequest, SaslHandshakeRequest
from fencepost_server.security.sasl import BadMechanism
from fencepost_server.security.session import Exchange, LoginRefused, LoginUnanswered, Session


def _now() -> float:
    return asyncio.get_running_loop().time()


class _OtherMechanism:
    """An exchange to renew a login by another mechanism."""

    def step(self, message: bytes) -> tuple[bytes, str | None]:
        """Raise ``LoginUnanswered``."""
        raise LoginUnanswered("a login is renewed by another mechanism")


async def handshake(call: Call, request: SaslHandshakeRequest) -> Values:
    """Begin an exchange, if the mechanism is one that is configured. After an error the connection is closed, unless
    the client has logged in before. A login that ends may be renewed (KIP-368)."""
    users, session = call.node.users, call.session
    if users is None:
        return {"error_code": Code.illegal_sasl_state}
    if session.exchange is not None or (session.logged_in and not session.may_renew(_now)):
        session.refused = session.exchange is not None
        return {"error_code": Code.illegal_sasl_state}
    if session.logged_in:
        session.renewed_at = _now()
    mechanism = str(request.mechanism)
    try:
        exchange: Exchange = users.begin(mechanism)
    except BadMechanism:
        if session.logged_in:
            raise MalformedFrame("a login is renewed by an unknown mechanism") from None
        session.refused = True
        return {"error_code": Code.unsupported_sasl_mechanism, "mechanisms": users.mechanisms}
    other = session.logged_in and mechanism != session.mechanism
    session.exchange = _OtherMechanism() if other else exchange
    session.mechanism = mechanism
    session.bare = other or call.version == 0  # Kafka closes the connection for whatever comes next
    return {"mechanisms": users.mechanisms}


def bare_message(session: Session, message: bytes, lifetime_ms: int) -> bytes:
    """The answer to a message of an exchange without a header, as SaslHandshake v0 begins it. Raises
    ``MalformedFrame`` if the user is refused, for there is no other way to say so."""
    try:
        answer, _ = _step(session, message, lifetime_ms)
    except LoginRefused as refused:
        raise MalformedFrame(str(refused)) from None
    return answer


def _step(session: Session, message: bytes, lifetime_ms: int) -> tuple[bytes, int]:
    """The answer to a message of an exchange, and for how many ms the user is logged in now: 0 without an end, or if
    the exchange continues. Raises ``LoginRefused``."""
    assert session.exchange is not None
    answer, name = session.exchange.step(message)
    if name is None:
        return answer, 0
    if session.logged_in and session.principal != f"User:{name}":
        raise LoginRefused(f"Cannot change principals during re-authentication from {session.principal} to User:{name}")
    session.principal, session.logged_in = f"User:{name}", True
    session.exchange, session.bare = None, False
    if lifetime_ms:
        session.ends_at = _now() + lifetime_ms / 1_000
    return answer, lifetime_ms


async def authenticate(call: Call, request: SaslAuthenticateRequest) -> Values:
    """A message of the exchange. Raises ``MalformedFrame`` for what Kafka gives no answer to."""
    session = call.session
    if session.exchange is None:
        return {"error_code": Code.illegal_sasl_state, "error_message": "no login is in progress", "auth_bytes": b""}
    try:
        answer, lifetime_ms = _step(session, bytes(request.auth_bytes), call.node.options.login_ms)
    except LoginUnanswered as refused:
        raise MalformedFrame(str(refused)) from None
    except LoginRefused as refused:
        session.exchange = None
        session.refused = True
        return {"error_code": Code.sasl_authentication_failed, "error_message": str(refused), "auth_bytes": b""}
    return {"auth_bytes": answer, "session_lifetime": lifetime_ms}

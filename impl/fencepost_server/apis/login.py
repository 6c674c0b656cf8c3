"""The SASL APIs: the handshake, and the messages of an exchange."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode as Code

from fencepost.wire.frames import MalformedFrame
from fencepost_server.apis.call import Call
from fencepost_server.security.sasl import BadMechanism
from fencepost_server.security.session import LoginRefused, LoginUnanswered, Session


async def handshake(call: Call, request: Any) -> Any:
    """Begin an exchange, if the mechanism is configured. After an error, the connection is closed unless the client had
    logged in before."""
    users = call.node.users
    if users is None:
        return {"error_code": Code.illegal_sasl_state}
    if call.session.logged_in or call.session.exchange is not None:
        call.session.refused = not call.session.logged_in
        return {"error_code": Code.illegal_sasl_state}
    try:
        call.session.exchange = users.begin(str(request.mechanism))
    except BadMechanism:
        call.session.refused = True
        return {"error_code": Code.unsupported_sasl_mechanism, "mechanisms": users.mechanisms}
    call.session.bare = call.version == 0
    return {"mechanisms": users.mechanisms}


def bare_message(session: Session, message: bytes) -> bytes:
    """Return the answer to a message of an exchange that SaslHandshake v0 began; such messages have no header. Raises
    ``MalformedFrame`` if the login fails, since the answer has no error code."""
    assert session.exchange is not None
    try:
        answer, name = session.exchange.step(message)
    except LoginRefused as refused:
        raise MalformedFrame(str(refused)) from None
    _done(session, name)
    return answer


def _done(session: Session, name: str | None) -> None:
    if name is not None:
        session.principal, session.logged_in = f"User:{name}", True
        session.exchange, session.bare = None, False


async def authenticate(call: Call, request: Any) -> Any:
    """Handle a message of the exchange. Raises ``MalformedFrame`` where Kafka closes the connection without an
    answer."""
    session = call.session
    if session.exchange is None:
        return {"error_code": Code.illegal_sasl_state, "error_message": "no login is in progress", "auth_bytes": b""}
    try:
        answer, name = session.exchange.step(bytes(request.auth_bytes))
    except LoginUnanswered as refused:
        raise MalformedFrame(str(refused)) from None
    except LoginRefused as refused:
        session.exchange = None
        session.refused = True
        return {"error_code": Code.sasl_authentication_failed, "error_message": str(refused), "auth_bytes": b""}
    _done(session, name)
    return {"auth_bytes": answer, "session_lifetime": 0}

"""SASL: which mechanisms there are, and the exchange of one."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode as Code

from ..security.sasl import BadMechanism
from ..security.session import LoginRefused
from .call import Call


async def handshake(call: Call, request: Any) -> Any:
    """Begins an exchange, if the mechanism is one that is configured."""
    users = call.node.users
    if users is None:
        return {"error_code": Code.illegal_sasl_state}
    if call.session.logged_in or call.session.exchange is not None:
        return {"error_code": Code.illegal_sasl_state, "mechanisms": users.mechanisms}
    try:
        call.session.exchange = users.begin(str(request.mechanism))
    except BadMechanism:
        return {"error_code": Code.unsupported_sasl_mechanism, "mechanisms": users.mechanisms}
    return {"mechanisms": users.mechanisms}


async def authenticate(call: Call, request: Any) -> Any:
    """A message of the exchange."""
    session = call.session
    if session.exchange is None:
        return {"error_code": Code.illegal_sasl_state, "error_message": "SaslHandshake comes first", "auth_bytes": b""}
    try:
        answer, name = session.exchange.step(bytes(request.auth_bytes))
    except LoginRefused as refused:
        session.exchange = None
        session.refused = True
        return {"error_code": Code.sasl_authentication_failed, "error_message": str(refused), "auth_bytes": b""}
    if name is not None:
        session.principal, session.logged_in, session.exchange = f"User:{name}", True, None
    return {"auth_bytes": answer, "session_lifetime": 0}

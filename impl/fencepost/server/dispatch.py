"""From a frame to the frame that answers it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final

from kio.schema.errors import ErrorCode as Code

from fencepost.protocol.errors import ErrorCode, MisuseError
from fencepost.store import AppendError, StoreError

from .apis.call import Call
from .apis.groups import Answered
from .apis.login import bare_message
from .apis.refusal import refusal
from .apis.table import TABLE, Api
from .net.connection import Connection
from .node import Node
from .security.session import Session
from .wire.fill import fill
from .wire.frames import (
    MalformedFrame,
    RequestHeader,
    read_request,
    read_request_header,
    response_schema,
    write_response,
)

_log = logging.getLogger(__name__)

_API_VERSIONS: Final = "api_versions"
#: what may be asked before a log-in
_BEFORE_LOGIN: Final = (_API_VERSIONS, "sasl_handshake", "sasl_authenticate")


class Dispatch:
    """Answers frames for a node. ``observe`` is told of each request: its API, version, seconds and error."""

    def __init__(self, node: Node, observe: Callable[[str, int, float], None] = lambda *_: None) -> None:
        self._node = node
        self._observe = observe

    async def __call__(self, connection: Connection, frame: bytes) -> bytes | None:
        """The answer; None if there is none. Raises ``MalformedFrame`` for what Kafka closes a connection for."""
        session = connection.session
        assert isinstance(session, Session)
        if session.refused:
            raise MalformedFrame("it was refused to log in")
        if session.bare:
            return bare_message(session, frame)
        header = read_request_header(frame)
        api = TABLE.get(header.api_key)
        if api is None:
            raise MalformedFrame(f"there is no API {header.api_key} ({header.api}) here")
        if self._node.users is not None and not session.logged_in and api.name not in _BEFORE_LOGIN:
            raise MalformedFrame(f"{api.name} before a log-in")
        if not max(api.low, api.least) <= header.api_version <= api.high:
            return _unsupported(api, header)
        began = time.perf_counter()
        request = read_request(header, frame)
        values = await self._handled(api, Call(self._node, header, session), request)
        self._observe(api.name, header.api_version, time.perf_counter() - began)
        if values is None:
            return None
        return write_response(header.correlation_id, fill(response_schema(api.name, header.api_version), values))

    def refuse(self, connection: Connection, frame: bytes, code: ErrorCode) -> bytes | None:
        """The answer that says this error, of a request that is not handled. Raises ``MalformedFrame`` for what is no
        request, and where its answer has no place for an error."""
        session = connection.session
        assert isinstance(session, Session)
        header = read_request_header(frame)
        call = Call(self._node, header, session)
        values = refusal(call, read_request(header, frame), Code(int(code)))
        return write_response(header.correlation_id, fill(response_schema(header.api, header.api_version), values))

    async def _handled(self, api: Api, call: Call, request: Any) -> Any:
        try:
            return await api.handler(call, request)
        except Answered as answered:
            return answered.values
        except (AppendError, StoreError) as reason:
            _log.error("%s of %s is refused: %s", api.name, call.header.client_id, reason)
            return refusal(call, request, Code.kafka_storage_error)
        except MisuseError as reason:
            _log.warning("%s of %s is refused: %s", api.name, call.header.client_id, reason)
            return refusal(call, request, Code.unknown_server_error)
        except MalformedFrame:
            raise
        except Exception:
            _log.exception("%s v%s of %s could not be handled", api.name, call.version, call.header.client_id)
            return refusal(call, request, Code.unknown_server_error)


def _unsupported(api: Api, header: RequestHeader) -> bytes:
    """ApiVersions of a version that is not served is answered in version 0, so that any client can go on; for others
    the connection is closed."""
    if api.name != _API_VERSIONS:
        raise MalformedFrame(f"there is no {api.name} v{header.api_version}")
    values = {
        "error_code": Code.unsupported_version,
        "api_keys": [{"api_key": api.key, "min_version": api.low, "max_version": api.high}],
    }
    return write_response(header.correlation_id, fill(response_schema(api.name, 0), values))

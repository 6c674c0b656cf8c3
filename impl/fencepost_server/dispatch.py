"""The dispatch of requests: from a frame to the frame of its answer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from functools import cache
from struct import Struct
from typing import Final

from kio.schema.errors import ErrorCode as Code

from fencepost.log import FencedEpoch
from fencepost.protocol.errors import ErrorCode, MisuseError
from fencepost.store import AppendError, StoreError
from fencepost.wire.fill import fill
from fencepost.wire.flat import GIVES_UP, ReadBody, body_reader, body_writer
from fencepost.wire.frames import (
    MalformedFrame,
    RequestHeader,
    read_header,
    read_request,
    read_request_header,
    request_schema,
    response_schema,
    write_response,
)
from fencepost_server.apis.call import Answer, Call, Values
from fencepost_server.apis.elsewhere import anywhere, elsewhere
from fencepost_server.apis.groups import Answered, in_version
from fencepost_server.apis.login import bare_message
from fencepost_server.apis.refusal import refusal, refused
from fencepost_server.apis.table import TABLE, Api
from fencepost_server.net.connection import Begun, Connection
from fencepost_server.node import Node
from fencepost_server.security.session import Session

_log = logging.getLogger(__name__)

_API_VERSIONS: Final = "api_versions"
_HANDSHAKE: Final = "sasl_handshake"
#: APIs that are accepted before a SASL exchange begins, and during one
_BEFORE_LOGIN: Final = (_API_VERSIONS, _HANDSHAKE)
_IN_LOGIN: Final = (_HANDSHAKE, "sasl_authenticate")
#: APIs that the coordinator handles alone (``Dispatch.begin``)
_AT_ONCE: Final = frozenset({"join_group", "sync_group", "heartbeat", "leave_group", "consumer_group_heartbeat"}) | {
    "offset_commit",
    "offset_fetch",
}
_HEAD: Final = Struct(">hhih")


class Dispatch:
    """The function that answers frames for a node; ``node`` may be replaced. ``observe`` is called for each request
    with its API, its version and its duration in seconds."""

    def __init__(self, node: Node, observe: Callable[[str, int, float], None] = lambda *_: None) -> None:
        self.node = node
        self._observe = observe

    async def __call__(self, connection: Connection, frame: bytes) -> bytes | None:
        """Return the answer; None if the request has none. Raises ``MalformedFrame`` where Kafka closes the
        connection."""
        session = connection.session
        assert isinstance(session, Session)
        answer = await self._answered(session, frame)
        if session.refused:
            connection.drain()
        return answer

    async def _answered(self, session: Session, frame: bytes) -> bytes | None:
        if session.refused:
            raise MalformedFrame("request after a failed login")
        if session.bare:
            return bare_message(session, frame, self.node.options.login_ms)
        header = read_request_header(frame)
        api = TABLE.get(header.api_key)
        if api is None:
            raise MalformedFrame(f"API key {header.api_key} ({header.api}) is not supported")
        logging_in = self.node.users is not None and session.logging_in
        if session.ends_at is not None and not logging_in:
            now = asyncio.get_running_loop().time
            if session.has_ended(now()) and not (api.name == _HANDSHAKE and session.may_renew(now)):
                raise MalformedFrame(f"{api.name} after the end of the login")
        if logging_in and session.exchange is None:
            if api.name not in _BEFORE_LOGIN:
                raise MalformedFrame(f"{api.name} before the login")
            if api.name == _API_VERSIONS and session.versions_known:
                raise MalformedFrame(f"a second {api.name} before the login")
        out_of_turn = logging_in and session.exchange is not None and api.name not in _IN_LOGIN
        if out_of_turn:
            session.refused = True
        if not max(api.low, api.least) <= header.api_version <= api.high:
            code = Code.illegal_sasl_state if out_of_turn else Code.unsupported_version
            return _unsupported(api, header, frame, code)
        began = time.perf_counter()
        request = read_request(header, frame)
        call = Call(self.node, header, session)
        values = _out_of_turn(call, request) if out_of_turn else await self._handled(api, call, request)
        self._observe(api.name, header.api_version, time.perf_counter() - began)
        return None if values is None else _written(api.name, header.api_version, header.correlation_id, values)

    def begin(self, connection: Connection, frame: bytes) -> bytes | Begun | None:
        """Handle a frequent request without awaiting: one that only the coordinator handles. Returns the answer, or a
        ``Begun`` that has it later. Returns None, and does nothing, for other requests and for unusual or malformed
        ones: ``__call__`` handles them."""
        node, session = self.node, connection.session
        if type(session) is not Session or session.bare or session.refused or not node.acl.open:
            return None
        if node.users is not None and (session.logging_in or session.ends_at is not None):
            return None
        if not node.leads:
            return None
        try:
            key, version, correlation_id, length = _HEAD.unpack_from(frame)
            known = _known(key, version)
            if known is None or length < -1:
                return None
            api, read, flexible = known
            at = _HEAD.size
            client_id = ""
            if length > 0:
                client_id = frame[at : at + length].decode()
                at += length
            if flexible:
                if frame[at]:
                    return None
                at += 1
            body = read(frame, at)
        except GIVES_UP:
            return None
        began = time.perf_counter()
        try:
            done = node.groups.submit(body, version=version, client_id=client_id, client_host=f"/{session.peer_host}")
        except MisuseError:
            return None

        def answer() -> bytes | None:
            failure = done.exception()
            if failure is None:
                values: Answer = in_version(done.result(), version)
            else:
                header = read_request_header(frame)
                values = _refused(api, Call(node, header, session), read_request(header, frame), failure)
            self._observe(api.name, version, time.perf_counter() - began)
            return _written(api.name, version, correlation_id, values)

        return answer() if done.done() else Begun(done, answer)

    def refuse(self, frame: bytes, code: ErrorCode) -> bytes:
        """Return the answer that rejects a request with an error code. Raises ``MalformedFrame`` if the frame is not a
        request, or its answer has no error code."""
        return refused(frame, Code(int(code)))

    async def _handled(self, api: Api, call: Call, request: object) -> Answer | None:
        try:
            if not self.node.leads and not anywhere(api.name, request):
                return elsewhere(call, request)
            return await api.handler(call, request)
        except Answered as answered:
            return answered.values
        except MalformedFrame:
            raise
        except Exception as failure:
            return _refused(api, call, request, failure)


def _known(key: int, version: int) -> tuple[Api, ReadBody, bool] | None:
    """The API, the reader of its body, and whether its header has tagged fields; None if ``begin`` does not handle this
    version of the API."""
    api = TABLE.get(key)
    if api is None or api.name not in _AT_ONCE or not max(api.low, api.least) <= version <= api.high:
        return None  # not cached: peers may send any number
    return _begun(key, version)


@cache
def _begun(key: int, version: int) -> tuple[Api, ReadBody, bool] | None:
    api = TABLE[key]
    read = body_reader(api.name, version)
    return None if read is None else (api, read, request_schema(api.name, version).__flexible__)


def _out_of_turn(call: Call, request: object) -> Values:
    """The values of the answer to a request that interrupts a login. As in Kafka, the answer is empty if it has no
    error code."""
    try:
        return refusal(call.header, request, Code.illegal_sasl_state)
    except MalformedFrame:
        return {}


def _refused(api: Api, call: Call, request: object, failure: BaseException) -> Values:
    """The values of the answer to a request whose handling raised ``failure``."""
    if isinstance(failure, AppendError | StoreError):
        _log.error("%s of %s rejected: %s", api.name, call.header.client_id, failure)
        return refusal(call.header, request, Code.kafka_storage_error)
    if isinstance(failure, FencedEpoch):
        _log.error("%s of %s rejected: %s", api.name, call.header.client_id, failure)
        return elsewhere(call, request)
    if isinstance(failure, MisuseError):
        _log.warning("%s of %s rejected: %s", api.name, call.header.client_id, failure)
    else:
        name = call.header.client_id
        _log.error("%s v%s of %s failed with an internal error", api.name, call.version, name, exc_info=failure)
    return refusal(call.header, request, Code.unknown_server_error)


def _written(api: str, version: int, correlation_id: int, values: Answer) -> bytes:
    """The frame of an answer."""
    kind: type = type(values)
    write = None if isinstance(values, Mapping) else body_writer(api, version, kind)
    if write is not None:
        try:
            return write(values, correlation_id)
        except GIVES_UP:
            pass  # the general writer reports what is wrong
    return write_response(correlation_id, fill(response_schema(api, version), values))


def _unsupported(api: Api, header: RequestHeader, frame: bytes, code: Code) -> bytes:
    """The answer to a request in an unsupported version. ApiVersions is answered in version 0, so that any client can
    continue. Raises ``MalformedFrame`` for other APIs, which closes the connection."""
    if api.name != _API_VERSIONS:
        raise MalformedFrame(f"{api.name} v{header.api_version} is not supported")
    if header.api_version > api.high:
        read_header(api.name, api.high, frame)
    known = {"api_key": api.key, "min_version": api.low, "max_version": api.high}
    values = {"error_code": code, "api_keys": [known] if code == Code.unsupported_version else []}
    return write_response(header.correlation_id, fill(response_schema(api.name, 0), values))

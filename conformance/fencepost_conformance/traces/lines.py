"""One pydantic model for each kind of line of the trace format (``docs/traces.md``).

The messages, records and views inside a line are the dataclasses of ``fencepost.protocol`` themselves: pydantic reads
and writes them, so their fields are described in one place only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, create_model

from fencepost.protocol import consumer_messages, messages, offset_messages
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import GroupConfig, TaskKey, TimerKey, Topic
from fencepost.protocol.offset_view import OffsetsView
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupView

from .record_form import RecordField

VERSION = 1

#: API name -> (API key, request, response); the group APIs, whose bodies are typed.
GROUP_APIS: dict[str, tuple[int, type, type]] = {
    "JoinGroup": (11, messages.JoinGroupRequest, messages.JoinGroupResponse),
    "Heartbeat": (12, messages.HeartbeatRequest, messages.HeartbeatResponse),
    "LeaveGroup": (13, messages.LeaveGroupRequest, messages.LeaveGroupResponse),
    "SyncGroup": (14, messages.SyncGroupRequest, messages.SyncGroupResponse),
    "DescribeGroups": (15, messages.DescribeGroupsRequest, messages.DescribeGroupsResponse),
    "ListGroups": (16, messages.ListGroupsRequest, messages.ListGroupsResponse),
    "DeleteGroups": (42, messages.DeleteGroupsRequest, messages.DeleteGroupsResponse),
    "ConsumerGroupHeartbeat": (
        68,
        consumer_messages.ConsumerGroupHeartbeatRequest,
        consumer_messages.ConsumerGroupHeartbeatResponse,
    ),
    "ConsumerGroupDescribe": (
        69,
        consumer_messages.ConsumerGroupDescribeRequest,
        consumer_messages.ConsumerGroupDescribeResponse,
    ),
}
#: The same for offset APIs. Traces of events type their bodies; wire traces keep them as they come.
OFFSET_APIS: dict[str, tuple[int, type, type]] = {
    "OffsetCommit": (8, offset_messages.OffsetCommitRequest, offset_messages.OffsetCommitResponse),
    "OffsetFetch": (9, offset_messages.OffsetFetchRequest, offset_messages.OffsetFetchResponse),
    "WriteTxnMarker": (27, offset_messages.WriteTxnMarkerRequest, offset_messages.WriteTxnMarkerResponse),
    "TxnOffsetCommit": (28, offset_messages.TxnOffsetCommitRequest, offset_messages.TxnOffsetCommitResponse),
    "OffsetDelete": (47, offset_messages.OffsetDeleteRequest, offset_messages.OffsetDeleteResponse),
}
EVENT_APIS: dict[str, tuple[int, type, type]] = {**GROUP_APIS, **OFFSET_APIS}
API_OF_TYPE: dict[type, str] = {kind: name for name, (_, *kinds) in EVENT_APIS.items() for kind in kinds}
API_OF_KEY: dict[int, str] = {key: name for name, (key, *_) in GROUP_APIS.items()}


#: possible values of a setting (``fencepost.protocol.settings.Settings``)
Setting: TypeAlias = bool | int | str | tuple[str, ...]


if TYPE_CHECKING:
    _AnyRecord: TypeAlias = Record
else:
    _AnyRecord = RecordField


class Line(BaseModel):
    """A line; ``type`` names its kind."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        ser_json_bytes="base64",
        val_json_bytes="base64",
        hide_input_in_errors=True,
    )


class HeaderLine(Line):
    """The beginning of a trace."""

    type: Literal["trace"] = "trace"
    version: Literal[1]
    kind: Literal["events", "wire"]
    name: str = ""
    profile: str = "kafka-4.3"
    switches: dict[str, bool] = {}
    settings: dict[str, Setting] = {}
    assumed: tuple[str, ...] = ()
    seed: int | None = None
    provenance: dict[str, str] = {}


class TimerFiredLine(Line):
    type: Literal["timer_fired"] = "timer_fired"
    at_ms: int
    key: TimerKey


class TaskDoneLine(Line):
    type: Literal["task_done"] = "task_done"
    at_ms: int
    key: TaskKey
    failed: bool = False


class GroupConfigChangedLine(Line):
    type: Literal["group_config_changed"] = "group_config_changed"
    at_ms: int
    group_id: str
    config: GroupConfig | None


class AppendedLine(Line):
    type: Literal["appended"] = "appended"
    at_ms: int
    offset: int


class AppendFailedLine(Line):
    type: Literal["append_failed"] = "append_failed"
    at_ms: int
    error: ErrorCode


class TopicsChangedLine(Line):
    type: Literal["topics_changed"] = "topics_changed"
    at_ms: int
    topics: tuple[Topic, ...]
    version: int = 0


class LoadStartedLine(Line):
    type: Literal["load_started"] = "load_started"
    at_ms: int
    leader_epoch: int


class LoadLine(Line):
    type: Literal["load"] = "load"
    at_ms: int
    leader_epoch: int
    records: tuple[_AnyRecord, ...]
    committed: int | None = None


class LoadFailedLine(Line):
    type: Literal["load_failed"] = "load_failed"
    at_ms: int
    leader_epoch: int


class UnloadLine(Line):
    type: Literal["unload"] = "unload"
    at_ms: int
    leader_epoch: int | None


class _RequestLine(Line):
    """A request; each API has its own model with a typed ``body``."""

    type: Literal["request"] = "request"
    at_ms: int
    id: int
    version: int
    client_id: str
    client_host: str
    denied: frozenset[str] = frozenset()
    denied_topics: frozenset[str] = frozenset()
    denied_transactional_ids: frozenset[str] = frozenset()


class _ReplyPart(Line):
    request_id: int
    body: Any


def _per_api(base: type[Line], position: int) -> dict[str, Any]:
    """Return a model for each API: ``base`` with ``api`` fixed and ``body`` of the request (1) or response (2) type."""
    made: dict[str, Any] = {}
    for name, types in EVENT_APIS.items():
        own: dict[str, Any] = {"api": (Literal[name], name), "body": (types[position], ...)}
        made[name] = create_model(f"{name}{base.__name__.strip('_')}", __base__=base, **own)
    return made


REQUEST_LINES: dict[str, Any] = _per_api(_RequestLine, 1)
REPLY_PARTS: dict[str, Any] = _per_api(_ReplyPart, 2)


_BODY_MODELS: dict[type, Any] = {}


def body_model(message: type) -> Any:
    """Return a model with one field, ``body``, of that message type."""
    if message not in _BODY_MODELS:
        own: dict[str, Any] = {"body": (message, ...)}
        _BODY_MODELS[message] = create_model(f"{message.__name__}Body", __base__=Line, **own)
    return _BODY_MODELS[message]


def _union(models: list[Any], discriminator: str) -> Any:
    union = models[0]
    for model in models[1:]:
        union = union | model
    return Annotated[union, Field(discriminator=discriminator)]


if TYPE_CHECKING:
    _AnyReply: TypeAlias = _ReplyPart
else:
    _AnyReply = _union(list(REPLY_PARTS.values()), "api")


class TimerPart(Line):
    key: TimerKey
    deadline_ms: int | None


class ObservedLine(Line):
    """The effects of the event before it."""

    type: Literal["observed"] = "observed"
    records: tuple[_AnyRecord, ...] = ()
    replies: tuple[_AnyReply, ...] = ()
    timers: tuple[TimerPart, ...] = ()
    groups: dict[str, GroupView | None] = {}
    consumer_groups: dict[str, ConsumerGroupView | None] = {}
    tasks: tuple[TaskKey, ...] = ()
    error: str | None = None
    offsets: OffsetsView | None = None


class ConnectedLine(Line):
    type: Literal["connected"] = "connected"
    at_ms: int
    connection: int
    client: str = ""
    server: str = ""


class SentLine(Line):
    """A request passes from client to server; ``body`` is checked against the API by ``convert.wire_request``."""

    type: Literal["sent"] = "sent"
    at_ms: int
    connection: int
    correlation_id: int
    api_key: int
    api_version: int
    client_id: str | None = None
    body: dict[str, JsonValue]


class ReceivedLine(Line):
    """The answer passes from server to client."""

    type: Literal["received"] = "received"
    at_ms: int
    connection: int
    correlation_id: int
    api_key: int
    api_version: int
    body: dict[str, JsonValue]


class DisconnectedLine(Line):
    type: Literal["disconnected"] = "disconnected"
    at_ms: int
    connection: int
    by: Literal["client", "server"] | None = None


class NamesLine(Line):
    """An answer on this connection names topics; ``names`` has the new ones, by topic id."""

    type: Literal["names"] = "names"
    at_ms: int
    connection: int
    names: dict[str, str]


class UndecodedLine(Line):
    """A frame with an unreadable header; ``bytes`` is its length, ``why`` what is wrong with it."""

    type: Literal["undecoded"] = "undecoded"
    at_ms: int
    connection: int
    by: Literal["client", "server"]
    bytes: int
    why: str


WireLine: TypeAlias = ConnectedLine | SentLine | ReceivedLine | DisconnectedLine | NamesLine | UndecodedLine
EventLine: TypeAlias = (
    _RequestLine
    | TimerFiredLine
    | TaskDoneLine
    | AppendedLine
    | AppendFailedLine
    | TopicsChangedLine
    | GroupConfigChangedLine
    | LoadStartedLine
    | LoadLine
    | LoadFailedLine
    | UnloadLine
)

_ANY: TypeAdapter[Line] = TypeAdapter(
    _union(
        [
            HeaderLine,
            _union(list(REQUEST_LINES.values()), "api"),
            TimerFiredLine,
            TaskDoneLine,
            AppendedLine,
            AppendFailedLine,
            TopicsChangedLine,
            GroupConfigChangedLine,
            LoadStartedLine,
            LoadLine,
            LoadFailedLine,
            UnloadLine,
            ObservedLine,
            ConnectedLine,
            SentLine,
            ReceivedLine,
            DisconnectedLine,
            NamesLine,
            UndecodedLine,
        ],
        "type",
    )
)


def parse_line(text: str | bytes) -> Line:
    """Return the line in ``text``. Raises ``pydantic.ValidationError``."""
    return _ANY.validate_json(text)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a line."""
    return _ANY.json_schema()

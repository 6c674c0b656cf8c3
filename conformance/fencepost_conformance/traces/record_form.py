"""Records in a trace: ``{"type", "key", "value"}``, where ``type`` names Kafka's record type; records of a transaction
also have ``producer``. The end of a transaction has the type ``Control``.

Keys of several types have the same fields, so the type must be given. A record without one is a ``GroupMetadata``, the
only type in the first version of the format; it is still written without.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    InstanceOf,
    PlainSerializer,
    Tag,
    create_model,
)

from fencepost.protocol import consumer_records, offset_records, records
from fencepost.protocol.offset_records import OffsetCommitValue, Producer
from fencepost.protocol.records import Record

_OLDEST = "GroupMetadata"
_HELD = "a record already"

#: record type -> key, value
KINDS: dict[str, tuple[type, type]] = {
    name: (getattr(module, f"{name}Key"), getattr(module, f"{name}Value"))
    for module, names in (
        (records, (_OLDEST,)),
        (
            consumer_records,
            (
                "ConsumerGroupMetadata",
                "ConsumerGroupPartitionMetadata",
                "ConsumerGroupMemberMetadata",
                "ConsumerGroupTargetAssignmentMetadata",
                "ConsumerGroupTargetAssignmentMember",
                "ConsumerGroupCurrentMemberAssignment",
                "ConsumerGroupRegularExpression",
            ),
        ),
        (offset_records, ("OffsetCommit", "Control")),
    )
    for name in names
}
_NAME_OF_KEY = {key: name for name, (key, _) in KINDS.items()}


class _Form(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, ser_json_bytes="base64", val_json_bytes="base64",
        hide_input_in_errors=True,
    )  # fmt: skip


def _form(name: str) -> Any:
    key, value = KINDS[name]
    kind: Any = (Literal[name], name) if name == _OLDEST else (Literal[name], ...)
    own: dict[str, Any] = {"type": kind, "key": (key, ...), "value": (value | None, ...)}
    own["producer"] = (Producer | None, None)
    return create_model(f"{name}Record", __base__=_Form, **own)


_FORMS: dict[str, Any] = {name: _form(name) for name in KINDS}


def _tag(value: Any) -> str | None:
    if isinstance(value, Record):
        return _HELD
    if isinstance(value, dict):
        name = value.get("type", _OLDEST)
        return name if isinstance(name, str) else None
    return None


def _record(held: Any) -> Record:
    return held if isinstance(held, Record) else Record(held.key, held.value, held.producer)


def _as_fields(record: Record) -> dict[str, Any]:
    name = _NAME_OF_KEY[type(record.key)]
    form = _FORMS[name](type=name, key=record.key, value=record.value, producer=record.producer)
    dumped: dict[str, Any] = form.model_dump(mode="json")
    if name == _OLDEST:
        del dumped["type"]
    if isinstance(record.value, OffsetCommitValue) and not record.value.expires_at_minus_one:
        del dumped["value"]["expires_at_minus_one"]  # rare, and unknown to older readers
    if record.producer is None:
        del dumped["producer"]
    return dumped


def _union() -> Any:
    union: Any = Annotated[InstanceOf[Record], Tag(_HELD)]
    for name, form in _FORMS.items():
        union = union | Annotated[form, Tag(name)]
    return union


#: a field of a line that holds a record
RecordField: Any = Annotated[
    _union(), Discriminator(_tag), AfterValidator(_record), PlainSerializer(_as_fields, return_type=dict)
]

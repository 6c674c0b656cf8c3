"""Fast readers and writers of frequent messages: one generated function for each API and version.

The general way goes through kio's classes (``read``, ``convert``, ``fill``), field by field. This module generates one
function for each message from the same classes. The function reads and writes adjacent fields together, and creates no
object of kio. It handles only ordinary messages. For anything else, such as a tagged field, text that is not UTF-8, or
an incomplete message, it gives up, and the caller goes the general way. So the result is the same either way; a test
compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from struct import Struct, error, pack, unpack_from
from types import NoneType
from typing import Any, Final, TypeAlias, get_args, get_origin, get_type_hints

from kio.schema.errors import ErrorCode

from fencepost.protocol.frozen import maker
from fencepost.wire.convert import plan, response_class, to_request_class
from fencepost.wire.fill import absent, given
from fencepost.wire.frames import MalformedFrame, request_schema, response_schema
from fencepost.wire.read import uvarint
from fencepost.wire.shape import Field, shape

#: From a frame and the position after its header to the message; raises one of ``GIVES_UP``.
ReadBody: TypeAlias = Callable[[bytes, int], Any]
#: From a message and a correlation id to a frame without its length; raises one of ``GIVES_UP``.
WriteBody: TypeAlias = Callable[[Any, int], bytes]

#: The exceptions by which a generated function leaves a message to the general way.
GIVES_UP: Final = (IndexError, ValueError, TypeError, AttributeError, error)

_INTEGERS: Final = {"int8": "b", "int16": "h", "int32": "i", "int64": "q"}
_FIXED: Final = {**_INTEGERS, "bool": "b", "timedelta_i32": "i", "timedelta_i64": "q", "uuid": "16s"}
_WRITTEN: Final = {**_FIXED, "bool": "?", "error_code": "h"}
_ZERO: Final = bytes(16)
_SHORT: Final = 2_048  #: shorter lengths are encoded in advance
#: the limit of ``timedelta``, in milliseconds
_SPANS: Final = 86_000_000_000_000_000
_CODES: Final = {each.value for each in ErrorCode}


class _Unusual(Exception):
    """A class of messages has a field that the generated functions do not support."""


class _Text:
    """The source of a function that is being generated: its lines, and the objects that they use by name."""

    def __init__(self, head: str) -> None:
        self.lines = [head]
        self.known: dict[str, Any] = {"V": uvarint, "U": _LENGTHS, "W": _length, "D": _identity, "C": _NUMBERS}
        self.known |= {"pack": pack, "unpack": unpack_from}
        self.depth = 1
        self._names = 0

    def add(self, *lines: str) -> None:
        """Add lines at the current indentation."""
        self.lines += [f"{'    ' * self.depth}{line}" for line in lines]

    def name(self) -> str:
        """Return an unused variable name."""
        self._names += 1
        return f"v{self._names}"

    def know(self, value: Any) -> str:
        """Return the name under which the lines can use an object."""
        name = f"K{len(self.known)}"
        self.known[name] = value
        return name

    def made(self, name: str) -> Any:
        """Compile the lines and return the function of this name."""
        scope = self.known
        exec("\n".join(self.lines), scope)
        return scope[name]


def _length(size: int) -> bytes:
    """Return an unsigned varint."""
    groups = bytearray()
    while size > 0x7F:
        groups.append(size & 0x7F | 0x80)
        size >>= 7
    groups.append(size)
    return bytes(groups)


_LENGTHS: Final = tuple([_length(size) for size in range(_SHORT)])


def _identity(value: bytes | None) -> bytes:
    """Return a topic id; zeros for None. Raises ``ValueError`` if it does not have 16 bytes."""
    if value is None:
        return _ZERO
    if len(value) != len(_ZERO):
        raise ValueError(f"a topic id must have 16 bytes (got {len(value)})")
    return value


class _Codes(dict[int, int]):
    """From an error code of any kind to its number, which is that of an unknown error if Kafka does not have it."""

    def __missing__(self, value: int) -> int:
        number = int(value)
        return number if number in _CODES else ErrorCode.unknown_server_error.value


_NUMBERS: Final = _Codes({number: number for number in _CODES})


@cache
def body_reader(api: str, version: int) -> ReadBody | None:
    """Return the reader from requests of an API and version to the project's message; None if there is only the general
    way."""
    try:
        schema, target = request_schema(api, version), to_request_class(api, version)
        if target is None:
            return None
        text = _Text("def read(d, at):")
        text.add("end = len(d)")
        made = _read_message(text, schema, target)
        text.add("if at > end: raise IndexError", f"return {made}")
    except (_Unusual, MalformedFrame):
        return None
    found: ReadBody = text.made("read")
    return found


@cache
def body_writer(api: str, version: int, source: Any) -> WriteBody | None:
    """Return the writer of answers of an API and version from objects of class ``source``; None if there is only the
    general way."""
    try:
        schema = response_schema(api, version)
        text = _Text("def write(v, correlation_id):")
        text.add("o = []", "add = o.append")
        row = _Row(text)
        row.fixed("i", "correlation_id")
        if schema.__header_schema__.__flexible__:
            row.constant(b"\0")
        _write_message(text, row, schema, source, "v")
        row.end()
        text.add("return b''.join(o)")
    except (_Unusual, MalformedFrame):
        return None
    found: WriteBody = text.made("write")
    return found


def warm(api: str, version: int) -> None:
    """Generate the reader of an API's requests and the writer of its answers; nothing for an API that is not one of
    groups or offsets."""
    answer = response_class(api)
    if answer is not None:
        body_reader(api, version)
        body_writer(api, version, answer)


# reading


def _read_message(text: _Text, schema: Any, target: type) -> str:
    """Add lines that read a message. Returns the expression that creates it from their variables."""
    hints = get_type_hints(target)
    wanted = {source: name for name, source, _, _ in plan(target, schema) if source is not None}
    values = {name: text.know(default) for name, source, _, default in plan(target, schema) if source is None}
    row: list[tuple[str, Field]] = []
    for field in shape(schema):
        if field.tag is not None:
            if field.name in wanted:
                raise _Unusual
            continue
        variable = text.name()
        name = wanted.get(field.name)
        hint = None if name is None else hints[name]
        if name is not None:
            values[name] = variable
            if field.optional and NoneType not in get_args(hint) and field.kafka_type != "uuid":
                raise _Unusual
        if field.kafka_type in _FIXED and not field.array:
            row.append((variable, field))
            continue
        _read_row(text, row)
        row = []
        if field.array:
            _read_array(text, variable, field, hint, flexible=schema.__flexible__)
        elif field.kafka_type in {"string", "bytes"}:
            _read_sized(text, variable, field, flexible=schema.__flexible__, optional=field.optional)
        else:
            raise _Unusual
    _read_row(text, row)
    if schema.__flexible__:
        text.add("if d[at]: raise IndexError", "at += 1")  # tagged fields
    return f"{text.know(maker(target))}({', '.join(values[each.name] for each in fields(target))})"


def _read_row(text: _Text, row: list[tuple[str, Field]]) -> None:
    """Add lines that read adjacent fields of fixed length."""
    if not row:
        return
    packed = Struct(">" + "".join([_FIXED[field.kafka_type] for _, field in row]))
    names = "".join([f"{variable}, " for variable, _ in row])
    text.add(f"{names}= {text.know(packed.unpack_from)}(d, at)", f"at += {packed.size}")
    for variable, field in row:
        if field.kafka_type == "bool":
            text.add(f"{variable} = {variable} != 0")
        elif field.kafka_type == "timedelta_i64":
            text.add(f"if not -{_SPANS} < {variable} < {_SPANS}: raise ValueError")


def _read_length(text: _Text, *, flexible: bool, wide: bool) -> str:
    """Add lines that read a length or a count, -1 for null. Returns their variable."""
    size = text.name()
    if flexible:
        text.add(
            f"{size} = d[at]",
            f"if {size} > 127:",
            f"    {size}, at = V(d, at, end)",
            f"    {size} -= 1",
            "else:",
            "    at += 1",
            f"    {size} -= 1",
        )
    else:
        packed = Struct(">i" if wide else ">h")
        text.add(f"{size}, = {text.know(packed.unpack_from)}(d, at)", f"at += {packed.size}")
    return size


def _read_sized(text: _Text, variable: str, field: Field, *, flexible: bool, optional: bool) -> None:
    """Add lines that read a string or bytes."""
    is_text = field.kafka_type == "string"
    size = _read_length(text, flexible=flexible, wide=not is_text)
    text.add(
        f"if {size} >= 0:",
        f"    {variable} = d[at:at + {size}]{'.decode()' if is_text else ''}",
        f"    at += {size}",
    )
    if optional:
        text.add(f"elif {size} == -1:", f"    {variable} = None")
    text.add("else:", "    raise IndexError")


def _read_array(text: _Text, variable: str, field: Field, hint: Any, *, flexible: bool) -> None:
    size = _read_length(text, flexible=flexible, wide=True)
    text.add(f"if {size} >= 0:")
    text.depth += 1
    if field.kafka_type in _INTEGERS:
        code = _INTEGERS[field.kafka_type]
        width = Struct(">" + code).size
        text.add(
            f"if {size} * {width} > end - at: raise IndexError",
            f"{variable} = unpack(f'>{{{size}}}{code}', d, at)",
            f"at += {size} * {width}",
        )
    else:
        rows = text.name()
        text.add(f"{rows} = []", f"for _ in range({size}):")
        text.depth += 1
        if field.entity is not None:
            item = _item_class(hint)
            if item is None:
                raise _Unusual
            made = _read_message(text, field.entity, item)
        elif field.kafka_type == "string":
            made = text.name()
            _read_sized(text, made, field, flexible=flexible, optional=False)
        else:
            raise _Unusual
        text.add(f"{rows}.append({made})")
        text.depth -= 1
        text.add(f"{variable} = tuple({rows})")
    text.depth -= 1
    if field.optional:
        text.add(f"elif {size} == -1:", f"    {variable} = None")
    text.add("else:", "    raise IndexError")


def _item_class(hint: Any) -> type | None:
    """Return the class of the rows of an array, which may be null; None if its items are not dataclasses."""
    for each in (hint, *get_args(hint)):
        if get_origin(each) is tuple:
            (item, *_) = get_args(each)
            return item if isinstance(item, type) and is_dataclass(item) else None
    return None


# writing


class _Row:
    """Adjacent fields of fixed length, collected until another field follows."""

    def __init__(self, text: _Text) -> None:
        self._text = text
        self._codes = ""
        self._values: list[str] = []

    def fixed(self, code: str, value: str) -> None:
        """Add a field: the code by which ``struct`` packs it, and its expression."""
        self._codes += code
        self._values.append(value)

    def constant(self, data: bytes) -> None:
        """Add constant bytes."""
        self.fixed(f"{len(data)}s", self._text.know(data))

    def end(self) -> None:
        """Add the line that writes the collected fields."""
        if self._values:
            packer = self._text.know(Struct(">" + self._codes).pack)
            self._text.add(f"add({packer}({', '.join(self._values)}))")
        self._codes, self._values = "", []


def _write_message(text: _Text, row: _Row, schema: Any, source: type, value: str) -> None:
    hints = get_type_hints(source)
    for field in shape(schema):
        if field.tag is not None:
            raise _Unusual
        key = given(field, source)
        if key is None:
            _write_absent(row, field, flexible=schema.__flexible__)
        else:
            variable = text.name()
            text.add(f"{variable} = {value}.{key}")
            _write_field(text, row, field, variable, hints[key], flexible=schema.__flexible__)
    if schema.__flexible__:
        row.constant(b"\0")


def _write_absent(row: _Row, field: Field, *, flexible: bool) -> None:
    """Write the constant default of a field that the message does not have."""
    default = absent(field)
    if field.array:
        if default not in ((), None):
            raise _Unusual
        size = -1 if default is None else 0
        row.constant(_length(size + 1) if flexible else pack(">i", size))
    elif field.entity is not None:
        if not field.optional:
            raise _Unusual
        row.constant(b"\xff")
    elif field.kafka_type == "string" and default in ("", None):
        size = -1 if default is None else 0
        row.constant(_length(size + 1) if flexible else pack(">h", size))
    elif field.kafka_type in {"timedelta_i32", "timedelta_i64"} and not default:
        row.fixed(_WRITTEN[field.kafka_type], "0")
    elif field.kafka_type == "error_code":
        row.fixed("h", str(default.value))
    elif field.kafka_type in _INTEGERS or field.kafka_type == "bool":
        row.fixed(_WRITTEN[field.kafka_type], repr(int(default)))
    else:
        raise _Unusual


def _write_field(text: _Text, row: _Row, field: Field, variable: str, hint: Any, *, flexible: bool) -> None:
    if field.array:
        _write_array(text, row, field, variable, hint, flexible=flexible)
    elif field.entity is not None:
        _write_entity(text, row, field, variable, hint)
    elif field.kafka_type in {"string", "bytes"}:
        _write_sized(text, row, field, variable, flexible=flexible, optional=field.optional)
    elif field.kafka_type == "uuid":
        row.fixed("16s", f"D({variable})")
    elif field.kafka_type == "error_code":
        row.fixed("h", f"C[{variable}]")
    elif field.kafka_type in _WRITTEN:
        row.fixed(_WRITTEN[field.kafka_type], variable)
    else:
        raise _Unusual


def _write_length(text: _Text, size: str, *, flexible: bool, wide: bool) -> None:
    if flexible:
        text.add(f"{size} += 1", f"add(U[{size}] if {size} < {_SHORT} else W({size}))")
    else:
        text.add(f"add({text.know(Struct('>i' if wide else '>h').pack)}({size}))")


def _null(text: _Text, variable: str, *, flexible: bool, wide: bool) -> None:
    """Add lines that write null; the next lines handle the other case."""
    nothing = b"\0" if flexible else pack(">i" if wide else ">h", -1)
    text.add(f"if {variable} is None:", f"    add({text.know(nothing)})", "else:")


def _write_sized(text: _Text, row: _Row, field: Field, variable: str, *, flexible: bool, optional: bool) -> None:
    row.end()
    is_text = field.kafka_type == "string"
    size = text.name()
    if optional:
        _null(text, variable, flexible=flexible, wide=not is_text)
        text.depth += 1
    elif is_text:
        text.add(f"if {variable} is None: {variable} = ''")
    if is_text:
        text.add(f"{variable} = {variable}.encode()")
    text.add(f"{size} = len({variable})")
    _write_length(text, size, flexible=flexible, wide=not is_text)
    text.add(f"add({variable})")
    text.depth -= optional


def _write_array(text: _Text, row: _Row, field: Field, variable: str, hint: Any, *, flexible: bool) -> None:
    row.end()
    size = text.name()
    if field.optional:
        _null(text, variable, flexible=flexible, wide=True)
        text.depth += 1
    else:
        text.add(f"if {variable} is None: {variable} = ()")
    text.add(f"{size} = len({variable})")
    if field.kafka_type in _INTEGERS:
        values = text.name()
        text.add(f"{values} = pack(f'>{{{size}}}{_INTEGERS[field.kafka_type]}', *{variable})")
        _write_length(text, size, flexible=flexible, wide=True)
        text.add(f"add({values})")
    else:
        item = text.name()
        _write_length(text, size, flexible=flexible, wide=True)
        text.add(f"for {item} in {variable}:")
        text.depth += 1
        inner = _Row(text)
        if field.entity is not None:
            kind = _item_class(hint)
            if kind is None:
                raise _Unusual
            _write_message(text, inner, field.entity, kind, item)
        elif field.kafka_type == "string":
            _write_sized(text, inner, field, item, flexible=flexible, optional=False)
        else:
            raise _Unusual
        inner.end()
        text.depth -= 1
    text.depth -= field.optional


def _write_entity(text: _Text, row: _Row, field: Field, variable: str, hint: Any) -> None:
    """Write a nested message that has only rows, and is given as a sequence of them."""
    (rows, *others) = shape(field.entity)
    if not field.optional or others or not rows.array or rows.tag is not None or _item_class(hint) is None:
        raise _Unusual
    row.end()
    text.add(f"if {variable} is None:", f"    add({text.know(bytes([255]))})", "else:")
    text.depth += 1
    inner = _Row(text)
    inner.constant(b"\x01")
    flexible: bool = field.entity.__flexible__  # type: ignore[union-attr]
    _write_array(text, inner, rows, variable, hint, flexible=flexible)
    if flexible:
        inner.constant(b"\0")
    inner.end()
    text.depth -= 1

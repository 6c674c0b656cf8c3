"""Scripts in files, with Kafka's answers: the differences that a run finds, and the scripts that tests keep."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from fencepost_server.transactions.state import Transaction

from .parts import Kind, Part
from .rights import Guarded, Right
from .run import prefix_of
from .script import At, Kept, Move, Records, Script, Sent

#: the key of a value that JSON does not have
_TYPE: Final = "$"
_VALUES: Final = {each.__name__: each for each in (At, Kept, Records)}


@dataclass(frozen=True, slots=True)
class Case:
    """A script with Kafka's answers. ``named`` and ``number``: those of the script in its part, which decide the names
    of its topics, groups and users. ``rights`` and ``transactions``: its rules, and its initial transactions. ``note``:
    the difference, in words."""

    kind: Kind
    named: str
    number: int
    script: Script
    kafka: Sequence[Any]
    rights: tuple[Right, ...] = ()
    transactions: tuple[Transaction, ...] = ()
    note: str = ""

    @classmethod
    def of(cls, kind: Kind, drawn: Part, number: int, script: Script, kafka: Sequence[Any], *, note: str) -> Case:
        """The case of the beginning of a script of a part."""
        prefix = prefix_of(drawn.named, number)
        rights = drawn.guarded[number].rights if drawn.guarded else ()
        mine = tuple(each for each in drawn.transactions if each.transactional_id.startswith(prefix))
        return cls(kind, drawn.named, number, script, kafka, rights, mine, note)

    def renamed(self, named: str) -> Case:
        """The same case with other names, so that a broker can play it again."""
        before, after = prefix_of(self.named, self.number), prefix_of(named, self.number)
        mine = [replace(each, transactional_id=after + each.transactional_id[len(before) :])
                for each in self.transactions]  # fmt: skip
        return replace(self, named=named, transactions=tuple(mine))

    def part(self) -> Part:
        """The part with this script alone; the scripts before it are empty."""
        scripts: tuple[Script, ...] = (*[()] * self.number, self.script)
        rights = [() for _ in range(self.number)]
        guarded = tuple(Guarded(*each) for each in zip(scripts, (*rights, self.rights), strict=True))
        return Part(self.named, scripts, guarded if self.kind is Kind.RIGHTS else (), self.transactions)


def write(path: Path, case: Case) -> None:
    """Write a case to a file, and create its folder."""
    row = {
        "note": case.note,
        "kind": case.kind,
        "named": case.named,
        "number": case.number,
        "rights": [asdict(each) for each in case.rights],
        "transactions": [_transaction(each) for each in case.transactions],
        "script": [_move(each) for each in case.script],
        "kafka": case.kafka,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(row, indent=1) + "\n")


def read(path: Path) -> Case:
    """Read a case from a file. Raises ``OSError``, and ``ValueError``, ``KeyError`` or ``TypeError`` for an invalid
    one."""
    row = json.loads(path.read_text())
    return Case(
        Kind(row["kind"]),
        row["named"],
        row["number"],
        tuple(_read_move(each) for each in row["script"]),
        row["kafka"],
        tuple(Right(**each) for each in row["rights"]),
        tuple(Transaction(*each) for each in row["transactions"]),
        row["note"],
    )


def _transaction(each: Transaction) -> list[Any]:
    return [each.transactional_id, each.producer_id, each.producer_epoch, each.timeout_ms]


def _move(move: Move) -> dict[str, Any]:
    default = Move(move.api, move.version, {})
    found = {"api": move.api, "version": move.version, "values": _plain(move.values)}
    for name in ("keeps", "user", "line", "sent"):
        if (value := getattr(move, name)) != getattr(default, name):
            found[name] = {key: list(path) for key, path in value.items()} if name == "keeps" else value
    return found


def _read_move(row: Mapping[str, Any]) -> Move:
    keeps = {name: tuple(path) for name, path in row.get("keeps", {}).items()}
    sent = Sent(row.get("sent", Sent.WHOLE))
    return Move(row["api"], row["version"], _value(row["values"]), keeps, row.get("user", ""), row.get("line", 0), sent)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {_TYPE: "bytes", "hex": value.hex()}
    if type(value).__name__ in _VALUES:
        rows = {each.name: getattr(value, each.name) for each in fields(value) if each.name != _TYPE}
        return {_TYPE: type(value).__name__, **{name: _plain(item) for name, item in rows.items()}}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _value(data: Any) -> Any:
    if isinstance(data, dict):
        rest = {key: _value(item) for key, item in data.items() if key != _TYPE}
        name = data.get(_TYPE)
        if name == "bytes":
            return bytes.fromhex(rest["hex"])
        return rest if name is None else _VALUES[name](**rest)
    return [_value(item) for item in data] if isinstance(data, list) else data

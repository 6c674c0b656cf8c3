"""A map that is never changed: ``changed`` gives another one, which shares with this one what is the same.

A small map is one dictionary, copied when an entry changes. A larger one is a tree that branches by the hash of the key
and ends in such dictionaries, so that the cost of a change does not grow with the map. The order of its entries follows
the hashes, so whoever goes through it for others to see has to sort.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final, TypeVar, cast

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")

_BITS: Final = 4  #: of the hash for one branching
_MASK: Final = (1 << _BITS) - 1
_LEAF: Final = 32  #: a leaf of more entries becomes a branching
_DEPTH: Final = 15  #: no bits of the hash are left there
_NO_LEAF: Final[dict[Any, Any]] = {}


class PersistentMap(Mapping[_Key, _Value]):
    """Equal to any mapping with the same entries. A value must not be None."""

    __slots__ = ("_root", "_size")

    _root: dict[Any, Any] | tuple[Any, ...]
    _size: int

    def __init__(self, root: Any = _NO_LEAF, size: int = 0) -> None:
        """The empty map; others are made by ``changed``."""
        self._root = root
        self._size = size

    def __getitem__(self, key: _Key) -> _Value:
        value: _Value | None = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def get(self, key: _Key, default: Any = None) -> Any:
        node = self._root
        if type(node) is tuple:
            bits = hash(key)
            while type(node) is tuple:
                node = node[bits & _MASK]
                bits >>= _BITS
        return cast("dict[Any, Any]", node).get(key, default)

    def __contains__(self, key: object) -> bool:
        return self.get(cast("Any", key)) is not None

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[_Key]:
        nodes = [self._root]
        while nodes:
            node = nodes.pop()
            if type(node) is tuple:
                nodes.extend(reversed(node))
            else:
                yield from cast("dict[Any, Any]", node)

    def changed(self, changes: Mapping[_Key, _Value | None]) -> PersistentMap[_Key, _Value]:
        """With these entries, each in the place of an earlier one of its key; None takes one away."""
        root = self._root
        if type(root) is dict:
            leaf = root.copy()
            leaf.update(changes)
            for key, value in changes.items():
                if value is None:
                    del leaf[key]
            size = len(leaf)
            return PersistentMap(leaf if size <= _LEAF else _node(leaf, 0), size)
        size = self._size
        for key, value in changes.items():
            more, root = _changed(root, key, value, hash(key), 0)
            size += more
        found: PersistentMap[_Key, _Value] = PersistentMap(root, size)
        return found if size > _LEAF // 2 else PersistentMap(dict(found), size)  # what grew shrinks again

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, PersistentMap) and self._root is other._root:
            return True
        if not isinstance(other, Mapping) or len(other) != self._size:
            return False
        return all(other.get(key) == value for key, value in self.items())

    __hash__ = None  # type: ignore[assignment]  # as of any mapping

    def __reduce__(self) -> tuple[Any, ...]:
        return _of, (dict(self),)  # hashes of texts are another process's own

    def __repr__(self) -> str:
        return f"PersistentMap({dict(self)})"


def _of(entries: dict[Any, Any]) -> PersistentMap[Any, Any]:
    return PersistentMap(_node(entries, 0), len(entries))


def _node(entries: dict[Any, Any], depth: int) -> Any:
    if len(entries) <= _LEAF or depth == _DEPTH:
        return entries
    branches: list[dict[Any, Any]] = [{} for _ in range(_MASK + 1)]
    for key, value in entries.items():
        branches[(hash(key) >> (depth * _BITS)) & _MASK][key] = value
    return tuple(_node(branch, depth + 1) for branch in branches)


def _changed(node: Any, key: Any, value: Any, bits: int, depth: int) -> tuple[int, Any]:
    """How many entries it is more, and the node with the change."""
    if type(node) is tuple:
        at = bits & _MASK
        more, branch = _changed(node[at], key, value, bits >> _BITS, depth + 1)
        return more, (*node[:at], branch, *node[at + 1 :])
    leaf = node.copy()
    if value is None:
        leaf.pop(key, None)
    else:
        leaf[key] = value
    return len(leaf) - len(node), leaf if len(leaf) <= _LEAF else _node(leaf, depth)

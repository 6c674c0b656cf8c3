"""Immutable maps and sets; making a changed copy costs the same at any size.

A mapping of a state is a plain dictionary while it is small: nothing is faster to read, and it is cheap to copy. With
more than ``SMALL`` entries it is a ``PersistentMap``, a tree that branches by the hash of the key. A changed copy
shares everything with the original except the path to the change. Callers do not need to know which of the two they
have: both are mappings, iterate over their entries in insertion order, and are equal if they hold the same entries.

To change a mapping, take ``edit`` of it, change that, and give ``frozen`` of it to the next state; for one entry there
are ``with_entry`` and ``without``. In the same way, a set is a ``frozenset`` or a ``PersistentSet``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, MutableMapping, Set
from operator import itemgetter
from typing import Any, Final, TypeAlias, TypeVar, cast

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")

#: The largest size of a plain dictionary: up to here copying it costs less than a tree.
SMALL: Final = 128
_BITS: Final = 4  #: of the hash for one branching
_MASK: Final = (1 << _BITS) - 1
_LEAF: Final = 32  #: a leaf with more entries becomes a branching node
_DEPTH: Final = 15  #: no bits of the hash are left there
_FEW: Final = 8  #: fewer changes than this part of the entries count as few

#: The insertion number of the key; the key; its value.
_Entry: TypeAlias = tuple[int, Any, Any]
#: A leaf is a dictionary of entries by key; a branching node is a tuple with one node for each value of its bits.
_Node: TypeAlias = Any

_when: Final = itemgetter(0)


class PersistentMap(Mapping[_Key, _Value]):
    """A large immutable mapping, equal to any mapping with the same entries. ``frozen`` creates it."""

    __slots__ = ("_next", "_root", "_size")

    def __init__(self, root: _Node, size: int, following: int) -> None:
        self._root = root
        self._size = size
        self._next = following

    def __getitem__(self, key: _Key) -> _Value:
        entry = _find(self._root, key)
        if entry is None:
            raise KeyError(key)
        value: _Value = entry[2]
        return value

    def get(self, key: _Key, default: Any = None) -> Any:
        entry = _find(self._root, key)
        return default if entry is None else entry[2]

    def __contains__(self, key: object) -> bool:
        return _find(self._root, key) is not None

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[_Key]:
        return iter([entry[1] for entry in self._in_order()])

    def items(self) -> Any:
        return [(entry[1], entry[2]) for entry in self._in_order()]

    def values(self) -> Any:
        return [entry[2] for entry in self._in_order()]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Mapping) or len(other) != self._size:
            return False
        return all(other.get(key, _MISSING) == value for _, key, value in _entries(self._root))

    __hash__ = None  # type: ignore[assignment]  # as for any mapping

    def __reduce__(self) -> tuple[Any, ...]:
        return _tree, (dict(self.items()),)  # hashes of strings differ between processes

    def __repr__(self) -> str:
        return f"PersistentMap({dict(self.items())})"

    def _in_order(self) -> list[_Entry]:
        return sorted(_entries(self._root), key=_when)


class MapDraft(MutableMapping[_Key, _Value]):
    """A large mapping while it is changed: the original map, and the differences."""

    __slots__ = ("_before", "_changes", "_next", "_size")

    def __init__(self, before: PersistentMap[_Key, _Value]) -> None:
        self._before = before
        self._changes: dict[Any, _Entry | None] = {}  #: None: removed
        self._next = before._next
        self._size = before._size

    def _entry(self, key: object) -> _Entry | None:
        if key in self._changes:
            return self._changes[key]
        return _find(self._before._root, key)

    def __getitem__(self, key: _Key) -> _Value:
        entry = self._entry(key)
        if entry is None:
            raise KeyError(key)
        value: _Value = entry[2]
        return value

    def get(self, key: _Key, default: Any = None) -> Any:
        entry = self._entry(key)
        return default if entry is None else entry[2]

    def __contains__(self, key: object) -> bool:
        return self._entry(key) is not None

    def __setitem__(self, key: _Key, value: _Value) -> None:
        known = self._entry(key)
        if known is None:
            self._changes[key] = (self._next, key, value)
            self._next += 1
            self._size += 1
        else:
            self._changes[key] = (known[0], key, value)

    def __delitem__(self, key: _Key) -> None:
        if self._entry(key) is None:
            raise KeyError(key)
        self._changes[key] = None
        self._size -= 1

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[_Key]:
        return iter([entry[1] for entry in self._in_order()])

    def items(self) -> Any:
        return [(entry[1], entry[2]) for entry in self._in_order()]

    def values(self) -> Any:
        return [entry[2] for entry in self._in_order()]

    def _in_order(self) -> list[_Entry]:
        changes = self._changes
        found = [entry for entry in _entries(self._before._root) if entry[1] not in changes]
        found += [entry for entry in changes.values() if entry is not None]
        return sorted(found, key=_when)

    def freeze(self) -> Mapping[_Key, _Value]:
        """The map after the changes; the draft must not be changed afterwards."""
        if not self._changes:
            return self._before
        if self._size <= SMALL // 2:  # it has shrunk: use a dictionary again
            return dict(self.items())
        if len(self._changes) * _FEW > self._size:  # with so many changes it is faster to build a new tree
            return PersistentMap(_node({entry[1]: entry for entry in self._in_order()}, 0), self._size, self._next)
        root = self._before._root
        for key, entry in self._changes.items():
            root = _changed(root, key, entry, hash(key), 0)
        return PersistentMap(root, self._size, self._next)


def edit(mapping: Mapping[_Key, _Value]) -> MutableMapping[_Key, _Value]:
    """A mapping with the same entries, to be changed."""
    if type(mapping) is PersistentMap:
        return MapDraft(mapping)
    return dict(cast("dict[_Key, _Value]", mapping))


def owned(now: Mapping[_Key, _Value], before: Mapping[_Key, _Value]) -> MutableMapping[_Key, _Value]:
    """A mapping that a draft may change: ``now`` itself, or a copy of it if it is still the one from before."""
    return edit(now) if now is before else cast("MutableMapping[_Key, _Value]", now)


def frozen(mapping: Mapping[_Key, _Value]) -> Mapping[_Key, _Value]:
    """The result of an edited mapping, which must not be changed afterwards."""
    if type(mapping) is dict:
        return mapping if len(mapping) <= SMALL else _tree(mapping)
    if type(mapping) is MapDraft:
        return mapping.freeze()
    return mapping


def with_entry(mapping: Mapping[_Key, _Value], key: _Key, value: _Value) -> Mapping[_Key, _Value]:
    """The mapping with this entry, which replaces an earlier one of its key."""
    edited = edit(mapping)
    edited[key] = value
    return frozen(edited)


def without(mapping: Mapping[_Key, _Value], key: _Key) -> Mapping[_Key, _Value]:
    """The mapping without the entry of this key; the mapping itself if it has none."""
    if key not in mapping:
        return mapping
    edited = edit(mapping)
    del edited[key]
    return frozen(edited)


def changed(mapping: Mapping[_Key, _Value], changes: Mapping[_Key, _Value | None]) -> Mapping[_Key, _Value]:
    """The mapping with these entries, each replacing an earlier one of its key; None removes the entry."""
    edited = edit(mapping)
    for key, value in changes.items():
        if value is not None:
            edited[key] = value
        elif key in edited:
            del edited[key]
    return frozen(edited)


def exchanged(before: Mapping[_Key, _Value], after: Mapping[_Key, _Value]) -> list[tuple[_Key, _Value]]:
    """The entries of one mapping that another does not have, or not with the same object, in the order of the first.
    For two versions of a large mapping, only the parts that they do not share are compared."""
    if before is after:
        return []
    if type(before) is PersistentMap and type(after) is PersistentMap:
        unshared: list[_Entry] = []
        _unshared(before._root, after._root, unshared)
        rows = [(key, value) for _, key, value in sorted(unshared, key=_when)]
    else:
        rows = list(before.items())
    return [(key, value) for key, value in rows if after.get(key, cast("_Value", _MISSING)) is not value]


class PersistentSet(Set[_Key]):
    """A large immutable set, equal to any set with the same elements."""

    __slots__ = ("_elements",)

    def __init__(self, elements: Mapping[_Key, bool]) -> None:
        self._elements = elements

    def __contains__(self, element: object) -> bool:
        return element in self._elements

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    __hash__ = None  # type: ignore[assignment]  # as for any mapping here

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> Any:
        return frozen_set(it)

    def with_changed(self, element: _Key, *, there: bool) -> Set[_Key]:
        """The set with this element in it, or without it."""
        elements = with_entry(self._elements, element, True) if there else without(self._elements, element)
        if elements is self._elements:
            return self
        return frozenset(elements) if type(elements) is dict else PersistentSet(elements)


def frozen_set(elements: Iterable[_Key]) -> Set[_Key]:
    """These elements as a set that may be large."""
    rows = dict.fromkeys(elements, True)
    return frozenset(rows) if len(rows) <= SMALL else PersistentSet(_tree(rows))


def with_element(elements: Set[_Key], element: _Key) -> Set[_Key]:
    """The set with this element."""
    if type(elements) is PersistentSet:
        return elements.with_changed(element, there=True)
    return frozen_set({*elements, element})


def without_element(elements: Set[_Key], element: _Key) -> Set[_Key]:
    """The set without this element; the set itself if it does not contain it."""
    if type(elements) is PersistentSet:
        return elements.with_changed(element, there=False)
    return elements - {element} if element in elements else elements


_MISSING: Final[Any] = object()


def _tree(entries: dict[Any, Any]) -> PersistentMap[Any, Any]:
    leaf = {key: (number, key, value) for number, (key, value) in enumerate(entries.items())}
    return PersistentMap(_node(leaf, 0), len(leaf), len(leaf))


def _find(node: _Node, key: Any) -> _Entry | None:
    bits = hash(key)
    while type(node) is tuple:
        node = node[bits & _MASK]
        bits >>= _BITS
    return cast("dict[Any, _Entry]", node).get(key)


def _entries(node: _Node) -> list[_Entry]:
    """The entries in the order of their hashes, which must not be visible from outside."""
    found: list[_Entry] = []
    nodes = [node]
    while nodes:
        node = nodes.pop()
        if type(node) is tuple:
            nodes.extend(node)
        else:
            found.extend(node.values())
    return found


def _node(entries: dict[Any, _Entry], depth: int) -> _Node:
    if len(entries) <= _LEAF or depth == _DEPTH:
        return entries
    branches: list[dict[Any, _Entry]] = [{} for _ in range(_MASK + 1)]
    for key, entry in entries.items():
        branches[(hash(key) >> (depth * _BITS)) & _MASK][key] = entry
    return tuple([_node(branch, depth + 1) for branch in branches])


def _changed(node: _Node, key: Any, entry: _Entry | None, bits: int, depth: int) -> _Node:
    """The node with the change; None removes the entry, which need not exist."""
    if type(node) is tuple:
        at = bits & _MASK
        branch = _changed(node[at], key, entry, bits >> _BITS, depth + 1)
        return (*node[:at], branch, *node[at + 1 :])
    leaf: dict[Any, _Entry] = node.copy()
    if entry is None:
        leaf.pop(key, None)
    else:
        leaf[key] = entry
    return leaf if len(leaf) <= _LEAF else _node(leaf, depth)


def _unshared(one: _Node, other: _Node, found: list[_Entry]) -> None:
    """Add the entries of one node that are not in a node which both share at the same place."""
    if one is other:
        return
    if type(one) is tuple and type(other) is tuple:
        for left, right in zip(one, other, strict=True):
            _unshared(left, right, found)
    else:
        found.extend(_entries(one))

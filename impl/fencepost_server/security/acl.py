"""Authorization: a file of rules, one in each line, that allow or deny operations on resources.

    allow User:alice Read,Describe Group orders-*
    deny  User:*     All           Topic secret from 10.0.0.7
    allow User:bob   All           *     *

The rules work like Kafka's. A deny rule takes precedence over allow rules, and without an allow rule an operation is
denied. Read, Write, Delete and Alter also allow Describe. A name that ends in ``*`` is a prefix. Lines may be empty,
and may contain comments after ``#``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar


class Operation(Enum):
    """An operation, by Kafka's name."""

    ALL = "All"
    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    DELETE = "Delete"
    ALTER = "Alter"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"
    ALTER_CONFIGS = "AlterConfigs"
    CLUSTER_ACTION = "ClusterAction"
    IDEMPOTENT_WRITE = "IdempotentWrite"


class Resource(Enum):
    """A kind of resource, by Kafka's name."""

    TOPIC = "Topic"
    GROUP = "Group"
    CLUSTER = "Cluster"
    TRANSACTIONAL_ID = "TransactionalId"


_TOPIC_BITS: Final = {
    Operation.READ: 3,
    Operation.WRITE: 4,
    Operation.CREATE: 5,
    Operation.DELETE: 6,
    Operation.ALTER: 7,
    Operation.DESCRIBE: 8,
    Operation.DESCRIBE_CONFIGS: 10,
    Operation.ALTER_CONFIGS: 11,
}
#: The operations on each kind of resource, with Kafka's number of each operation.
BITS: Final[dict[Resource, dict[Operation, int]]] = {
    Resource.TOPIC: _TOPIC_BITS,
    Resource.GROUP: {
        each: _TOPIC_BITS[each]
        for each in (
            Operation.READ,
            Operation.DELETE,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        )
    },
    Resource.CLUSTER: {
        Operation.CREATE: 5,
        Operation.ALTER: 7,
        Operation.DESCRIBE: 8,
        Operation.CLUSTER_ACTION: 9,
        Operation.DESCRIBE_CONFIGS: 10,
        Operation.ALTER_CONFIGS: 11,
        Operation.IDEMPOTENT_WRITE: 12,
    },
    Resource.TRANSACTIONAL_ID: {},
}
#: The name of the only resource of kind Cluster.
CLUSTER_NAME: Final = "kafka-cluster"
_IMPLY_DESCRIBE: Final = (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
_IMPLY_DESCRIBE_CONFIGS: Final = (Operation.ALTER_CONFIGS,)


_Kind = TypeVar("_Kind", bound=Enum)


class BadRule(ValueError):
    """A line of the file is not a rule; the message says which line, and why."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A line of the file. ``resource`` None means any kind, ``host`` ``*`` any address."""

    allow: bool
    principal: str
    operations: frozenset[Operation]
    resource: Resource | None
    name: str
    host: str = "*"

    def about(self, principal: str, host: str, resource: Resource, name: str) -> bool:
        """Return whether the rule applies to a user at an address and to a resource."""
        return self.concerns(principal, host, resource) and (
            name.startswith(self.name[:-1]) if self.name.endswith("*") else name == self.name
        )

    def concerns(self, principal: str, host: str, resource: Resource) -> bool:
        """Return whether the rule applies to a user at an address and to some resource of a kind."""
        return (
            self.principal in ("User:*", principal) and self.host in ("*", host) and self.resource in (None, resource)
        )


class Acl:
    """The access rules. Without a file (``rules`` None), all clients may do everything."""

    def __init__(self, rules: Iterable[Rule] | None = None, superusers: Iterable[str] = ()) -> None:
        self.open = rules is None
        self._rules = tuple(rules or ())
        self._superusers = frozenset(superusers)

    def allows(self, principal: str, host: str, operation: Operation, resource: Resource, name: str) -> bool:
        """Return whether a user at an address may do an operation on a resource."""
        if self.open or principal in self._superusers:
            return True
        about = [each for each in self._rules if each.about(principal, host, resource, name)]
        if any(not each.allow and {operation, Operation.ALL} & each.operations for each in about):
            return False
        wanted = {operation, Operation.ALL}
        if operation is Operation.DESCRIBE:
            wanted.update(_IMPLY_DESCRIBE)
        if operation is Operation.DESCRIBE_CONFIGS:
            wanted.update(_IMPLY_DESCRIBE_CONFIGS)
        return any(each.allow and wanted & each.operations for each in about)

    def allows_any(self, principal: str, host: str, operation: Operation, resource: Resource) -> bool:
        """Return whether a user may do an operation on at least one resource of a kind, whether or not it exists. As in
        Kafka's ``authorizeByResourceType``, only the operation itself and ``All`` count (KIP-679)."""
        if self.open or principal in self._superusers:
            return True
        wanted = {operation, Operation.ALL}
        about = [each for each in self._rules if each.concerns(principal, host, resource) and wanted & each.operations]
        denied = [each.name for each in about if not each.allow]
        return any(each.allow and not any(_dominates(name, each.name) for name in denied) for each in about)


def _dominates(denied: str, allowed: str) -> bool:
    """Return whether a deny rule with the first name covers all that an allow rule with the second name allows."""
    return denied == allowed or (denied.endswith("*") and allowed.startswith(denied[:-1]))


def parse_rules(text: str) -> tuple[Rule, ...]:
    """Return the rules of a file's text. Raises ``BadRule``."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            try:
                found.append(_rule(words))
            except ValueError as wrong:
                raise BadRule(f"line {number}: {wrong}") from None
    return tuple(found)


def _rule(words: list[str]) -> Rule:
    host = "*"
    if len(words) == 7 and words[5] == "from":
        host = words[6]
    elif len(words) != 5:
        raise ValueError("a rule must be: allow|deny User:NAME OPERATION[,OPERATION] KIND NAME [from HOST]")
    verb, principal, operations, kind, name = words[:5]
    if verb not in ("allow", "deny"):
        raise ValueError(f"a rule must begin with allow or deny (got {verb!r})")
    if not principal.startswith("User:"):
        raise ValueError(f"the user must be User:NAME or User:* (got {principal!r})")
    resource = None if kind == "*" else _named(Resource, kind)
    return Rule(
        verb == "allow",
        principal,
        frozenset(_named(Operation, each) for each in operations.split(",")),
        resource,
        CLUSTER_NAME if resource is Resource.CLUSTER and name == "*" else name,
        host,
    )


def _named(kind: type[_Kind], text: str) -> _Kind:
    for each in kind:
        if str(each.value).lower() == text.lower():
            return each
    names = ", ".join(str(each.value) for each in kind)
    raise ValueError(f"the {kind.__name__.lower()} must be one of {names} (got {text!r})")

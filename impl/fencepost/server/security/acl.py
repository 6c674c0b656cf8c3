"""Who may do what to which groups and topics: a file of rules, one a line.

    allow User:alice Read,Describe Group orders-*
    deny  User:*     All           Topic secret from 10.0.0.7
    allow User:bob   All           *     *

Rules are as Kafka's: what is denied is denied, what is not allowed is denied too, Read, Write, Delete and Alter allow
to describe. A name that ends in ``*`` is a prefix. Lines may be empty, or comments after ``#``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar


class Operation(Enum):
    """What is done."""

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
    """To what."""

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
#: What can be done to each kind, with Kafka's number of it.
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
#: The name of the one resource of its kind.
CLUSTER_NAME: Final = "kafka-cluster"
_IMPLY_DESCRIBE: Final = (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
_IMPLY_DESCRIBE_CONFIGS: Final = (Operation.ALTER_CONFIGS,)


_Kind = TypeVar("_Kind", bound=Enum)


class BadRule(ValueError):
    """A line that is no rule; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A line of the file. ``resource`` None: any kind; ``host`` ``*``: from anywhere."""

    allow: bool
    principal: str
    operations: frozenset[Operation]
    resource: Resource | None
    name: str
    host: str = "*"

    def about(self, principal: str, host: str, resource: Resource, name: str) -> bool:
        """Whether the rule is about that user, there, and that resource."""
        return self.concerns(principal, host, resource) and (
            name.startswith(self.name[:-1]) if self.name.endswith("*") else name == self.name
        )

    def concerns(self, principal: str, host: str, resource: Resource) -> bool:
        """Whether the rule is about that user, there, and some resource of that kind."""
        return (
            self.principal in ("User:*", principal) and self.host in ("*", host) and self.resource in (None, resource)
        )


class Acl:
    """The rules; without any, and without a file, everybody may do everything."""

    def __init__(self, rules: Iterable[Rule] | None = None, superusers: Iterable[str] = ()) -> None:
        self.open = rules is None
        self._rules = tuple(rules or ())
        self._superusers = frozenset(superusers)

    def allows(self, principal: str, host: str, operation: Operation, resource: Resource, name: str) -> bool:
        """Whether that user may do that."""
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
        """Whether the user may do that to at least one resource of the kind, whether or not it exists. As in Kafka's
        ``authorizeByResourceType``, only the operation itself and ``All`` count (KIP-679)."""
        if self.open or principal in self._superusers:
            return True
        wanted = {operation, Operation.ALL}
        about = [each for each in self._rules if each.concerns(principal, host, resource) and wanted & each.operations]
        denied = [each.name for each in about if not each.allow]
        return any(each.allow and not any(_dominates(name, each.name) for name in denied) for each in about)


def _dominates(denied: str, allowed: str) -> bool:
    """Whether a rule with the first name denies all that a rule with the second name allows."""
    return denied == allowed or (denied.endswith("*") and allowed.startswith(denied[:-1]))


def parse_rules(text: str) -> tuple[Rule, ...]:
    """The rules of a file. Raises ``BadRule``."""
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
        raise ValueError("a rule is: allow|deny User:NAME OPERATION[,OPERATION] KIND NAME [from HOST]")
    verb, principal, operations, kind, name = words[:5]
    if verb not in ("allow", "deny"):
        raise ValueError(f"{verb!r} is neither allow nor deny")
    if not principal.startswith("User:"):
        raise ValueError(f"{principal!r} is no user: User:NAME, or User:*")
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
    raise ValueError(f"{text!r} is none of {', '.join(str(each.value) for each in kind)}")

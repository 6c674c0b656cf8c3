"""Access control compared with a reference of Kafka's authorizer, after every change of the rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fencepost_server.security.acl import Acl, Operation, Resource, parse_rules

OPERATIONS: Final = tuple(each.value for each in Operation if each is not Operation.ALL)
KINDS: Final = tuple(each.value for each in Resource)
NAMES: Final = ("orders", "orders-1", "order", "Orders", "o", "secret", "kafka-cluster", "")
PATTERNS: Final = ("*", "o*", "order*", "orders*", "orders-*", "s*", "kafka-cluster", *NAMES[:6])
USERS: Final = ("User:alice", "User:Alice", "User:bob", "User:ANONYMOUS", "User:root")
HOSTS: Final = ("10.0.0.1", "10.0.0.11", "::1")

IMPLIED: Final = {
    "Describe": {"Describe", "Read", "Write", "Delete", "Alter"},
    "DescribeConfigs": {"DescribeConfigs", "AlterConfigs"},
}
#: AclEntry.supportedOperations, with the codes of AclOperation
SUPPORTED: Final = {
    "Topic": {
        "Read": 3, "Write": 4, "Create": 5, "Delete": 6, "Alter": 7, "Describe": 8,
        "DescribeConfigs": 10, "AlterConfigs": 11,
    },
    "Group": {"Read": 3, "Delete": 6, "Describe": 8, "DescribeConfigs": 10, "AlterConfigs": 11},
    "Cluster": {
        "Create": 5, "Alter": 7, "Describe": 8, "ClusterAction": 9, "DescribeConfigs": 10, "AlterConfigs": 11,
        "IdempotentWrite": 12,
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Binding:
    """One access control entry as Kafka stores it: one operation on one pattern of one kind."""

    allow: bool
    principal: str
    operation: str
    kind: str
    pattern: str  #: ``*`` at the end: prefixed; ``*`` alone: the wildcard
    host: str

    def covers(self, principal: str, host: str, kind: str, name: str) -> bool:
        if self.principal not in ("User:*", principal) or self.host not in ("*", host) or self.kind != kind:
            return False
        if self.pattern == "*":
            return True
        if self.pattern.endswith("*"):
            prefix = self.pattern[:-1]
            return name[: len(prefix)] == prefix
        return name == self.pattern

    def denies(self, operation: str) -> bool:
        return not self.allow and self.operation in (operation, "All")

    def allows(self, operation: str) -> bool:
        return self.allow and (self.operation == "All" or self.operation in IMPLIED.get(operation, {operation}))


class Authorizer:
    """Kafka's StandardAuthorizer, without caches and sorted sets."""

    def __init__(self) -> None:
        self.bindings: list[Binding] = []
        self.superusers: set[str] = set()

    def authorize(self, principal: str, host: str, operation: str, kind: str, name: str) -> bool:
        if principal in self.superusers:
            return True
        about = [each for each in self.bindings if each.covers(principal, host, kind, name)]
        return any(each.allows(operation) for each in about) and not any(each.denies(operation) for each in about)

    def authorize_by_resource_type(self, principal: str, host: str, operation: str, kind: str) -> bool:
        """Authorizer.authorizeByResourceType: an allow that no deny overrides; no operation implies another."""
        if principal in self.superusers:
            return True
        found = [
            each
            for each in self.bindings
            if each.principal in ("User:*", principal)
            and each.host in ("*", host)
            and each.kind == kind
            and each.operation in (operation, "All")
        ]
        denied = {each.pattern for each in found if not each.allow}
        if "*" in denied:
            return False
        for each in found:
            if each.allow:
                text = each.pattern.rstrip("*")
                prefixes = {f"{text[:length]}*" for length in range(1, len(text) + 1)}
                if each.pattern == "*" or (each.pattern not in denied and not prefixes & denied):
                    return True
        return False


@dataclass(frozen=True, slots=True)
class Line:
    """Return a line of the file of rules."""

    allow: bool
    principal: str
    operations: tuple[str, ...]
    kind: str
    pattern: str
    host: str

    def text(self, upper: bool) -> str:
        verb = "allow" if self.allow else "deny"
        words = [verb, self.principal, ",".join(self.operations), self.kind, self.pattern]
        if upper:
            words[2], words[3] = words[2].upper(), words[3].lower()
        return "  ".join(words + (["from", self.host] if self.host != "*" else []))

    def bindings(self) -> Iterator[Binding]:
        for kind in KINDS if self.kind == "*" else (self.kind,):
            pattern = "kafka-cluster" if self.kind == "Cluster" and self.pattern == "*" else self.pattern
            for operation in self.operations:
                yield Binding(self.allow, self.principal, operation, kind, pattern, self.host)


LINES: Final = st.builds(
    Line,
    st.booleans(),
    st.sampled_from(("User:*", *USERS[:4])),
    st.lists(st.sampled_from(("All", *OPERATIONS)), min_size=1, max_size=3).map(tuple),
    st.sampled_from(("*", "Topic", "Group", *KINDS)),
    st.sampled_from([each for each in PATTERNS if each]),
    st.sampled_from(("*", "*", "*", *HOSTS)),
)


class AclMachine(RuleBasedStateMachine):
    """Add and remove lines, and compare every decision about the user of the last line, at named and other hosts."""

    @initialize(superusers=st.sets(st.sampled_from(USERS), max_size=1))
    def begin(self, superusers: set[str]) -> None:
        self.lines: list[Line] = []
        self.reference = Authorizer()
        self.reference.superusers = superusers
        self.upper = False
        self._change()

    def _change(self) -> None:
        text = "# rules\n\n" + "\n".join(f"{each.text(self.upper)}  # why" for each in self.lines)
        self.acl = Acl(parse_rules(text), self.reference.superusers)
        self.reference.bindings = [binding for each in self.lines for binding in each.bindings()]

    @rule(line=LINES, at=st.integers(0, 20), upper=st.booleans())
    def add(self, line: Line, at: int, upper: bool) -> None:
        self.lines.insert(at % (len(self.lines) + 1), line)
        self.upper = upper
        self._change()

    @precondition(lambda self: self.lines)
    @rule(data=st.data())
    def contradict(self, data: Any) -> None:
        """Add a line that differs from an existing one in a single field."""
        line = data.draw(st.sampled_from(self.lines))
        other = data.draw(LINES)
        field = data.draw(st.sampled_from(Line.__slots__))
        values = {each: getattr(line, each) for each in Line.__slots__}
        self.lines.append(Line(**{**values, "allow": not line.allow, field: getattr(other, field)}))
        self._change()

    @precondition(lambda self: self.lines)
    @rule(at=st.integers(0, 20))
    def remove(self, at: int) -> None:
        del self.lines[at % len(self.lines)]
        self._change()

    @rule(principal=st.sampled_from(USERS), host=st.sampled_from(HOSTS))
    def compare(self, principal: str, host: str) -> None:
        self._compare(principal, host)

    @invariant()
    def agrees(self) -> None:
        if self.lines:
            last = self.lines[-1]
            principal = USERS[0] if last.principal == "User:*" else last.principal
            for host in HOSTS if last.host != "*" else HOSTS[:1]:
                self._compare(principal, host)

    def _compare(self, principal: str, host: str) -> None:
        for resource in Resource:
            for operation in Operation:
                if operation is Operation.ALL:
                    continue
                asked = principal, host, operation.value, resource.value
                for name in NAMES:
                    allowed = self.acl.allows(principal, host, operation, resource, name)
                    assert allowed == self.reference.authorize(*asked, name), (*asked, name)
                anywhere = self.acl.allows_any(principal, host, operation, resource)
                assert anywhere == self.reference.authorize_by_resource_type(*asked), asked


def chosen(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
    )


def test_decisions_equal_those_of_kafkas_authorizer() -> None:
    run_state_machine_as_test(AclMachine, settings=chosen(40, 12))


@pytest.mark.all
def test_more_decisions_equal_those_of_kafkas_authorizer() -> None:
    run_state_machine_as_test(AclMachine, settings=chosen(1_000, 30))


def test_without_rules_everything_is_allowed_and_rules_deny_by_default() -> None:
    for operation in Operation:
        for resource in Resource:
            assert Acl().allows("User:a", "h", operation, resource, "n")
            assert Acl().allows_any("User:a", "h", operation, resource)
            assert not Acl([]).allows("User:a", "h", operation, resource, "n")
            assert not Acl([]).allows_any("User:a", "h", operation, resource)

"""Random ACL rules for scripts, and the user that sends each request.

Each script has two users and a superuser. Its rules name resources of the script, prefixes of them, and all resources
of a kind. Rules about ``User:*`` name only resources of the script, since several scripts play at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from .draw import script
from .play import Logins
from .script import OWN, Move, Script
from .settings import GROUP, TOPIC, TOPIC_KEYS
from .world import World

#: the superuser, which sends the other requests
ROOT: Final = "root"
#: Kafka's numbers
_OPERATIONS: Final = {
    "All": 2, "Read": 3, "Write": 4, "Create": 5, "Delete": 6, "Alter": 7, "Describe": 8, "ClusterAction": 9,
    "DescribeConfigs": 10, "AlterConfigs": 11, "IdempotentWrite": 12,
}  # fmt: skip
_KINDS: Final = {"Topic": 2, "Group": 3, "Cluster": 4, "TransactionalId": 5}
_LITERAL, _PREFIXED = 3, 4
_DENY, _ALLOW = 2, 3
_CLUSTER: Final = "kafka-cluster"
_EVERYBODY: Final = "*"
_ANY: Final = "*"
#: names of the script, and prefixes of them
_NAMES: Final = {
    "Topic": (f"{OWN}t0", f"{OWN}t1", f"{OWN}t2", f"{OWN}nobody", f"{OWN}settings"),
    "Group": (f"{OWN}g0", f"{OWN}g1", f"{OWN}g2"),
    "TransactionalId": (f"{OWN}x0", f"{OWN}x1"),
}
_PREFIXES: Final = {
    "Topic": (f"{OWN}t", f"{OWN}t1", f"{OWN}", f"{OWN}s"),
    "Group": (f"{OWN}g", f"{OWN}g1", f"{OWN}"),
    "TransactionalId": (f"{OWN}x", f"{OWN}x1", f"{OWN}"),
}
#: operations; those that an API checks come more often than the others
_USUAL: Final = {
    "Topic": ("Read", "Write", "Create", "Delete", "Alter", "Describe", "DescribeConfigs", "AlterConfigs"),
    "Group": ("Read", "Read", "Describe", "Delete", "DescribeConfigs", "AlterConfigs"),
    "Cluster": (
        "Create",
        "Delete",
        "Alter",
        "Describe",
        "DescribeConfigs",
        "AlterConfigs",
        "IdempotentWrite",
        "ClusterAction",
    ),
    "TransactionalId": ("Write", "Write", "Describe"),
}  # fmt: skip
#: the host of the clients, and others
_HERE: Final = "127.0.0.1"
_ELSEWHERE: Final = ("127.0.0.10", "127.0.0", "10.0.0.7")
_FEWEST, _MOST = 4, 14
#: how often a user asks for all resources
_SURVEYED: Final = 0.1


@dataclass(frozen=True, slots=True)
class Right:
    """One ACL rule. ``user``: ``*`` for all users. ``name``: of a resource, or a prefix of names; ``*`` for all."""

    allow: bool
    user: str
    operation: str
    kind: str
    name: str
    prefix: bool = False
    host: str = _ANY

    def line(self, prefix: str) -> str:
        """The rule in a file of ``fencepost serve --acl``."""
        verb = "allow" if self.allow else "deny"
        name = _resolved(self.name, prefix) + (_ANY if self.prefix else "")
        host = "" if self.host == _ANY else f" from {self.host}"
        return f"{verb} User:{self.user} {self.operation} {self.kind} {name}{host}"

    def row(self, prefix: str) -> dict[str, Any]:
        """The rule as a row of CreateAcls."""
        return {
            "resource_type": _KINDS[self.kind],
            "resource_name": _resolved(self.name, prefix),
            "resource_pattern_type": _PREFIXED if self.prefix else _LITERAL,
            "principal": f"User:{self.user}",
            "host": self.host,
            "operation": _OPERATIONS[self.operation],
            "permission_type": _ALLOW if self.allow else _DENY,
        }


def _resolved(name: str, prefix: str) -> str:
    return prefix + name[1:] if name.startswith(OWN) else name


@dataclass(frozen=True, slots=True)
class Guarded:
    """A script whose requests have users, and the ACL rules about these."""

    script: Script
    rights: tuple[Right, ...]


def users(number: int) -> tuple[str, str]:
    """The users of the script with that number."""
    return f"u{number}a", f"u{number}b"


def logins(count: int) -> Logins:
    """The log-ins of the users of so many scripts, and of the superuser."""
    names = [ROOT, *(name for number in range(count) for name in users(number))]
    return Logins({name: f"secret of {name}" for name in names}, ROOT)


def guarded(seed: int, number: int, length: int) -> Guarded:
    """The script of that seed and number, with users and rules."""
    rng = Random(f"rights/{seed}/{number}")
    rights = tuple(_right(rng, users(number)) for _ in range(rng.randint(_FEWEST, _MOST)))
    return Guarded(_sent(rng, script(seed, number, length), users(number)), rights)


def guarded_scripts(seed: int, requests: int, length: int) -> list[Guarded]:
    """Scripts with ``requests`` requests in total, or a few more."""
    found: list[Guarded] = []
    while (left := requests - sum(len(each.script) for each in found)) > 0:
        found.append(guarded(seed, len(found), min(length, left)))
    return found


def _right(rng: Random, names: Sequence[str]) -> Right:
    kind = rng.choice(("Topic", "Topic", "Topic", "Group", "Group", "TransactionalId", "Cluster"))
    operation = rng.choice(_USUAL[kind]) if rng.random() < 0.75 else rng.choice(("All", "All", *sorted(_OPERATIONS)))
    user = rng.choice((*names, *names, _EVERYBODY))
    host = rng.choice((_HERE, _HERE, *_ELSEWHERE)) if rng.random() < 0.25 else _ANY
    allow = rng.random() < 0.75
    if kind == "Cluster":
        # a rule about all users would affect the other scripts
        return Right(allow, rng.choice(names), operation, kind, _CLUSTER, host=host)
    if user != _EVERYBODY and rng.random() < 0.3:
        return Right(allow, user, operation, kind, _ANY, host=host)
    prefix = rng.random() < 0.4
    return Right(allow, user, operation, kind, rng.choice((_PREFIXES if prefix else _NAMES)[kind]), prefix, host)


def _surveys(world: World) -> Iterator[Move]:
    """Requests about all resources of one kind; the caller may have rights to some."""
    topics, groups, ids = (list(_NAMES[kind]) for kind in ("Topic", "Group", "TransactionalId"))
    everything: list[tuple[str, int, dict[str, Any]]] = [
        ("find_coordinator", 4, {"coordinator_keys": groups, "key_type": 0}),
        ("find_coordinator", 4, {"coordinator_keys": ids, "key_type": 1}),
        ("offset_fetch", 8, {"groups": [{"group_id": group, "topics": None} for group in groups]}),
        ("describe_groups", 0, {"groups": groups, "include_authorized_operations": True}),
        ("consumer_group_describe", 0, {"group_ids": groups, "include_authorized_operations": True}),
        ("metadata", 1, {"topics": [{"name": name} for name in topics], "include_topic_authorized_operations": True}),
        ("metadata", 1, {"topics": None, "include_cluster_authorized_operations": True}),
        ("describe_topic_partitions", 0, {"topics": [{"name": name} for name in topics],
                                          "response_partition_limit": 2_000, "cursor": None}),
        ("describe_configs", 1, {"resources": [
            {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys)}
            for kind, names, keys in ((TOPIC, topics, TOPIC_KEYS), (GROUP, groups, ())) for name in names]}),
        ("list_groups", 0, {"states_filter": [], "types_filter": []}),
    ]  # fmt: skip
    for api, least, asked in world.some(everything, 4):
        yield world.move(api, asked, version=world.version(api, least))


def _sent(rng: Random, plain: Script, names: Sequence[str]) -> Script:
    """The sender of each request: first the superuser, then each user for several requests."""
    found: list[Move] = []
    user = ROOT
    world = World(rng)
    for move in plain:
        found.append(replace(move, user=user))
        if rng.random() < 0.5:
            user = rng.choice((ROOT, ROOT, ROOT, names[0], names[0], names[0], names[1], names[1]))
        if rng.random() < _SURVEYED:
            found += [replace(each, user=rng.choice(names)) for each in _surveys(world)]
    return tuple(found)

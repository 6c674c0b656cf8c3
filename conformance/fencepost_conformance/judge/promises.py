"""The promises of a client, and a breach of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Promise:
    """A duty of a client. ``text``: a sentence for people; ``rules``: where the rule book says it."""

    name: str
    text: str
    rules: tuple[str, ...]


_ALL: Final = (
    Promise(
        "identity",
        "A member sends the member id and the generation or epoch that the coordinator gave it last.",
        ("K-ST-14", "K-ERR-01", "N-HB-01"),
    ),
    Promise(
        "removed",
        "A member that learns that the group no longer has it sends nothing under its old id and generation or epoch: "
        "it joins again, or stops.",
        ("K-ERR-04", "K-ERR-05", "K-ERR-08", "N-TR-06", "N-ERR-04"),
    ),
    Promise(
        "left",
        "A member that has left sends no Heartbeat, SyncGroup or OffsetCommit as a member until it has joined again.",
        ("K-LEAVE-01", "K-OFF-02", "N-TR-08"),
    ),
    Promise(
        "commit identity",
        "A commit has the member's id and its generation or epoch; only a consumer outside of a group has neither.",
        ("K-OFF-02", "K-OFF-03", "N-CMT-01"),
    ),
    Promise(
        "commit of owned partitions",
        "A member commits only partitions that were assigned to it and that it has not given up.",
        ("K-CB-03", "K-CB-06", "K-OFF-05", "N-REC-04", "INV-OWN-01"),
    ),
    Promise(
        "owned partitions",
        "A member claims only partitions that were assigned to it in its present membership and that it has not given "
        "up.",
        ("K-CB-02", "K-JOIN-12", "N-HB-05", "N-TR-15"),
    ),
    Promise(
        "one heartbeat",
        "A member waits for the answer to ConsumerGroupHeartbeat before it sends the next one, unless it leaves.",
        ("N-HB-06", "INV-CL-08"),
    ),
    Promise(
        "assignment",
        "A leader assigns each partition to at most one member, and only to members of its list.",
        ("A-PROP-02", "INV-OWN-01", "INV-JOIN-02"),
    ),
    Promise(
        "pace",
        "A member does not repeat requests without a pause.",
        ("K-ERR-14", "K-HB-05", "N-HB-07"),
    ),
    Promise(
        "heartbeats",
        "A member sends heartbeats more often than its session timeout.",
        ("K-HB-01", "K-HB-02", "N-HB-07"),
    ),
)
PROMISES: Final = {each.name: each for each in _ALL}


@dataclass(frozen=True, slots=True)
class Breach:
    """A request that breaks a promise. ``number``: its line behind the header, from 1. ``sent``: the request in
    words; ``may``: what the client may send instead, and why. ``rules``: those of the promise, unless a case has more
    to say."""

    promise: str
    number: int
    at_ms: int
    group: str
    member: str
    sent: str
    may: str
    rules: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The breach in one sentence."""
        return f"{self.sent}; expected {self.may}"

    @property
    def cited(self) -> tuple[str, ...]:
        """The rules of the breach."""
        return self.rules or PROMISES[self.promise].rules

    def as_json(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "promise": self.promise,
            "at_ms": self.at_ms,
            "group": self.group,
            "member": self.member,
            "sent": self.sent,
            "expected": self.may,
            "rules": list(self.cited),
        }

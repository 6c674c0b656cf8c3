"""Which rules the project does not realise (yet), and why. The longest matching prefix of an id decides.

In scope is the coordination of groups of both protocols and of mixed groups, on the broker's and on the member's side:
membership, rebalances, assignment, records, replay, fail-over, and what the releases do differently of it.
"""

from __future__ import annotations

from typing import Final

from fencepost.rulebook.book import Rule

OFFSETS: Final = "offsets: the commit, fetch and delete APIs are not part of the project yet"
TRANSACTIONS: Final = "transactional offset commits are not part of the project yet"
EXPIRY: Final = "the expiry of offsets, and of groups by it, is not part of the project yet"
SHARE: Final = "share and streams groups are not part of the project"
FETCHING: Final = "positions and fetching belong to a client's data path, which the coordination does not need"
BROKER: Final = "cluster metadata and request routing belong to the host, not to the coordination"
CONFIG: Final = "how a broker reads and checks its configuration belongs to the host, which hands in the settings"
RUNTIME: Final = "the broker's own batching and threading, which a host of the core replaces"
THREADS: Final = "how the Java client divides its work among threads; only what it sends is judged"
ORDER: Final = "an order that nobody promises"
READING: Final = "guidance for readers, not behaviour"
GUARD: Final = "a fact that excludes a guarantee; there is nothing to realise"
WORDS: Final = "vocabulary: the types of `fencepost.protocol` carry the names; there is nothing to realise"
RELEASES: Final = "a comparison with another release or an older coordinator"

#: reason -> ids or their beginnings
_PREFIXES: Final[dict[str, tuple[str, ...]]] = {
    OFFSETS: (
        "O-", "K-OFF-", "N-CMT-", "M-PE-08", "INV-COMMIT-", "INV-KIP-11", "INV-CL-04", "LIV-10",
        "G-WIRE-05", "G-WIRE-06", "G-WIRE-07", "G-WIRE-08", "G-WIRE-30", "G-WIRE-31",
        "G-DATA-40", "G-DATA-41", "G-DATA-42", "G-CFG-20", "G-CFG-21", "G-CFG-22",
        "F-ORD-12", "F-REPLAY-02", "F-REPLAY-03", "F-REPLAY-04", "F-REPLAY-05",
        "F-REPLAY-17", "F-RT-26", "F-LOAD-07", "F-SURV-01",
        "V-01", "V-02", "V-03", "V-04", "V-56", "V-57", "V-99", "V-100", "V-101", "V-103",
    ),
    TRANSACTIONS: ("O-TXN-", "INV-TXN-"),
    EXPIRY: ("O-EXP-", "C-ADM-11"),
    SHARE: ("C-JOIN-08", "X-JOIN-25", "V-05", "V-20"),
    FETCHING: (
        "K-SUB-03", "K-SUB-04", "K-SUB-05", "K-SUB-1", "K-POLL-03", "K-POLL-04", "K-POLL-05", "K-POS-", "K-FETCH-",
        "N-CMT-05", "N-POLL-02", "INV-CL-02", "INV-CL-03", "G-CFG-44", "G-CFG-46", "G-CFG-52",
        "V-81", "V-82", "V-83",
    ),
    BROKER: ("F-FIND-", "G-WIRE-09", "G-CFG-08", "G-CFG-24", "G-CFG-37"),
    CONFIG: ("G-CFG-40", "M-TGT-10", "G-CFG-06", "G-CFG-36", "V-06", "V-07", "V-09"),
    RUNTIME: ("G-CFG-07", "G-CFG-23", "G-CFG-32", "G-CFG-34", "G-CFG-35", "F-RT-15", "F-RT-19", "V-08", "V-13"),
    THREADS: ("V-102", "N-POLL-03"),
    ORDER: ("V-15",),
    WORDS: ("G-VOC-",),
    RELEASES: ("D-", "L-", "A-STICKY-15"),
    GUARD: ("NOT-",),
    READING: ("X-DOWN-31", "S-", "S0-", "S1-", "S2-", "S3-", "S4-"),
    "an open point of the rule book": ("U-",),
    "a check of the Java client when it encodes a request": ("G-WIRE-22",),
    "a key of the Java client that its close options replaced": ("V-14",),
    "an index of other rules": ("LIV-12",),
    "how to roll a group from eager to cooperative; follows from A-PROTO-02": ("A-PROTO-03",),
    "the broker does not look; there is nothing to realise": ("A-PROTO-04",),
    "follows from C-JOIN-51 and C-JOIN-55": ("C-REJ-08",),
    "two brokers at once are two coordinators of the core; keeping one of them from writing is the log's": (
        "F-CONS-07",
    ),
    "the order of steps inside another client library; only what it sends is judged": ("K-PY-",),
    "a model of applications, not of the protocol": ("K-APP-",),
}  # fmt: skip

REASONS: Final[dict[str, str]] = {prefix: reason for reason, prefixes in _PREFIXES.items() for prefix in prefixes}


def out_of_scope(rule: Rule) -> str | None:
    """Why the project does not realise the rule; None if it is in scope."""
    if rule.dropped:
        return "dropped from the rule book"
    for length in range(len(rule.id), 1, -1):
        reason = REASONS.get(rule.id[:length])
        if reason is not None:
            return reason
    return None

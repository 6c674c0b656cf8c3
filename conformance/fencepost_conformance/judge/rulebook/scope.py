"""The rules that the project does not implement (yet), with the reasons. The longest matching prefix of an id decides.

In scope is the coordination of groups of both protocols and of mixed groups, on the broker's and on the member's side:
membership, rebalances, assignment, offsets, records, replay, fail-over, the reading consumer, and how the releases
differ in it.
"""

from __future__ import annotations

from typing import Final

from fencepost.rulebook.book import Rule

SHARE: Final = "share and streams groups are not part of the project"
FETCHING: Final = "fetching and decoding records belongs to the host of a client"
BROKER: Final = "cluster metadata and request routing belong to the host, not to the coordination"
CONFIG: Final = "reading and checking a broker's configuration belongs to the host, which passes in the settings"
RUNTIME: Final = "the broker's own batching and threading, which a host of the core replaces"
THREADS: Final = "the Java client's division of work among threads; only its requests are judged"
ORDER: Final = "an order that Kafka does not promise"
READING: Final = "guidance for readers, not behaviour"
GUARD: Final = "a fact that excludes a guarantee; there is nothing to implement"
WORDS: Final = "vocabulary: the types of `fencepost.protocol` carry the names; there is nothing to implement"
RELEASES: Final = "a comparison with another release or an older coordinator"

#: reason -> ids or their prefixes
_PREFIXES: Final[dict[str, tuple[str, ...]]] = {
    SHARE: ("C-JOIN-08", "X-JOIN-25", "V-05", "V-20", "O-COMMIT-34", "O-TXN-13"),
    FETCHING: ("G-CFG-52",),
    BROKER: ("F-FIND-07", "G-CFG-08", "G-CFG-24", "G-CFG-37"),
    CONFIG: ("G-CFG-40", "M-TGT-10", "G-CFG-06", "G-CFG-36", "V-06", "V-07", "V-09"),
    RUNTIME: ("G-CFG-07", "G-CFG-23", "G-CFG-32", "G-CFG-34", "G-CFG-35", "F-RT-15", "F-RT-19", "V-08", "V-13"),
    THREADS: ("V-102", "N-POLL-03"),
    ORDER: ("V-15", "V-83"),
    WORDS: ("G-VOC-",),
    RELEASES: ("D-", "L-", "A-STICKY-15"),
    GUARD: ("NOT-", "F-REC-21"),
    READING: ("X-DOWN-31", "S-", "S0-", "S1-", "S2-", "S3-", "S4-"),
    "an open point of the rule book": ("U-",),
    "a check of the Java client when it encodes a request": ("G-WIRE-22",),
    "a key of the Java client that its close options replaced": ("V-14",),
    "an index of other rules": ("LIV-12",),
    "what members see after a fail-over; follows from the contents of records (F-SURV-02)": tuple(
        f"F-CONS-{number:02}" for number in (1, 2, 3, 4, 6, 8)
    ),
    "the host knows the leaders of partitions; the answers of Fencepost's host are tested, also beside a broker": (
        "F-LOC-04", "F-FIND-01", "F-FIND-02", "F-FIND-03", "F-FIND-04", "F-FIND-05", "F-FIND-06",
    ),
    "how a host handles a log that it cannot trust; Fencepost's load again, and are tested": ("F-RT-12", "F-RT-18"),
    "two hosts that both lead; simulated and specified, but not run with two brokers of Kafka": ("F-CONS-07",),
    "Kafka repeats equal rows; the comparison takes them for one": ("O-FETCH-15",),
    "how to roll a group from eager to cooperative; follows from A-PROTO-02": ("A-PROTO-03",),
    "the broker does not check; there is nothing to implement": ("A-PROTO-04",),
    "follows from C-JOIN-51 and C-JOIN-55": ("C-REJ-08",),
    "a model of applications, not of the protocol": ("K-APP-",),
    "the join of another library: members here join as Java's do": ("K-PY-05",),
    "kafka-python as an article describes it: implemented and tested, but not compared with a client": ("K-PY-",),
    "the default of an interface: lost partitions are reported as lost, and the application decides": ("K-CB-10",),
}  # fmt: skip

REASONS: Final[dict[str, str]] = {prefix: reason for reason, prefixes in _PREFIXES.items() for prefix in prefixes}


def out_of_scope(rule: Rule) -> str | None:
    """Return why the project does not implement the rule; None if it is in scope."""
    if rule.dropped:
        return "dropped from the rule book"
    for length in range(len(rule.id), 1, -1):
        reason = REASONS.get(rule.id[:length])
        if reason is not None:
            return reason
    return None

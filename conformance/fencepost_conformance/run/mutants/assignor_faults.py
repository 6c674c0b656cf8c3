"""Faults of the client's and the server's assignors."""

from __future__ import annotations

from .mutant import Mutant, Side
from .replacement import Replacement

A = Side.ASSIGNOR
BASE, RANGE, ROUND_ROBIN = (f"member/assignors/{name}.py" for name in ("base", "range", "round_robin"))
CLAIMS, STICKY, STICKY_DATA, CONSTRAINED, GENERAL = (
    f"member/assignors/{name}.py" for name in ("claims", "sticky", "sticky_data", "constrained", "general")
)
UNIFORM, UNIFORM_MIXED, SERVER_RANGE = (
    f"coordinator/consumer/assignors/{name}.py" for name in ("uniform", "uniform_mixed", "range")
)

PLAIN = (
    Mutant(
        "topic-without-metadata-raises", A, ("A-COM-01",), "KAFKA-3661",
        "a subscribed topic that does not exist raises",
        (Replacement(BASE, "subscribed", "name in topics and ", ""),),
    ),
    Mutant(
        "assignment-cached", A, ("A-RANGE-07",), "KAFKA-5277",
        "the assignor remembers an assignment and returns it again",
        (
            Replacement(
                RANGE, "RangeAssignor.assign",
                "takers = _takers(members, topics)",
                'cache = vars(RangeAssignor.assign).setdefault("cache", {})\n'
                "if frozenset(members) in cache:\n"
                "    return cache[frozenset(members)]\n"
                "takers = _takers(members, topics)",
            ),
            Replacement(
                RANGE, "RangeAssignor.assign",
                "return Assigned({member: Assignment(tuple(share)) for member, share in shares.items()}, self)",
                "assigned = Assigned({member: Assignment(tuple(share)) for member, share in shares.items()}, self)\n"
                "return cache.setdefault(frozenset(members), assigned)",
            ),
        ),
    ),
    Mutant(
        "extras-to-the-last", A, ("A-RANGE-01",), "",
        "the last members get the extra partitions",
        (
            Replacement(RANGE, "_cut", "takers if quota else takers[:longer]", "takers"),
            Replacement(
                RANGE, "_cut",
                "(longer > 0)",
                "(2 * (topic.partitions % len(takers)) >= len(takers) + longer)",
            ),
            Replacement(
                RANGE, "_Split.remaining_quota",
                "(1 if self.extras > 0 else 0)",
                "(list(self.counts).index(taker) >= len(self.counts) - self.topic.partitions % len(self.counts))",
            ),
        ),
    ),
    Mutant(
        "dynamic-members-first", A, ("A-COM-02",), "",
        "members are ordered by member id, static or not",
        (
            Replacement(
                BASE, "in_order",
                "static_first({member_id: member.group_instance_id for member_id, member in members.items()})",
                "java_sorted(members)",
            ),
        ),
    ),
    Mutant(
        "round-robin-restarts-per-topic", A, ("A-RR-02",), "",
        "round-robin begins with the first member at each topic",
        (
            Replacement(
                ROUND_ROBIN, "RoundRobinAssignor.assign",
                "for partition in partitions_of(name, range(topic.partitions)):",
                "at = 0\nfor partition in partitions_of(name, range(topic.partitions)):",
            ),
        ),
    ),
    Mutant(
        "racks-before-co-partitioning", A, ("A-RANGE-06",), "",
        "topics of equal shape are not kept together",
        (
            Replacement(
                RANGE, "_place_by_rack",
                "if len(group) > 1:\n"
                "    _place_together(group, size, shares)\n"
                "elif group[0].racks_matter:\n"
                "    group[0].fill_by_rack(shares)",
                "for split in group:\n"
                "    if split.racks_matter:\n"
                "        split.fill_by_rack(shares)",
            ),
        ),
    ),
)  # fmt: skip

STICKY_FAULTS = (
    Mutant(
        "every-claim-counts", A, ("A-STICKY-04",), "KAFKA-7026",
        "members that rejoin with old claims keep partitions that others hold now",
        (
            Replacement(CLAIMS, "_disputed", "if other is not None and other_generation is not None:", "if False:"),
            Replacement(CLAIMS, "_disputed", "if other is None or claim.age != other_generation:", "if True:"),
        ),
    ),
    Mutant(
        "last-claim-wins", A, ("A-STICKY-04",), "KAFKA-12984",
        "of two claims the one that is read last wins",
        (
            Replacement(CLAIMS, "_disputed", "if claim.age < other_generation:", "if False:"),
            Replacement(CLAIMS, "_disputed", "if claim.age == other_generation:", "if False:"),
            Replacement(CLAIMS, "_disputed", "if other is None or claim.age != other_generation:", "if True:"),
        ),
    ),
    Mutant(
        "oldest-claim-wins", A, ("A-STICKY-04",), "librdkafka 4252",
        "of two claims the one of the older generation wins",
        (Replacement(CLAIMS, "_disputed", "claim.age < other_generation", "claim.age > other_generation"),),
    ),
    Mutant(
        "generation-is-lost", A, ("A-STICKY-02",), "KAFKA-13715",
        "the leader does not see the generation of a subscription",
        (Replacement(STICKY_DATA, "owned", "subscription.generation_id != NO_GENERATION", "False"),),
    ),
    Mutant(
        "moves-in-one-round", A, ("A-COOP-01", "A-PROP-08"), "KAFKA-14639",
        "cooperative-sticky assigns a partition that its owner has not given up",
        (Replacement(STICKY, "CooperativeStickyAssignor.assign", "withheld.get(each) != name", "True"),),
    ),
    Mutant(
        "balance-test-reversed", A, ("A-STICKY-24",), "KAFKA-15106",
        "the least and the most loaded member are swapped in the test for balance",
        (
            Replacement(
                GENERAL, "_Work._look",
                "self.queue[0][0] >= self.queue[-1][0] - 1",
                "self.queue[-1][0] >= self.queue[0][0] - 1",
            ),
        ),
    ),
    Mutant(
        "keeps-in-order-of-arrival", A, ("A-STICKY-11",), "KAFKA-16277",
        "a member gives up whole topics",
        (
            Replacement(
                CONSTRAINED, "_keeping_order",
                "partition.partition * count + place[partition.topic]",
                "(place[partition.topic], partition.partition)",
            ),
        ),
    ),
    Mutant(
        "former-owner-unsubscribed", A, ("A-STICKY-25",), "",
        "a partition returns to a member that unsubscribed from it",
        (Replacement(GENERAL, "assign", "if not faults:", "if False:"),),
    ),
    Mutant(
        "member-without-topics-gets-some", A, ("A-STICKY-26",), "",
        "a member without topics gets those of the others",
        (Replacement(CLAIMS, "_alike", "dropwhile(lambda row: not row, rows) if faults else rows",
                     "dropwhile(lambda row: not row, rows)"),),
    ),
)  # fmt: skip

SERVER_FAULTS = (
    Mutant(
        "gives-up-above-the-minimum", A, ("A-UHOM-02", "A-UHOM-04"), "KAFKA-18688",
        "uniform takes the extra partition away from its owner",
        (
            Replacement(UNIFORM, "_alike", "quota = least + extra", "quota = least"),
            Replacement(
                UNIFORM, "_alike",
                "if remaining and extra and followers > extras:\n    extra, remaining = False, remaining - 1",
                "remaining += extra",
            ),
        ),
    ),
    Mutant(
        "topics-are-not-balanced", A, ("A-UHET-03",), "",
        "uniform only distributes free partitions",
        (Replacement(UNIFORM_MIXED, "assign", "work.balance()", "pass"),),
    ),
    Mutant(
        "previous-target-ignored", A, ("A-UHOM-02",), "KAFKA-5277",
        "uniform ignores the previous target",
        (
            Replacement(
                UNIFORM, "assign",
                "if spec.subscription_type is SubscriptionType.HOMOGENEOUS:",
                "anew = {name: each._replace(assigned={}) for name, each in spec.members.items()}\n"
                "spec = spec._replace(members=anew)\n"
                "if spec.subscription_type is SubscriptionType.HOMOGENEOUS:",
            ),
        ),
    ),
    Mutant(
        "server-extras-to-the-last", A, ("A-SRANGE-02",), "",
        "the last members get the longer ranges",
        (
            Replacement(
                SERVER_RANGE, "_cut",
                "(position < extras) for position in range(min(size, takers))",
                "(position >= takers - extras) for position in range(takers)",
            ),
        ),
    ),
)  # fmt: skip

FAULTS = (*PLAIN, *STICKY_FAULTS, *SERVER_FAULTS)

"""Faults of groups of both protocols, to plant into core and members for tests that must detect them."""

from __future__ import annotations

from fencepost_conformance.run.mutants.replacement import Replacement

#: An upgraded group has members that own nothing.
FORGETS_WHAT_WAS_ASSIGNED = (
    Replacement("coordinator/mixed/upgrade.py", "_read", "assigned(rows, step.topics)", "{}"),
)  # fmt: skip

#: A downgraded group has members without assignments.
GIVES_NOTHING_ON_THE_WAY_BACK = (
    Replacement("coordinator/mixed/downgrade.py", "_group", "encoded(share,", "encoded({},"),
)  # fmt: skip

#: Members of the consumer protocol are given partitions before their holders have released them.
TAKES_WHAT_CLASSIC_MEMBERS_HOLD = (
    Replacement(
        "coordinator/consumer/reconcile.py", "maybe_reconcile",
        "names = group.topics_of(member)",
        "if member.classic is None:\n"
        "    group = group._replace(partition_epochs={})\n"
        "names = group.topics_of(member)",
    ),
)  # fmt: skip

#: A classic member revokes its partitions while their positions are being committed.
DOES_NOT_AWAIT_THE_COMMIT = (
    Replacement(
        "member/completing.py", "_commit_over",
        "turn.emit(Commit(commit_id, owned))\nreturn False",
        "turn.emit(Commit(commit_id, owned))\nreturn True",
    ),
)  # fmt: skip

"""Faults of consumer groups: targets, topic metadata, replay."""

from __future__ import annotations

from .mutant import Mutant, Side
from .replacement import Replacement

K = Side.CONSUMER_GROUP
TARGET, GROUP_EPOCH, GROUP = (f"coordinator/consumer/{name}.py" for name in ("target", "group_epoch", "group"))
DRAFT, REPLAY = (f"coordinator/consumer/{name}.py" for name in ("draft", "consumer_appliers"))

FAULTS = (
    Mutant(
        "interval-ignored", K, ("M-TGT-08",), "",
        "a target is computed at every bump",
        (Replacement(TARGET, "allowed", "step.at_ms >= group.assignment_timestamp + interval", "True"),),
    ),
    Mutant(
        "votes-ignored", K, ("M-TGT-02",), "",
        "the default assignor is used whatever the members ask for",
        (
            Replacement(
                TARGET, "preferred",
                "elected(step, group_id, preferred_assignors(step, votes))",
                "step.settings.group_consumer_assignors[0]",
            ),
        ),
    ),
    Mutant(
        "targets-written-again", K, ("M-TGT-04",), "",
        "targets that did not change are written too",
        (Replacement(TARGET, "_computed", "old is None or not _same(old, share)", "True"),),
    ),
    Mutant(
        "target-from-nothing", K, ("M-TGT-03",), "",
        "the assignor does not see the previous target",
        (
            Replacement(
                TARGET, "_computed",
                "group.target if predecessor is None else taken_over(step, group, predecessor, member.member_id)",
                "{}",
            ),
        ),
    ),
    Mutant(
        "topics-not-watched", K, ("M-META-03",), "",
        "a change of topics is not noticed",
        (Replacement(GROUP_EPOCH, "request_metadata_refresh", "if changed:", "if False:"),),
    ),
    Mutant(
        "hash-not-compared", K, ("M-EPOCH-03",), "",
        "new partitions and topics do not bump the group epoch",
        (Replacement(GROUP_EPOCH, "look_at_topics", "now != group.metadata_hash", "False"),),
    ),
    Mutant(
        "always-homogeneous", K, ("M-TGT-05",), "",
        "all members count as subscribed to the same topics",
        (Replacement(GROUP, "subscription_type_of", "if same else", "if True else"),),
    ),
    Mutant(
        "epoch-must-be-free", K, ("F-REPLAY-18", "M-PE-02"), "KAFKA-19862",
        "a partition that changes its owner in a compacted log fails the load",
        (Replacement(DRAFT, "ConsumerDraft._hold", "known is not None and known >= epoch", "known is not None"),),
    ),
    Mutant(
        "assignment-epochs-lost", K, ("M-PE-06",), "",
        "the assignment epochs of a record are not read",
        (Replacement(REPLAY, "_holding", "epochs is None or len(epochs) != len(row.partitions)", "True"),),
    ),
    Mutant(
        "regex-never-forgotten", K, ("F-REC-16",), "",
        "the topics of a regex stay after its last user left",
        (
            Replacement(
                DRAFT, "ConsumerDraft.resolve",
                "old = resolved.pop(regex, None)",
                "if resolution is None:\n    return\nold = resolved.pop(regex, None)",
            ),
        ),
    ),
)  # fmt: skip

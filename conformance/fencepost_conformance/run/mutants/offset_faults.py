"""Faults of offsets: who may commit, stored and visible offsets, transactions, expiry."""

from __future__ import annotations

from .mutant import Mutant, Side
from .replacement import Replacement

O = Side.OFFSETS  # noqa: E741 — as short as its neighbours
STORE = "coordinator/kernel/stored_offsets.py"
COMMIT, FETCH, VALIDATION, DELETION, EXPIRY, REPLAY = (
    f"coordinator/offsets/{name}.py"
    for name in ("commit", "fetch", "validation", "deletion", "expiry", "offset_appliers")
)

WHO = (
    Mutant(
        "older-epochs-refused", O, ("O-COMMIT-36", "O-COMMIT-42"), "KAFKA-20066",
        "a commit with the epoch before the last heartbeat is stale, whatever partitions the member has kept",
        (Replacement(VALIDATION, "at_epoch", "return Older(member, epoch)", "raise Rejected(stale(member))"),),
    ),
    Mutant(
        "older-epochs-accepted", O, ("O-COMMIT-32",), "KAFKA-20066",
        "any earlier epoch allows any commit",
        (Replacement(VALIDATION, "at_epoch", "return Older(member, epoch)", "return None"),),
    ),
    Mutant(
        "commit-without-membership-accepted", O, ("O-COMMIT-26", "O-COMMIT-38"), "",
        "a client without generation and member id commits to a classic group that has members",
        (
            Replacement(
                VALIDATION, "may_commit",
                "raise Rejected(ErrorCode.UNKNOWN_MEMBER_ID)", "return None",
            ),
        ),
    ),
    Mutant(
        "commits-while-completing", O, ("O-COMMIT-27",), "",
        "a member commits before the generation has its assignment",
        (
            Replacement(
                VALIDATION, "may_commit",
                "if group.state is GroupState.COMPLETING_REBALANCE:", "if False:",
            ),
        ),
    ),
    Mutant(
        "transactions-need-no-generation", O, ("O-TXN-04",), "",
        "the member in a transactional commit is not checked in a classic group",
        (
            Replacement(
                VALIDATION, "may_commit_in_transaction",
                "_require_generation(group, who)", "pass",
            ),
        ),
    ),
    Mutant(
        "old-members-use-any-version", O, ("O-COMMIT-31",), "",
        "a member of the consumer protocol commits with a version without epochs",
        (
            Replacement(
                VALIDATION, "_member_may_commit",
                "member.classic is None and version < COMMITS_BY_EPOCH_SINCE", "False",
            ),
        ),
    ),
)  # fmt: skip
STORED = (
    Mutant(
        "answered-before-it-is-replicated", O, ("O-COMMIT-11", "F-RT-04"), "KAFKA-20634",
        "a commit is answered although its records may still be lost",
        (
            Replacement(
                COMMIT, "commit",
                "operations.done(step, request, reply=reply, callback=OffsetsWritten(admitted))",
                "step.reply(request.id, reply)",
            ),
        ),
    ),
    Mutant(
        "one-refused-partition-refuses-all", O, ("O-COMMIT-08",), "",
        "if the metadata of one partition is too long, no partition is stored",
        (
            Replacement(
                COMMIT, "commit_results",
                "rows.append((each.partition_index, ErrorCode.OFFSET_METADATA_TOO_LARGE))",
                "raise Rejected(ErrorCode.OFFSET_METADATA_TOO_LARGE)",
            ),
        ),
    ),
    Mutant(
        "too-long-is-pending", O, ("O-TXN-14",), "KAFKA-16371",
        "a partition with too long metadata gets a pending offset that never ends",
        (
            Replacement(
                COMMIT, "commit_results",
                "rows.append((each.partition_index, ErrorCode.OFFSET_METADATA_TOO_LARGE))\ncontinue",
                "rows.append((each.partition_index, ErrorCode.OFFSET_METADATA_TOO_LARGE))\n"
                "if producer is not None:\n"
                "    value = _value(step, topic_id, each, expires)\n"
                "    key = OffsetCommitKey(group_id, topic.name, each.partition_index)\n"
                "    records.append(Record(key, value, producer))\n"
                "continue",
            ),
        ),
    ),
    Mutant(
        "reads-what-is-not-replicated", O, ("O-FETCH-07", "F-RT-11"), "",
        "a fetch without stable offsets returns offsets that may still be lost",
        (
            Replacement(
                FETCH, "_readable",
                "(step.offsets.now if stable else step.offsets.committed)", "step.offsets.now",
            ),
        ),
    ),
    Mutant(
        "failed-append-keeps-offsets", O, ("F-RT-08", "O-COMMIT-40"), "",
        "offsets without records in the log stay in memory",
        (
            Replacement(
                STORE, "StepOffsets.revert",
                "self.restart(lost[0].before)", "self.restart(self.now)",
            ),
        ),
    ),
    Mutant(
        "stable-shows-unstable", O, ("O-FETCH-08",), "",
        "a fetch for stable offsets returns the offset from before an open transaction",
        (
            Replacement(
                FETCH, "_rows",
                "if stable and partition in offsets.unstable:", "if False:",
            ),
        ),
    ),
    Mutant(
        "loading-forgets-simple-groups", O, ("F-REPLAY-04", "O-COMMIT-37"), "",
        "loaded offsets create no group, and are not visible after a load",
        (
            Replacement(
                REPLAY, "meet_ownerless",
                "replay.ownerless[group_id] = None", "pass",
            ),
        ),
    ),
)  # fmt: skip
TRANSACTIONS = (
    Mutant(
        "commits-in-order-of-ends", O, ("O-TXN-08",), "KAFKA-5247",
        "when a transaction ends, its offsets replace later ones",
        (
            Replacement(
                STORE, "OffsetDraft.end",
                "if committed and (known is None or offset.place > known.place):", "if committed:",
            ),
        ),
    ),
    Mutant(
        "aborted-offsets-count", O, ("O-TXN-08", "INV-TXN-01"), "",
        "offsets of a transaction that was aborted are committed",
        (
            Replacement(
                STORE, "OffsetDraft.end",
                "if committed and (known", "if (known",
            ),
        ),
    ),
    Mutant(
        "first-group-alone-ends", O, ("O-TXN-08",), "",
        "of the groups in which a producer has offsets pending only one has them committed",
        (
            Replacement(
                STORE, "OffsetDraft.end",
                "for name in groups:", "for name in list(groups)[:1]:",
            ),
        ),
    ),
    Mutant(
        "tombstone-leaves-pending", O, ("O-TXN-10", "O-DEL-09"), "",
        "a deleted offset comes back when the transaction ends in which it was pending",
        (
            Replacement(
                STORE, "OffsetDraft.remove",
                "group.drop_pending(partition)", "()",
            ),
        ),
    ),
    Mutant(
        "plain-commit-of-a-producer", O, ("O-TXN-07",), "",
        "an offset of a transaction is committed at once",
        (
            Replacement(
                REPLAY, "change",
                "elif producer is None:", "elif value is not None:",
            ),
        ),
    ),
)  # fmt: skip
GOING = (
    Mutant(
        "expires-what-is-pending", O, ("O-EXP-11",), "KAFKA-19163",
        "an offset expires although a transaction has another one of its partition pending",
        (
            Replacement(
                EXPIRY, "_expire",
                "and partition not in offsets.unstable", "",
            ),
        ),
    ),
    Mutant(
        "group-with-open-transaction-goes", O, ("O-EXP-20", "O-EXP-24"), "KAFKA-19163",
        "an empty group is removed although a transaction may still give it offsets",
        (
            Replacement(
                EXPIRY, "_expire",
                "and not offsets.unstable", "",
            ),
        ),
    ),
    Mutant(
        "expires-while-rebalancing", O, ("O-EXP-06", "O-EXP-03"), "KAFKA-13636",
        "offsets expire while the group rebalances",
        (
            Replacement(
                EXPIRY, "_is_stable_of_known_topics",
                "stable = group.state is GroupState.STABLE and group.protocol_type == PROTOCOL_TYPE",
                "stable = group.protocol_type == PROTOCOL_TYPE",
            ),
        ),
    ),
    Mutant(
        "expires-what-is-subscribed", O, ("O-EXP-10",), "",
        "offsets of topics that the group reads expire",
        (
            Replacement(
                EXPIRY, "_expire",
                "partition[0] not in kept", "True",
            ),
        ),
    ),
    Mutant(
        "clock-of-the-commit", O, ("O-EXP-02", "O-EXP-13"), "",
        "in a group that became empty, the age of each offset counts from its commit",
        (
            Replacement(
                EXPIRY, "_condition",
                "since = group.timestamp", "since = None",
            ),
        ),
    ),
    Mutant(
        "looks-once", O, ("O-EXP-26",), "",
        "the coordinator expires offsets once, and never again",
        (
            Replacement(
                EXPIRY, "run",
                "schedule(step)\noperations", "operations",
            ),
        ),
    ),
    Mutant(
        "deleted-group-leaves-offsets", O, ("F-ORD-13", "O-DEL-09"), "",
        "the offsets of a deleted group stay, for the next group with its name",
        (
            Replacement(
                DELETION, "delete_all",
                "step.offsets.now.of(group_id).partitions()", "()",
            ),
        ),
    ),
    Mutant(
        "deletes-what-is-subscribed", O, ("O-DEL-05",), "",
        "offsets of topics that the group reads can be deleted",
        (
            Replacement(
                DELETION, "delete",
                "kept = topic.name in subscribed", "kept = False",
            ),
        ),
    ),
    Mutant(
        "topic-ids-do-not-matter", O, ("O-EXP-23",), "",
        "a deleted topic loses offsets that were stored for another topic with its name",
        (
            Replacement(
                DELETION, "of_deleted",
                "if (partition[0], each.value.topic_id) in ids", "if partition[0] in {name for name, _ in ids}",
            ),
        ),
    ),
)  # fmt: skip
FAULTS = (*WHO, *STORED, *TRANSACTIONS, *GOING)

"""Faults of the host, and of the drivers that run coordinators in an event loop."""

from __future__ import annotations

from ..replacement import Replacement
from .fault import Area, Fault

ENGINE = "aio/engine.py"

FAULTS = (
    Fault(
        "require-stable-lost-in-the-split", Area.HOST,
        "OffsetFetch with require_stable loses it on the way to the partitions",
        "TxnOffsetCommit in an open transaction, OffsetFetch v8 of two groups with require_stable: it must answer "
        "UNSTABLE_OFFSET_COMMIT",
        (
            Replacement(
                "host/parts.py", "split",
                "tuple(body.groups[place] for place in places), require_stable=body.require_stable",
                "tuple(body.groups[place] for place in places),\n"
                "require_stable=body.require_stable and len(places) == len(body.groups),",
            ),
        ),
    ),
    Fault(
        "list-of-groups-is-partial-while-loading", Area.HOST,
        "ListGroups answers the groups of loaded partitions as if these were all",
        "ListGroups while one partition loads: it must answer COORDINATOR_LOAD_IN_PROGRESS",
        (
            Replacement(
                "host/parts.py", "merge",
                "if each.error_code is not ErrorCode.NONE), None)",
                "if each.error_code is not ErrorCode.NONE and len(lists) == 1), None)",
            ),
        ),
    ),
    Fault(
        "consumer-groups-of-one-partition-described", Area.HOST,
        "ConsumerGroupDescribe answers for the groups of one partition only",
        "ConsumerGroupDescribe of two groups in different partitions: both rows must come",
        (
            Replacement(
                "host/parts.py", "merge",
                "rows = [row for each in found if isinstance(each, ConsumerGroupDescribeResponse)",
                "rows = [row for each in found[:1] if isinstance(each, ConsumerGroupDescribeResponse)",
            ),
        ),
    ),
    Fault(
        "append-behind-a-failed-one", Area.AIO,
        "records are handed to the store while a failed append is about to be handled",
        "an append fails while two requests follow: nothing of these may be in the log without the first",
        (Replacement(ENGINE, "Engine._append", "if led.append_failed:", "if led.append_failed and not led.flights:"),),
    ),
    Fault(
        "refusal-of-an-older-append-taken-back", Area.AIO,
        "the core takes back an append that failed although it handled requests since",
        "OffsetCommit fails while an OffsetFetch has read its result: the partition must be loaded again",
        (
            Replacement(
                ENGINE, "Engine._newest",
                ".handled == flight.handled", ".handled >= flight.handled",
            ),
        ),
    ),
    Fault(
        "failed-append-noticed-late", Area.AIO,
        "a held request is handled before the broker looks whether an append failed",
        "two OffsetCommits held behind one whose append fails: none may be in the log without the first",
        (Replacement(ENGINE, "Engine._release", "    self._settle_landed()\n", "    pass\n"),),
    ),
    Fault(
        "request-ahead-of-a-failed-append", Area.AIO,
        "a request that comes while appends are under way is handled before these are looked at",
        "an append has failed in the store and the broker has not heard of it; OffsetCommit: it must not be in the log "
        "behind the gap",
        (
            Replacement(
                ENGINE, "Engine.ask",
                "if self._busy or self._held or self._flying:", "if self._busy or self._held:",
            ),
        ),
    ),
    Fault(
        "rung-timer-not-renewed", Area.AIO,
        "a heartbeat does not renew a session timer that has rung and waits for its turn",
        "a session ends while an append holds all events back; Heartbeat comes before its turn: the member must stay",
        (
            Replacement(
                ENGINE, "Engine._take_up",
                "if old is not None and old.wakes <= at and not old.rung:", "if old is not None and old.wakes <= at:",
            ),
        ),
    ),
    Fault(
        "shortened-timer-keeps-its-time", Area.AIO,
        "a timer that is set again for an earlier time rings at its old time",
        "JoinGroup with a session of 60 s, then again with 6 s, then silence: the member must go after 6 s",
        (
            Replacement(
                ENGINE, "Engine._take_up",
                "if old is not None and old.wakes <= at and not old.rung:", "if old is not None and not old.rung:",
            ),
        ),
    ),
    Fault(
        "given-up-partition-still-loads", Area.AIO,
        "a partition that is given up while it is loaded again becomes active all the same",
        "an append fails and the load takes long; another broker leads the partition; JoinGroup here: it must answer "
        "NOT_COORDINATOR",
        (
            Replacement(
                ENGINE, "Engine._give_up",
                "if led.loading is not None:\n    led.loading.cancel()", "led.loading = None",
            ),
        ),
    ),
    Fault(
        "reload-before-appends-land", Area.AIO,
        "a partition is loaded again while earlier appends are under way",
        "two appends, the first fails and the second lands after the load: OffsetFetch must show what the log holds",
        (Replacement(ENGINE, "Engine._load", "if left:", "if left and led.term < 0:"),),
    ),
    Fault(
        "no-compaction-after-a-failed-one", Area.AIO,
        "after a compaction has failed no partition is compacted any more",
        "a compaction fails once; commits for minutes: the log must be compacted again",
        (
            Replacement(
                ENGINE, "Engine._compaction", "finally:\n    self._compacting = None",
                "else:\n    self._compacting = None",
            ),
        ),
    ),
    Fault(
        "fenced-host-not-informed", Area.AIO,
        "a broker that another has fenced gives the partition up, but does not inform its host",
        "another broker leads a partition; OffsetCommit here: `fenced` must be set",
        (Replacement(ENGINE, "Engine._failed", "self._fenced.set()", "pass"),),
    ),
    Fault(
        "drain-forgets-the-last-compaction", Area.AIO,
        "a drain ends while a compaction still writes",
        "close the store after stop() while a compaction runs: it must have ended",
        (
            Replacement(
                ENGINE, "Engine.drain",
                "if self._compacting is not None:\n    await asyncio.wait([self._compacting])",
                "await asyncio.sleep(0)",
            ),
        ),
    ),
)  # fmt: skip

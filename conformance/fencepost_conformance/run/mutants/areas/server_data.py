"""Faults of Produce, Fetch, ListOffsets and what goes with them."""

from __future__ import annotations

from ..replacement import Replacement
from .fault import Area, Fault

PRODUCE, FETCH = "fencepost_server/apis/produce.py", "fencepost_server/apis/fetch.py"
LOG_OFFSETS, PARTITION = "fencepost_server/apis/log_offsets.py", "fencepost_server/data/partition.py"
SEARCH, SESSIONS = "fencepost_server/data/search.py", "fencepost_server/data/sessions.py"
#: servers that are killed and started again
RESTARTS = "tests/wire/test_serve_data.py"

FAULTS = (
    Fault(
        "failed-write-acknowledged-for-second-topic", Area.DATA,
        "when a write fails, Produce reports the error for the first topic of the request only",
        "Produce v9 to t-0 and u-0 while the store fails: u-0 must answer KAFKA_STORAGE_ERROR and not an offset",
        (
            Replacement(
                PRODUCE, "produce",
                "for partitions in answers.values():", "for partitions in [*answers.values()][:1]:",
            ),
        ),
    ),
    Fault(
        "response-limit-counts-no-partition", Area.DATA,
        "Fetch applies max_bytes to each partition and not to the whole response",
        "Fetch of t-0 and t-1, 1,000 bytes in each, with max_bytes 1,200: the second partition must be empty",
        (Replacement(FETCH, "_answers", "left -= taken", "pass"),),
    ),
    Fault(
        "empty-partition-renews-first-batch", Area.DATA,
        "Fetch returns an oversized batch again after a partition that had no records",
        "Fetch of t-0 (records), t-1 (empty) and t-2 (records) with max_bytes 1: t-2 must be empty",
        (Replacement(FETCH, "_answers", "nothing_yet = nothing_yet and not answer", "nothing_yet = not answer"),),
    ),
    Fault(
        "oversized-batch-in-first-partition-only", Area.DATA,
        "Fetch returns a batch above the limit only if the first partition has it",
        "Fetch of t-0 (at its end) and t-1 (a batch of 1,000 bytes) with partition_max_bytes 100: t-1 must return it, "
        "or the consumer never gets past it",
        (
            Replacement(
                FETCH, "_answers", "nothing_yet = nothing_yet and not answer", "nothing_yet = False and not answer"
            ),
        ),
        source="KAFKA-2063 (KIP-74)",
    ),
    Fault(
        "partition-limit-ignored", Area.DATA,
        "Fetch ignores partition_max_bytes while the response has room",
        "Fetch of t-0 with two batches of 100 bytes, partition_max_bytes 150, max_bytes 1 MiB: one batch must come",
        (Replacement(FETCH, "_answers", "most = min(int(each.partition_max_bytes), left)", "most = left"),),
    ),
    Fault(
        "error-waits-behind-readable-partition", Area.DATA,
        "Fetch with a partition in error waits for max_wait on the partitions that are readable",
        "Fetch of t-0 at its end and of t-9, which does not exist, with max_wait 5 s: the answer must come at once",
        (Replacement(FETCH, "_answers", "    readable = []\nbreak", "    continue"),),
    ),
    Fault(
        "first-partition-alone-ends-the-wait", Area.DATA,
        "only bytes in the first partition of a Fetch count towards min_bytes",
        "Fetch of t-0 and t-1 at their ends with max_wait 5 s, then Produce to t-1: the answer must come at once",
        (Replacement(FETCH, "_answers", "for log, offset in readable)", "for log, offset in readable[:1])"),),
    ),
    Fault(
        "uncommitted-bytes-end-the-wait", Area.DATA,
        "a read_committed Fetch ends its wait for bytes of a transaction that is still open",
        "InitProducerId, Produce in a transaction, then Fetch read_committed with max_wait 1 s: it must wait for the "
        "second, or a consumer asks in a busy loop",
        (
            Replacement(
                FETCH, "_answers", "log.ready(offset, committed=committed)", "log.ready(offset, committed=False)"
            ),
        ),
    ),
    Fault(
        "aborted-transaction-of-last-record-left-out", Area.DATA,
        "an aborted transaction that begins at the last offset of the response is not listed",
        "Produce one record in a transaction, abort it, Fetch read_committed with a limit of that one batch: "
        "aborted_transactions must list the producer",
        (Replacement(PARTITION, "PartitionLog.read", "each.first <= last", "each.first < last"),),
    ),
    Fault(
        "aborted-transaction-midway-left-out", Area.DATA,
        "an aborted transaction that began before the fetch offset is not listed",
        "Produce two batches in a transaction, abort it, Fetch read_committed from the second batch on: "
        "aborted_transactions must list the producer",
        (Replacement(PARTITION, "PartitionLog.read", "each.last >= offset", "each.first >= offset"),),
    ),
    Fault(
        "stable-offset-of-the-latest-transaction", Area.DATA,
        "the last stable offset is where the newest open transaction began, not the oldest",
        "two producers open transactions in t-0; Fetch read_committed must return nothing of the first one",
        (
            Replacement(
                PARTITION, "PartitionLog.stable",
                "max(min(self._durable.open.values(), default=self.high), self._first)",
                "max(self._durable.open.values(), default=self.high)",
            ),
        ),
    ),
    Fault(
        "duplicate-of-earlier-batch-refused", Area.DATA,
        "only the last batch of an idempotent producer is recognised as a duplicate, not the last five",
        "Produce sequences 0, 1, 2, then send sequence 1 again: it must answer its old offset",
        (
            Replacement(
                "fencepost_server/data/producers.py", "Producers.again",
                "for each in known.written:", "for each in (known.written[-1],):",
            ),
        ),
        source="KAFKA-5494",
    ),
    Fault(
        "sequence-does-not-wrap", Area.DATA,
        "the sequence after 2^31 - 1 is expected to be 2^31",
        "Produce an epoch's first batch, then batches up to sequence 2,147,483,647, then sequence 0: it must be taken",
        (
            Replacement(
                "fencepost_server/data/producers.py", "Producers._check_sequence",
                "first != (last + 1) & 0x7FFFFFFF", "first != last + 1",
            ),
        ),
    ),
    Fault(
        "new-epoch-begins-anywhere", Area.DATA,
        "the first batch of a newer producer epoch may have any sequence",
        "Produce with epoch 0, sequence 0, then epoch 1, sequence 7: it must answer OUT_OF_ORDER_SEQUENCE_NUMBER",
        (
            Replacement(
                "fencepost_server/data/producers.py", "Producers._check_sequence",
                "if first != 0:", "if first < 0:",
            ),
        ),
    ),
    Fault(
        "retracted-batch-is-a-duplicate", Area.DATA,
        "a batch whose write failed is recognised as a duplicate when the producer sends it again",
        "Produce sequence 0 while the store fails, then again when it works: the second must be written and readable",
        (
            Replacement(
                PARTITION, "PartitionLog.retract",
                "self._now = self._durable.copy()", "self._now.aborted = list(self._durable.aborted)",
            ),
        ),
    ),
    Fault(
        "failed-write-forgets-producer-batches", Area.DATA,
        "after a failed write a partition knows only the last batch of each producer",
        "Produce sequences 0, 1 and 2, one more while the store fails, then sequence 1 again: it must answer its old "
        "offset",
        (
            Replacement(
                "fencepost_server/data/producers.py", "Producers.copy",
                "deque(state.written, maxlen=_KEPT)", "deque(state.written, maxlen=1)",
            ),
        ),
    ),
    Fault(
        "newest-time-of-stable-records", Area.DATA,
        "ListOffsets for the maximum timestamp does not look at records of open transactions",
        "Produce at time 1,000, then at 2,000 in a transaction that stays open; ListOffsets -3 read_committed must "
        "answer offset -1",
        (
            Replacement(SEARCH, "newest", "if begin >= log.start:", "if begin >= log.start and end <= limit:"),
            Replacement(SEARCH, "newest", "log.scan(begin, end):", "log.scan(begin, min(end, limit)):"),
        ),
    ),
    Fault(
        "time-search-below-the-log-start", Area.DATA,
        "ListOffsets by time finds records that DeleteRecords has removed from the middle of a batch",
        "Produce a batch of three records at times 1, 2, 3, DeleteRecords before offset 2, ListOffsets for time 1: it "
        "must answer offset 2",
        (
            Replacement(
                SEARCH, "first_since",
                "if at >= timestamp and log.start <= offset < limit:", "if at >= timestamp and offset < limit:",
            ),
        ),
    ),
    Fault(
        "time-search-misses-markers", Area.DATA,
        "ListOffsets by time does not find transaction markers",
        "Produce a record at time 1,000 in a transaction, commit, ListOffsets for time 2,000: it must answer the "
        "marker",
        (
            Replacement(
                SEARCH, "first_since",
                "if batch.max_timestamp >= timestamp:",
                "if not batch.control and batch.max_timestamp >= timestamp:",
            ),
            Replacement(SEARCH, "first_since", "if latest < timestamp:\n    continue", "pass"),
        ),
    ),
    Fault(
        "time-search-skips-compressed-batch", Area.DATA,
        "ListOffsets by time answers the last offset of a batch that it cannot decompress",
        "Produce a snappy batch of three records, ListOffsets for the time of the first: it must not answer a later "
        "offset than the batch's first, or records are skipped",
        (
            Replacement(
                SEARCH, "_times",
                "if found is None:\n    yield batch.max_timestamp, batch.base",
                "if found is None:\n    yield batch.max_timestamp, batch.last",
            ),
        ),
    ),
    Fault(
        "index-drops-the-block-of-the-log-start", Area.DATA,
        "DeleteRecords within a block of the index drops the whole block from the index",
        "Produce 200 KiB with growing times, DeleteRecords at 10 KiB, ListOffsets for a time at 20 KiB: it must answer "
        "an offset there, and not one of the next block",
        (
            Replacement(
                "fencepost_server/data/index.py", "Index.drop_before",
                "gone = bisect_right(self._bases, offset) - 1", "gone = bisect_right(self._bases, offset)",
            ),
        ),
    ),
    Fault(
        "future-epoch-has-an-end", Area.DATA,
        "OffsetForLeaderEpoch answers the log's end for an epoch that was never given",
        "OffsetForLeaderEpoch for epoch 5 while the leader is at epoch 0: it must answer -1 and -1",
        (
            Replacement(
                PARTITION, "PartitionLog.end_of",
                "if epoch == -1 or epoch > self.leader_epoch:", "if epoch == -1:",
            ),
        ),
    ),
    Fault(
        "delete-records-at-the-end-refused", Area.DATA,
        "DeleteRecords refuses an offset that equals the high watermark",
        "Produce three records, DeleteRecords before offset 3: it must answer low watermark 3",
        (Replacement(LOG_OFFSETS, "delete_records", "elif offset > log.high or", "elif offset >= log.high or"),),
    ),
    Fault(
        "deleted-topic-keeps-its-bytes", Area.DATA,
        "the bytes of a deleted topic still count towards the data limit",
        "fill a server to --max-data-mib, DeleteTopics, Produce to another topic: it must be taken",
        (
            Replacement(
                "fencepost_server/node.py", "Node.delete_topic",
                "self.data_bytes -= sum(log.size for log in topic.logs)", "pass",
            ),
        ),
    ),
    Fault(
        "unknown-fetch-session-served", Area.DATA,
        "Fetch with the id of a session that does not exist is served as a full fetch",
        "Fetch v7 with session_id 7, epoch 3: it must answer FETCH_SESSION_ID_NOT_FOUND",
        (
            Replacement(
                SESSIONS, "FetchSessions.context",
                'raise Refused(Code.fetch_session_id_not_found, f"there is no fetch session {number}")',
                "return FetchContext(named)",
            ),
        ),
    ),
    Fault(
        "fetch-outlives-its-topic", Area.DATA,
        "a Fetch that waits while its topic is deleted answers as if the topic still existed",
        "Fetch of t-0 at its end with max_wait 5 s, then DeleteTopics t: it must answer UNKNOWN_TOPIC_OR_PARTITION",
        (
            Replacement(
                FETCH, "_readable",
                "if call.node.topic(topic.topic_id) is not topic:",
                "if (call.node.topic(topic.topic_id) or topic) is not topic:",
            ),
        ),
    ),
    Fault(
        "emptied-log-restarts-at-zero", Area.DATA,
        "a partition whose records were all deleted begins again at offset 0 after a restart",
        "Produce five records, DeleteRecords -1, restart, ListOffsets latest: it must answer 5",
        (
            Replacement(
                PARTITION, "PartitionLog.restored",
                "self.end = self.high = max(self.end, end)", "self.high = self.end",
            ),
        ),
        tests=(RESTARTS,),
    ),
    Fault(
        "restart-forgets-open-transactions", Area.DATA,
        "after a restart the last stable offset ignores transactions that were open",
        "Produce in a transaction, restart, Fetch read_committed: it must return nothing",
        (
            Replacement(
                PARTITION, "PartitionLog.restore",
                "self._durable.wrote(put, committed=committed)", "self._durable.producers.wrote(put)",
            ),
        ),
        tests=(RESTARTS,),
    ),
    Fault(
        "restart-commits-aborted-transactions", Area.DATA,
        "a restart takes every transaction marker for a commit",
        "Produce in a transaction, abort, restart, Fetch read_committed: aborted_transactions must list the producer",
        (
            Replacement(
                "fencepost_server/restore.py", "_topic",
                "committed=committed(batch) if batch.control else None",
                "committed=True if batch.control else None",
            ),
        ),
        tests=(RESTARTS,),
    ),
    Fault(
        "restart-reads-one-piece", Area.DATA,
        "a restart reads the first MiB of each partition only",
        "Produce 3 MiB to t-0, restart, ListOffsets latest: it must answer the old end",
        (
            Replacement(
                "fencepost_server/restore.py", "_topic",
                "while found := await node.store.batches(", "if found := await node.store.batches(",
            ),
        ),
        tests=(RESTARTS,),
    ),
    Fault(
        "fetch-session-repeats-an-epoch", Area.DATA,
        "a Fetch with an earlier epoch of its session is served",
        "Fetch that begins a session, then two Fetches with epoch 1: the second must answer "
        "INVALID_FETCH_SESSION_EPOCH",
        (Replacement(SESSIONS, "FetchSessions.context", "if session.epoch != epoch:", "if session.epoch < epoch:"),),
        tests=("tests/unit/server/test_fetch_sessions.py",),
    ),
    Fault(
        "fetch-session-forgets-nothing", Area.DATA,
        "a partition that leaves a fetch session stays in it",
        "Fetch that begins a session of t-0 and t-1, then Fetch that forgets t-0, then Produce to t-0: the next Fetch "
        "must not return t-0",
        (Replacement(SESSIONS, "FetchSessions.context", "session.partitions.pop(key, None)", "pass"),),
        tests=("tests/unit/server/test_fetch_sessions.py",),
    ),
    Fault(
        "fetch-session-hides-deleted-records", Area.DATA,
        "a fetch session answers a partition again if its high watermark changes, not if its first offset does",
        "Fetch that begins a session of t-0, then DeleteRecords of t-0: the next Fetch must return t-0",
        (
            Replacement(
                SESSIONS, "_Cached.takes", "(high, start) != (self.high, self.start)", "high != self.high"
            ),
        ),
        tests=("tests/unit/server/test_fetch_sessions.py",),
    ),
    Fault(
        "late-answer-in-a-fetch-session", Area.DATA,
        "the answer to a Fetch is sent although another request has continued its session meanwhile",
        "Fetch in a session waits for records while another Fetch continues the session: the first must answer "
        "INVALID_FETCH_SESSION_EPOCH",
        (
            Replacement(
                SESSIONS, "FetchSessions.answered",
                "if session.epoch != context.epoch:", "if session.epoch < context.epoch:",
            ),
        ),
        tests=("tests/unit/server/test_fetch_sessions.py",),
    ),
    Fault(
        "fetch-session-of-a-deleted-topic", Area.DATA,
        "a fetch session by topic id answers UNKNOWN_TOPIC_ID for a topic that was deleted",
        "Fetch v15 that begins a session, DeleteTopics, Fetch in the session: it must answer "
        "UNKNOWN_TOPIC_OR_PARTITION, as Kafka does",
        (
            Replacement(
                FETCH, "fetch", 'if answer["error_code"] is Code.unknown_topic_id and known is not None:',
                "if known is not None and not name:",
            ),
        ),
        tests=("tests/unit/server/test_fetch_sessions.py",),
    ),
    Fault(
        "fetch-session-in-the-order-of-its-request", Area.DATA,
        "a fetch session begins with a partition that cannot be read",
        "begin a session with an unknown topic before a known one, create the topic, fill both, Fetch with a limit of "
        "0 bytes: the known one must come first",
        (
            Replacement(
                "fencepost_server/apis/fetch.py", "_answers",
                "(unreadable if log is None else answers).append((key, answer))", "answers.append((key, answer))",
            ),
        ),
    ),
)  # fmt: skip

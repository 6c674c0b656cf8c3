-------------------------- MODULE MCGroupLogMutants -------------------------
(***************************************************************************)
(* The log with one guard removed at a time: in a configuration that must  *)
(* fail, each operator overrides one of GroupLog.                          *)
(***************************************************************************)
EXTENDS MCGroupLog

\* For ReplicatedToAll: acknowledged before the high watermark, as soon as the
\* leader has the record (acks=1).
ReplicatedByItself(b) == end[b]

\* For MayReplicate: an old coordinator counts on copies that no longer follow
\* it.
AnyLeaderMayReplicate(b) == IsLeader(b)

\* For CaughtUp: if the leader's own high watermark is behind, a copy that lacks
\* acknowledged records counts again (KAFKA-7128).
CaughtUpToHighWatermark(b) == end[b] >= highWatermark[Leader]

\* For DivergenceOffset: a returning broker keeps records that no other broker
\* has.
TruncatesNothing(b) == end[b]

\* For Superseded: by a record that may still be lost.
SupersededByAny(b, r) == \E q \in OfKey(log[b], r.key) : q.offset > r.offset

\* For Superseded: of two records of a key the first is kept.
SupersededByFirst(b, r) ==
  \E q \in OfKey(Before(log[b], highWatermark[b]), r.key) : q.offset < r.offset

\* For HasNoOlderRecords: a tombstone is removed before the records that it
\* removes.
NeverHasOlderRecords(b, r) == TRUE

\* For EveryBrokerHasSeen: a tombstone is removed before all brokers have seen
\* it.
AlwaysSeen(b, r) == TRUE

\* For AfterTimeOut: the change is undone in memory, and stays in the log
\* (F-RT-09).
UndoneByTimeOut(b, r) == Replay(log[b] \ {r}, end[b])

\* For Loaded: the log is read to the high watermark only (F-LOAD-01).
LoadedToHighWatermark(b) == memory[b].next >= highWatermark[b]
=============================================================================

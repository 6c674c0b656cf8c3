-------------------------- MODULE MCGroupLogMutants -------------------------
(***************************************************************************)
(* The log with one guard removed at a time: in a configuration that must  *)
(* fail, each operator overrides one of GroupLog.                          *)
(***************************************************************************)
EXTENDS MCGroupLog

\* For HeldByAll: acknowledged before the high watermark, as soon as the leader
\* has the record (acks=1).
HeldByItself(b) == end[b]

\* For MayReplicate: an old coordinator counts on copies that no longer follow
\* it.
WhoeverLeads(b) == Leads(b)

\* For CaughtUp: if the leader's own high watermark is behind, a copy that lacks
\* acknowledged records counts again (KAFKA-7128).
CaughtUpToTheMark(b) == end[b] >= mark[Leader]

\* For Parting: a returning broker keeps records that no other broker has.
CutsNothingOff(b) == end[b]

\* For Superseded: by a record that may still be lost.
SupersededByAny(b, r) == \E q \in OfKey(log[b], r.key) : q.offset > r.offset

\* For Superseded: of two records of a key the first is kept.
SupersededByTheFirst(b, r) ==
  \E q \in OfKey(Before(log[b], mark[b]), r.key) : q.offset < r.offset

\* For TakesNothingAway: a tombstone is removed before the records that it
\* removes.
NothingToTakeAway(b, r) == TRUE

\* For EverybodyHasSeen: a tombstone is removed before all brokers have seen it.
WhoeverHasSeen(b, r) == TRUE

\* For AfterTimeOut: the change is undone in memory, and stays in the log
\* (F-RT-09).
UndoneByTimeOut(b, r) == Replay(log[b] \ {r}, end[b])

\* For Loaded: the log is read to the high watermark only (F-LOAD-01).
LoadedToTheMark(b) == memory[b].next >= mark[b]
=============================================================================

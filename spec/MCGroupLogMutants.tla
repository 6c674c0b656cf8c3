-------------------------- MODULE MCGroupLogMutants -------------------------
(***************************************************************************)
(* The log with one guard taken away at a time: each operator stands in    *)
(* for one of GroupLog by an override in a configuration that must fail.   *)
(***************************************************************************)
EXTENDS MCGroupLog

\* For HeldByAll: acknowledged before the high watermark, as soon as the leader has
\* the record (acks=1).
HeldByItself(b) == end[b]

\* For MayReplicate: an old coordinator counts on copies that no longer follow it.
WhoeverLeads(b) == Leads(b)

\* For CaughtUp: where the leader's own high watermark is behind, a copy that lacks
\* what was acknowledged counts again (KAFKA-7128).
CaughtUpToTheMark(b) == end[b] >= mark[Leader]

\* For Parting: who comes back keeps what nobody else has.
CutsNothingOff(b) == end[b]

\* For Superseded: by a record that may still be lost.
SupersededByAny(b, r) == \E q \in OfKey(log[b], r.key) : q.offset > r.offset

\* For Superseded: of two records of a key the first is kept.
SupersededByTheFirst(b, r) ==
  \E q \in OfKey(Before(log[b], mark[b]), r.key) : q.offset < r.offset

\* For TakesNothingAway: a tombstone goes before what it takes away.
NothingToTakeAway(b, r) == TRUE

\* For EverybodyHasSeen: a tombstone goes while somebody has yet to see it.
WhoeverHasSeen(b, r) == TRUE

\* For AfterTimeOut: the change is undone in memory, and stays in the log (F-RT-09).
UndoneByTimeOut(b, r) == Replay(log[b] \ {r}, end[b])

\* For Loaded: the log is read to the high watermark only (F-LOAD-01).
LoadedToTheMark(b) == memory[b].next >= mark[b]
=============================================================================

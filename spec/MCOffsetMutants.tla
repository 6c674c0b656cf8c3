-------------------------- MODULE MCOffsetMutants ---------------------------
(***************************************************************************)
(* The offsets with one guard removed at a time: in a configuration that   *)
(* must fail, each operator overrides one of OffsetStore or Offsets.       *)
(***************************************************************************)
EXTENDS MCOffsets

\* For IsCurrent: any former member may commit (O-COMMIT-25, 32).
AnyRequestIsCurrent(r) == TRUE

\* For IsInTransaction: a late commit of a finished transaction is written as if
\* the transaction were open (before KIP-890).
AnyRequestIsInTransaction(r) == TRUE

\* For Visible: the last written offset, pending or not (O-FETCH-07).
LastWritten(q) == IF q = << >> THEN Missing ELSE q[Len(q)]

\* For Unstable: a fetch for stable offsets is answered with the previous
\* offset.
NeverUnstable(q) == FALSE

\* For AfterAbortMarker: an abort leaks.
AbortMarkerCommits(q, h) == AfterCommitMarker(q, h)

\* For Overtaken: the end of a transaction counts as the time of its commits.
NeverOvertaken(q, i) == FALSE

\* For MayExpire: a pending offset expires too (O-EXP-11).
AlwaysMayExpire(q) == TRUE

\* For SentAtOnce: a commit is answered before it is replicated (F-RT-04).
AnsweredBeforeReplication(answers) == answers

\* For MarkerIsInFlight: a marker is not requested again after a fault.
MarkerIsNotRetried(h) ==
  \/ \E i \in 1..Len(unreplicated) : h \in unreplicated[i].ends
  \/ faultsLeft # AllFaultsLeft

\* For KeptPartitions: a member that missed a decision keeps its positions (N-TR-06).
KeepsGrantedPartitions(h) == lease[h].resources \cap grant[h]

\* For NewLease: a lease of the decision and of everything held before.
KeepsOldLease(h) ==
  [lease EXCEPT ![h] = [epoch |-> epoch, resources |-> @.resources \cup grant[h]]]

\* For Loaded: a new coordinator starts without offsets (F-LOAD-01).
LoadsOnlyOpenBatches(k) == IF k = 0 THEN NoOffsets ELSE unreplicated[k].store

\* For IsAbandoned: a transaction without a producer stays open.
NeverAbandoned(h) == FALSE
=============================================================================

-------------------------- MODULE MCOffsetMutants ---------------------------
(***************************************************************************)
(* The offsets with one guard taken away at a time: each operator stands   *)
(* in for one of OffsetStore or Offsets by an override in a configuration  *)
(* that must fail.                                                         *)
(***************************************************************************)
EXTENDS MCOffsets

\* For IsCurrent: whoever was a member once may commit (O-COMMIT-25, 32).
WhateverItsEpoch(r) == TRUE

\* For IsInTransaction: what was sent in a transaction that is over is written, if
\* late, as if it were open (before KIP-890).
WhateverItsTransaction(r) == TRUE

\* For Visible: the last that was written, pending or not (O-FETCH-07).
LastWritten(q) == IF q = << >> THEN Missing ELSE q[Len(q)]

\* For Unstable: who asks for stable offsets is told what there was before.
NeverUnstable(q) == FALSE

\* For AfterAbortMarker: an abort leaks.
AfterAnyMarker(q, h) == AfterCommitMarker(q, h)

\* For Overtaken: the end of a transaction counts as the time of its commits.
NeverOvertaken(q, i) == FALSE

\* For MayExpire: O-EXP-11 forgotten.
ExpiresAnyway(q) == TRUE

\* For AtOnce: a commit is answered before it is replicated (F-RT-04).
BeforeReplication(answers) == answers

\* For MarkerIsOut: nobody asks for it again after a fault.
NotAskedForAgain(h) ==
  \/ \E i \in 1..Len(unreplicated) : h \in unreplicated[i].ends
  \/ faultsLeft < Faults

\* For Keeps: who missed a decision goes on where it was (N-TR-06).
KeepsWhatItIsGranted(h) == lease[h].things \cap grant[h]

\* For Newly: a lease of what was decided, and of what was had before.
KeepsTheOldToo(h) ==
  [lease EXCEPT ![h] = [epoch |-> epoch, things |-> @.things \cup grant[h]]]

\* For Loaded: a coordinator that starts from nothing (F-LOAD-01).
LoadsOpenBatchesOnly(k) == IF k = 0 THEN NoOffsets ELSE unreplicated[k].store

\* For IsAbandoned: a transaction without a producer stays open.
NeverAbandoned(h) == FALSE
=============================================================================

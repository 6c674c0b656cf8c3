-------------------------- MODULE OffsetProperties --------------------------
(***************************************************************************)
(* What is promised of offsets, and how they stand on Ownership and on     *)
(* Durable. Each promise has a configuration that fails without one guard. *)
(***************************************************************************)
EXTENDS Offsets

(***************************************************************************)
(* Ownership decides who may commit. What members believe are its leases.  *)
(***************************************************************************)
Group == INSTANCE Ownership WITH
  Things <- Parts,
  leases <- {[holder |-> h, epoch |-> lease[h].epoch, things |-> lease[h].things] :
               h \in {k \in Holders : lease[k].epoch > 0}}

TheGroupKeepsOwnership == Group!Spec

(***************************************************************************)
(* Durable keeps what was written.                                         *)
(***************************************************************************)
Kept == INSTANCE Durable WITH
  IsState <- IsStore, Blank <- NoOffsets,
  stable  <- log,
  open    <- [i \in 1..Len(unreplicated) |-> unreplicated[i].store]

TheOffsetsAreDurable == Kept!Spec

-----------------------------------------------------------------------------
(***************************************************************************)
(* Every commit that is accepted is by a member that may commit there:     *)
(* nobody who is fenced or late ever moves an offset (INV-COMMIT-01,       *)
(* INV-KIP-11).                                                            *)
(***************************************************************************)
Accepted(r) ==
  /\ r.api # "Fetch"
  /\ Len(unreplicated') > Len(unreplicated)

OnlyAnOwnerCommits ==
  [][\A r \in requests \ requests' :
       Accepted(r) => Group!MayCommit(r.from, r.part)]_vars

(***************************************************************************)
(* Nothing acknowledged is lost (INV-COMMIT-03): what a member was told is *)
(* committed, is, in what no fail-over takes away; or it is in the hands   *)
(* of a transaction that is sure to commit.                                *)
(***************************************************************************)
Counts(e) ==
  e.pending => /\ txn[e.producer].state = "committing"
               /\ txn[e.producer].number = e.number

NothingAcknowledgedIsLost ==
  \A t \in Parts : promised[t] > 0 =>
    \E i \in 1..Len(log[t]) : log[t][i].offset >= promised[t] /\ Counts(log[t][i])

(***************************************************************************)
(* No owner is behind what an owner before it was told is committed: no    *)
(* record is processed again that somebody has answered for.               *)
(***************************************************************************)
NoOwnerIsBehindWhatWasCommitted ==
  \A h \in Holders : \A t \in Parts :
    Group!MayCommit(h, t) /\ member[h].position[t] # Unknown =>
      member[h].position[t] >= promised[t]

-----------------------------------------------------------------------------
\* Answers that tell an offset, on their way or about to be.
Telling ==
  {y \in replies \cup UNION {unreplicated[i].answers : i \in 1..Len(unreplicated)} :
     y.api = "Fetch" /\ y.error = "NONE"}

(***************************************************************************)
(* What is pending is told to nobody (INV-TXN-01).                         *)
(***************************************************************************)
NobodyIsToldWhatIsPending == \A y \in Telling : ~y.entry.pending

(***************************************************************************)
(* Who asks for stable offsets is told nothing at all while a transaction  *)
(* has yet to say whether another offset counts (O-FETCH-08).              *)
(***************************************************************************)
WhoWantsStableOffsetsWaits ==
  [][\A r \in requests \ requests' :
       /\ r.api = "Fetch" /\ RequireStable
       /\ \E y \in Telling' : y \notin Telling /\ y.to = r.from
       => ~IsPending(Newest[r.part])]_vars

(***************************************************************************)
(* What was aborted is seen by nobody: it is no committed offset, and no   *)
(* answer tells it (INV-TXN-01).                                           *)
(***************************************************************************)
IsAborted(e) == e.producer # "" /\ e.number \in txn[e.producer].aborted

NobodySeesWhatWasAborted ==
  /\ \A y \in Telling : ~IsAborted(y.entry)
  /\ \A t \in Parts : ~IsAborted(Visible(Newest[t]))

(***************************************************************************)
(* Whatever is pending is of a transaction that is still to end. One that  *)
(* no marker will ever come for would hang for ever (KIP-890).             *)
(***************************************************************************)
WhatIsPendingIsStillToEnd ==
  \A t \in Parts : \A i \in 1..Len(Newest[t]) :
    LET e == Newest[t][i]
    IN e.pending => /\ txn[e.producer].state # "none"
                    /\ txn[e.producer].number = e.number

-----------------------------------------------------------------------------
(***************************************************************************)
(* Liveness: a transaction that ends frees its offsets, and every member   *)
(* that waits is answered, or has stopped waiting.                         *)
(***************************************************************************)
AnEndedTransactionFreesItsOffsets ==
  \A h \in Holders : \A t \in Parts :
    txn[h].state \in {"committing", "aborting"} ~>
      \/ txn[h].state = "none"
      \/ \A i \in 1..Len(log[t]) : ~IsOf(log[t][i], h)

NothingIsPendingForEver ==
  \A t \in Parts : IsPending(log[t]) ~> ~IsPending(log[t])

EveryWaitEnds == \A h \in Holders : member[h].waiting ~> ~member[h].waiting
=============================================================================

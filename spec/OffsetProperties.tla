-------------------------- MODULE OffsetProperties --------------------------
(***************************************************************************)
(* The promises about offsets, and the refinement of Ownership and         *)
(* Durable. For each promise there is a configuration that fails without   *)
(* one guard.                                                              *)
(***************************************************************************)
EXTENDS Offsets

(***************************************************************************)
(* Ownership decides who may commit. The leases are what members believe.  *)
(***************************************************************************)
Abstract == INSTANCE Ownership WITH
  Resources <- Parts,
  leases <- {[holder |-> h, epoch |-> lease[h].epoch, resources |-> lease[h].resources] :
               h \in {k \in Holders : lease[k].epoch > 0}}

TheGroupRefinesOwnership == Abstract!Spec

(***************************************************************************)
(* Durable keeps what was written.                                         *)
(***************************************************************************)
DurableOffsets == INSTANCE Durable WITH
  IsState <- IsStore, Blank <- NoOffsets,
  stable  <- log,
  open    <- [i \in 1..Len(unreplicated) |-> unreplicated[i].store]

TheOffsetsRefineDurable == DurableOffsets!Spec

-----------------------------------------------------------------------------
(***************************************************************************)
(* Every accepted commit comes from a member that may commit there: a      *)
(* fenced or late member never moves an offset (INV-COMMIT-01,             *)
(* INV-KIP-11).                                                            *)
(***************************************************************************)
Accepted(r) ==
  /\ r.api # "Fetch"
  /\ Len(unreplicated') > Len(unreplicated)

OnlyOwnersCommit ==
  [][\A r \in requests \ requests' :
       Accepted(r) => Abstract!MayCommit(r.from, r.part)]_vars

(***************************************************************************)
(* Nothing acknowledged is lost (INV-COMMIT-03): an offset that was        *)
(* acknowledged to a member as committed is in the replicated state, or    *)
(* belongs to a transaction that is sure to commit.                        *)
(***************************************************************************)
CountsAsCommitted(e) ==
  e.pending => /\ txn[e.producer].state = "committing"
               /\ txn[e.producer].number = e.number

NoAcknowledgedWriteIsLost ==
  \A t \in Parts : acknowledged[t] > 0 =>
    \E i \in 1..Len(log[t]) : log[t][i].offset >= acknowledged[t] /\ CountsAsCommitted(log[t][i])

(***************************************************************************)
(* No owner is behind an offset that was acknowledged to an earlier owner, *)
(* so no committed record is processed again.                              *)
(***************************************************************************)
NoOwnerIsBehindACommittedOffset ==
  \A h \in Holders : \A t \in Parts :
    Abstract!MayCommit(h, t) /\ member[h].position[t] # Unknown =>
      member[h].position[t] >= acknowledged[t]

-----------------------------------------------------------------------------
\* Answers that contain an offset, in flight or waiting for replication.
OffsetAnswers ==
  {y \in replies \cup UNION {unreplicated[i].answers : i \in 1..Len(unreplicated)} :
     y.api = "Fetch" /\ y.error = "NONE"}

(***************************************************************************)
(* No answer contains a pending offset (INV-TXN-01).                       *)
(***************************************************************************)
NoAnswerContainsAPendingOffset == \A y \in OffsetAnswers : ~y.entry.pending

(***************************************************************************)
(* A fetch for stable offsets gets no offset while a transaction has yet   *)
(* to decide whether another offset counts (O-FETCH-08).                   *)
(***************************************************************************)
EveryStableFetchWaitsForTransactions ==
  [][\A r \in requests \ requests' :
       /\ r.api = "Fetch" /\ RequireStable
       /\ \E y \in OffsetAnswers' : y \notin OffsetAnswers /\ y.to = r.from
       => ~IsPending(Newest[r.part])]_vars

(***************************************************************************)
(* No member sees an aborted offset: it is not committed, and no answer    *)
(* contains it (INV-TXN-01).                                               *)
(***************************************************************************)
IsAborted(e) == e.producer # "" /\ e.number \in txn[e.producer].aborted

NoAbortedOffsetIsVisible ==
  /\ \A y \in OffsetAnswers : ~IsAborted(y.entry)
  /\ \A t \in Parts : ~IsAborted(Visible(Newest[t]))

(***************************************************************************)
(* A pending offset belongs to a transaction that is still to end. Without *)
(* a marker to come, it would hang for ever (KIP-890).                     *)
(***************************************************************************)
EveryPendingOffsetHasAnUnfinishedTransaction ==
  \A t \in Parts : \A i \in 1..Len(Newest[t]) :
    LET e == Newest[t][i]
    IN e.pending => /\ txn[e.producer].state # "none"
                    /\ txn[e.producer].number = e.number

-----------------------------------------------------------------------------
(***************************************************************************)
(* Liveness: a transaction that ends frees its offsets, and every member   *)
(* that waits is answered, or has stopped waiting.                         *)
(***************************************************************************)
EveryEndedTransactionFreesItsOffsets ==
  \A h \in Holders : \A t \in Parts :
    txn[h].state \in {"committing", "aborting"} ~>
      \/ txn[h].state = "none"
      \/ \A i \in 1..Len(log[t]) : ~IsPendingOf(log[t][i], h)

NoOffsetIsPendingForever ==
  \A t \in Parts : IsPending(log[t]) ~> ~IsPending(log[t])

EveryWaitEnds == \A h \in Holders : member[h].waiting ~> ~member[h].waiting
=============================================================================

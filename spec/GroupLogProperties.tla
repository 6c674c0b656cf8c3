------------------------- MODULE GroupLogProperties -------------------------
(***************************************************************************)
(* What the log promises, and how it refines Durable. Each promise has a   *)
(* configuration that fails without one guard of GroupLog.                 *)
(***************************************************************************)
EXTENDS GroupLog

\* Copy L has record r, or a later one of its key; or r was a tombstone, which has
\* gone after everything that it took away.
Has(L, r) ==
  LET later == From(OfKey(L, r.key), r.offset)
  IN \/ \E q \in later : q = r \/ q.offset > r.offset
     \/ r.value = Nothing /\ OfKey(L, r.key) = {}

(***************************************************************************)
(* Nothing acknowledged is lost: whoever is elected has every write of     *)
(* which a client was told that it is done, or a later one (INV-COMMIT-03).*)
(***************************************************************************)
NothingAcknowledgedIsLost ==
  \A r \in acknowledged : end[Leader] > r.offset /\ Has(log[Leader], r)

(***************************************************************************)
(* A coordinator that is out of office answers from what it takes for      *)
(* replicated (F-CONS-07). That may be old; it is never what others have   *)
(* otherwise, or will (F-RT-11).                                           *)
(***************************************************************************)
WhatIsReplicatedStays ==
  \A b \in Brokers : \A r \in Before(log[b], mark[b]) : Stays(r)

(***************************************************************************)
(* A coordinator that has loaded has in memory what its log amounts to,    *)
(* whatever was cleaned before, since, or while it read; so another one    *)
(* would load the same (INV-REPLAY-01).                                    *)
(***************************************************************************)
TheMemoryIsTheLog ==
  \A b \in Brokers :
    Leads(b) /\ Loaded(b) => memory[b].state = Replay(log[b], end[b])

-----------------------------------------------------------------------------
\* Up to where some broker knows that all is replicated.
Committed == Max({mark[b] : b \in Brokers})

\* How many records the leader has beyond that.
Beyond == IF end[Leader] > Committed THEN end[Leader] - Committed ELSE 0

(***************************************************************************)
(* As Durable has it: the state is what the leader's records up to there   *)
(* amount to; each further record is a batch. Cleaning, fetching, loading  *)
(* and all that an old coordinator does are no steps of it.                *)
(***************************************************************************)
Abstract == INSTANCE Durable WITH
  Blank  <- Empty,
  stable <- Replay(log[Leader], Committed),
  open   <- [i \in 1..Beyond |-> Replay(log[Leader], Committed + i)]

TheLogIsDurable == Abstract!Spec
=============================================================================

------------------------- MODULE GroupLogProperties -------------------------
(***************************************************************************)
(* The promises of the log, and its refinement of Durable. For each        *)
(* promise there is a configuration that fails without one guard of        *)
(* GroupLog.                                                               *)
(***************************************************************************)
EXTENDS GroupLog

\* Copy L has record r, or a later one of its key; or r was a tombstone, which
\* was removed after everything that it removes.
HasRecord(L, r) ==
  LET later == From(OfKey(L, r.key), r.offset)
  IN \/ \E q \in later : q = r \/ q.offset > r.offset
     \/ r.value = Nothing /\ OfKey(L, r.key) = {}

(***************************************************************************)
(* Nothing acknowledged is lost: whichever broker is elected has every     *)
(* write that was acknowledged to a client, or a later one                 *)
(* (INV-COMMIT-03).                                                        *)
(***************************************************************************)
NoAcknowledgedWriteIsLost ==
  \A r \in acknowledged : end[Leader] > r.offset /\ HasRecord(log[Leader], r)

(***************************************************************************)
(* A coordinator that was replaced without knowing it answers from what it *)
(* takes for replicated (F-CONS-07). That may be old, but it never         *)
(* contradicts what other brokers have or will have (F-RT-11).             *)
(***************************************************************************)
EveryReplicatedRecordStays ==
  \A b \in Brokers : \A r \in Before(log[b], highWatermark[b]) : IsNeverTruncated(r)

(***************************************************************************)
(* The memory of a loaded coordinator is what its log gives, whatever was  *)
(* cleaned before, since, or while it read; so another one would load the  *)
(* same (INV-REPLAY-01).                                                   *)
(***************************************************************************)
TheMemoryEqualsTheLog ==
  \A b \in Brokers :
    IsLeader(b) /\ Loaded(b) => memory[b].state = Replay(log[b], end[b])

-----------------------------------------------------------------------------
\* Up to where some broker knows that all is replicated.
Committed == Max({highWatermark[b] : b \in Brokers})

\* How many records the leader has beyond that.
OpenCount == IF end[Leader] > Committed THEN end[Leader] - Committed ELSE 0

(***************************************************************************)
(* In terms of Durable, the state is what the leader's records up to there *)
(* give, and each further record is a batch. Cleaning, fetching, loading   *)
(* and everything that an old coordinator does are stuttering steps.       *)
(***************************************************************************)
Abstract == INSTANCE Durable WITH
  Blank  <- Empty,
  stable <- Replay(log[Leader], Committed),
  open   <- [i \in 1..OpenCount |-> Replay(log[Leader], Committed + i)]

TheLogRefinesDurable == Abstract!Spec
=============================================================================

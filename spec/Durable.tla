------------------------------- MODULE Durable ------------------------------
(***************************************************************************)
(* The guarantee that a coordinator relies on, without saying how it is    *)
(* kept: a state is written batch by batch, and what is replicated is      *)
(* never lost. There are no records, no offsets, no replicas.              *)
(*                                                                         *)
(* The next batch builds on a written batch at once, but until that batch  *)
(* is replicated both may be lost. Only a tail is ever lost: a batch never *)
(* survives one that was written before it.                                *)
(***************************************************************************)
EXTENDS Naturals, Sequences

CONSTANTS
  IsState(_),  \* whether a value is a state
  Blank        \* the state before anything was written

ASSUME IsState(Blank)

VARIABLE stable  \* the state that can no longer be lost
TypeStable == IsState(stable)

VARIABLE open    \* the state after each batch not yet replicated, oldest first
TypeOpen == \A i \in DOMAIN open : IsState(open[i])

durable == <<stable, open>>

EveryVariableHasItsType == TypeStable /\ TypeOpen

\* The state after the first k open batches.
After(k) == IF k = 0 THEN stable ELSE open[k]

\* The state that the next batch builds on.
Newest == After(Len(open))

Init == /\ stable = Blank
        /\ open = << >>

(***************************************************************************)
(* A batch is written: any state may follow the newest one.                *)
(***************************************************************************)
Write ==
  /\ Len(open') = Len(open) + 1
  /\ \A i \in 1..Len(open) : open'[i] = open[i]
  /\ IsState(open'[Len(open')])
  /\ UNCHANGED stable

(***************************************************************************)
(* The first j open batches are replicated; of the rest, those after the   *)
(* first k are lost. Nothing is lost as long as the writer lives.          *)
(***************************************************************************)
Keep(j, k) ==
  /\ stable' = After(j)
  /\ open' = SubSeq(open, j + 1, k)

Replicate == \E j \in 1..Len(open) : Keep(j, Len(open))

FailOver == \E k \in 0..Len(open) : \E j \in 0..k : Keep(j, k)

Next == Write \/ Replicate \/ FailOver

Spec == Init /\ [][Next]_durable
=============================================================================

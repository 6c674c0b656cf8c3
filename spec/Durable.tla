------------------------------- MODULE Durable ------------------------------
(***************************************************************************)
(* What a coordinator may rely on, without saying how it is done: a state  *)
(* is written batch by batch, and what is replicated is never lost. No     *)
(* records, no offsets, no replicas.                                       *)
(*                                                                         *)
(* A batch that is written counts at once for whoever writes the next one, *)
(* and may be lost with it until it is replicated. Lost is always a tail:  *)
(* a batch never survives one that was written before it.                  *)
(***************************************************************************)
EXTENDS Naturals, Sequences

CONSTANTS
  IsState(_),  \* what a state is
  Blank        \* the state before anything was written

ASSUME IsState(Blank)

VARIABLE stable  \* the state that cannot be lost any more
TypeStable == IsState(stable)

VARIABLE open    \* the state after each batch not yet replicated, oldest first
TypeOpen == \A i \in DOMAIN open : IsState(open[i])

durable == <<stable, open>>

EveryVariableHasItsType == TypeStable /\ TypeOpen

\* The state after the first k open batches.
After(k) == IF k = 0 THEN stable ELSE open[k]

\* What the next batch is written upon.
Newest == After(Len(open))

Init == /\ stable = Blank
        /\ open = << >>

(***************************************************************************)
(* A batch is written: whatever the writer makes of the newest state.      *)
(***************************************************************************)
Write ==
  /\ Len(open') = Len(open) + 1
  /\ \A i \in 1..Len(open) : open'[i] = open[i]
  /\ IsState(open'[Len(open')])
  /\ UNCHANGED stable

(***************************************************************************)
(* The first j open batches are replicated, of the rest all but the first  *)
(* k are lost. Nothing is lost as long as the writer lives.                *)
(***************************************************************************)
Keep(j, k) ==
  /\ stable' = After(j)
  /\ open' = SubSeq(open, j + 1, k)

Replicate == \E j \in 1..Len(open) : Keep(j, Len(open))

FailOver == \E k \in 0..Len(open) : \E j \in 0..k : Keep(j, k)

Next == Write \/ Replicate \/ FailOver

Spec == Init /\ [][Next]_durable
=============================================================================

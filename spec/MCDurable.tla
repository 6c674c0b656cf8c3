------------------------------ MODULE MCDurable -----------------------------
(***************************************************************************)
(* Durable on its own, bounded: a state is the list of what was written,   *)
(* so it shows which batches it holds. Lists and open batches end at       *)
(* three. Risk: none known, as no formula looks further.                   *)
(***************************************************************************)
EXTENDS Durable

Written == {"x", "y"}
Longest == 3

EmptyList == << >>

IsList(s) == DOMAIN s = 1..Len(s) /\ \A i \in DOMAIN s : s[i] \in Written

\* The same next-state relation, with sets that TLC can enumerate.
BoundedWrite ==
  /\ Len(Newest) < Longest
  /\ \E w \in Written : open' = Append(open, Append(Newest, w))
  /\ UNCHANGED stable

BoundedNext == BoundedWrite \/ Replicate \/ FailOver
BoundedSpec == Init /\ [][BoundedNext]_durable

-----------------------------------------------------------------------------
IsPrefix(s, t) == Len(s) <= Len(t) /\ s = SubSeq(t, 1, Len(s))

\* A replicated batch stays for ever.
NoStableBatchIsLost == [][IsPrefix(stable, stable')]_durable

\* A batch never survives one that was written before it.
EveryBatchExtendsThePreviousOne ==
  \A i \in 1..Len(open) : /\ IsPrefix(After(i - 1), open[i])
                          /\ Len(open[i]) = Len(After(i - 1)) + 1

\* For Keep: a fail-over may start with the blank state.
MayLoseTheStableState(j, k) ==
  /\ stable' \in {Blank, After(j)}
  /\ open' = SubSeq(open, j + 1, k)

\* For Keep: the last batch survives without those before it.
KeepsOnlyTheLastBatch(j, k) ==
  /\ k > 0
  /\ stable' = stable
  /\ open' = SubSeq(open, k, k)
=============================================================================

----------------------------- MODULE MCOwnership ----------------------------
(***************************************************************************)
(* Ownership on its own, bounded. Epochs end at three: enough for one      *)
(* lease that is one decision late and one that is two late. Risk: none    *)
(* known, as no formula looks at more than two epochs.                     *)
(***************************************************************************)
EXTENDS Ownership

TwoHolders == {"h1", "h2"}
TwoResources  == {"p1", "p2"}
FewEpochs  == 0..2

\* The same next-state relation, with sets that TLC can enumerate.
BoundedDecide ==
  \E e \in FewEpochs, g \in [Holders -> SUBSET Resources] :
    /\ e > epoch
    /\ Disjoint(g)
    /\ epoch' = e
    /\ grant' = g
    /\ leases' \in SUBSET (leases \cup GrantedLeases(e, g))

BoundedNext == BoundedDecide \/ ChangeLeases
BoundedSpec == Init /\ [][BoundedNext]_ownership

-----------------------------------------------------------------------------
\* For Disjoint: one resource may be granted twice.
AnyGrant(g) == TRUE

\* For MayCommit: a lease of any epoch passes.
MayCommitWithAnyLease(h, t) ==
  \E l \in leases : l.holder = h /\ t \in l.resources
=============================================================================

----------------------------- MODULE MCOwnership ----------------------------
(***************************************************************************)
(* Ownership on its own, bounded. Epochs are cut at three: enough for a    *)
(* lease that is one and one that is two decisions late. Risk: none seen,  *)
(* as no formula looks at more than two epochs.                            *)
(***************************************************************************)
EXTENDS Ownership

TwoHolders == {"h1", "h2"}
TwoThings  == {"p1", "p2"}
FewEpochs  == 0..2

\* The same next-state relation, with the sets that TLC has to enumerate.
BoundedDecide ==
  \E e \in FewEpochs, g \in [Holders -> SUBSET Things] :
    /\ e > epoch
    /\ Disjoint(g)
    /\ epoch' = e
    /\ grant' = g
    /\ leases' \in SUBSET (leases \cup Entitled(e, g))

BoundedNext == BoundedDecide \/ Serve
BoundedSpec == Init /\ [][BoundedNext]_ownership

-----------------------------------------------------------------------------
\* For Disjoint: an authority that grants one thing twice.
GrantsAnything(g) == TRUE

\* For MayCommit: a lease of any epoch will do.
MayCommitWithAnyLease(h, t) ==
  \E l \in leases : l.holder = h /\ t \in l.things
=============================================================================

--------------------------- MODULE MCMixedFairness --------------------------
(***************************************************************************)
(* SystemCanMove, by which FairSpec says what must not be put off, is what *)
(* TLA+ calls ENABLED. TLC finds that out by trial, so on a small graph.   *)
(***************************************************************************)
EXTENDS MCMixedGroup

WhatIsFairIsWhatIsEnabled == SystemCanMove <=> ENABLED <<System>>_vars

\* For SystemCanMove: a fairness that asks for nothing.
NothingCanMove == FALSE
=============================================================================
